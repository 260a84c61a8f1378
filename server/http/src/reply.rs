//! Making responses: from handlers (`send`, `text`), for statuses (error pages included), and the last header stage.
//!
//! Source: nginx documentation, directives `error_page`, `return`, `server_tokens`, `absolute_redirect`.

mod content;
mod redirect;

use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

pub use engines::http::decimal;
use engines::http::{Chunk, Escape, FieldId, Method, SharedBytes, Version, escape};

use crate::conf_core::{CoreLoc, CoreSrv, ErrorPage, ServerTokens};
use crate::debug_http;
pub use crate::decision::{CLIENT_CLOSED, CLOSE_WITHOUT_RESPONSE, REQUEST_TIMEOUT};
use crate::exchange::{Ctx, Exchange, Peer, Reply, State};
use crate::http::Http;
use crate::status_page::{refresh_page, status_page};
use crate::trace::Event;
use crate::user_agent::Browser;
pub use redirect::{redirect, redirect_named};
use server_base::listen::ListenAddr;
use server_base::regex::FailedMatch;

/// Answers with a status: an error page if one is configured, else a page of our own.
pub fn status(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) {
    let status = match x.vars.failed_match {
        // The decision of a failed expression is unknown, so no other status may be sent.
        FailedMatch::New => {
            x.vars.failed_match = FailedMatch::Answered;
            x.reply.location.clear();
            500
        }
        FailedMatch::None | FailedMatch::Answered => status,
    };
    debug_http!(
        x,
        "http finalize request: {status}, {} a:1, c:1",
        x.shown_uri()
    );
    x.record_event(|| Event::Status(status));
    if matches!(
        status,
        CLOSE_WITHOUT_RESPONSE | REQUEST_TIMEOUT | CLIENT_CLOSED
    ) {
        x.reply.status = status;
        x.progress.keep_alive = false;
        x.progress.state = State::Aborted;
        return;
    }
    x.route.err_status = status;
    if matches!(status, 400 | 413 | 414 | 495 | 496 | 497 | 500 | 501) {
        x.progress.keep_alive = false;
    }
    forget_content(x);
    if status == 413 && x.input.too_large {
        x.refuse_body();
    }
    if let Some(early) = &mut x.response.early_responses {
        // They belong to the response that this status replaces.
        early.hints.clear();
    }
    let http = Rc::clone(&x.route.http);
    let loc = x.core_loc(&http);
    if let Some(pages) = &loc.errors.pages
        && !x.route.error_page
        && x.route.uri_changes != 0
    {
        x.route.error_page = !*loc.errors.recursive_error_pages;
        if let Some(page) = pages.iter().find(|p| p.status == status) {
            return error_page(x, cx, page);
        }
    }
    plain_status(x, cx, status);
}

/// Answers with the status of the handler that runs.
pub(crate) fn refuse(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) {
    x.record_event(|| Event::Refused(x.progress.phase, x.progress.handler, status));
    self::status(x, cx, status);
}

/// Answers with a status and our own page, regardless of `error_page`.
fn plain_status(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) {
    debug_http!(x, "http special response: {status}, {}", x.shown_uri());
    if matches!(status, 301 | 302) && refreshes(x) {
        return refresh(x, cx);
    }
    x.route.err_status = match status {
        494..=497 => 400,
        _ => status,
    };
    page(x, cx, status);
}

fn error_page(x: &mut Exchange, cx: &mut Ctx<'_>, page: &ErrorPage) {
    if let Some(overwrite) = page.overwrite {
        x.route.err_status = overwrite;
        // It is a field of 416 alone; in another response it would describe the content (RFC 9110 section 14.4).
        x.reply.fields.remove(FieldId::ContentRange);
    }
    let uri = page.uri.to_vec(x, cx);
    x.record_event(|| Event::ErrorPage(page.at, uri.clone()));
    match uri.first() {
        Some(b'/') => {
            let (path, args) = match page.uri.constant() {
                Some(_) => (uri.as_slice(), page.args.as_slice()),
                None => split_args(&uri),
            };
            if x.target.method != Method::Head {
                x.target.method = Method::Get;
            }
            redirect(x, cx, path, args);
        }
        Some(b'@') => redirect_named(x, cx, &uri),
        _ => {
            if !matches!(page.overwrite, Some(301 | 302 | 303 | 307 | 308)) {
                x.route.err_status = 302;
            }
            x.reply.location = uri;
            if refreshes(x) {
                return refresh(x, cx);
            }
            let status = x.route.err_status;
            self::page(x, cx, status);
        }
    }
}

