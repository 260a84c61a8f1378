//! Subrequests: requests of an exchange to its own server. Their responses become part of its own.
//!
//! A subrequest is an exchange of its own with method GET. It begins at the rewrite phase of the server and skips
//! the access phase, as in nginx. It has the head, the variables and the extensions of the client's request: they
//! are swapped in while it runs ([`Exchange::with_parent_state`]), so that an exchange without subrequests pays
//! nothing for them. Its head is never sent. [`Subrequest`] has the place of its body. `response_body` runs them.
//!
//! Absent: methods other than GET, subrequests without a waiting parent (`mirror`).
//!
//! Source: nginx development guide, "Subrequests".

use std::rc::Rc;

use server_base::errlog::{Level, Printable};
use server_base::regex::FailedMatch;

use super::subrequest_queue::SubrequestQueue;
use super::{Ctx, Exchange, State};
use crate::debug_http;
use crate::decision::Phase;

/// The role of an exchange in a tree of subrequests.
#[derive(Default)]
pub struct SubrequestState {
    /// Its depth below the client's exchange.
    pub(crate) nesting: u8,
    /// The head of the response to the client was made before it began.
    is_late: bool,
    /// It goes to the location of its parent, for another part of the response.
    is_clone: bool,
    /// Subrequests that the client's request has led to so far; lent like the head.
    pub(crate) begun: u32,
    /// The charset of the response to the client, empty while it is not known.
    charset: Vec<u8>,
    /// Number of the last body stages that come after the place at which bodies of subrequests join.
    pub(crate) outer: usize,
    /// The queue at that place, if subrequests may join.
    pub(crate) queue: Option<Box<SubrequestQueue>>,
    /// The subrequest that a phase waits for.
    pub(crate) awaited: Option<Box<Exchange>>,
}

impl SubrequestState {
    /// Whether bodies of subrequests may join its body.
    #[inline]
    pub fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether it may have subrequests that are not over.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.has_queue() || self.awaited.is_some()
    }

    /// The charset of the response that a subrequest's body becomes part of; empty for none.
    pub fn charset(&self) -> &[u8] {
        &self.charset
    }

    /// The subrequest that a phase waits for.
    pub(crate) fn awaited(&self) -> Option<&Exchange> {
        self.awaited.as_deref()
    }

    /// Whether it goes to the location of its parent, for another part of the response.
    pub fn is_clone(&self) -> bool {
        self.is_clone
    }

    /// A request of a client begins, with memory that another had.
    pub(crate) fn begin(&mut self) {
        self.begun = 0;
    }

    /// Its depth below the client's exchange.
    pub(super) fn depth(&self) -> u8 {
        self.nesting
    }

    /// The exchange is a request of the server itself, at this depth. It can add nothing to the response to a client.
    pub(super) fn detach(&mut self, depth: u8) {
        self.nesting = depth;
        self.is_late = true;
    }

    /// Drops its own subrequests.
    pub(crate) fn drop_own(&mut self) {
        self.outer = 0;
        self.queue = None;
        self.awaited = None;
    }
}

/// A subrequest whose body is part of its parent's, or held for it.
pub struct Subrequest {
    pub(crate) exchange: Box<Exchange>,
    /// The replacement for a body that is empty or an error's, and its media type.
    pub(crate) stub: Option<(Vec<u8>, Vec<u8>)>,
    /// The stage that requested it waits for its end.
    pub(crate) waited: bool,
    /// The receiver of the body, in memory.
    pub(crate) on_complete: Option<OnComplete>,
    /// Something of the body has been pulled.
    pub(crate) begun: bool,
}

/// Takes the status and the body of a subrequest.
pub(crate) type OnComplete = Box<dyn FnOnce(&mut Exchange, u16, Vec<u8>)>;

impl Subrequest {
    /// A subrequest of `x`, not begun yet.
    ///
    /// # Errors
    /// There are too many, or they are nested too deep; the error is logged.
    pub fn open(x: &mut Exchange, cx: &Ctx<'_>, uri: &[u8], args: &[u8]) -> Result<Self, TooMany> {
        Ok(Self {
            exchange: open(x, cx, uri, args)?,
            stub: None,
            waited: false,
            on_complete: None,
            begun: false,
        })
    }

    /// Sets a replacement for an empty body or an error's body, with its media type. It passes through the same
    /// stages as any body of a subrequest.
    #[must_use]
    pub fn or_else(mut self, stub: Vec<u8>, content_type: Vec<u8>) -> Self {
        self.stub = Some((stub, content_type));
        self
    }

    /// It goes to the content handler of the parent's location.
    #[must_use]
    pub fn clone_of(mut self, x: &Exchange) -> Self {
        let child = &mut self.exchange;
        child.target.method = x.target.method;
        child.target.origin = x.target.origin;
        child.target.has_args = x.target.has_args;
        child.target.quoted_uri = x.target.quoted_uri;
        child.route.location = x.route.location;
        child.route.internal = x.route.internal;
        child.progress.phase = Phase::Content;
        child.subrequests.is_clone = true;
        self
    }

