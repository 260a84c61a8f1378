//! Bytes of paths and requests within the text of a message.
//!
//! nginx writes them as they are. Here control characters are escaped, so that no terminal sequence or line break of an
//! attacker reaches a log (CVE-2009-4487). All other bytes stay, so that a file is found by its name in the log.
//!
//! A message consists of `fmt` arguments, which are UTF-8. A byte that is not UTF-8 is passed to the line as a character
//! of private use, and the line gets the byte back: [`restore_bytes`].

use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes in a message: as they are, with control characters (U+0000 to U+001F, U+007F to U+009F) as `\xHH`. A byte from
/// 0x80 to 0x9f that is not UTF-8 is `\xHH` too: terminals with 8-bit characters obey it.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl<'a> Printable<'a> {
    /// The bytes of a path.
    pub fn path(path: &'a Path) -> Self {
        Self(path.as_os_str().as_bytes())
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Most names are plain ASCII. All bytes are tested without an early exit, so that the compiler vectorizes the loop.
        let is_odd = |odd, byte: &u8| odd | !(b' '..=b'~').contains(byte);
        if !self.0.iter().fold(false, is_odd)
            && let Ok(text) = str::from_utf8(self.0)
        {
            return f.write_str(text);
        }
        for chunk in self.0.utf8_chunks() {
            write_text(chunk.valid(), f)?;
            for byte in chunk.invalid() {
                match char::from_u32(MARK + u32::from(*byte)).filter(|_| *byte >= 0xa0) {
                    Some(mark) => f.write_char(mark)?,
                    None => write!(f, "\\x{byte:02X}")?,
                }
            }
        }
        Ok(())
    }
}

/// Writes runs of printable characters whole, since most texts are one.
fn write_text(mut text: &str, out: &mut impl Write) -> fmt::Result {
    let is_escaped = |c: char| c.is_control() || unmark(c).is_some();
    while let Some(at) = text.find(is_escaped) {
        out.write_str(&text[..at])?;
        let len = text[at..].chars().next().map_or(1, char::len_utf8);
        for byte in &text.as_bytes()[at..at + len] {
            write!(out, "\\x{byte:02X}")?;
        }
        text = &text[at + len..];
    }
    out.write_str(text)
}

/// Puts the bytes that [`Printable`] marked into a message. The message begins at `start` of the line and ends with it.
pub(super) fn restore_bytes(line: &mut Vec<u8>, start: usize) {
    // Nearly no message has a character of so many bytes.
    if memchr::memchr(MARK_BYTE, &line[start..]).is_some() {
        let text = String::from_utf8_lossy(&line[start..]).into_owned();
        line.truncate(start);
        push_bytes(&text, line);
    }
}

fn push_bytes(text: &str, line: &mut Vec<u8>) {
    for c in text.chars() {
        match unmark(c) {
            Some(byte) => line.push(byte),
            None => line.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// A message as the bytes of a line.
pub fn message_bytes(message: fmt::Arguments<'_>) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    restore_bytes(&mut line, 0);
    line
}

/// A message as text: bytes that are not UTF-8 are `\xHH`.
pub fn message_text(message: fmt::Arguments<'_>) -> String {
    let text = message.to_string();
    if memchr::memchr(MARK_BYTE, text.as_bytes()).is_none() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match unmark(c) {
            // Writing to a String cannot fail.
            Some(byte) => drop(write!(out, "\\x{byte:02X}")),
            None => out.push(c),
        }
    }
    out
}

/// The byte that is marked by a character.
fn unmark(c: char) -> Option<u8> {
    u32::from(c)
        .checked_sub(MARK)
        .and_then(|byte| u8::try_from(byte).ok())
}

/// The first of 256 characters of private use.
const MARK: u32 = 0x10_fe00;
/// The first byte of the marks in UTF-8.
const MARK_BYTE: u8 = 0xf4;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: &[u8]) -> Vec<u8> {
        message_bytes(format_args!("<{}>", Printable(bytes)))
    }

    #[test]
    fn bytes_of_a_path_stay_as_they_are() {
        for text in [
            &b"/srv/caf\xe9"[..],
            "/srv/café 🦀".as_bytes(),
            b"\xa0\xff\xc3",
            "\u{10ffff}".as_bytes(),
            b"",
        ] {
            assert_eq!(line(text), [b"<", text, b">"].concat());
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(line(b"\x1b[2J\n\0\x7f~"), b"<\\x1B[2J\\x0A\\x00\\x7F~>");
        assert_eq!(line(b"\x9b2J"), b"<\\x9B2J>", "an 8-bit CSI");
        assert_eq!(line(b"\xc2\x9b2J"), b"<\\xC2\\x9B2J>", "U+009B");
        assert_eq!(line(b"\x80\x9f\xa0"), b"<\\x80\\x9F\xa0>");
        assert_eq!(line("\u{a0}".as_bytes()), "<\u{a0}>".as_bytes());
    }

    #[test]
    fn a_client_cannot_send_a_mark() {
        let mark = char::from_u32(MARK + 0xe9).expect("a character");
        let text = line(mark.to_string().as_bytes());
        assert_eq!(text, b"<\\xF4\\x8F\\xBB\\xA9>");
    }

    #[test]
    fn a_message_as_text_is_utf8() {
        let path = Printable(b"/caf\xe9/\xc3\xa9");
        assert_eq!(message_text(format_args!("\"{path}\"")), "\"/caf\\xE9/é\"");
    }
}
