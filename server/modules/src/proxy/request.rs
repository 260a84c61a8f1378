//! Builds requests to servers: method, target, fields.
//!
//! Source: nginx documentation, directives `proxy_pass`, `proxy_set_header`, `proxy_method`; RFC 9112 sections 3 and 6.

use std::rc::Rc;

use engines::http::{BodyLength, Escape, FieldId, Fields, Method, escape, is_token};
use server_base::errlog::{Level, Printable};
use server_base::regex::FailedMatch;
use server_http::exchange::{Ctx, Exchange, UriOrigin};
use server_http::http::Http;
use server_http::reply::decimal;
use server_http::upstream::{Outgoing, is_of_client_cache};
use server_http::value::Value;
use server_upstream::request::RequestSpec;

use super::conf::{HttpVersion, ProxyLoc};
use super::fields::{SetFields, push_with};
use super::pass::{self, Pass};

/// Builds the request to a server.
///
/// # Errors
/// 500 if the URI is empty or the method invalid, which is logged.
pub(super) fn request(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    outgoing: &Outgoing,
) -> Result<RequestSpec, u16> {
    let http = Rc::clone(&x.route.http);
    let conf: &ProxyLoc = x.loc(&http);
    let set = conf.fields.as_deref().ok_or(500u16)?;
    let http10 = *conf.http_version == HttpVersion::V10;
    let mut fields = cx.connector.fields();
    fields.arena.reserve(x.head.arena.len() + ARENA_BYTES);
    fields
        .fields
        .reserve(x.head.fields.len() + set.set.len() + 4);
    push_method(x, cx, conf, outgoing, &mut fields)?;
    push_target(x, &http, &mut fields)?;
    push_host(x, cx, &http, set, http10, &mut fields);
    let mut upgrade = false;
    for header in &set.set {
        let value = header.value();
        if header.id() == FieldId::Upgrade {
            upgrade |= push_upgrade(x, cx, conf, value, &mut fields);
            continue;
        }
        push_with(&mut fields, header.id(), header.name(), |out| {
            value.eval(x, cx, out);
        });
    }
    push_framing(x, cx, set, outgoing.body, &mut fields);
    if conf.upstream.conf().request.fields {
        for field in &x.head.fields {
            let name = x.head.bytes(field.name);
            // The cache answers them itself.
            let is_left_out = outgoing.is_cached && is_of_client_cache(field.id);
            if !is_left_out && set.passes(field.id, name) {
                fields.push_id(field.id, name, x.head.bytes(field.value));
            }
        }
    }
    if x.vars.failed_match == FailedMatch::New {
        return Err(500);
    }
    let keep = outgoing.is_pooled && keeps(fields.field(FieldId::Connection), http10);
    Ok(RequestSpec {
        fields,
        http10,
        body: outgoing.body,
        upgrade,
        keep,
        ..RequestSpec::default()
    })
}

/// Returns the default key of a request in a cache: the URL of the request to the server.
pub(super) fn cache_key(x: &Exchange, http: &Http) -> Vec<u8> {
    let conf: &ProxyLoc = x.loc(http);
    let mut key = Vec::new();
    if let Some(parts) = pass::parts(x, http) {
        key.extend_from_slice(parts.schema.text().as_bytes());
        match parts.socket.is_empty() {
            true => key.extend_from_slice(&parts.host),
            false => {
                key.extend_from_slice(b"unix:");
                key.extend_from_slice(&parts.socket);
                key.push(b':');
            }
        }
        write_target(x, conf.pass.as_deref(), &parts.uri, &mut key);
    }
    key
}

/// Whether the connection stays open after the response, by `Connection` and the version.
fn keeps(connection: Option<&[u8]>, http10: bool) -> bool {
    let has = |token: &[u8]| {
        let mut tokens = connection.unwrap_or_default().split(|b| *b == b',');
        tokens.any(|named| named.trim_ascii().eq_ignore_ascii_case(token))
    };
    match http10 {
        true => has(b"keep-alive"),
        false => !has(b"close"),
    }
}

/// Appends the method: of `proxy_method`, else of the client or its error page.
fn push_method(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &ProxyLoc,
    outgoing: &Outgoing,
    fields: &mut Fields,
) -> Result<(), u16> {
    if outgoing.gets_body && x.target.method == Method::Head {
        fields.push_id(FieldId::Other, b":method", b"GET");
        return Ok(());
    }
    if conf.method.parts.is_empty() {
        let name = match x.target.method == x.head.method {
            true => x.head.bytes(x.head.method_name),
            false => method_name(x.target.method),
        };
        fields.push_id(FieldId::Other, b":method", name);
        return Ok(());
    }
    let method = conf.method.to_vec(x, cx);
    if !is_token(&method) {
        let text = format_args!("invalid method \"{}\" to proxy", Printable(&method));
        x.log(Level::Error, text);
        return Err(500);
    }
    fields.push_id(FieldId::Other, b":method", &method);
    Ok(())
}

/// Returns the name of a method that an error page has set.
fn method_name(method: Method) -> &'static [u8] {
    match method {
        Method::Head => b"HEAD",
        _ => b"GET",
    }
}

