//! A body of unknown length without a reader: its response waits until the body has ended, or is larger than
//! `client_max_body_size`.
//!
//! An announced length is compared before any handler runs. A body without one is counted and dropped here, so that both get
//! 413. Errors wait for nothing, nor do responses to clients that wait for `100 (Continue)`. If the client pauses for
//! `PAUSE_MS`, the response is sent: the client may send the rest after it.
//!
//! Source: nginx documentation, `client_max_body_size`; nginx itself counts only bodies that are read.

use engines::http::BodyLength;
use server_base::errlog::Level;

use super::pace_of;
use crate::decision::Phase;
use crate::exchange::request_body::Unread;
use crate::exchange::{Ctx, Exchange, State, Wait};

impl Exchange {
    /// Returns whether a response that is decided waits for the end of the request body.
    pub fn is_held(&self) -> bool {
        self.is_waiting() && self.progress.header_sent
    }

    /// Sends a response that waits for the request body, whatever has come of that.
    pub fn end_hold(&mut self) {
        if let Some(body) = &mut self.input.body {
            body.unread = None;
        }
        self.progress.state = State::Responding;
    }

    /// Returns whether the body was answered with 413. The rest of it is dropped, and no location of an error page gets it.
    pub fn is_body_refused(&self) -> bool {
        let body = self.input.body.as_ref();
        self.input.too_large
            && body.is_none_or(|body| {
                body.reader.is_none() && body.stream.is_none() && body.unread.is_none()
            })
    }

    /// Drops a body that is answered with 413.
    pub(crate) fn refuse_body(&mut self) {
        if let Some(body) = &mut self.input.body {
            (body.reader, body.stream, body.unread) = (None, None, None);
            body.held.clear();
            body.used += std::mem::take(&mut body.held_bytes);
        }
    }
}

/// Holds a response back that is ready to leave, if the size of the request body is still to be found out.
#[cold]
pub(crate) fn hold(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let most = x.route.core_loc().bodies.client_max_body_size.0;
    let is_located = !matches!(x.progress.phase, Phase::PostRead | Phase::ServerRewrite);
    let is_read =
        (x.input.body.as_ref()).is_some_and(|body| body.reader.is_some() || body.stream.is_some());
    if most == 0
        || !is_located
        || is_read
        || x.input.too_large
        || x.head.expect_continue
        || x.response.head.status >= 400
        || x.is_subrequest()
        || x.is_body_complete()
    {
        return;
    }
    debug_assert!(
        x.head.body == BodyLength::Unknown,
        "a length has been compared"
    );
    let now_ms = cx.clock.mono_ms;
    let pace = pace_of(x.route.core_loc(), now_ms);
    let mut request_body = x.input.body.take().unwrap_or_default();
    request_body.held.clear();
    request_body.used += std::mem::take(&mut request_body.held_bytes);
    let unread = Unread { most, pace };
    let until_ms = match unread.is_exceeded(request_body.received) {
        true => now_ms,
        false => unread.until_ms(now_ms),
    };
    request_body.unread = Some(unread);
    x.input.body = Some(request_body);
    x.progress.state = State::Waiting(Wait::body_or_until(until_ms));
}

/// Ends the wait of a response that was held back: it is sent. If the body is too large, the response is withdrawn, and the
/// status in its place is returned.
pub(crate) fn release(x: &mut Exchange) -> Option<u16> {
    x.progress.state = State::Responding;
    let body = x.input.body.as_mut()?;
    let (unread, received) = (body.unread.take()?, body.received);
    if !unread.is_exceeded(received) {
        return None;
    }
    x.input.too_large = true;
    x.log(
        Level::Error,
        format_args!("client intended to send too large chunked body: {received} bytes"),
    );
    withdraw(x);
    Some(413)
}

/// Takes back a response that was held back: an error takes its place.
pub(crate) fn withdraw(x: &mut Exchange) {
    if let Some(body) = &mut x.input.body {
        body.unread = None;
    }
    x.progress.state = State::Running;
    x.progress.header_sent = false;
    x.response.on_end = None;
    if let Some(early) = &mut x.response.early_responses {
        early.pushes.clear();
    }
    x.clear_reply();
}
