//! Chunk extensions: checked against their grammar, counted, and dropped.
//!
//! They are unused in practice, but two readers may disagree about every byte of them, and an unbounded extension
//! is wasted work. Source: RFC 9112 section 7.1.1; white space alone after the size is accepted, as in nginx.

use crate::http::{Fault, is_token_byte};

/// The rest of a size line after the size.
#[derive(Debug)]
pub(super) struct Extension {
    place: Last,
    bytes: usize,
}

/// Last byte class that was read.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// The size, a quoted value, or white space after a value.
    Complete,
    Semicolon,
    Name,
    /// White space after a name.
    NameEnd,
    Equals,
    Value,
    Quoted,
    /// A backslash in a quoted value.
    QuotedPair,
}

impl Extension {
    pub(super) fn new() -> Self {
        Self {
            place: Last::Complete,
            bytes: 0,
        }
    }

    /// Takes one byte and returns whether it is the CR that ends the line.
    ///
    /// # Errors
    /// `BadChunk` for a byte that is invalid here, `ChunkExtensionTooLong` beyond [`EXTENSION_BYTES`].
    pub(super) fn push(&mut self, byte: u8) -> Result<bool, Fault> {
        if byte == b'\r' && self.may_end() {
            return Ok(true);
        }
        self.place = self.next(byte).ok_or(Fault::BadChunk)?;
        self.bytes += 1;
        if self.bytes > EXTENSION_BYTES {
            return Err(Fault::ChunkExtensionTooLong);
        }
        Ok(false)
    }

    fn may_end(&self) -> bool {
        matches!(
            self.place,
            Last::Complete | Last::Name | Last::NameEnd | Last::Value
        )
    }

    fn next(&self, byte: u8) -> Option<Last> {
        let space = matches!(byte, b' ' | b'\t');
        let token = is_token_byte(byte);
        Some(match (self.place, byte) {
            (Last::Complete | Last::Name | Last::NameEnd | Last::Value, b';') => Last::Semicolon,
            (Last::Name | Last::NameEnd, b'=') => Last::Equals,
            (Last::Complete | Last::Value, _) if space => Last::Complete,
            (Last::Name | Last::NameEnd, _) if space => Last::NameEnd,
            (Last::Semicolon | Last::Equals, _) if space => self.place,
            (Last::Semicolon | Last::Name, _) if token => Last::Name,
            (Last::Equals | Last::Value, _) if token => Last::Value,
            (Last::Equals, b'"') => Last::Quoted,
            (Last::Quoted, b'"') => Last::Complete,
            (Last::Quoted, b'\\') => Last::QuotedPair,
            (Last::Quoted | Last::QuotedPair, _) if is_text(byte) => Last::Quoted,
            _ => return None,
        })
    }
}

/// Whether `byte` is valid in a quoted string (RFC 9110 section 5.6.4).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Most bytes of the extensions of one chunk.
pub(super) const EXTENSION_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<bool, Fault> {
        let mut extension = Extension::new();
        for (at, &byte) in text.iter().enumerate() {
            if extension.push(byte)? {
                return Ok(at + 1 == text.len());
            }
        }
        Ok(false)
    }

    #[test]
    fn extensions_of_the_grammar_are_read_to_their_end() {
        for text in [
            "\r",
            " \t\r",
            ";a\r",
            ";a=b\r",
            " ; a = b ; c\r",
            ";a=\"x;\\\"y\\r\"\r",
            ";a=\"\" ;b\r",
            ";a;b;c\r",
        ] {
            assert_eq!(read(text.as_bytes()), Ok(true), "{text:?}");
        }
    }

    #[test]
    fn anything_else_is_a_bad_chunk() {
        for text in [
            ";\r",
            ";;a\r",
            ";a=\r",
            ";=b\r",
            ";a b\r",
            ";a=b c\r",
            ";\x01\r",
            ";a\x01",
            ";a=\"\x01",
            ";a=\"b\"c",
            ";a\n",
            "\n",
            ";a=\"\r",
            "x",
            ";a=\"b\\\x7f",
            ";\u{e4}\r",
        ] {
            assert_eq!(read(text.as_bytes()), Err(Fault::BadChunk), "{text:?}");
        }
    }

    #[test]
    fn extensions_end_at_their_limit() {
        let mut text = vec![b';'];
        text.resize(EXTENSION_BYTES, b'a');
        text.push(b'\r');
        assert_eq!(read(&text), Ok(true));
        text.insert(1, b'a');
        assert_eq!(read(&text), Err(Fault::ChunkExtensionTooLong));
    }
}
