//! Percent-escaping and HTML-escaping of text for URIs and pages.
//!
//! The sets of escaped bytes are nginx's (`ngx_escape_uri`), because responses and upstream requests built from
//! them must be equal.

/// Which bytes [`escape`] replaces by `%XX`. All kinds but the last
/// two and `Memcached` replace controls, DEL and everything above 0x7f as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// A path: space `"#%?<>\^{|}` and backtick.
    Uri,
    /// A query argument: as `Uri`, and `&+;`.
    Args,
    /// A component: all but letters, digits and `-._~`.
    UriComponent,
    /// A link in a page: space `"#%'<>\^{|}` and backtick; `?` stays.
    Html,
    /// A memcached key: controls, space and `%`.
    Memcached,
    /// The URL of a page that refreshes itself: space ``"'<>\^`{|~``.
    Refresh,
    /// `Location`, which is a URI already: controls, DEL and `\`, which browsers drop or read as a slash. Bytes
    /// above 0x7f stay.
    Location,
    /// The value of a field: CR, LF and NUL.
    LineEnds,
}

/// Appends `src` to `out` with the bytes of `kind` as `%XX`.
pub fn escape(src: &[u8], kind: Escape, out: &mut Vec<u8>) {
    let escaped = match kind {
        Escape::Uri => &URI,
        Escape::Args => &ARGS,
        Escape::UriComponent => &URI_COMPONENT,
        Escape::Html => &HTML,
        Escape::Memcached => &MEMCACHED,
        Escape::Refresh => &REFRESH,
        Escape::Location => &LOCATION,
        Escape::LineEnds => &LINE_ENDS,
    };
    out.reserve(src.len());
    let mut rest = src;
    while let Some(at) = rest.iter().position(|&byte| escaped[byte as usize]) {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'%', HEX[byte as usize >> 4], HEX[byte as usize & 15]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends `src` to `out` with every valid `%XX` decoded; an invalid sequence is kept verbatim.
pub fn unescape(src: &[u8], out: &mut Vec<u8>) {
    out.reserve(src.len());
    let mut rest = src;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        match hex_pair(&rest[at + 1..]) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[at + 3..];
            }
            None => {
                out.push(b'%');
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

/// Appends `src` to `out` with `<`, `>`, `&` and `"` as character references.
pub fn escape_html(src: &[u8], out: &mut Vec<u8>) {
    out.reserve(src.len());
    for &byte in src {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
}

/// The byte encoded by two hexadecimal digits at the start of `text`.
pub(super) fn hex_pair(text: &[u8]) -> Option<u8> {
    let (high, low) = (text.first()?, text.get(1)?);
    Some(hex_digit(*high)? << 4 | hex_digit(*low)?)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Controls, DEL, everything above, and `chars`.
const fn not_ascii_and(chars: &[u8]) -> [bool; 256] {
    let mut table = controls_and(chars);
    let mut byte = 0x7f;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table
}

/// Controls below 0x20, and `chars`.
const fn controls_and(chars: &[u8]) -> [bool; 256] {
    let mut table = only(chars);
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table
}

/// `chars` and nothing else.
const fn only(chars: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < chars.len() {
        table[chars[at] as usize] = true;
        at += 1;
    }
    table
}

/// All bytes but letters, digits and `chars`.
const fn all_but(chars: &[u8]) -> [bool; 256] {
    let mut table = super::class::alphanumeric_and(chars);
    let mut byte = 0;
    while byte < 256 {
        table[byte] = !table[byte];
        byte += 1;
    }
    table
}

const URI: [bool; 256] = not_ascii_and(b" \"#%?<>\\^`{|}");
const ARGS: [bool; 256] = not_ascii_and(b" \"#%?<>\\^`{|}&+;");
const URI_COMPONENT: [bool; 256] = all_but(b"-._~");
const HTML: [bool; 256] = not_ascii_and(b" \"#%'<>\\^`{|}");
const MEMCACHED: [bool; 256] = controls_and(b" %");
const REFRESH: [bool; 256] = not_ascii_and(b" \"'<>\\^`{|~");
const LOCATION: [bool; 256] = controls_and(b"\x7f\\");
const LINE_ENDS: [bool; 256] = only(b"\r\n\0");
const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(src: &[u8], kind: Escape) -> String {
        let mut out = Vec::new();
        escape(src, kind, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_escapes_its_bytes() {
        let text = b"/a b?c&d+e;f%\"#'<\x01";
        assert_eq!(
            escaped(text, Escape::Uri),
            "/a%20b%3Fc&d+e;f%25%22%23'%3C%01"
        );
        assert_eq!(
            escaped(text, Escape::Args),
            "/a%20b%3Fc%26d%2Be%3Bf%25%22%23'%3C%01"
        );
        assert_eq!(
            escaped(text, Escape::Html),
            "/a%20b?c&d+e;f%25%22%23%27%3C%01"
        );
        assert_eq!(
            escaped(text, Escape::Memcached),
            "/a%20b?c&d+e;f%25\"#'<%01"
        );
        assert_eq!(
            escaped(text, Escape::Refresh),
            "/a%20b?c&d+e;f%%22#%27%3C%01"
        );
        assert_eq!(escaped(b"{|}~^\x7f", Escape::Refresh), "%7B%7C}%7E%5E%7F");
        assert_eq!(
            escaped(b"a/-._~:@\xff", Escape::UriComponent),
            "a%2F-._~%3A%40%FF"
        );
        assert_eq!(escaped(b"\x7f\x80", Escape::Uri), "%7F%80");
    }

    #[test]
    fn unescape_decodes_what_is_valid_and_keeps_the_rest() {
        let decoded = |src: &[u8]| {
            let mut out = Vec::new();
            unescape(src, &mut out);
            out
        };
        assert_eq!(decoded(b"a%20b%2Fc%2f"), b"a b/c/");
        assert_eq!(decoded(b"%"), b"%");
        assert_eq!(decoded(b"%4"), b"%4");
        assert_eq!(decoded(b"%zz%%41"), b"%zz%A");
        assert_eq!(decoded(b"%00"), b"\0");
    }

    #[test]
    fn unescape_reverses_escape() {
        let all: Vec<u8> = (0..=255).collect();
        for kind in [
            Escape::Uri,
            Escape::Args,
            Escape::UriComponent,
            Escape::Html,
            Escape::Memcached,
        ] {
            let mut back = Vec::new();
            unescape(escaped_bytes(&all, kind).as_slice(), &mut back);
            assert_eq!(back, all, "{kind:?}");
        }
    }

    fn escaped_bytes(src: &[u8], kind: Escape) -> Vec<u8> {
        let mut out = Vec::new();
        escape(src, kind, &mut out);
        out
    }

    #[test]
    fn markup_becomes_references() {
        let mut out = Vec::new();
        escape_html(b"<a href=\"x\">&'", &mut out);
        assert_eq!(out, b"&lt;a href=&quot;x&quot;&gt;&amp;'");
    }
}
