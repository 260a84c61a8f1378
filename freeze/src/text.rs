//! Decoded text with the position of each of its bytes in the file: without entities and escapes.
//!
//! A reference is found in the decoded text and changed in the file. All changes are insertions of letters, digits and
//! dots, which no language here has to escape, so a position is enough. Absent: named entities other than the five of
//! XML, which no path needs.
//!
//! Source: HTML, "Character reference state"; CSS Syntax 3, "Consume an escaped code point"; ECMAScript, "String
//! Literals".

use std::borrow::Cow;

/// Text and its position in the file.
#[derive(Debug, Clone)]
pub(super) struct Text<'a> {
    bytes: Cow<'a, [u8]>,
    places: Places,
}

/// Position of each byte of a text in the file.
#[derive(Debug, Clone)]
enum Places {
    /// Consecutive positions from this one on.
    From(usize),
    /// The begin of each byte, and the end of the last one.
    Each(Vec<usize>),
}

impl<'a> Text<'a> {
    /// Takes the text of the file unchanged, from a position on.
    pub(super) fn plain(bytes: &'a [u8], from: usize) -> Self {
        Self {
            bytes: Cow::Borrowed(bytes),
            places: Places::From(from),
        }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Position in the file of the byte with this index; the length as index returns the end.
    pub(super) fn place(&self, index: usize) -> usize {
        match &self.places {
            Places::From(from) => from + index,
            Places::Each(each) => each[index.min(each.len() - 1)],
        }
    }

    /// A part of the text.
    pub(super) fn part(&self, from: usize, to: usize) -> Text<'_> {
        Text {
            bytes: Cow::Borrowed(&self.bytes[from..to]),
            places: match &self.places {
                Places::From(start) => Places::From(start + from),
                Places::Each(each) => Places::Each(each[from..=to].to_vec()),
            },
        }
    }

    /// Returns the text between the quotes of a string at `at`, and the position after the string: it ends with its
    /// line at the latest.
    pub(super) fn quoted(&self, at: usize) -> (usize, usize, usize) {
        let (bytes, from) = (self.bytes(), at + 1);
        let mut to = from;
        while to < bytes.len() && bytes[to] != bytes[at] && bytes[to] != b'\n' {
            to += if bytes[to] == b'\\' { 2 } else { 1 };
        }
        let to = to.min(bytes.len());
        (from, to, (to + 1).min(bytes.len()))
    }

    /// Returns a part of it without the escapes of a language: `read` returns an escape's meaning and its length.
    fn unescaped(
        &self,
        range: (usize, usize),
        mark: u8,
        read: impl Fn(&[u8]) -> Option<(Vec<u8>, usize)>,
    ) -> Text<'_> {
        let (from, to) = range;
        let raw = &self.bytes[from..to];
        if !raw.contains(&mark) {
            return self.part(from, to);
        }
        let (mut bytes, mut each) = (Vec::with_capacity(raw.len()), Vec::new());
        let mut i = 0;
        while i < raw.len() {
            let place = self.place(from + i);
            let escape = (raw[i] == mark).then(|| read(&raw[i..])).flatten();
            match escape {
                Some((meant, length)) => {
                    each.extend(meant.iter().map(|_| place));
                    bytes.extend(meant);
                    i += length.max(1);
                }
                None => {
                    bytes.push(raw[i]);
                    each.push(place);
                    i += 1;
                }
            }
        }
        each.push(self.place(to));
        Text {
            bytes: Cow::Owned(bytes),
            places: Places::Each(each),
        }
    }

    /// The value of an attribute.
    pub(super) fn html(&self, from: usize, to: usize) -> Text<'_> {
        self.unescaped((from, to), b'&', entity)
    }

    /// Text between the quotes or brackets of CSS.
    pub(super) fn css(&self, from: usize, to: usize) -> Text<'_> {
        self.unescaped((from, to), b'\\', css_escape)
    }

    /// Text between the quotes of JavaScript or JSON.
    pub(super) fn js(&self, from: usize, to: usize) -> Text<'_> {
        self.unescaped((from, to), b'\\', js_escape)
    }
}

/// `&amp;`, `&#47;`, `&#x2f;` at the beginning, and their length.
fn entity(raw: &[u8]) -> Option<(Vec<u8>, usize)> {
    let end = raw.iter().take(ENTITY_BYTES_MAX).position(|b| *b == b';')?;
    let meant = match &raw[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    };
    Some((utf8(meant), end + 1))
}

fn css_escape(raw: &[u8]) -> Option<(Vec<u8>, usize)> {
    let digits = raw[1..]
        .iter()
        .take(6)
        .take_while(|b| b.is_ascii_hexdigit())
        .count();
    if digits > 0 {
        let meant = number(&raw[1..=digits], 16)?;
        let blank = raw.get(1 + digits).is_some_and(u8::is_ascii_whitespace);
        return Some((utf8(meant), 1 + digits + usize::from(blank)));
    }
    match raw.get(1)? {
        b'\n' => Some((Vec::new(), 2)),
        other => Some((vec![*other], 2)),
    }
}

fn js_escape(raw: &[u8]) -> Option<(Vec<u8>, usize)> {
    let hex = |from: usize, to: usize| raw.get(from..to).and_then(|digits| number(digits, 16));
    match raw.get(1)? {
        b'n' => Some((vec![b'\n'], 2)),
        b't' => Some((vec![b'\t'], 2)),
        b'r' => Some((vec![b'\r'], 2)),
        b'\n' => Some((Vec::new(), 2)),
        b'x' => hex(2, 4).map(|c| (utf8(c), 4)),
        b'u' if raw.get(2) == Some(&b'{') => {
            let end = raw.iter().take(ENTITY_BYTES_MAX).position(|b| *b == b'}')?;
            hex(3, end).map(|c| (utf8(c), end + 1))
        }
        b'u' => hex(2, 6).map(|c| (utf8(c), 6)),
        other => Some((vec![*other], 2)),
    }
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let text = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` would take a sign.
    let plain = text.chars().all(|c| c.is_digit(radix));
    let number = u32::from_str_radix(text, radix).ok().filter(|_| plain)?;
    char::from_u32(number)
}

fn utf8(c: char) -> Vec<u8> {
    c.to_string().into_bytes()
}

/// Longer runs after a mark are no entity and no escape.
const ENTITY_BYTES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_read_and_keeps_its_place() {
        let file = b"xx a&#46;c&amp;d &c &unknown;";
        let text = Text::plain(file, 0);
        let value = text.html(3, file.len());
        assert_eq!(value.bytes(), b"a.c&d &c &unknown;");
        assert_eq!((value.place(0), value.place(1), value.place(2)), (3, 4, 9));
        assert_eq!(value.place(value.bytes().len()), file.len());
        let text = Text::plain(b"a\\2e css\\)", 10);
        let value = text.css(0, 10);
        assert_eq!(value.bytes(), b"a.css)");
        assert_eq!((value.place(1), value.place(2)), (11, 15));
        let text = Text::plain(br"\u002fa\x2e\u{6a}s\'", 0);
        assert_eq!(text.js(0, 20).bytes(), b"/a.js'");
    }

    #[test]
    fn escapes_that_are_cut_off_stay() {
        for raw in [
            &b"\\"[..],
            b"\\u",
            b"\\u{",
            b"\\x1",
            b"&",
            b"&#",
            b"&#x;",
            b"&#+65;",
            b"&#x+41;",
        ] {
            let text = Text::plain(raw, 0);
            let _ = (text.js(0, raw.len()), text.css(0, raw.len()));
            assert_eq!(text.html(0, raw.len()).bytes(), raw);
        }
    }
}
