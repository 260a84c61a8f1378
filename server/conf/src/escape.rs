//! Backslash and dollar inside a word, and how to write a word so that it reads back.
//!
//! A backslash keeps the next byte from ending the word. Before a quote or another backslash it is dropped, before
//! `t`, `r` and `n` it makes a control byte, before anything else it stays: regular expressions need it.
//!
//! Source: nginx documentation, "Configuration file's structure"; the corners were compared with nginx itself.

use std::borrow::Cow;

/// Tracks whether previous bytes escape the next one.
#[derive(Default)]
pub(crate) struct Marks {
    escaped: bool,
    /// The last byte was `$`, or a `{` that followed one.
    variable: bool,
}

impl Marks {
    /// Returns whether the byte has its own meaning: it is not escaped, escaping, or part of a `${`.
    pub(crate) fn plain(&mut self, byte: u8) -> bool {
        if self.escaped {
            self.escaped = false;
            return false;
        }
        if byte == b'{' && self.variable {
            return false;
        }
        self.variable = byte == b'$';
        self.escaped = byte == b'\\';
        !self.variable && !self.escaped
    }
}

/// Resolves the escapes of a word.
pub(crate) fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.contains(&b'\\') {
        return raw.into();
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let resolved = match (byte, bytes.peek()) {
            (b'\\', Some(next @ (b'"' | b'\'' | b'\\'))) => Some(*next),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            _ => None,
        };
        if resolved.is_some() {
            bytes.next();
        }
        out.push(resolved.unwrap_or(byte));
    }
    out.into()
}

/// A word as it can be written in a configuration so that it reads back the same: in quotes, escaped.
pub fn quote(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len() + 2);
    out.push(b'"');
    for byte in word {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_escapes_are_resolved() {
        assert_eq!(*unescape(br#"\" \' \\ \\t"#), *br#"" ' \ \t"#);
        assert_eq!(*unescape(br"\t\r\n"), *b"\t\r\n");
    }

    #[test]
    fn a_backslash_before_any_other_byte_stays() {
        assert_eq!(*unescape(br"\.\d\$\;\"), *br"\.\d\$\;\");
    }

    #[test]
    fn a_quoted_word_resolves_to_itself() {
        let word = b"a \"b\" 'c' \\d ${e} \n;{}#\xff";
        let quoted = quote(word);
        assert_eq!(*unescape(&quoted[1..quoted.len() - 1]), *word);
    }

    #[test]
    fn marks_take_the_meaning_from_what_is_escaped_and_from_the_brace_of_a_variable() {
        let plain = |text: &[u8]| {
            let mut marks = Marks::default();
            text.iter()
                .map(|byte| if marks.plain(*byte) { '+' } else { '.' })
                .collect::<String>()
        };
        assert_eq!(plain(b"a;b"), "+++");
        assert_eq!(plain(b"a\\;b"), "+..+");
        assert_eq!(plain(b"${a{"), "..++");
        assert_eq!(plain(b"${{a"), "...+");
        assert_eq!(plain(b"$\\{{"), "...+");
    }
}
