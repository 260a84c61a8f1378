//! Texts as data: escaped values, quoted names, encoded URLs, and one line of an error.

/// Longest text of an error, characters.
const LINE_CHARS_MAX: usize = 300;
/// Bytes of a response that an error may show, before it is cut.
const SHOWN_BYTES_MAX: usize = 4096;

/// Appends a text as it is inside of a literal and of a field of TabSeparated data: ClickHouse has the same escapes for both.
pub(super) fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '\0' => out.push_str("\\0"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            _ => out.push(character),
        }
    }
}

/// Returns a text as a literal.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from("'");
    escape(text, &mut out);
    out.push('\'');
    out
}

/// Returns the name of a database or table as an identifier.
pub(super) fn identifier(name: &str) -> String {
    let mut out = String::from("`");
    for character in name.chars() {
        if matches!(character, '`' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('`');
    out
}

/// Undoes [`escape`]. A backslash at the end is dropped.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('0') => out.push('\0'),
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\x08'),
            Some('f') => out.push('\x0c'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Appends a value to the query of a URL. RFC 3986, section 2.1.
pub(super) fn encode_value(value: &str, out: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// Makes one line of a text from a server or a system: bounded, without control characters, and without the secret.
pub(super) fn one_line(text: &[u8], secret: Option<&str>) -> String {
    // A secret that the cut divides would be left in part.
    let room = SHOWN_BYTES_MAX + secret.map_or(0, str::len);
    let cut = &text[..text.len().min(room)];
    let mut shown = String::from_utf8_lossy(cut).into_owned();
    if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
        shown = shown.replace(secret, "***");
    }
    let words = shown
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => line,
        Some((at, _)) => {
            line.truncate(at);
            line.push('…');
            line
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_texts_have_no_ends_of_fields_and_come_back() {
        let hostile = "a'); DROP TABLE x; --\t\n\r\0\x08\x0c\\'\\\\ ü 😀`\"";
        let mut escaped = String::new();
        escape(hostile, &mut escaped);
        assert!(!escaped.contains(['\t', '\n', '\r', '\0']));
        assert_eq!(unescape(&escaped), hostile);
        // Each quote of the text follows a backslash that is not escaped itself.
        assert_eq!(literal("\\'"), "'\\\\\\''");
        assert_eq!(literal(""), "''");
        assert_eq!(identifier("a`b\\"), "`a\\`b\\\\`");
    }

    #[test]
    fn values_of_urls_are_encoded() {
        let mut out = String::new();
        encode_value("a&b=c d#%+ü", &mut out);
        assert_eq!(out, "a%26b%3Dc%20d%23%25%2B%C3%BC");
    }

    #[test]
    fn errors_are_one_bounded_line_without_the_secret() {
        let text = "Code: 1\n\twrong password 's3cret' \u{1b}[31m s3cret";
        let line = one_line(text.as_bytes(), Some("s3cret"));
        assert_eq!(line, "Code: 1 wrong password '***' [31m ***");
        for (length, cut) in [(299, false), (300, false), (301, true)] {
            let line = one_line("x".repeat(length).as_bytes(), None);
            assert_eq!(line.ends_with('…'), cut, "{length}");
            assert!(line.chars().count() <= 301);
        }
        let long = "s3cret".repeat(10_000_000 / 6);
        let line = one_line(long.as_bytes(), Some("s3cret"));
        assert!(!line.contains("s3cret") && line.chars().count() <= 301);
        assert_eq!(one_line(&[0xff, b'a'], None), "\u{fffd}a");
        assert_eq!(one_line(b"a", Some("")), "a");
    }
}