    /// Its stage waits for its end.
    #[must_use]
    pub fn waited(mut self) -> Self {
        self.waited = true;
        self
    }

    /// The body is held in memory, up to `subrequest_output_buffer_size`, and given to the function with the status.
    #[must_use]
    pub fn held_for(
        mut self,
        on_complete: impl FnOnce(&mut Exchange, u16, Vec<u8>) + 'static,
    ) -> Self {
        self.on_complete = Some(Box::new(on_complete));
        self.waited = true;
        self
    }
}

/// A subrequest was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// The result of [`Exchange::ask`].
pub enum Answer {
    /// Nothing yet: the exchange waits, and is to ask again.
    Wait,
    /// The subrequest has a response; its body is not pulled.
    Head(Box<Exchange>),
    /// There is none, and the exchange was aborted.
    None,
}

impl Exchange {
    /// Whether this is a subrequest.
    #[inline]
    pub fn is_subrequest(&self) -> bool {
        self.subrequests.nesting > 0
    }

    /// Returns whether the server made the request in the client's name (HTTP/2 push). Clients have streams with odd numbers
    /// (RFC 9113 section 5.1.1), and HTTP/1 has no streams.
    pub fn is_pushed(&self) -> bool {
        let stream = self.client.wake.stream;
        stream != 0 && stream.is_multiple_of(2)
    }

    /// Returns whether the head of the response to the client is made: nothing can be added to it.
    pub fn is_head_made(&self) -> bool {
        self.subrequests.is_late
            || (!self.is_subrequest() && self.progress.state == State::Responding)
    }

    /// Runs `work` while a subrequest has the state of the client's request.
    pub fn with_parent_state<T>(
        &mut self,
        child: &mut Self,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.swap_shared(child);
        let done = work(child);
        self.swap_shared(child);
        // One connection has one action, as in nginx: that of the subrequest stays when it has ended.
        self.progress.action = child.progress.action;
        // A failed match in a subrequest also fails this request.
        if child.vars.failed_match == FailedMatch::New
            && self.vars.failed_match == FailedMatch::None
        {
            self.vars.failed_match = FailedMatch::New;
        }
        done
    }

    fn swap_shared(&mut self, child: &mut Self) {
        use std::mem::swap;
        swap(&mut self.head, &mut child.head);
        swap(&mut self.target.host, &mut child.target.host);
        swap(&mut self.vars.slots, &mut child.vars.slots);
        swap(&mut self.vars.known, &mut child.vars.known);
        swap(&mut self.extensions, &mut child.extensions);
        swap(&mut self.vars.request_id, &mut child.vars.request_id);
        swap(&mut self.vars.limits, &mut child.vars.limits);
        swap(&mut self.input.body, &mut child.input.body);
        swap(&mut self.subrequests.begun, &mut child.subrequests.begun);
    }
}

/// Checks that an exchange may have a subrequest.
///
/// # Errors
/// It is nested too deep; the error is logged.
pub(super) fn check_depth(x: &Exchange, uri: &[u8]) -> Result<(), TooMany> {
    if x.subrequests.nesting < MAX_SUBREQUESTS_DEEP {
        return Ok(());
    }
    let shown = Printable(uri);
    let text = format_args!("subrequests cycle while processing \"{shown}\"");
    x.log(Level::Error, text);
    Err(TooMany)
}

pub(crate) fn open(
    x: &mut Exchange,
    cx: &Ctx<'_>,
    uri: &[u8],
    args: &[u8],
) -> Result<Box<Exchange>, TooMany> {
    check_depth(x, uri)?;
    let shown = Printable(uri);
    if x.subrequests.begun >= MAX_SUBREQUESTS {
        let text = format_args!("request reference counter overflow while processing \"{shown}\"");
        x.log(Level::Crit, text);
        return Err(TooMany);
    }
    debug_http!(x, "http subrequest \"{shown}?{}\"", Printable(args));
    x.subrequests.begun += 1;
    let mut child = Exchange::new(Rc::clone(&x.route.http), x.client);
    child.client.may_push = false;
    child.copy_client(x);
    child.target.set_uri(uri);
    child.target.set_args(args);
    child.progress.phase = Phase::ServerRewrite;
    child.route.internal = true;
    child.started_ms = cx.clock.mono_ms;
    child.started_unix_ms = cx.clock.unix_ms;
    child.input.bytes = x.input.bytes;
    child.timings = x.timings;
    child.subrequests.nesting = x.subrequests.nesting + 1;
    child.subrequests.is_late = x.is_head_made();
    let main = if x.is_subrequest() {
        &x.subrequests.charset
    } else {
        &x.reply.charset
    };
    child.subrequests.charset.clone_from(main);
    child.trace.clone_from(&x.trace);
    Ok(Box::new(child))
}

/// How deep subrequests of subrequests may lie, as in nginx: its NGX_HTTP_MAX_SUBREQUESTS is 50, and one more is let be.
pub const MAX_SUBREQUESTS_DEEP: u8 = 51;
/// Maximum number of subrequests of one client's request: nginx has as many at a time.
pub const MAX_SUBREQUESTS: u32 = 64_534;
