//! Messages about faulty header lines for the error log, in nginx's words.

use super::Settings;
use super::header::{self, FieldLine};
use crate::http::{Fault, FieldId, RequestHead};

/// Notes the message about the header line at the start of `rest`, if it names a part of the line.
#[cold]
pub(super) fn header_line(head: &mut RequestHead, fault: Fault, rest: &[u8], settings: &Settings) {
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let line = &rest[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match fault {
        Fault::BadHeader => match header::fault_at(line) {
            Some(at) => {
                let byte = format!("\\x{:02x}...\"", line[at]);
                head.blame(&[INVALID_LINE, &line[..at], byte.as_bytes()]);
            }
            None => head.blame(&[INVALID_LINE, line, b"\""]),
        },
        Fault::HeaderTooLarge => {
            let shown = &line[..line.len().min(LOGGED_BYTES)];
            head.blame(&[b"client sent too long header line: \"", shown, b"...\""]);
        }
        Fault::DuplicateHost => repeated(head, b"host header", line, settings),
        Fault::DuplicateHeader | Fault::DuplicateContentLength | Fault::DuplicateEncoding => {
            repeated(head, b"header line", line, settings);
        }
        Fault::UnknownEncoding => {
            let value = head.field(FieldId::TransferEncoding);
            let value = value.unwrap_or_default().to_vec();
            let text = b"client sent unknown \"Transfer-Encoding\": \"";
            head.blame(&[text, &value, b"\""]);
        }
        _ => {}
    }
}

/// Records that the field of `line` came before.
fn repeated(head: &mut RequestHead, kind: &[u8], line: &[u8], settings: &Settings) {
    if let Ok(FieldLine::Field { name, value, .. }) = header::parse(line, settings) {
        head.blame_repeated(kind, &line[name], &line[value]);
    }
}

/// The beginning of the message about an invalid header line.
const INVALID_LINE: &[u8] = b"client sent invalid header line: \"";

/// Most bytes of a too long header line in the log, as in nginx.
const LOGGED_BYTES: usize = 1748;
