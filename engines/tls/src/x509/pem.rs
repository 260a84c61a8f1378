//! PEM: the text form of certificates and keys.
//!
//! As in OpenSSL, text between the parts is skipped and every part has its label; a part may have header lines
//! about its encryption. Absent: a check that lines have 64 characters.
//!
//! Source: RFC 7468; RFC 1421 section 4.4 for the header lines.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

/// One part.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Label of its first line: `CERTIFICATE`.
    pub(crate) label: String,
    /// The header lines, by name.
    pub(crate) headers: Vec<(String, String)>,
    /// Its bytes.
    pub(crate) der: Vec<u8>,
}

/// A part that is not whole, or no base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// The parts of a text, in order.
pub(crate) fn parts(text: &[u8]) -> Result<Vec<Part>, Damaged> {
    let mut parts = Vec::new();
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| line.trim_ascii_end());
    while let Some(line) = lines.next() {
        let Some(label) = marked(line, b"-----BEGIN ") else {
            continue;
        };
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut base64 = Vec::new();
        loop {
            let line = lines.next().ok_or(Damaged)?;
            if let Some(end) = marked(line, b"-----END ") {
                if end != label {
                    return Err(Damaged);
                }
                break;
            }
            match line.iter().position(|byte| *byte == b':') {
                Some(colon) if base64.is_empty() => {
                    let text =
                        |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
                    headers.push((text(&line[..colon]), text(&line[colon + 1..])));
                }
                _ => base64.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace())),
            }
        }
        parts.push(Part {
            label: String::from_utf8_lossy(label).into_owned(),
            headers,
            der: BASE64.decode(&base64).map_err(|_| Damaged)?,
        });
    }
    Ok(parts)
}

/// The label of a line that begins or ends a part.
fn marked<'t>(line: &'t [u8], start: &[u8]) -> Option<&'t [u8]> {
    line.strip_prefix(start)?.strip_suffix(b"-----")
}

/// A part with this label, in OpenSSL's form.
pub(super) fn encode(label: &str, der: &[u8]) -> Vec<u8> {
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(LINE_BYTES) {
        BASE64.encode_string(line, &mut out);
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out.into_bytes()
}

/// Unused trailing bits may be 1, as in OpenSSL.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));
/// Bytes that a line of 64 characters holds.
const LINE_BYTES: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        for len in [0, 1, 2, 3, 47, 48, 49, 200] {
            let bytes: Vec<u8> = (0..len).collect();
            let mut text = b"Subject: somebody\n".to_vec();
            text.extend(encode("A B", &bytes));
            let parts = parts(&text).unwrap_or_default();
            assert_eq!(parts.len(), 1);
            assert_eq!((parts[0].label.as_str(), &parts[0].der), ("A B", &bytes));
        }
    }

    #[test]
    fn header_lines_are_kept() {
        let text = b"-----BEGIN K-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-256-CBC,00\r\n\r\nAAEC\r\n-----END K-----";
        let parts = parts(text).unwrap_or_default();
        assert_eq!(parts[0].headers.len(), 2);
        assert_eq!(
            parts[0].headers[0],
            ("Proc-Type".to_owned(), "4,ENCRYPTED".to_owned())
        );
        assert_eq!(parts[0].der, [0, 1, 2]);
    }

    #[test]
    fn damage_is_noticed() {
        for text in [
            "-----BEGIN A-----\nAAAA\n",
            "-----BEGIN A-----\nAAA\n-----END A-----\n",
            "-----BEGIN A-----\nAAAA\n-----END B-----\n",
            "-----BEGIN A-----\nAA=A\n-----END A-----\n",
            "-----BEGIN A-----\n?AAA\n-----END A-----\n",
        ] {
            assert_eq!(parts(text.as_bytes()).err(), Some(Damaged), "{text}");
        }
    }
}
