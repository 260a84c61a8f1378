//! Frames of HTTP/2, and the requests in them.
//!
//! Source: RFC 9113 sections 3.4, 4.1, 6.2 and 6.10.

use engines::hpack::{DEFAULT_TABLE_BYTES, Decoder};

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Place of its head.
    pub(super) begin: usize,
    /// Offset after its payload; it may exceed the captured bytes.
    pub(super) end: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) stream: u32,
    /// Method and path.
    pub(super) line: String,
    /// Place of its last byte.
    pub(super) last: usize,
}

impl Frame {
    /// The name of its type.
    pub(super) fn name(&self) -> &'static str {
        const NAMES: [&str; 10] = [
            "DATA",
            "HEADERS",
            "PRIORITY",
            "RST_STREAM",
            "SETTINGS",
            "PUSH_PROMISE",
            "PING",
            "GOAWAY",
            "WINDOW_UPDATE",
            "CONTINUATION",
        ];
        NAMES
            .get(usize::from(self.kind))
            .copied()
            .unwrap_or("a frame")
    }
}

/// The frames of a direction; the client's preface is skipped.
pub(super) fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut begin = if bytes.starts_with(PREFACE) {
        PREFACE.len()
    } else {
        0
    };
    let mut found = Vec::new();
    while found.len() < FRAMES_MAX
        && let Some([a, b, c, kind, flags, d, e, f, g]) = bytes.get(begin..begin + HEAD_BYTES)
    {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let end = begin + HEAD_BYTES + length;
        found.push(Frame {
            begin,
            end,
            kind: *kind,
            flags: *flags,
            stream: u32::from_be_bytes([*d & 0x7f, *e, *f, *g]),
        });
        begin = end;
    }
    found
}

/// Whether these bytes are of a client of HTTP/2.
pub(super) fn is_http2(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFACE)
}

/// The requests of a client.
pub(super) fn heads(bytes: &[u8]) -> Vec<Head> {
    let mut decoder = Decoder::<()>::new(DEFAULT_TABLE_BYTES);
    let mut found = Vec::new();
    let mut block: Vec<u8> = Vec::new();
    for frame in frames(bytes) {
        let Some(payload) = bytes.get(frame.begin + HEAD_BYTES..frame.end) else {
            break;
        };
        let fragment = match frame.kind {
            HEADERS => fragment(payload, frame.flags),
            CONTINUATION => Some(payload),
            _ => continue,
        };
        let Some(fragment) = fragment.filter(|one| block.len() + one.len() <= BLOCK_BYTES_MAX)
        else {
            break;
        };
        block.extend_from_slice(fragment);
        if frame.flags & END_HEADERS == 0 {
            continue;
        }
        let (mut method, mut path) = (String::new(), String::new());
        let decoded = decoder.decode(&block, |name, value| match name {
            b":method" => method = printable(value),
            b":path" => path = printable(value),
            _ => {}
        });
        block.clear();
        // Behind an error the tables differ, and every further name would be a guess.
        if decoded.is_err() {
            break;
        }
        // Trailers have no method.
        if !method.is_empty() {
            found.push(Head {
                stream: frame.stream,
                line: format!("{method} {path}"),
                last: frame.end - 1,
            });
        }
    }
    found
}

fn printable(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars()
        .filter(|c| !c.is_control())
        .take(VALUE_CHARS_MAX)
        .collect()
}

/// The part of a field block in the payload of HEADERS.
fn fragment(payload: &[u8], flags: u8) -> Option<&[u8]> {
    let (padding, rest) = match flags & PADDED {
        0 => (0, payload),
        _ => payload
            .split_first()
            .map(|(first, rest)| (usize::from(*first), rest))?,
    };
    let rest = if flags & PRIORITY == 0 {
        rest
    } else {
        rest.get(5..)?
    };
    rest.get(..rest.len().checked_sub(padding)?)
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
/// The most frames of a direction that are looked at.
const FRAMES_MAX: usize = 200_000;
/// The longest field block.
const BLOCK_BYTES_MAX: usize = 256 << 10;
/// The characters of a method or a path in a report.
const VALUE_CHARS_MAX: usize = 200;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A frame.
    pub(in crate::capture) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        [&head, payload].concat()
    }

    /// The beginning of a client's connection, with a request for `/abc` on stream 1.
    pub(in crate::capture) fn request() -> Vec<u8> {
        let head = frame(HEADERS, END_HEADERS | 1, 1, b"\x82\x44\x04/abc");
        [PREFACE, &frame(4, 0, 0, b""), &head].concat()
    }

    #[test]
    fn requests_are_named_by_their_streams() {
        let mut bytes = request();
        // With padding and a priority; the path is in the table now.
        let padded = [&[2][..], &[0; 5], b"\x83\xbe", &[0; 2]].concat();
        bytes.extend(frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 3, &padded));
        // In two frames, then trailers, then half a frame.
        bytes.extend(frame(HEADERS, 0, 5, b"\x82\x44"));
        bytes.extend(frame(CONTINUATION, END_HEADERS, 5, b"\x02/x"));
        bytes.extend(frame(HEADERS, END_HEADERS | 1, 5, b"\x40\x01a\x01b"));
        bytes.extend(&frame(HEADERS, END_HEADERS, 7, b"\x82\x84")[..10]);
        let found = heads(&bytes);
        let shown: Vec<(u32, &str)> = found
            .iter()
            .map(|head| (head.stream, head.line.as_str()))
            .collect();
        assert_eq!(shown, [(1, "GET /abc"), (3, "POST /abc"), (5, "GET /x")]);
        assert_eq!(found[0].last, request().len() - 1);
    }

    #[test]
    fn what_breaks_a_block_ends_the_names() {
        for payload in [&b"\xff"[..], b"\xbf"] {
            let bytes = [
                request(),
                frame(HEADERS, END_HEADERS, 3, payload),
                request()[24..].to_vec(),
            ];
            assert_eq!(heads(&bytes.concat()).len(), 1);
        }
        let padded = frame(HEADERS, END_HEADERS | PADDED, 3, b"\x09\x82");
        assert_eq!(heads(&[request(), padded].concat()).len(), 1);
        for (length, count) in [(BLOCK_BYTES_MAX, 2), (BLOCK_BYTES_MAX + 1, 1)] {
            // Literals without a name in the table, each of 4 bytes.
            let mut block = b"\x82\x84".to_vec();
            while block.len() + 4 <= length {
                block.extend(b"\x00\x01a\x00");
            }
            block.resize(length, 0x82);
            let bytes = [request(), frame(HEADERS, END_HEADERS, 3, &block)].concat();
            assert_eq!(heads(&bytes).len(), count, "{length}");
        }
    }
}
