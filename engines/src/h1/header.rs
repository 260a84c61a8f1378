//! One field line: name, colon, value.
//!
//! Bytes enter as one line without its LF, or as the received part of a line; ranges into it leave.
//! Stricter than nginx, which accepts ambiguous bytes: controls in a value and a bare CR are
//! refused. Source: RFC 9112 section 5, RFC 9110 section 5.5.

use super::Settings;
use crate::http::{EACH_BYTE, Fault, FieldId, bytes_below, is_ows};
use std::ops::Range;

/// A parsed line of a header or trailer section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FieldLine {
    /// The empty line: the section is complete.
    End,
    /// A field, as ranges of the line.
    Field {
        id: FieldId,
        name: Range<usize>,
        value: Range<usize>,
    },
    /// The name has a byte that is invalid in names; the line is dropped if
    /// `ignore_invalid_headers` is on.
    OddName {
        name: Range<usize>,
        value: Range<usize>,
    },
    /// There is no colon.
    NoColon,
}

/// Parses a whole line, without its line end.
///
/// # Errors
/// `BadHeader`: an empty name; a space or control in the name, before the
/// colon or as the first byte (obs-fold, RFC 9112 section 5.2); a control other
/// than HTAB in the value (RFC 9110 section 5.5).
#[inline(always)] // Each line of a head passes here; the other callers would make a call of it.
pub(super) fn parse(line: &[u8], settings: &Settings) -> Result<FieldLine, Fault> {
    if line.is_empty() {
        return Ok(FieldLine::End);
    }
    let end = name_end(line).unwrap_or_default();
    let mut id = FieldId::of(&line[..end]);
    let (name_end, odd) = match id {
        FieldId::Other => {
            let (scanned, odd) = scan_name(line, settings.underscores_in_headers)?;
            if end == 0 {
                id = FieldId::of(&line[..scanned]);
            }
            (scanned, odd)
        }
        // The names of known fields are valid, so their bytes need no check one by one.
        _ => (end, false),
    };
    if name_end == line.len() {
        return Ok(FieldLine::NoColon);
    }
    check_value(&line[name_end + 1..])?;
    let name = 0..name_end;
    let value = trim(line, name_end + 1);
    Ok(if odd {
        FieldLine::OddName { name, value }
    } else {
        FieldLine::Field { id, name, value }
    })
}

/// Whether `part` can be the beginning of a line; see [`parse`].
pub(super) fn check_part(part: &[u8]) -> Result<(), Fault> {
    // The CR may turn out to be half of the line end.
    let part = part.strip_suffix(b"\r").unwrap_or(part);
    if part.is_empty() {
        return Ok(());
    }
    let (name_end, _) = scan_name(part, true)?;
    check_value(part.get(name_end + 1..).unwrap_or_default())
}

/// Returns the end of the name (the colon, or the end of the line), and whether the name has an
/// invalid byte.
#[inline]
pub(super) fn scan_name(line: &[u8], underscores: bool) -> Result<(usize, bool), Fault> {
    let mut odd = false;
    for (at, &byte) in line.iter().enumerate() {
        match NAME[byte as usize] {
            Class::Name => {}
            Class::Colon if at > 0 => return Ok((at, odd)),
            Class::Colon | Class::Bad => return Err(Fault::BadHeader),
            Class::Underscore => odd |= !underscores,
            Class::Odd => odd = true,
        }
    }
    Ok((line.len(), odd))
}

/// Position of the byte for which [`parse`] refuses a line; `None` if it accepts the line.
#[cold]
pub(super) fn fault_at(line: &[u8]) -> Option<usize> {
    let is_control = |byte: &u8| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f;
    let name_end = line.iter().position(|byte| *byte == b':');
    let name = &line[..name_end.unwrap_or(line.len())];
    if name_end == Some(0) {
        return Some(0);
    }
    let bad = |byte: &u8| matches!(NAME[*byte as usize], Class::Bad);
    let in_name = name.iter().position(bad);
    let in_value = || Some(name.len() + line[name.len()..].iter().position(is_control)?);
    in_name.or_else(in_value)
}

