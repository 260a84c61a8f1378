//! Formats of access logs: compiled once, escaped as they are written.

use server_http::exchange::{Ctx, Exchange};
use server_http::value::{Part, Value};
use server_http::vars;

/// A compiled format.
pub(crate) struct Format {
    pub(super) value: Value,
    pub(super) escape: Escaping,
}

/// How variables are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Quotes, backslashes and bytes outside printable ASCII as `\xHH`.
    Default,
    /// As in a JSON string.
    Json,
    /// Not at all.
    None,
}

impl Format {
    /// One line of the log, with its end.
    pub(super) fn line(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        let mut value = Vec::new();
        for part in &self.value.parts {
            match part {
                Part::Text(text) => line.extend_from_slice(text),
                Part::Var(id) => {
                    value.clear();
                    let found = vars::append(*id, x, cx, &mut value);
                    self.escape.write(found, &value, &mut line);
                }
                Part::Capture(n) => {
                    let n = usize::from(*n);
                    let text = x.captures.get(n).to_vec();
                    self.escape.write(true, &text, &mut line);
                }
            }
        }
        line.push(b'\n');
        line
    }
}

impl Escaping {
    fn write(self, found: bool, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Default if !found => out.push(b'-'),
            // Most values need no escape: one look without branches, then one copy.
            Self::Default if !value.iter().fold(false, |any, b| any | is_escaped(*b)) => {
                out.extend_from_slice(value);
            }
            Self::Default => {
                for &b in value {
                    if is_escaped(b) {
                        out.extend_from_slice(format!("\\x{b:02X}").as_bytes());
                    } else {
                        out.push(b);
                    }
                }
            }
            Self::Json => write_json(value, out),
            Self::None => out.extend_from_slice(value),
        }
    }
}

/// Whether nginx writes a byte as `\xHH`: a control, a quote, a backslash, or none of ASCII.
fn is_escaped(b: u8) -> bool {
    matches!(b, b'"' | b'\\' | 0..0x20 | 0x7f..)
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
        let mut out = Vec::new();
        how.write(found, value, &mut out);
        String::from_utf8_lossy(&out).into_owned()
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
