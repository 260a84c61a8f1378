//! Response heads, chunk framing and trailers, as bytes.
//!
//! The arena of a [`ResponseHead`] holds its fields in wire form, so that adjacent fields are
//! copied in one go. Only the engine writes fields about the end of the body or the fate of the
//! connection; the server's own are left out. Source: RFC 9112 sections 4 and 7; order and words of
//! nginx's header filter.

use crate::http::{Field, FieldId, ResponseHead, push_decimal, reason_phrase};

/// Fields and framing that the engine adds to a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadPlan {
    /// "Transfer-Encoding: chunked".
    pub(super) chunked: bool,
    /// "Content-Length: 0".
    pub(super) empty: bool,
    pub(super) connection: Connection,
}

/// The Connection field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    KeepAlive,
    Close,
    Upgrade,
}

/// Appends a status line, the fields of `head` and those of `plan`.
pub(super) fn head(out: &mut Vec<u8>, head: &ResponseHead, plan: HeadPlan) {
    out.reserve(head.arena.len() + OWN_FIELDS_BYTES);
    match head.own_phrase() {
        // Nearly all responses.
        None | Some(b"OK") if head.status == 200 => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
        _ => status_line(out, head.status, head.phrase()),
    }
    fields(out, head, |id| match id {
        FieldId::Connection | FieldId::KeepAlive | FieldId::TransferEncoding => false,
        FieldId::ContentLength => !plan.chunked,
        _ => true,
    });
    if plan.empty {
        out.extend_from_slice(b"Content-Length: 0\r\n");
    }
    if plan.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    match plan.connection {
        Connection::KeepAlive => {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
            if let Some(seconds) = head.keep_alive_hint_s {
                out.extend_from_slice(b"Keep-Alive: timeout=");
                push_decimal(out, seconds);
                out.extend_from_slice(b"\r\n");
            }
        }
        Connection::Close => out.extend_from_slice(b"Connection: close\r\n"),
        Connection::Upgrade => out.extend_from_slice(b"Connection: upgrade\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends an interim response: 1xx with `hints` as its fields.
pub(super) fn interim(out: &mut Vec<u8>, status: u16, hints: Option<&ResponseHead>) {
    status_line(out, status, reason_phrase(status).as_bytes());
    if let Some(hints) = hints {
        fields(out, hints, |id| !HOP_BY_HOP.contains(&id));
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a field may be a trailer.
pub(super) fn is_trailer(id: FieldId) -> bool {
    !HOP_BY_HOP.contains(&id)
}

/// Appends the size line of a chunk of `len` bytes.
pub(super) fn chunk_size(out: &mut Vec<u8>, len: u64) {
    let digits = (64 - len.leading_zeros()).div_ceil(4).max(1);
    for at in (0..digits).rev() {
        out.push(HEX[(len >> (at * 4)) as usize & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk and the trailer section.
pub(super) fn last_chunk(out: &mut Vec<u8>, trailers: Option<&ResponseHead>) {
    out.extend_from_slice(b"0\r\n");
    if let Some(trailers) = trailers {
        fields(out, trailers, |id| !HOP_BY_HOP.contains(&id));
    }
    out.extend_from_slice(b"\r\n");
}

/// "HTTP/1.1 200 OK": the version is always 1.1, for an HTTP/1.0 request too
/// (RFC 9112 section 2.3, and nginx).
fn status_line(out: &mut Vec<u8>, status: u16, phrase: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    let digits = [status / 100 % 10, status / 10 % 10, status % 10];
    out.extend(digits.map(|digit| b'0' + digit as u8));
    out.push(b' ');
    out.extend_from_slice(phrase);
    out.extend_from_slice(b"\r\n");
}

/// Appends the fields that `wanted` accepts; adjacent fields in wire form are one copy.
fn fields(out: &mut Vec<u8>, head: &ResponseHead, wanted: impl Fn(FieldId) -> bool) {
    let mut run = 0..0;
    for field in head.fields.iter().filter(|field| wanted(field.id)) {
        let Some(line) = wire_form(head, field) else {
            out.extend_from_slice(&head.arena[std::mem::take(&mut run)]);
            for part in [
                head.bytes(field.name),
                b": ",
                head.bytes(field.value),
                b"\r\n",
            ] {
                out.extend_from_slice(part);
            }
            continue;
        };
        if run.end != line.start {
            out.extend_from_slice(&head.arena[run]);
            run = line.start..line.start;
        }
        run.end = line.end;
    }
    out.extend_from_slice(&head.arena[run]);
}

/// Range of the line of `field` in the arena, if it is stored in wire form.
fn wire_form(head: &ResponseHead, field: &Field) -> Option<std::ops::Range<usize>> {
    let (name, value) = (field.name.range(), field.value.range());
    let adjacent = name.end + 2 == value.start
        && head.arena.get(name.end..value.start)? == b": "
        && head.arena.get(value.end..value.end + 2)? == b"\r\n";
    adjacent.then_some(name.start..value.end + 2)
}

/// Fields that are not allowed in trailers and interim responses (RFC 9110 section 6.5.1).
const HOP_BY_HOP: [FieldId; 5] = [
    FieldId::Connection,
    FieldId::KeepAlive,
    FieldId::TransferEncoding,
    FieldId::ContentLength,
    FieldId::Trailer,
];

/// Room for the status line and the engine's own fields.
const OWN_FIELDS_BYTES: usize = 160;

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Span;

    const KEEP: HeadPlan = HeadPlan {
        chunked: false,
        empty: false,
        connection: Connection::KeepAlive,
    };

    fn encoded(response: &ResponseHead, plan: HeadPlan) -> String {
        let mut out = Vec::new();
        head(&mut out, response, plan);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_sent_in_order_and_then_the_engines_own() {
        let mut response = ResponseHead {
            status: 200,
            ..ResponseHead::default()
        };
        response.push(b"Server", b"firstbyte");
        response.push(b"Content-Length", b"4");
        response.keep_alive_hint_s = Some(75);
        assert_eq!(
            encoded(&response, KEEP),
            "HTTP/1.1 200 OK\r\nServer: firstbyte\r\nContent-Length: 4\r\n\
             Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n"
        );
        let chunked = HeadPlan {
            chunked: true,
            empty: false,
            connection: Connection::Close,
        };
        assert_eq!(
            encoded(&response, chunked),
            "HTTP/1.1 200 OK\r\nServer: firstbyte\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
    }

    /// The server cannot contradict the engine's framing, regardless of fields from an upstream or `add_header`.
    #[test]
    fn connection_fields_of_the_server_are_left_out() {
        let mut response = ResponseHead {
            status: 204,
            ..ResponseHead::default()
        };
        response.push(b"Connection", b"close");
        response.push(b"A", b"1");
        response.push(b"transfer-encoding", b"gzip");
        response.push(b"B", b"2");
        response.push(b"Keep-Alive", b"timeout=1");
        assert_eq!(
            encoded(&response, KEEP),
            "HTTP/1.1 204 No Content\r\nA: 1\r\nB: 2\r\nConnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn a_replaced_field_is_sent_in_its_place() {
        let mut response = ResponseHead {
            status: 200,
            ..ResponseHead::default()
        };
        for name in [&b"A"[..], b"B", b"C"] {
            response.push(name, b"1");
        }
        response.set(b"B", b"22");
        assert!(encoded(&response, KEEP).contains("A: 1\r\nB: 22\r\nC: 1\r\n"));
        response.fields.remove(0);
        assert!(encoded(&response, KEEP).starts_with("HTTP/1.1 200 OK\r\nB: 22\r\nC: 1\r\n"));
    }

    /// An arena filled by hand is not in wire form.
    #[test]
    fn fields_that_are_not_in_wire_form_are_put_together() {
        let mut response = ResponseHead {
            status: 200,
            ..ResponseHead::default()
        };
        response.push(b"A", b"1");
        let start = response.arena.len();
        response.arena.extend_from_slice(b"X-Y2");
        response.fields.push(Field {
            name: Span::new(start, 3),
            value: Span::new(start + 3, 1),
            id: FieldId::Other,
        });
        response.push(b"B", b"3");
        assert!(encoded(&response, KEEP).contains("\r\nA: 1\r\nX-Y: 2\r\nB: 3\r\n"));
    }

    /// RFC 9112 section 4: the space after the code stays without a phrase.
    #[test]
    fn a_status_without_a_phrase_keeps_its_space() {
        let mut out = Vec::new();
        status_line(&mut out, 418, b"");
        assert_eq!(out, b"HTTP/1.1 418 \r\n");
    }

    #[test]
    fn phrase_that_was_set_is_that_of_its_status_alone() {
        let line = |head: &ResponseHead| {
            let text = encoded(head, KEEP);
            text.lines().next().map(str::to_owned)
        };
        let mut response = ResponseHead {
            status: 200,
            ..ResponseHead::default()
        };
        response.push(b"A", b"1");
        assert_eq!(line(&response).as_deref(), Some("HTTP/1.1 200 OK"));
        response.set_phrase(200, b"Fine\r\nX: y");
        assert_eq!(line(&response).as_deref(), Some("HTTP/1.1 200 OK"));
        response.set_phrase(200, b"Fine");
        response.push(b"B", b"2");
        assert!(encoded(&response, KEEP).starts_with("HTTP/1.1 200 Fine\r\nA: 1\r\nB: 2\r\n"));
        response.set_phrase(200, b"");
        assert_eq!(line(&response).as_deref(), Some("HTTP/1.1 200 "));
        response.status = 404;
        assert_eq!(line(&response).as_deref(), Some("HTTP/1.1 404 Not Found"));
    }

    #[test]
    fn chunk_sizes_are_plain_hexadecimal() {
        for len in [0, 1, 15, 16, 255, 4096, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            chunk_size(&mut out, len);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{len:x}\r\n"));
        }
    }

    #[test]
    fn trailers_follow_the_last_chunk_without_framing_fields() {
        let mut trailers = ResponseHead::default();
        trailers.push(b"X-Sum", b"1");
        trailers.push(b"Content-Length", b"9");
        let mut out = Vec::new();
        last_chunk(&mut out, Some(&trailers));
        last_chunk(&mut out, None);
        assert_eq!(out, b"0\r\nX-Sum: 1\r\n\r\n0\r\n\r\n");
    }

    #[test]
    fn interim_responses_have_fields_and_no_connection() {
        let mut hints = ResponseHead::default();
        hints.push(b"Link", b"</a>");
        hints.push(b"Connection", b"close");
        let mut out = Vec::new();
        interim(&mut out, 100, None);
        interim(&mut out, 103, Some(&hints));
        assert_eq!(
            out,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        );
    }
}
