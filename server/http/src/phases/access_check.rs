//! Access check for another URI than that of the request: the destination of WebDAV's COPY and MOVE.
//!
//! The phases from rewriting to access run for that URI, in an exchange of its own that is never answered. It is
//! refused if a phase would answer, or would have to wait (for a subrequest or a delay). Limits do not apply: the
//! request was counted.

use std::rc::Rc;

use server_base::regex::FailedMatch;

use super::phase;
use crate::decision::Phase;
use crate::exchange::{Ctx, Exchange, State};
use crate::http::Http;

/// The location of another URI of the same server, if the client may make its request there; `uri` is decoded.
pub fn accessible_location(x: &mut Exchange, cx: &mut Ctx<'_>, uri: &[u8]) -> Option<usize> {
    let mut other = Exchange::new(Rc::clone(&x.route.http), x.client);
    other.begin(Rc::clone(&x.route.http), x.route.port, x.client, cx.clock);
    other.copy_client(x);
    other.target.method = x.target.method;
    other.vars.request_id = x.vars.request_id;
    other.target.set_uri(uri);
    other.progress.enter(Phase::ServerRewrite);
    with_parent_state(x, &mut other);
    while other.progress.state == State::Running
        && !matches!(other.progress.phase, Phase::PreContent)
    {
        match other.progress.phase {
            _ if other.vars.failed_match == FailedMatch::New => break,
            Phase::PreAccess => other.progress.enter(Phase::Access),
            _ => rarely(&mut other, cx, &x.route.http),
        }
    }
    with_parent_state(x, &mut other);
    let is_through =
        other.progress.state == State::Running && other.vars.failed_match == FailedMatch::None;
    is_through.then_some(other.route.location)
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
    std::mem::swap(&mut x.target.host, &mut other.target.host);
}
