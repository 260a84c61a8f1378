//! Whether a client may do at another URI what its request asks for at its own: the destination of WebDAV's COPY and MOVE.
//!
//! The phases from rewriting to access run for that URI, in an exchange of its own that is never answered. Whatever would be
//! an answer, or would have to wait for one (a subrequest, a delay), is a refusal. Limits are not asked: the request has
//! been counted.

use std::rc::Rc;

use server_base::regex::FailedMatch;

use super::{Phase, enter, phase};
use crate::exchange::{Ctx, Exchange, State};
use crate::http::Http;

/// The location of another URI of the same server, if the client may make its request there; `uri` is decoded.
pub fn permitted(x: &mut Exchange, cx: &mut Ctx<'_>, uri: &[u8]) -> Option<usize> {
    let http = Rc::clone(&x.http);
    let mut other = Exchange::new(Rc::clone(&http), x.client);
    other.begin(Rc::clone(&http), x.port, x.client, cx.clock);
    other.server = x.server;
    other.location = http.servers[x.server].location;
    other.method = x.method;
    other.proxy = x.proxy;
    other.proxied.clone_from(&x.proxied);
    other.tls.clone_from(&x.tls);
    other.host_port = x.host_port;
    other.request_id = x.request_id;
    other.set_uri(uri);
    enter(&mut other, Phase::ServerRewrite);
    with_parent_state(x, &mut other);
    while other.state == State::Running && !matches!(other.phase, Phase::PreContent) {
        match other.phase {
            _ if other.failed_match == FailedMatch::New => break,
            Phase::PreAccess => enter(&mut other, Phase::Access),
            _ => rarely(&mut other, cx, &http),
        }
    }
    with_parent_state(x, &mut other);
    let is_through = other.state == State::Running && other.failed_match == FailedMatch::None;
    is_through.then_some(other.location)
}

/// Runs one phase, out of the way of requests.
#[cold]
#[inline(never)]
fn rarely(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    phase(x, cx, http);
}

/// Swaps head and host of the client's request between two exchanges.
fn with_parent_state(x: &mut Exchange, other: &mut Exchange) {
    std::mem::swap(&mut x.head, &mut other.head);
    std::mem::swap(&mut x.host, &mut other.host);
}