/// Splits `path?args`.
pub fn split_args(uri: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', uri) {
        Some(at) => (&uri[..at], &uri[at + 1..]),
        None => (uri, b""),
    }
}

/// Sends the page of a status.
fn page(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) {
    x.reply.status = x.route.err_status;
    let loc = x.route.core_loc();
    let padded = *loc.errors.msie_padding && status >= 400 && pads_pages(x);
    match status_page(status, shown_name(&loc.server_tokens), padded) {
        Some(html) => send_page(x, cx, html.into_bytes()),
        None => {
            x.reply.content_length = Some(0);
            send(x, cx, None);
        }
    }
}

/// The name that a response shows of the server.
fn shown_name(tokens: &ServerTokens) -> &'static str {
    match tokens {
        ServerTokens::Off => SERVER_NAME,
        ServerTokens::On | ServerTokens::Build => SERVER_FULL,
    }
}

fn send_page(x: &mut Exchange, cx: &mut Ctx<'_>, html: Vec<u8>) {
    x.reply.content_type.set(b"text/html");
    x.reply.content_length = Some(html.len() as u64);
    send(x, cx, Some(Chunk::Owned(html)));
}

/// Removes the content of a response that is not sent, with its description. The page of a status, or of `error_page`, is
/// another representation (RFC 9110 section 8).
fn forget_content(x: &mut Exchange) {
    let reply = &mut x.reply;
    reply.content_type.clear();
    reply.charset.clear();
    reply.content_length = None;
    reply.last_modified = None;
    reply.last_modified_text = None;
    reply.etag = None;
    reply.source = None;
    reply.allow_ranges = false;
    reply.single_range = false;
    reply.fields.fields.retain(|field| {
        !matches!(
            field.id,
            FieldId::LastModified
                | FieldId::Etag
                | FieldId::AcceptRanges
                | FieldId::ContentLength
                | FieldId::ContentEncoding
        )
    });
    x.body.chunks.clear();
    x.body.source = None;
    x.body.on_arrival = None;
}

fn browser(x: &Exchange) -> Option<Browser> {
    x.head.field(FieldId::UserAgent).map(Browser::of)
}

/// Whether the browser shows a short error page of its own in the place of ours.
fn pads_pages(x: &Exchange) -> bool {
    x.head.version >= Version::Http10
        && matches!(browser(x), Some(Browser::Msie { .. } | Browser::Chrome))
}

/// Whether `msie_refresh` applies.
fn refreshes(x: &Exchange) -> bool {
    *x.route.core_loc().redirects.msie_refresh && matches!(browser(x), Some(Browser::Msie { .. }))
}

/// Sends a page that leads to `Location` in the place of a redirect.
fn refresh(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let location = std::mem::take(&mut x.reply.location);
    x.route.err_status = 200;
    x.reply.status = 200;
    send_page(x, cx, refresh_page(&location));
}

/// Answers with a status and a text, as `return` does.
pub fn text(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    status: u16,
    body: Vec<u8>,
    content_type: Option<&[u8]>,
) {
    if matches!(status, 301 | 302 | 303 | 307 | 308) {
        x.reply.location = body;
        return self::status(x, cx, status);
    }
    x.reply.status = status;
    x.reply.content_length = Some(body.len() as u64);
    match content_type {
        Some(kind) => x.reply.content_type.set(kind),
        None => set_content_type(x),
    }
    let chunk = (!body.is_empty()).then_some(Chunk::Owned(body));
    send(x, cx, chunk);
}

