//! Complex values: text with `$variables` and `$1` captures. [`vars`](crate::vars) evaluates them for an exchange.
//!
//! Source: nginx documentation, "Complex values" in the development guide, `ngx_http_script`.

use conf::{ConfError, Directive, Word};
use server_base::config::{ConfigContext, VarId};
use server_base::from_args::FromArgs;

/// A compiled complex value.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// Its pieces in order; empty for the empty string.
    pub parts: Vec<Part>,
}

/// One piece of a complex value.
#[derive(Clone, Debug)]
pub enum Part {
    /// Text as written.
    Text(Box<[u8]>),
    /// A variable.
    Var(VarId),
    /// A numbered capture of the last regular expression.
    Capture(u8),
}

impl Value {
    /// A value without variables.
    pub fn text(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::default(),
            _ => Self {
                parts: vec![Part::Text(bytes.into())],
            },
        }
    }

    /// Compiles the text of a directive's argument.
    ///
    /// # Errors
    /// `invalid variable name`, in nginx's words.
    pub fn compile(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        word: &Word,
    ) -> Result<Self, ConfError> {
        Self::compile_bytes(cx, d, word, &word.text)
    }

    /// Compiles `bytes`, which are a part of `word`.
    ///
    /// # Errors
    /// See [`Value::compile`].
    pub fn compile_bytes(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        word: &Word,
        bytes: &[u8],
    ) -> Result<Self, ConfError> {
        let mut parts = Vec::new();
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'$', rest) {
            push_text(&mut parts, &rest[..at]);
            rest = &rest[at + 1..];
            if let [digit @ b'1'..=b'9', ..] = rest {
                parts.push(Part::Capture(digit - b'0'));
                rest = &rest[1..];
                continue;
            }
            let (name, after) = split_name(rest).map_err(|m| ConfError::word(d, word, m))?;
            if name.is_empty() {
                return Err(ConfError::word(d, word, "invalid variable name"));
            }
            parts.push(Part::Var(cx.variable(name, d, word)));
            rest = after;
        }
        push_text(&mut parts, rest);
        Ok(Self { parts })
    }

    /// Appends another value; texts that meet become one.
    pub fn append(&mut self, other: Self) {
        for part in other.parts {
            match (self.parts.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => {
                    *before = [&before[..], &text[..]].concat().into();
                }
                (_, part) => self.parts.push(part),
            }
        }
    }

    /// The text, if no variable occurs in it.
    pub fn constant(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl FromArgs for Value {
    const SYNTAX: &'static str = "string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::compile(cx, d, d.word(0))
    }
}

/// A size with variables; `None` for a constant 0.
#[derive(Clone, Debug, Default)]
pub struct SizeValue(pub Option<Value>);

impl FromArgs for SizeValue {
    const SYNTAX: &'static str = "size";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let value = Value::compile(cx, d, d.word(0))?;
        match value.constant().map(conf::parse_size) {
            Some(None) => Err(ConfError::directive(d, "invalid value")),
            Some(Some(0)) => Ok(Self(None)),
            Some(Some(_)) | None => Ok(Self(Some(value))),
        }
    }
}

fn push_text(parts: &mut Vec<Part>, text: &[u8]) {
    if !text.is_empty() {
        parts.push(Part::Text(text.into()));
    }
}

/// Takes a variable's name, with or without braces, from the front of `rest`.
pub fn split_name(rest: &[u8]) -> Result<(&[u8], &[u8]), String> {
    if let Some(inner) = rest.strip_prefix(b"{") {
        let end = inner
            .iter()
            .position(|b| !is_name_byte(*b))
            .unwrap_or(inner.len());
        return match inner.get(end) {
            Some(b'}') => Ok((&inner[..end], &inner[end + 1..])),
            _ => Err(format!(
                "the closing bracket in \"{}\" variable is missing",
                String::from_utf8_lossy(&inner[..end])
            )),
        };
    }
    let end = rest
        .iter()
        .position(|b| !is_name_byte(*b))
        .unwrap_or(rest.len());
    Ok(rest.split_at(end))
}

/// Returns the names of the variables in a text that compiles ([`Value::compile`]). A capture has its number as the name.
pub fn variable_names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind = text.split(|byte| *byte == b'$').skip(1);
    let names = behind.filter_map(|rest| split_name(rest).ok());
    names.map(|(name, _)| name)
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_nginx_ends_them() {
        assert_eq!(split_name(b"uri/x"), Ok((&b"uri"[..], &b"/x"[..])));
        assert_eq!(split_name(b"{uri}x"), Ok((&b"uri"[..], &b"x"[..])));
        assert!(split_name(b"{uri").is_err());
        assert_eq!(split_name(b""), Ok((&b""[..], &b""[..])));
    }

    #[test]
    fn names_of_variables_are_listed() {
        let names: Vec<_> = variable_names(b"a$uri-${args}b$1$$host").collect();
        assert_eq!(names, [&b"uri"[..], b"args", b"1", b"", b"host"]);
        assert_eq!(variable_names(b"none").count(), 0);
    }
}
