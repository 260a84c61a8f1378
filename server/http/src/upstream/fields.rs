//! The fields of a server's response: which are passed on, and which describe the response to header stages.
//!
//! Source: nginx documentation, `proxy_hide_header`, `proxy_pass_header`, `proxy_force_ranges`.

use engines::http::{Field, FieldId, ResponseHead, Version, parse_length};
use server_base::errlog::{Level, Printable};

use super::conf::UpstreamConf;
use super::wording::Action;
use crate::exchange::{Exchange, Reply};

/// Drops the second one of fields that must not be repeated, as nginx does, and logs it.
pub(super) fn drop_repeated(x: &Exchange, head: &mut ResponseHead) {
    let mut repeated = Vec::new();
    let mut seen = 0_u64;
    for (at, field) in head.fields.iter().enumerate() {
        // Most are the first of their number: those before them are not looked at. Names without one share a bit.
        let bit = 1 << field.id as u8;
        if seen & bit == 0 {
            seen |= bit;
            continue;
        }
        if !stands_once(head, field) {
            continue;
        }
        let name = head.bytes(field.name);
        let is_same = |other: &&Field| {
            other.id == field.id && head.bytes(other.name).eq_ignore_ascii_case(name)
        };
        let Some(first) = head.fields[..at].iter().find(is_same) else {
            continue;
        };
        let shown = |field: &Field| {
            let (name, value) = (head.bytes(field.name), head.bytes(field.value));
            format!("{}: {}", Printable(name), Printable(value))
        };
        let (again, before) = (shown(field), shown(first));
        x.log_while(
            Level::Warn,
            Action::ReadingHead.text(),
            format_args!(
                "upstream sent duplicate header line: \"{again}\", previous value: \"{before}\", \
                 ignored"
            ),
        );
        repeated.push(at);
    }
    for at in repeated.into_iter().rev() {
        head.fields.remove(at);
    }
}

/// Whether nginx takes the first of fields of this name alone.
fn stands_once(head: &ResponseHead, field: &Field) -> bool {
    match field.id {
        FieldId::ContentType
        | FieldId::Date
        | FieldId::LastModified
        | FieldId::Etag
        | FieldId::Server
        | FieldId::Location
        | FieldId::Expires => true,
        FieldId::Other => {
            let name = head.bytes(field.name);
            ONCE.iter().any(|known| name.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// Fields without a number that stand there once.
const ONCE: [&[u8]; 6] = [
    b"Status",
    b"Refresh",
    b"X-Accel-Expires",
    b"X-Accel-Redirect",
    b"X-Accel-Limit-Rate",
    b"X-Accel-Charset",
];

/// Makes the response that header stages see of a server's.
pub(super) fn copy(x: &mut Exchange, conf: &UpstreamConf, head: &ResponseHead) {
    let multiplexed = x.head.version > Version::Http11;
    let reply = &mut x.reply;
    reply.status = head.status;
    if head.phrase_status == head.status {
        reply.fields.set_phrase(head.status, head.phrase());
    }
    for field in &head.fields {
        let (name, value) = (head.bytes(field.name), head.bytes(field.value));
        if conf.fields.hidden.has(field.id, name) {
            continue;
        }
        match field.id {
            FieldId::ContentLength
            | FieldId::Connection
            | FieldId::KeepAlive
            | FieldId::TransferEncoding => {}
            _ if multiplexed && is_of_connection(field.id, name) => {}
            FieldId::AcceptRanges if conf.fields.force_ranges => {}
            FieldId::ContentType => content_type(reply, value),
            FieldId::Etag => reply.etag = Some(value.into()),
            // The last header stage writes no modification time for other statuses.
            FieldId::LastModified if matches!(head.status, 200 | 206 | 304) => {
                reply.last_modified_text = Some(value.into());
            }
            _ => reply.fields.push_field(head, field),
        }
    }
    reply.content_length = content_length(head);
    reply.unconditional = true;
    if conf.fields.force_ranges {
        reply.allow_ranges = true;
        reply.single_range = true;
    }
}

/// Whether a field is about a connection of HTTP/1: over HTTP/2 and 3 it would make the response malformed (RFC 9113 section
/// 8.2.2).
fn is_of_connection(id: FieldId, name: &[u8]) -> bool {
    match id {
        FieldId::Upgrade | FieldId::Te => true,
        FieldId::Other => name.eq_ignore_ascii_case(b"Proxy-Connection"),
        _ => false,
    }
}

/// Whether a field of early hints or trailers may be passed on. Fields about the connection and the framing of the
/// body may not (RFC 9110 section 6.5.1).
pub(super) fn passes_beside_head(conf: &UpstreamConf, id: FieldId, name: &[u8]) -> bool {
    let of_head = matches!(
        id,
        FieldId::ContentLength
            | FieldId::TransferEncoding
            | FieldId::Connection
            | FieldId::KeepAlive
    );
    !of_head && !is_of_connection(id, name) && !conf.fields.hidden.has(id, name)
}

/// Keeps the fields that a redirect by `X-Accel-Redirect` passes on.
pub(super) fn copy_for_redirect(x: &mut Exchange, conf: &UpstreamConf, head: &ResponseHead) {
    let reply = &mut x.reply;
    for field in &head.fields {
        let (name, value) = (head.bytes(field.name), head.bytes(field.value));
        match field.id {
            FieldId::ContentType => content_type(reply, value),
            FieldId::AcceptRanges if conf.fields.force_ranges => {}
            FieldId::SetCookie
            | FieldId::CacheControl
            | FieldId::Expires
            | FieldId::AcceptRanges => reply.fields.push_id(field.id, name, value),
            _ if name.eq_ignore_ascii_case(b"Content-Disposition") => {
                reply.fields.push_id(field.id, name, value);
            }
            _ => {}
        }
    }
}

/// The length of the body according to the head, of a response to HEAD too.
fn content_length(head: &ResponseHead) -> Option<u64> {
    if head.get(FieldId::TransferEncoding).is_some() {
        return None;
    }
    parse_length(head.get(FieldId::ContentLength)?)
}

/// Sets the content type that a server sent.
fn content_type(reply: &mut Reply, value: &[u8]) {
    reply.charset.clear();
    let charset = reply.content_type.set_received(value);
    reply.charset.extend_from_slice(charset);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_number_and_stands_without_a_coding() {
        let length = |fields: &[(&str, &str)]| {
            let mut head = ResponseHead::default();
            for (name, value) in fields {
                head.push(name.as_bytes(), value.as_bytes());
            }
            content_length(&head)
        };
        assert_eq!(length(&[("Content-Length", "12")]), Some(12));
        assert_eq!(length(&[]), None);
        assert_eq!(length(&[("Content-Length", "+12")]), None);
        let both = [("Content-Length", "12"), ("Transfer-Encoding", "chunked")];
        assert_eq!(length(&both), None);
    }
}
