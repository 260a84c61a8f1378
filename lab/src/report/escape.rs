//! Text from servers and files in reports: pages, fields and names.
//!
//! Such a text may have markup, control characters and bidirectional marks, and a megabyte. Functions of this file make it plain
//! text of a limited length.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text for XML and HTML, within elements and quoted attributes, [`visible`].
#[must_use]
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Replaces each invisible or bidirectional character by its escape, such as `\u{202e}`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// At most `most` characters of a text, [`visible`]; a longer one ends with its number of bytes.
#[must_use]
pub(crate) fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => visible(text),
        Some((end, _)) => {
            let kept = visible(&text[..end]);
            Cow::Owned(format!("{kept}... ({} bytes)", text.len()))
        }
    }
}

/// A text in ASCII and at most `most` columns: other characters are written as `\u{e9}`, and a longer text ends with `...`.
#[must_use]
pub(crate) fn ascii(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
        if out.len() > most {
            out.truncate(most.saturating_sub(ELLIPSIS.len()));
            return out + ELLIPSIS;
        }
    }
    out
}

/// JSON with all invisible and bidirectional characters escaped, since a terminal may obey them. The JSON encoder escapes only the
/// first 32 characters.
#[must_use]
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\n' && is_hidden(c);
    if !json.chars().any(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_hidden(c) {
            // Such a character is within a string, since JSON has no other place for it.
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A URL in ASCII and at most `most` columns: other characters are percent-encoded, and the middle of a long one is `...`.
///
/// The cost depends on `most`, not on the length of the text.
#[must_use]
pub(crate) fn shortened(url: &str, most: usize) -> String {
    let mut whole = String::new();
    for c in url.chars() {
        push_ascii(c, &mut whole);
        if whole.len() > most {
            return halves(url, most);
        }
    }
    whole
}

/// Begin and end of a URL with `...` between them, `most` columns at most.
fn halves(url: &str, most: usize) -> String {
    let room = most.saturating_sub(ELLIPSIS.len());
    let mut head = String::new();
    for c in url.chars() {
        let length = head.len();
        push_ascii(c, &mut head);
        if head.len() > room.div_ceil(2) {
            head.truncate(length);
            break;
        }
    }
    let (mut tail, mut used) = (Vec::new(), head.len());
    for c in url.chars().rev() {
        let mut one = String::new();
        push_ascii(c, &mut one);
        used += one.len();
        if used > room {
            break;
        }
        tail.push(one);
    }
    tail.reverse();
    format!("{head}{ELLIPSIS}{}", tail.concat())
}

/// Appends a character as a URL has it.
fn push_ascii(c: char, out: &mut String) {
    if c.is_ascii_graphic() {
        out.push(c);
        return;
    }
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(out, "%{byte:02X}");
    }
}

/// Whether a reader does not see a character, or sees others in another order because of it; XML forbids some of them.
fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    c.is_control()
        || matches!(code, 0xad | 0x61c | 0x115f | 0x1160 | 0x180e | 0x3164 | 0xfeff | 0xffa0)
        || matches!(code, 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f)
        || matches!(code, 0xfe00..=0xfe0f | 0xfff0..=0xfffb | 0xe0000..=0xe0fff)
        // Non-characters: the last two of each plane.
        || code & 0xfffe == 0xfffe
        || (0xfdd0..=0xfdef).contains(&code)
}

const ELLIPSIS: &str = "...";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escaped("<a b=\"c\" d='e'>&"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"
        );
    }

    #[test]
    fn what_is_not_seen_is_written_out() {
        for hidden in [
            '\0',
            '\n',
            '\u{85}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{ffff}',
            '\u{e0041}',
        ] {
            let text = format!("a{hidden}b");
            let shown = escaped(&text);
            assert_eq!(shown, format!("a{}b", hidden.escape_unicode()));
        }
        assert!(matches!(visible("plain \u{e9} \u{4e2d}"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut_at_its_limit() {
        assert_eq!(bounded("abc", 3), "abc");
        assert_eq!(bounded("abcd", 3), "abc... (4 bytes)");
        assert_eq!(bounded(&"\u{e9}".repeat(4), 4), "\u{e9}".repeat(4));
    }

    #[test]
    fn text_of_a_terminal_is_ascii_and_has_its_columns() {
        assert_eq!(ascii("a \u{e9}\u{1b}", 20), "a \\u{e9}\\u{1b}");
        assert_eq!(
            (ascii("abc", 3), ascii("abcdef", 5)),
            ("abc".to_owned(), "ab...".to_owned())
        );
        assert_eq!(ascii(&"\u{202e}".repeat(1_000_000), 80).len(), 80);
    }

    #[test]
    fn json_keeps_its_meaning_and_commands_no_terminal() {
        let text = "\u{1b}[31m\u{9b}31m\u{7f}\u{202e}\u{e0041} \u{e9}\n\"";
        let plain = serde_json::to_string_pretty(&[text]).expect("it is JSON");
        let shown = escaped_json(&plain);
        assert_eq!(
            serde_json::from_str::<[String; 1]>(&shown).ok(),
            Some([text.to_owned()])
        );
        assert!(
            shown.chars().all(|c| c == '\n' || !is_hidden(c)),
            "{shown:?}"
        );
        assert!(
            shown.contains('\u{e9}') && shown.contains("\\udb40\\udc41"),
            "{shown}"
        );
        assert!(matches!(
            escaped_json("[\n \"plain \u{e9}\"]"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn long_urls_lose_their_middle() {
        assert_eq!(shortened("https://h/abc", 13), "https://h/abc");
        assert_eq!(shortened("https://h/abcd", 13), "https.../abcd");
        assert_eq!(shortened("https://host/abcdef", 13), "https...bcdef");
        assert_eq!(shortened("a b\u{202e}", 20), "a%20b%E2%80%AE");
        for most in [3, 4, 10, 41, 42] {
            let long = shortened(&"\u{202e}x".repeat(500_000), most);
            assert!(long.len() <= most && long.is_ascii(), "{most}: {long}");
        }
    }
}