/// Appends the request target: unchanged from the client if possible, else from the URI. The URI of `proxy_pass`
/// replaces the name of the location.
fn push_target(x: &Exchange, http: &Http, fields: &mut Fields) -> Result<(), u16> {
    let conf: &ProxyLoc = x.loc(http);
    let parts = pass::parts(x, http).ok_or(500u16)?;
    let sent = push_with(fields, FieldId::Other, b":path", |out| {
        let start = out.len();
        write_target(x, conf.pass.as_deref(), &parts.uri, out);
        make_sendable(out, start);
    });
    if !sent {
        x.log(Level::Error, format_args!("zero length URI to proxy"));
        return Err(500);
    }
    Ok(())
}

fn write_target(x: &Exchange, pass: Option<&Pass>, uri: &[u8], out: &mut Vec<u8>) {
    let location = match pass {
        // A URL with variables contains the whole URI.
        Some(Pass::Computed(_)) if !uri.is_empty() => return out.extend_from_slice(uri),
        Some(Pass::Fixed(fixed)) => &fixed.location[..],
        _ => b"",
    };
    if x.is_health_check() || uri.is_empty() && x.target.origin == UriOrigin::RequestLine {
        return out.extend_from_slice(x.head.bytes(x.head.target));
    }
    let in_location = x.target.origin != UriOrigin::Elsewhere;
    let skip = match in_location && !uri.is_empty() {
        true => location.len().min(x.target.uri.len()),
        false => 0,
    };
    if in_location {
        out.extend_from_slice(uri);
    }
    if x.route.internal || is_quoted(x) {
        escape(&x.target.uri[skip..], Escape::Uri, out);
    } else {
        out.extend_from_slice(&x.target.uri[skip..]);
    }
    if !x.target.args.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&x.target.args);
    }
}

/// Whether the path of the target contained escapes.
fn is_quoted(x: &Exchange) -> bool {
    // `quoted_uri` is also set by a plus sign, which is irrelevant here.
    x.target.quoted_uri && x.head.bytes(x.head.target).contains(&b'%')
}

/// Escapes spaces and control characters, which could end the target or the request line. Variables can contain them.
pub(crate) fn make_sendable(out: &mut Vec<u8>, start: usize) {
    let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    if !out[start..].iter().any(ends) {
        return;
    }
    for byte in out.split_off(start) {
        match ends(&byte) {
            true => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            false => out.push(byte),
        }
    }
}

/// Appends `Host`: of `proxy_set_header`, else of the URL. An empty value is possible in HTTP/1.0 only.
fn push_host(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    http: &Http,
    set: &SetFields,
    http10: bool,
    fields: &mut Fields,
) {
    if let Some(host) = &set.host {
        let sent = push_with(fields, FieldId::Host, b"Host", |out| host.eval(x, cx, out));
        if sent || http10 {
            return;
        }
    }
    let host = pass::parts(x, http).map_or(&b""[..], |parts| &parts.host);
    push_with(fields, FieldId::Host, b"Host", |out| {
        out.extend_from_slice(host);
    });
}

/// Appends `Upgrade` with the allowed protocols; returns whether there is any.
fn push_upgrade(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &ProxyLoc,
    value: &Value,
    fields: &mut Fields,
) -> bool {
    let wanted = value.to_vec(x, cx);
    let protocols = wanted.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let allowed: Vec<&[u8]> = protocols
        .filter(|protocol| !protocol.is_empty() && conf.upgrade.allow(protocol))
        .collect();
    push_with(fields, FieldId::Upgrade, b"Upgrade", |out| {
        out.extend_from_slice(&allowed.join(&b", "[..]));
    })
}

/// Appends the framing fields, independent of `proxy_set_header`: with a wrong length the server would parse the rest
/// of the body as a request (request smuggling). Without a body, a configured `Content-Length` of 0 is sent.
fn push_framing(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    set: &SetFields,
    body: BodyLength,
    fields: &mut Fields,
) {
    const NAME: &[u8] = b"Content-Length";
    let mut digits = [0; 20];
    match (body, &set.length) {
        (BodyLength::Unknown, _) => {
            let name = b"Transfer-Encoding";
            fields.push_id(FieldId::TransferEncoding, name, b"chunked");
        }
        (BodyLength::None | BodyLength::Length(0), Some(length)) => {
            let written = length.to_vec(x, cx);
            if written == b"0" {
                fields.push_id(FieldId::ContentLength, NAME, &written);
            }
        }
        (BodyLength::None, None) => {}
        (BodyLength::Length(n), _) => {
            let digits = decimal(n, &mut digits);
            fields.push_id(FieldId::ContentLength, NAME, digits);
        }
    }
}

/// Estimated size of the fields besides the client's, bytes.
const ARENA_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_kept_as_the_request_says() {
        let kept = |http10, connection: &[u8]| keeps(Some(connection), http10);
        assert!(keeps(None, false) && !keeps(None, true));
        assert!(kept(false, b"a, b") && kept(false, b"upgrade"));
        assert!(!kept(false, b"a, Close"));
        assert!(!kept(true, b"close") && !kept(true, b""));
        assert!(kept(true, b"keep-alive"));
    }
}