/// Sets the content type from the extension of the URI.
pub fn set_content_type(x: &mut Exchange) {
    if !x.reply.content_type.is_empty() {
        return;
    }
    let loc = x.route.core_loc();
    let ext = x.target.extension();
    let known = match &loc.types {
        Some(types) if !ext.is_empty() => types.get(ext).or_else(|| {
            ext.iter()
                .any(u8::is_ascii_uppercase)
                .then(|| types.get(&ext.to_ascii_lowercase()))
                .flatten()
        }),
        _ => None,
    };
    let kind = known.map_or(loc.default_type.0.as_slice(), Vec::as_slice);
    x.reply.content_type.set(kind);
}

/// Runs the header stages and prepares the response for sending. The body is in `x.body.chunks` and `chunk`.
pub fn send(x: &mut Exchange, cx: &mut Ctx<'_>, chunk: Option<Chunk>) {
    let http = Rc::clone(&x.route.http);
    if x.route.err_status != 0 {
        x.reply.status = x.route.err_status;
    }
    x.body.chunks.extend(chunk);
    x.progress.header_sent = true;
    let stages = if x.is_subrequest() {
        &http.subrequest_stages
    } else {
        &http.header_stages
    };
    for stage in stages {
        if let Err(status) = stage(x, cx) {
            x.progress.header_sent = false;
            x.drop_body();
            return self::status(x, cx, status);
        }
    }
    if x.vars.failed_match == FailedMatch::New {
        x.progress.header_sent = false;
        x.drop_body();
        return status(x, cx, 500);
    }
    render(x, cx, &http);
    debug_http!(x, "http output filter {}", x.shown_uri());
    x.progress.state = State::Responding;
}

/// The last header stage: makes the head of the response.
fn render(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    let status = x.reply.status;
    if matches!(status, 204 | 304) {
        let of_server = x.upstream.as_ref().is_some_and(|u| u.has_status(status));
        if !of_server {
            x.reply.content_type.clear();
        }
        x.reply.content_length = None;
        x.drop_body();
    }
    if x.response.on_end.is_some() {
        // Trailers need a chunked body.
        x.reply.content_length = None;
    }
    if x.head.method == Method::Head {
        // Nothing of a body need be read or changed.
        x.drop_body();
    }
    if !matches!(status, 200 | 206 | 304) {
        x.reply.last_modified = None;
        x.reply.last_modified_text = None;
    }
    let loc = x.core_loc(http);
    absolute_location(x, http, loc);
    x.response.head.clear();
    x.response.head.status = status;
    let server = shown_name(&loc.server_tokens).as_bytes();
    let head = &mut x.response.head;
    let reply = &x.reply;
    if reply.fields.get(FieldId::Server).is_none() {
        head.push_own(FieldId::Server, b"Server: ", server);
    }
    if reply.fields.get(FieldId::Date).is_none() {
        head.push_own(FieldId::Date, b"Date: ", &cx.clock.date);
    }
    content::describe(head, reply, x.route.own_server().timing);
    if !reply.location.is_empty() {
        head.push_id(
            FieldId::Location,
            b"Location",
            &escape_location(&reply.location),
        );
    }
    if let Some(etag) = &reply.etag {
        head.push_id(FieldId::Etag, b"ETag", etag);
    }
    for field in &reply.fields.fields {
        head.push_id(
            field.id,
            reply.fields.bytes(field.name),
            reply.fields.bytes(field.value),
        );
    }
    if reply.fields.phrase_status == status {
        // A server behind has words of its own for it.
        head.set_phrase(status, reply.fields.bytes(reply.fields.phrase_text));
    }
    head.keep_alive = x.progress.keep_alive;
    head.keep_alive_hint_s = loc
        .connection
        .keepalive()
        .header_s
        .filter(|_| x.progress.keep_alive);
    head.forbid_chunked = !*loc.chunked_transfer_encoding;
    // The head and the stages before it needed it: a descriptor is kept no longer than its bytes are sent.
    x.reply.source = None;
}

/// Escapes a `Location`: browsers drop control bytes and take `\` for a slash, so a path could become the name of another
/// host.
pub fn escape_location(location: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    escape(location, Escape::Location, &mut out);
    out
}

