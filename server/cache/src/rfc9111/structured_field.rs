//! Structured fields: dictionaries, parsed strictly; parameters are checked and dropped.
//!
//! One error makes the whole field invalid. Source: RFC 8941 sections 3.2, 4.2.

use std::collections::BTreeMap;

use engines::http::{parse_decimal, trim_ows};

/// The value of a member of a dictionary, without parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An integer of at most 15 digits.
    Integer(i64),
    /// A string, unescaped.
    String(Vec<u8>),
    /// A token.
    Token(Vec<u8>),
    /// A boolean; a member without a value is true.
    Boolean(bool),
    /// A decimal, a byte sequence or an inner list. No cache directive has such a value.
    Other,
}

/// Parses the lines of a dictionary. A later member replaces an earlier one with its key. Returns `None` if the text is
/// no dictionary; an empty map if it is empty.
pub(super) fn parse_dictionary<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
) -> Option<BTreeMap<Vec<u8>, Item>> {
    // An empty line is dropped: a joined text with an empty member would be invalid (RFC 8941 section 4.2).
    let lines: Vec<&[u8]> = lines.filter(|line| !trim_ows(line).is_empty()).collect();
    let text = lines.join(&b", "[..]);
    let mut parser = Parser { rest: &text };
    parser.skip_blanks();
    let mut members = BTreeMap::new();
    while !parser.rest.is_empty() {
        let key = parser.key()?.to_vec();
        let value = if parser.eat(b'=') {
            parser.item_or_inner_list()?
        } else {
            Item::Boolean(true)
        };
        parser.parameters()?;
        members.insert(key, value);
        parser.rest = trim_ows(parser.rest);
        if parser.rest.is_empty() {
            break;
        }
        if !parser.eat(b',') {
            return None;
        }
        parser.rest = trim_ows(parser.rest);
        if parser.rest.is_empty() {
            return None;
        }
    }
    Some(members)
}

/// The text not read yet.
struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn key(&mut self) -> Option<&'a [u8]> {
        let first = *self.rest.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    fn item_or_inner_list(&mut self) -> Option<Item> {
        if !self.eat(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip_blanks();
            if self.eat(b')') {
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.rest.first()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn bare_item(&mut self) -> Option<Item> {
        match *self.rest.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string().map(Item::String),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                let token = self.take_while(is_token_byte);
                Some(Item::Token(token.to_vec()))
            }
            b':' => self.byte_sequence(),
            b'?' => {
                self.rest = &self.rest[1..];
                let is_true = self.eat(b'1');
                (is_true || self.eat(b'0')).then_some(Item::Boolean(is_true))
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Item> {
        let sign = if self.eat(b'-') { -1 } else { 1 };
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if self.eat(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let fits = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
            return fits.then_some(Item::Other);
        }
        let number = (whole.len() <= 15).then(|| parse_decimal::<i64>(whole))??;
        Some(Item::Integer(sign * number))
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        loop {
            match bytes.next()? {
                (at, b'"') => {
                    self.rest = &self.rest[at + 1..];
                    return Some(out);
                }
                (_, b'\\') => match bytes.next()? {
                    (_, byte @ (b'"' | b'\\')) => out.push(*byte),
                    _ => return None,
                },
                (_, byte @ b' '..=b'~') => out.push(*byte),
                _ => return None,
            }
        }
    }

    fn byte_sequence(&mut self) -> Option<Item> {
        self.rest = &self.rest[1..];
        self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        self.eat(b':').then_some(Item::Other)
    }

    fn parameters(&mut self) -> Option<()> {
        while self.eat(b';') {
            self.skip_blanks();
            self.key()?;
            if self.eat(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn take_while(&mut self, mut permitted: impl FnMut(u8) -> bool) -> &'a [u8] {
        let count = self
            .rest
            .iter()
            .take_while(|byte| permitted(**byte))
            .count();
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.rest.first() == Some(&wanted);
        self.rest = &self.rest[usize::from(found)..];
        found
    }

    fn skip_blanks(&mut self) {
        while self.eat(b' ') {}
    }
}

/// Whether `byte` is valid in an sf-token.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Option<Vec<(String, Item)>> {
        let members = parse_dictionary(lines.iter().map(|line| line.as_bytes()))?;
        let key = |key| String::from_utf8(key).expect("a key is ASCII");
        Some(
            members
                .into_iter()
                .map(|(name, item)| (key(name), item))
                .collect(),
        )
    }

    fn one(text: &str) -> Option<Item> {
        let members = parse(&[text])?;
        members.into_iter().next().map(|(_, item)| item)
    }

    /// RFC 8941 sections 3.2, 3.3.
    #[test]
    fn members_have_types() {
        for (text, item) in [
            ("a", Item::Boolean(true)),
            ("a;x=1;y", Item::Boolean(true)),
            ("a=?1", Item::Boolean(true)),
            ("a=?0;x", Item::Boolean(false)),
            ("a=0", Item::Integer(0)),
            ("a=-15; b=2", Item::Integer(-15)),
            ("a=999999999999999", Item::Integer(999_999_999_999_999)),
            ("a=1.5", Item::Other),
            ("a=\"b, \\\"c\\\\\"", Item::String(b"b, \"c\\".to_vec())),
            ("a=*x/y:z", Item::Token(b"*x/y:z".to_vec())),
            ("a=:aGk=:", Item::Other),
            ("a=()", Item::Other),
            ("a=( 1 \"x\";q=1  y );z", Item::Other),
            ("  a=1  ", Item::Integer(1)),
        ] {
            assert_eq!(one(text), Some(item), "{text}");
        }
    }

    /// RFC 8941 section 4.2: an error makes the field invalid.
    #[test]
    fn errors_make_the_dictionary_invalid() {
        for text in [
            "a=1,",
            "a=1,,b",
            ",a",
            "A=1",
            "a=1 b",
            "a =1",
            "a= 1",
            "a=",
            "a=1, &&&&&",
            "a=1000000000000000",
            "a=-",
            "a=1.",
            "a=1.0000",
            "a=1234567890123.0",
            "a=\"b",
            "a=\"\\x\"",
            "a=\"\u{e9}\"",
            "a=?2",
            "a=:a b:",
            "a=:a",
            "a=(1",
            "a=(1\"x\")",
            "a;",
            "a;X",
            "a;b=",
            "a=@",
        ] {
            assert_eq!(parse(&[text]), None, "{text}");
        }
    }

    /// A comparison of each member with all others would take many minutes.
    #[test]
    fn many_members_cost_little_time() {
        let text: Vec<String> = (0..200_000).map(|number| format!("a{number}")).collect();
        let members = parse(&[&text.join(",")]).expect("valid");
        assert_eq!(members.len(), text.len());
    }

    /// RFC 8941 section 4.2.2: the last member of a key counts.
    #[test]
    fn lines_are_joined_and_later_members_count() {
        let members = parse(&["a=1, b", " ", "c=3,\ta=2"]).expect("valid");
        let keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(members[0].1, Item::Integer(2));
        assert_eq!(parse(&[""]), Some(Vec::new()));
        assert_eq!(parse(&[]), Some(Vec::new()));
    }
}
