//! JSON values as the API writes them: members stay in their order, without spaces.
//!
//! Absent: parsing, which is serde_json's.
//!
//! Source: RFC 8259.

use std::fmt::Write;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(u64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// An object without members.
    pub(super) const EMPTY: Self = Self::Object(Vec::new());

    /// Makes an object.
    pub(super) fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        let members = members.into_iter();
        Self::Object(
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// Makes an array of strings.
    pub(super) fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self::List(names.into_iter().map(Self::from).collect())
    }

    /// Adds a member to an object.
    pub(super) fn push(&mut self, name: &str, value: impl Into<Self>) {
        if let Self::Object(members) = self {
            members.push((name.to_owned(), value.into()));
        }
    }

    /// Removes all members of an object except those with these names.
    pub(super) fn keep_fields(&mut self, names: &[&[u8]]) {
        if let Self::Object(members) = self {
            members.retain(|(name, _)| names.contains(&name.as_bytes()));
        }
    }

    /// Removes all members of each object in an object or an array except those with these names.
    pub(super) fn keep_inner_fields(&mut self, names: &[&[u8]]) {
        match self {
            Self::Object(members) => members.iter_mut().for_each(|(_, it)| it.keep_fields(names)),
            Self::List(list) => list.iter_mut().for_each(|it| it.keep_fields(names)),
            _ => {}
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            // Writing to a string cannot fail.
            Self::Number(value) => drop(write!(out, "{value}")),
            Self::Text(text) => write_text(text, out),
            Self::List(list) => {
                out.push('[');
                for (n, value) in list.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (n, (name, value)) in members.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => drop(write!(out, "\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&[u8]> for Json {
    /// Bytes that are not UTF-8 are replaced.
    fn from(value: &[u8]) -> Self {
        Self::Text(String::from_utf8_lossy(value).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_order_and_escaped() {
        let mut object = Json::object([
            ("z", Json::Number(u64::MAX)),
            ("a", Json::names(["x", "\"\\\n\u{1f}\u{20}\u{e9}"])),
        ]);
        object.push("e", Json::EMPTY);
        object.push("b", true);
        let text = "{\"z\":18446744073709551615,\"a\":[\"x\",\"\\\"\\\\\\u000a\\u001f \u{e9}\"],\"e\":{},\"b\":true}";
        assert_eq!(object.text(), text);
        assert_eq!(Json::from(&b"\xff"[..]).text(), "\"\u{fffd}\"");
        let parsed: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(parsed["a"][1], "\"\\\n\u{1f} \u{e9}");
    }

    #[test]
    fn fields_are_those_that_are_named() {
        let zone = Json::object([("a", 1.into()), ("b", 2.into()), ("c", 3.into())]);
        let mut one = zone.clone();
        one.keep_fields(&[b"c", b"a", b"x"]);
        assert_eq!(one.text(), "{\"a\":1,\"c\":3}");
        let mut all = Json::object([("one", zone.clone()), ("two", zone.clone())]);
        all.keep_inner_fields(&[b"b"]);
        assert_eq!(all.text(), "{\"one\":{\"b\":2},\"two\":{\"b\":2}}");
        all.keep_inner_fields(&[]);
        assert_eq!(all.text(), "{\"one\":{},\"two\":{}}");
        let mut list = Json::List(vec![zone]);
        list.keep_inner_fields(&[b"a"]);
        assert_eq!(list.text(), "[{\"a\":1}]");
    }
}