/// Completes a `Location` that is a path with scheme and host.
fn absolute_location(x: &mut Exchange, http: &Http, loc: &CoreLoc) {
    if !x.reply.location.starts_with(b"/") || !*loc.redirects.absolute_redirect {
        return;
    }
    let (scheme, usual_port): (&[u8], _) = match x.tls {
        Some(_) => (b"https://", 443),
        None => (b"http://", 80),
    };
    let mut url = scheme.to_vec();
    let name = &x.srv::<CoreSrv>(http).name;
    let local_port = local_port(x, http);
    if *loc.redirects.server_name_in_redirect && !name.is_empty() {
        url.extend_from_slice(name);
    } else if !x.target.host.is_empty() {
        url.extend_from_slice(&x.target.host);
    } else {
        push_local_address(x, &mut url);
    }
    if *loc.redirects.port_in_redirect && local_port != usual_port && local_port != 0 {
        url.extend_from_slice(format!(":{local_port}").as_bytes());
    }
    url.extend_from_slice(&x.reply.location);
    x.reply.location = url;
}

/// The port on which the exchange's connection was accepted, 0 for a UNIX-domain socket.
pub fn local_port(x: &Exchange, http: &Http) -> u16 {
    match x.client.local {
        Some(addr) => addr.port(),
        None => http.ports[x.route.port].listen.addr.port(),
    }
}

/// Appends the local address of the exchange's connection, without port; for a UNIX-domain socket `unix:` and its path.
pub fn push_local_address(x: &Exchange, out: &mut Vec<u8>) {
    let listen = &x.route.http.ports[x.route.port].listen;
    match (x.client.local, &listen.addr) {
        (Some(addr), _) => Peer::Inet(addr).push(out),
        (None, ListenAddr::Inet(addr)) => Peer::Inet(*addr).push(out),
        (None, ListenAddr::Unix(path)) => {
            out.extend_from_slice(b"unix:");
            out.extend_from_slice(path.as_os_str().as_bytes());
        }
    }
}

/// Redirects to the URI with a slash at its end, keeping the arguments.
pub fn slash_redirect(x: &mut Exchange) {
    let mut location = Vec::with_capacity(x.target.uri.len() + 1 + x.target.args.len());
    escape(&x.target.uri, Escape::Uri, &mut location);
    location.push(b'/');
    if !x.target.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(&x.target.args);
    }
    x.reply.location = location;
}

/// Whether trailers may be sent: by HTTP/1.1 in a chunked body.
pub fn trailers_allowed(x: &Exchange) -> bool {
    x.head.version >= Version::Http11 && *x.route.core_loc().chunked_transfer_encoding
}

/// Marks the content as changed by a stage: drops its time and its ETag, or with `keeps_time` makes the ETag a weak
/// one.
pub fn change_content(reply: &mut Reply, keeps_time: bool) {
    reply.content_length = None;
    if keeps_time {
        return weaken(reply);
    }
    reply.last_modified = None;
    reply.last_modified_text = None;
    reply.etag = None;
    reply.fields.remove(FieldId::LastModified);
}

/// Makes the response's ETag a weak one; an invalid ETag is dropped.
pub fn weaken(reply: &mut Reply) {
    if let Some(etag) = reply.etag.take() {
        reply.etag = weak(etag);
    }
}

fn weak(etag: SharedBytes) -> Option<SharedBytes> {
    if etag.starts_with(b"W/") {
        return Some(etag);
    }
    etag.starts_with(b"\"")
        .then(|| [b"W/", &etag[..]].concat().as_slice().into())
}

/// Server name of `server_tokens off`.
pub const SERVER_NAME: &str = "firstbyte";
/// Server name of `server_tokens on`.
pub const SERVER_FULL: &str = concat!("firstbyte/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_at_the_ends() {
        let mut digits = [0; 20];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(u64::MAX, &mut digits), b"18446744073709551615");
    }

    #[test]
    fn etags_become_weak() {
        let weak = |etag: &[u8]| weak(etag.into()).map(|etag| etag.to_vec());
        assert_eq!(weak(b"\"a\""), Some(b"W/\"a\"".to_vec()));
        assert_eq!(weak(b"W/\"a\""), Some(b"W/\"a\"".to_vec()));
        assert_eq!(weak(b"a"), None);
    }
}