/// Position of the colon behind a name, as found by [`scan_name`], eight bytes at a time. Also
/// `None` if fewer than eight bytes remain before it is found.
#[inline]
pub(super) fn name_end(line: &[u8]) -> Option<usize> {
    let equal = |word: u64, byte: u8| bytes_below(word ^ (EACH_BYTE * u64::from(byte)), 1);
    for (at, word) in line.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = bytes_below(word, b' ' + 1) | equal(word, b':') | equal(word, 0x7f);
        if found != 0 {
            let end = at * 8 + found.trailing_zeros() as usize / 8;
            return (end > 0 && line[end] == b':').then_some(end);
        }
    }
    None
}

/// Refuses controls in a value. Written without a branch, so that it is
/// compiled to vector code.
#[inline]
fn check_value(value: &[u8]) -> Result<(), Fault> {
    let bad = value.iter().fold(false, |bad, &byte| {
        bad | ((byte < 0x20) & (byte != b'\t')) | (byte == 0x7f)
    });
    if bad { Err(Fault::BadHeader) } else { Ok(()) }
}

/// Returns the range of the value that begins at `start`, without optional white space (RFC 9112 section 5). All
/// other bytes stay: two hops must not read one framing field in two ways.
#[inline]
pub(super) fn trim(line: &[u8], mut start: usize) -> Range<usize> {
    let mut end = line.len();
    while start < end && is_ows(line[start]) {
        start += 1;
    }
    while end > start && is_ows(line[end - 1]) {
        end -= 1;
    }
    start..end
}

#[derive(Clone, Copy)]
enum Class {
    Name,
    Colon,
    Underscore,
    /// Invalid in a name, but harmless: such lines are dropped by default.
    Odd,
    /// Always refused: controls, space, DEL.
    Bad,
}

