//! Requests without a client: updates in the background, and fills whose response was sent before their end.
//!
//! Source: nginx documentation, `proxy_cache_background_update`; RFC 5861 section 3.

use std::rc::Rc;

use engines::http::Method;
use server_cache::index::FillToken;
use server_cache::key::EntryId;

use super::state::StoredResponse;
use crate::exchange::{Ctx, DetachedRequest, Exchange, State};
use crate::upstream::arrival::arrived;
use crate::upstream::response_buffer::Source;
use crate::upstream::run::{Run, record};

/// The task of an update in the background, kept with its exchange until it begins.
pub(super) struct Update {
    pub(super) id: EntryId,
    /// Its variant.
    pub(super) variant: EntryId,
    pub(super) token: FillToken,
}

/// Starts a request that updates a stored response.
pub(super) fn start(stored: &StoredResponse, token: FillToken, x: &mut Exchange, cx: &mut Ctx<'_>) {
    let (uri, args) = (x.target.uri.clone(), x.target.args.clone());
    let Ok(request) = DetachedRequest::child_of(x, cx, &uri, &args) else {
        return;
    };
    let method = match x.target.method {
        Method::Head => Method::Get,
        method => method,
    };
    let mut request = request
        .method(method)
        .in_location(x.route.location)
        .with_body_of(x)
        .logged_as_subrequest();
    let child = &mut request.exchange;
    // The request to the server is that of the client: its target is not written anew.
    child.target.origin = x.target.origin;
    child.target.has_args = x.target.has_args;
    child.target.quoted_uri = x.target.quoted_uri;
    child.route.internal = x.route.internal;
    child.extensions.set(Update {
        id: stored.id,
        variant: stored.stored.header().variant,
        token,
    });
    request.start(cx);
}

/// Continues a fill whose response ends before it, since it was a response to HEAD or a 304. Returns whether there is one.
pub(crate) fn continue_fill(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
    let Some(buffer) = run.buffer.clone() else {
        return false;
    };
    if run.filling.is_none() || buffer.borrow().attempt().is_none() {
        return false;
    }
    let (uri, args) = (x.target.uri.clone(), x.target.args.clone());
    let Ok(request) = DetachedRequest::child_of(x, cx, &uri, &args) else {
        return false;
    };
    let mut request = request.in_location(x.route.location);
    let child = &mut request.exchange;
    let mut taken = Box::new(Run::empty(run.gateway));
    std::mem::swap(&mut *taken, run);
    // The attempt wakes its exchange by this waker, which gets the key of the new one.
    child.take_waker(x);
    child.body.source = Some(Box::new(Source(Rc::clone(&buffer))));
    child.body.on_arrival = Some(arrived);
    child.progress.state = State::Responding;
    child.progress.header_sent = true;
    child.progress.ignore_abort = true;
    record(child).pass = Some(taken);
    request.start(cx);
    true
}
