//! Variables of servers that a request is passed to.
//!
//! Values of several attempts are joined by commas, those of passes before and after an internal redirect by colons.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, "Embedded Variables".

use engines::http::{Field, FieldId, Span, http_date};

use crate::builtin::lookup::{find_cookie, join, same_name};
use crate::builtin::out::{Out, put, put_number, put_opt, put_seconds};
use crate::exchange::Exchange;
use crate::exchange::cache_record::CacheRecord;
use crate::exchange::upstream::{Attempt, Entry};
use crate::variables;
use crate::vars::Variable;

/// The variables.
pub const VARIABLES: &[Variable] = variables! {
    "upstream_addr": "addresses of the contacted servers"
        => |x, _, _, out| list(x, out, |attempt, out| put(out, &attempt.name));
    "upstream_status": "statuses of their responses"
        => |x, _, _, out| list(x, out, |attempt, out| match attempt.status {
            0 => put(out, b"-"),
            status => put_number(out, u64::from(status)),
        });
    "upstream_connect_time": "time to connect to the server, seconds"
        => |x, _, _, out| list(x, out, |attempt, out| seconds(out, attempt, attempt.facts().connected_ms));
    "upstream_header_time": "time until the response head was received, seconds"
        => |x, _, _, out| list(x, out, |attempt, out| seconds(out, attempt, attempt.head_ms));
    "upstream_response_time": "time until the response was received, seconds"
        => |x, _, _, out| list(x, out, |attempt, out| seconds(out, attempt, attempt.ended_ms));
    "upstream_queue_time": "time in the queue of the group, seconds"
        => |x, _, _, out| list(x, out, |attempt, out| match attempt.queued_ms {
            Some(queued_ms) => put_seconds(out, queued_ms),
            None => put(out, b"-"),
        });
    "upstream_response_length": "bytes of the response body"
        => |x, _, _, out| list(x, out, |attempt, out| put_number(out, attempt.body_bytes));
    "upstream_bytes_received": "bytes received from the server"
        => |x, _, _, out| list(x, out, |attempt, out| put_number(out, attempt.facts().received_bytes));
    "upstream_bytes_sent": "bytes sent to the server"
        => |x, _, _, out| list(x, out, |attempt, out| put_number(out, attempt.facts().sent_bytes));
    "upstream_http_": "field of the server's response" => |x, _, name, out| {
        let upstream = x.upstream.as_deref();
        let head = upstream.and_then(|upstream| upstream.head.as_deref());
        head.is_some_and(|head| field(&head.fields, |span| head.bytes(span), name, out))
    };
    "upstream_trailer_": "trailer field of the server's response" => |x, _, name, out| {
        let trailers = x.upstream.as_deref().map(|upstream| &upstream.trailers);
        trailers.is_some_and(|all| field(&all.fields, |span| all.bytes(span), name, out))
    };
    "upstream_cookie_": "cookie that the server's response sets" => |x, _, name, out| cookie(x, name, out);
    "upstream_cache_status": "way in which the cache took part" => |x, _, _, out| {
        let result = cache(x).and_then(|cache| cache.result);
        put_opt(out, result.map(|result| result.text().as_bytes()))
    };
    "upstream_cache_last_modified": "Last-Modified of the stored response that is validated" => |x, _, _, out| {
        let date = cache(x).and_then(|cache| cache.last_modified_s).map(http_date);
        put_opt(out, date.as_ref().map(|date| &date[..]))
    };
    "upstream_cache_etag": "entity tag of the stored response that is validated" => |x, _, _, out| {
        let etag = cache(x).map(|cache| &cache.etag[..]);
        put_opt(out, etag.filter(|etag| !etag.is_empty()))
    };
    "upstream_cache_age": "age of the stored response that was sent, seconds" => |x, _, _, out| {
        match cache(x).and_then(|cache| cache.age_s) {
            Some(age_s) => put_number(out, u64::from(age_s)),
            None => false,
        }
    };
    "upstream_last_addr": "address of the server chosen last" => |x, _, _, out| {
        let upstream = x.upstream.as_deref();
        put_opt(out, upstream.and_then(|upstream| upstream.last_name()))
    };
    "upstream_last_server_name": "name of the server chosen last" => |x, _, _, out| {
        let upstream = x.upstream.as_deref();
        put_opt(out, upstream.and_then(|upstream| upstream.last_server()))
    };
};

/// The part of the cache in the request.
fn cache(x: &Exchange) -> Option<&CacheRecord> {
    x.upstream.as_deref()?.cache.as_deref()
}

/// The values of all attempts; false if there was none.
fn list(x: &Exchange, out: &mut Out, write: fn(&Attempt, &mut Out) -> bool) -> bool {
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

/// The time from the begin of an attempt.
fn seconds(out: &mut Out, attempt: &Attempt, until_ms: Option<u64>) -> bool {
    match until_ms {
        Some(until_ms) => put_seconds(out, until_ms.saturating_sub(attempt.started_ms)),
        None => put(out, b"-"),
    }
}

/// The values of a field; its name is written with underscores.
fn field<'a>(
    fields: &[Field],
    bytes: impl Fn(Span) -> &'a [u8],
    name: &[u8],
    out: &mut Out,
) -> bool {
    let named = fields.iter().filter(|f| same_name(bytes(f.name), name));
    let mut values = named.map(|f| bytes(f.value)).peekable();
    values.peek().is_some() && join(values, b", ", out)
}

/// The value of a cookie in `Set-Cookie`, without its attributes.
fn cookie(x: &Exchange, name: &[u8], out: &mut Out) -> bool {
    let upstream = x.upstream.as_deref();
    let head = upstream.and_then(|upstream| upstream.head.as_deref());
    let value = head.and_then(|head| {
        let mut fields = head.fields.iter().filter(|f| f.id == FieldId::SetCookie);
        fields.find_map(|field| {
            let pair = head.bytes(field.value).split(|b| *b == b';').next()?;
            find_cookie(pair, name)
        })
    });
    put_opt(out, value)
}
