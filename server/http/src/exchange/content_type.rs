//! The `Content-Type` of a response while it is being decided.
//!
//! Text from a server behind is sent as it came, with a charset of its own. Lists of types compare the part before that
//! charset, with all other parameters, as nginx does.
//!
//! Source: nginx documentation, `charset`, `override_charset`, `gzip_types`; RFC 9110 section 8.3.

use engines::http::{FieldId, ResponseHead};

/// Value of `Content-Type`; empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentType {
    text: Vec<u8>,
    /// Bytes at the end of the text that are its own charset, with the semicolon before it; 0 for none.
    charset_len: u32,
}

impl ContentType {
    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Removes it.
    #[inline]
    pub fn clear(&mut self) {
        self.text.clear();
        self.charset_len = 0;
    }

    /// Sets a media type with all its parameters. None of them is taken for a charset: lists of types compare all of it.
    pub fn set(&mut self, text: &[u8]) {
        self.clear();
        self.text.extend_from_slice(text);
    }

    /// Sets the value that a server sent, and returns its charset. That is the first parameter of this name, up to the end of
    /// the text and without quotes around it; empty for none.
    pub fn set_received<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        self.set(text);
        for at in memchr::memchr_iter(b';', text) {
            let rest = &text[at + 1..];
            let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
            let parameter = &rest[spaces..];
            let Some((name, charset)) = parameter.split_at_checked(CHARSET.len()) else {
                continue;
            };
            if name.eq_ignore_ascii_case(CHARSET) {
                self.charset_len = (text.len() - at) as u32;
                let charset = charset.strip_prefix(b"\"").unwrap_or(charset);
                return charset.strip_suffix(b"\"").unwrap_or(charset);
            }
        }
        b""
    }

    /// Removes the text's own charset, with all behind it: another one takes its place.
    pub fn remove_charset(&mut self) {
        self.text.truncate(self.media_type().len());
        self.charset_len = 0;
    }

    /// Returns the part that is compared with lists of types.
    #[inline]
    pub fn media_type(&self) -> &[u8] {
        &self.text[..self.text.len() - self.charset_len as usize]
    }

    /// Returns the whole text.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Appends the text to `out`, with `charset` behind it if it has none of its own and `charset` is not empty.
    pub fn write(&self, charset: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text);
        if self.charset_len == 0 && !charset.is_empty() {
            out.extend_from_slice(b"; charset=");
            out.extend_from_slice(charset);
        }
    }

    /// Appends the field to `head`, with `charset` as in [`Self::write`].
    pub(crate) fn push_to(&self, head: &mut ResponseHead, charset: &[u8]) {
        if charset.is_empty() || self.charset_len > 0 {
            return head.push_id(FieldId::ContentType, NAME, &self.text);
        }
        let mut value = Vec::new();
        self.write(charset, &mut value);
        head.push_id(FieldId::ContentType, NAME, &value);
    }
}

const NAME: &[u8] = b"Content-Type";
const CHARSET: &[u8] = b"charset=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_received_type_is_compared_up_to_its_charset_and_sent_as_it_came() {
        for (value, media_type, charset) in [
            ("text/html", "text/html", ""),
            ("text/html; charset=utf-8", "text/html", "utf-8"),
            ("text/html;charset=UTF-8", "text/html", "UTF-8"),
            ("text/html;  Charset=\"a\"", "text/html", "a"),
            ("text/html;\tcharset=a", "text/html;\tcharset=a", ""),
            ("text/html; a=b; charset=c", "text/html; a=b", "c"),
            ("text/html; charset=c; d", "text/html", "c; d"),
            ("text/html; a=b", "text/html; a=b", ""),
            ("text/html; charset=", "text/html", ""),
            ("text/html;", "text/html;", ""),
            ("a/b;p=\"x;charset=y\"", "a/b;p=\"x", "y"),
        ] {
            let mut kind = ContentType::default();
            let found = kind.set_received(value.as_bytes());
            assert_eq!(found, charset.as_bytes(), "{value}");
            assert_eq!(kind.media_type(), media_type.as_bytes(), "{value}");
            let mut out = Vec::new();
            kind.write(found, &mut out);
            assert_eq!(out, value.as_bytes());
            kind.remove_charset();
            out.clear();
            kind.write(b"other", &mut out);
            assert_eq!(out, format!("{media_type}; charset=other").into_bytes());
            kind.clear();
            assert_eq!(kind, ContentType::default());
        }
    }

    #[test]
    fn a_configured_type_is_compared_whole() {
        let mut kind = ContentType::default();
        kind.set(b"text/html; charset=utf-8");
        assert_eq!(kind.media_type(), b"text/html; charset=utf-8");
        kind.remove_charset();
        assert_eq!(kind.text(), b"text/html; charset=utf-8");
    }
}
