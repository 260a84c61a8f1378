//! Formats of access logs: compiled once; values are escaped while a line is written.

use server_http::exchange::{Ctx, Exchange};
use server_http::value::{Part, Value};
use server_http::vars;

/// A compiled format.
pub(crate) struct Format {
    pub(super) value: Value,
    pub(super) escape: Escaping,
}

/// The escaping of variables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Quotes, backslashes and bytes outside printable ASCII as `\xHH`.
    Default,
    /// Escaped as in a JSON string.
    Json,
    /// Not at all.
    None,
}

impl Format {
    /// Appends one line of the log, with its end.
    pub(super) fn line(&self, x: &mut Exchange, cx: &mut Ctx<'_>, line: &mut Vec<u8>) {
        for part in &self.value.parts {
            let start = line.len();
            match part {
                Part::Text(text) => line.extend_from_slice(text),
                Part::Var(id) => {
                    let found = vars::append(*id, x, cx, line);
                    self.escape.apply(found, start, line);
                }
                Part::Capture(n) => {
                    line.extend_from_slice(x.vars.captures.get(usize::from(*n)));
                    self.escape.apply(true, start, line);
                }
            }
        }
        line.push(b'\n');
    }
}

impl Escaping {
    /// Escapes the value that begins at `start`. Most values need no escape, so they are written in place and scanned
    /// once without branches.
    fn apply(self, found: bool, start: usize, line: &mut Vec<u8>) {
        let any = |is: fn(u8) -> bool| line[start..].iter().fold(false, |any, b| any | is(*b));
        match self {
            Self::Default if !found => {
                line.truncate(start);
                line.push(b'-');
            }
            Self::Default if any(is_escaped) => {
                let value = line.split_off(start);
                write_default(&value, line);
            }
            Self::Json if any(is_escaped_in_json) => {
                let value = line.split_off(start);
                write_json(&value, line);
            }
            _ => {}
        }
    }
}

/// Whether nginx writes a byte as `\xHH`: a control character, a quote, a backslash, or a byte outside of ASCII.
fn is_escaped(b: u8) -> bool {
    matches!(b, b'"' | b'\\' | 0..0x20 | 0x7f..)
}

fn write_default(value: &[u8], out: &mut Vec<u8>) {
    for &b in value {
        if is_escaped(b) {
            out.extend_from_slice(format!("\\x{b:02X}").as_bytes());
        } else {
            out.push(b);
        }
    }
}

/// Whether a byte needs an escape in a JSON string.
fn is_escaped_in_json(b: u8) -> bool {
    matches!(b, b'"' | b'\\' | 0..0x20)
}

fn write_json(value: &[u8], out: &mut Vec<u8>) {
    for &b in value {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04X}").as_bytes()),
            _ => out.push(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(how: Escaping, found: bool, value: &[u8]) -> String {
        let before = b"\"";
        let mut out = before.to_vec();
        out.extend_from_slice(value);
        how.apply(found, before.len(), &mut out);
        assert!(
            out.starts_with(before),
            "what stands before is left as it is"
        );
        String::from_utf8_lossy(&out[before.len()..]).into_owned()
    }

    #[test]
    fn values_are_escaped_as_nginx_escapes_them() {
        assert_eq!(written(Escaping::Default, false, b""), "-");
        assert_eq!(written(Escaping::Default, true, b""), "");
        assert_eq!(
            written(Escaping::Default, true, b"a\"\\\x1b\xc3"),
            "a\\x22\\x5C\\x1B\\xC3"
        );
        assert_eq!(
            written(Escaping::Json, true, b"a\"\\\n\x01"),
            "a\\\"\\\\\\n\\u0001"
        );
        assert_eq!(written(Escaping::Json, false, b""), "");
        assert_eq!(written(Escaping::None, true, b"\"\n"), "\"\n");
    }
}