const NAME: [Class; 256] = {
    let mut table = [Class::Odd; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => Class::Name,
            b'_' => Class::Underscore,
            b':' => Class::Colon,
            0..=b' ' | 0x7f => Class::Bad,
            _ => Class::Odd,
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[u8]) -> Result<FieldLine, Fault> {
        parse(line, &Settings::default())
    }

    fn text(line: &str) -> Option<(&str, &str)> {
        match parsed(line.as_bytes()) {
            Ok(FieldLine::Field { name, value, .. }) => Some((&line[name], &line[value])),
            _ => None,
        }
    }

    #[test]
    fn the_end_of_a_name_is_found_as_byte_by_byte() {
        for len in 1..20 {
            for at in 0..len {
                for byte in 0..=255 {
                    for other in [b'a', b':', b'_', b'\xff'] {
                        let mut line = vec![b'a'; len];
                        line[len - 1] = other;
                        line[at] = byte;
                        line.extend_from_slice(b": value of it");
                        let (end, _) = scan_name(&line, true).unwrap_or((0, false));
                        let expected = (end > 0 && end < line.len()).then_some(end);
                        assert_eq!(name_end(&line), expected, "{line:?}");
                    }
                }
            }
        }
        assert_eq!(name_end(b"a: b"), None, "fewer than eight bytes");
    }

    /// RFC 9110 section 5.5: optional white space is no part of a value. Other bytes are.
    #[test]
    fn spaces_and_tabs_around_a_value_are_not_part_of_it() {
        assert_eq!(text("Host:\ta\t"), Some(("Host", "a")));
        assert_eq!(text("Host:\t \ta\tb \t "), Some(("Host", "a\tb")));
        assert_eq!(text("Host:\t"), Some(("Host", "")));
        assert_eq!(text("X: \u{a0}a"), Some(("X", "\u{a0}a")));
        assert_eq!(text("Host: a"), Some(("Host", "a")));
        assert_eq!(text("Host:a"), Some(("Host", "a")));
        assert_eq!(text("Host:    a b "), Some(("Host", "a b")));
        assert_eq!(text("Host:"), Some(("Host", "")));
        assert_eq!(text("X: a:b"), Some(("X", "a:b")));
        assert_eq!(parsed(b""), Ok(FieldLine::End));
    }

    #[test]
    fn the_byte_at_fault_is_found() {
        for (line, at) in [
            (&b"Bad Name: x"[..], Some(3)),
            (b": x", Some(0)),
            (b" x: y", Some(0)),
            (b"x: a\0b\0", Some(4)),
            (b"x:\x7f", Some(2)),
            (b"x: a\tb", None),
            (b"x", None),
        ] {
            assert_eq!(fault_at(line), at, "{line:?}");
            assert_eq!(parsed(line).is_err(), at.is_some(), "{line:?}");
        }
    }

    /// RFC 9112 section 5.1: no white space between name and colon.
    #[test]
    fn a_space_before_the_colon_is_refused() {
        for line in [
            &b"Content-Length : 1"[..],
            b"Transfer-Encoding\t: chunked",
            b"Host : a",
            b"X(Y) : z",
        ] {
            assert_eq!(parsed(line), Err(Fault::BadHeader), "{line:?}");
        }
    }

    /// RFC 9112 section 5.2: obs-fold; a first line that begins with a space.
    #[test]
    fn folded_lines_empty_names_and_controls_in_names_are_refused() {
        for line in [
            &b" folded"[..],
            b"\tfolded",
            b": x",
            b":foo: x",
            b"a b: x",
            b"a\0: x",
            b"a\x02: x",
            b"a\x7f: x",
            b"\r: x",
            b"a\rb: x",
        ] {
            assert_eq!(parsed(line), Err(Fault::BadHeader), "{line:?}");
        }
    }

    /// RFC 9110 section 5.5: CR, LF and NUL are invalid; so are other controls.
    #[test]
    fn controls_in_a_value_are_refused_but_tab_is_not() {
        for byte in (0..0x20).chain([0x7f]) {
            let line = [b'X', b':', b' ', b'a', byte, b'b'];
            assert_eq!(parsed(&line).is_err(), byte != b'\t', "{byte:#x}");
        }
        assert!(parsed(b"X: \x80\xff").is_ok());
    }

    /// nginx's ignore_invalid_headers.t.
    #[test]
    fn odd_names_are_marked() {
        for line in [
            &b"X(Y): z"[..],
            b"\xef: z",
            b"x.foo: z",
            b".foo: z",
            b"</kie>: z",
            b"x_foo: z",
            b"_foo: z",
        ] {
            assert!(
                matches!(parsed(line), Ok(FieldLine::OddName { .. })),
                "{line:?}"
            );
        }
        assert_eq!(parsed(b"no colon here"), Err(Fault::BadHeader));
        assert_eq!(parsed(b"no-colon"), Ok(FieldLine::NoColon));
        let underscores = Settings {
            underscores_in_headers: true,
            ..Settings::default()
        };
        assert!(matches!(
            parse(b"x_foo: z", &underscores),
            Ok(FieldLine::Field { .. })
        ));
        assert!(matches!(
            parse(b"x_f.oo: z", &underscores),
            Ok(FieldLine::OddName { .. })
        ));
    }

    #[test]
    fn every_beginning_of_a_line_agrees_with_the_line() {
        for line in [
            &b"Host: a\tb"[..],
            b"x_y: z",
            b"a b: c",
            b"X: a\x01b",
            b" x",
            b"X: a\rb",
            b"no-colon",
        ] {
            let good = parsed(line).is_ok();
            let parts_good = (0..=line.len()).all(|end| check_part(&line[..end]).is_ok());
            assert_eq!(good, parts_good, "{line:?}");
        }
    }
}
