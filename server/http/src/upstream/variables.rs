//! Variables of servers that a request is passed to.
//!
//! Values of several attempts are joined by commas, those of passes before and after an internal redirect by colons.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, "Embedded Variables".

use std::io::Write;

use engines::http::{Field, FieldId, Span};

use super::record::{Attempt, Entry};
use crate::exchange::Exchange;
use crate::vars::Variable;

macro_rules! var {
    ($name:literal, $doc:literal, $read:expr) => {
        Variable {
            name: $name,
            read: $read,
            write: None,
            doc: $doc,
        }
    };
}

/// The variables.
pub const VARIABLES: &[Variable] = &[
    var!(
        "upstream_addr",
        "addresses of the servers that were asked",
        |x, _, _, out| list(x, out, |attempt, out| out.extend_from_slice(&attempt.name))
    ),
    var!(
        "upstream_status",
        "statuses of their responses",
        |x, _, _, out| list(x, out, |attempt, out| match attempt.status {
            0 => out.push(b'-'),
            status => number(out, u64::from(status)),
        })
    ),
    var!(
        "upstream_connect_time",
        "time until a connection to the server stood, seconds",
        |x, _, _, out| list(x, out, |attempt, out| {
            seconds(out, attempt, attempt.facts().connected_ms);
        })
    ),
    var!(
        "upstream_header_time",
        "time until the head of the response had come, seconds",
        |x, _, _, out| list(x, out, |attempt, out| seconds(
            out,
            attempt,
            attempt.head_ms
        ))
    ),
    var!(
        "upstream_response_time",
        "time until the response had come, seconds",
        |x, _, _, out| list(x, out, |attempt, out| seconds(
            out,
            attempt,
            attempt.ended_ms
        ))
    ),
    var!(
        "upstream_response_length",
        "bytes of the response body",
        |x, _, _, out| list(x, out, |attempt, out| number(out, attempt.body_bytes))
    ),
    var!(
        "upstream_bytes_received",
        "bytes received from the server",
        |x, _, _, out| list(x, out, |attempt, out| {
            number(out, attempt.facts().received_bytes);
        })
    ),
    var!(
        "upstream_bytes_sent",
        "bytes sent to the server",
        |x, _, _, out| list(x, out, |attempt, out| number(
            out,
            attempt.facts().sent_bytes
        ))
    ),
    var!(
        "upstream_http_",
        "field of the server's response",
        |x, _, name, out| {
            let upstream = x.upstream.as_deref();
            let head = upstream.and_then(|upstream| upstream.head.as_deref());
            head.is_some_and(|head| field(&head.fields, |span| head.bytes(span), name, out))
        }
    ),
    var!(
        "upstream_trailer_",
        "trailer field of the server's response",
        |x, _, name, out| {
            let trailers = x.upstream.as_deref().map(|upstream| &upstream.trailers);
            trailers.is_some_and(|all| field(&all.fields, |span| all.bytes(span), name, out))
        }
    ),
    var!(
        "upstream_cookie_",
        "cookie that the server's response sets",
        |x, _, name, out| cookie(x, name, out)
    ),
    var!(
        "upstream_last_addr",
        "address of the server that was chosen last",
        |x, _, _, out| {
            let upstream = x.upstream.as_deref();
            put(out, upstream.and_then(|upstream| upstream.last_name()))
        }
    ),
    var!(
        "upstream_last_server_name",
        "name of the server that was chosen last",
        |x, _, _, out| {
            let upstream = x.upstream.as_deref();
            put(out, upstream.and_then(|upstream| upstream.last_server()))
        }
    ),
];

fn put(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    value.map(|value| out.extend_from_slice(value)).is_some()
}

/// The values of all attempts; false if there was none.
fn list(x: &Exchange, out: &mut Vec<u8>, write: fn(&Attempt, &mut Vec<u8>)) -> bool {
    let Some(upstream) = x.upstream.as_deref() else {
        return false;
    };
    let mut before: Option<&Entry> = None;
    for entry in upstream.entries() {
        match entry {
            Entry::Redirect => out.extend_from_slice(b" : "),
            Entry::Attempt(attempt) => {
                if matches!(before, Some(Entry::Attempt(_))) {
                    out.extend_from_slice(b", ");
                }
                write(attempt, out);
            }
        }
        before = Some(entry);
    }
    before.is_some()
}

fn number(out: &mut Vec<u8>, n: u64) {
    // A Vec takes everything.
    let _ = write!(out, "{n}");
}

/// The time from the begin of an attempt, `1.234`.
fn seconds(out: &mut Vec<u8>, attempt: &Attempt, until_ms: Option<u64>) {
    let Some(until_ms) = until_ms else {
        return out.push(b'-');
    };
    let ms = until_ms.saturating_sub(attempt.started_ms);
    let _ = write!(out, "{}.{:03}", ms / 1000, ms % 1000);
}

/// The values of a field, whose name is written with underscores.
fn field<'a>(
    fields: &[Field],
    bytes: impl Fn(Span) -> &'a [u8],
    name: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let mut found = false;
    for field in fields.iter().filter(|f| is_named(bytes(f.name), name)) {
        if found {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(bytes(field.value));
        found = true;
    }
    found
}

/// Compares without case; `-` is written `_`.
fn is_named(field: &[u8], name: &[u8]) -> bool {
    field.len() == name.len()
        && field.iter().zip(name).all(|(f, n)| match f {
            b'-' => *n == b'_',
            _ => f.to_ascii_lowercase() == *n,
        })
}

/// The value of a cookie in `Set-Cookie`, without its attributes.
fn cookie(x: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let head = x
        .upstream
        .as_deref()
        .and_then(|upstream| upstream.head.as_deref());
    let Some(head) = head else { return false };
    let fields = head.fields.iter().filter(|f| f.id == FieldId::SetCookie);
    let value = fields
        .filter_map(|field| {
            let (key, rest) = head.bytes(field.value).split_at_checked(name.len())?;
            let value = without_spaces(rest).strip_prefix(b"=")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
        .next();
    let value = value.map(|value: &[u8]| {
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        without_spaces(&value[..end])
    });
    put(out, value)
}

/// Spaces alone do not count, as in nginx.
fn without_spaces(text: &[u8]) -> &[u8] {
    let at = text.iter().position(|b| *b != b' ').unwrap_or(text.len());
    &text[at..]
}
