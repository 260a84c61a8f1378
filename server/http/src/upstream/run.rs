//! The state machine of one pass to servers, and code that its steps share.

use std::cell::RefCell;
use std::rc::Rc;

use server_upstream::group::{GroupId, Target};
use server_upstream::peer::SelectedPeer;
use server_upstream::picker::{Outcome, Picker};
use server_upstream::request::{RequestSpec, UpstreamRequest};
use server_upstream::retry_budget::CountedRequest;
use server_upstream::route::SocketOptions;
use server_upstream::times::AttemptTimes;

use super::body::Body;
use super::cache::filling::Filling;
use super::cache::state::Caching;
use super::conf::UpstreamConf;
use super::gateway::{Gateway, Note, Verdict};
use super::group;
use super::response_buffer::ResponseBuffer;
use super::sticky::Binding;
use super::store::Storing;
use super::tries::Tries;
use super::wording::Action;
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange, Upstream};
use crate::handler::Content;
use crate::http::Http;
use server_base::errlog::Level;

/// One pass to servers, from the handler's first run to the end of the response.
pub(super) struct Run {
    pub(super) gateway: &'static dyn Gateway,
    pub(super) step: Step,
    /// None while the memory waits for a pass.
    pub(super) picker: Option<Picker>,
    /// The group, until its picker has the values of the request that choices depend on; `None`: they depend on none.
    pub(super) values_of: Option<GroupId>,
    /// Known once the first server is.
    pub(super) tries: Option<Tries>,
    /// Its place among the requests in progress, with a budget of retries.
    pub(super) counted: Option<CountedRequest>,
    /// When the attempt fails if it has brought no head, monotonic milliseconds.
    pub(super) attempt_until_ms: u64,
    /// The request body and how it is sent.
    pub(super) body: Body,
    /// The request, while no attempt has it.
    pub(super) request: Option<RequestSpec>,
    /// How connections are made.
    pub(super) options: Option<SocketOptions>,
    /// The server to which the client is bound, in a group with `sticky`.
    pub(super) binding: Option<Box<Binding>>,
    /// Time in the group's queue before the attempt, milliseconds.
    pub(super) queued_ms: Option<u64>,
    /// The server of the attempt.
    pub(super) peer: Option<Rc<SelectedPeer>>,
    /// Bytes of early hints that the server has sent.
    pub(super) hints_bytes: u64,
    /// Bytes that applications have written to their error streams.
    notes_bytes: usize,
    /// The received part of the response.
    pub(super) buffer: Option<Rc<RefCell<ResponseBuffer>>>,
    /// The file that it is kept in, if it is.
    pub(super) storing: Option<Storing>,
    /// The cache, if it has a part in the request.
    pub(super) cache: Option<Box<Caching>>,
    /// The file of the cache that the response is written to.
    pub(super) filling: Option<Filling>,
}

/// The next step.
pub(super) enum Step {
    /// The request body, as far as it is collected.
    Body,
    /// A stored response.
    Look,
    /// The stored response at hand, which is sent.
    Stored(CacheResult),
    /// A server.
    Choose,
    /// The server that was chosen last, over a new connection.
    Again,
    /// The server that was chosen last, for a retry.
    Same,
    /// A retry after this time, monotonic milliseconds.
    Delay(u64, Retried),
    /// The head of its response.
    Head(UpstreamRequest),
    /// Its body, which a health check reads.
    Examine(UpstreamRequest),
    /// Its body, which is pulled.
    Answered,
}

/// The server of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retried {
    /// The one that was chosen last.
    Same,
    /// Another one.
    Other,
}

impl From<Retried> for Step {
    fn from(retried: Retried) -> Self {
        match retried {
            Retried::Same => Self::Same,
            Retried::Other => Self::Choose,
        }
    }
}

/// The result of a step.
pub(super) enum Flow {
    /// Continue with this step.
    Next(Step),
    /// The exchange waits; the step is run again.
    Wait(Step),
    /// The pass is over, or its response is pulled.
    Done(Content),
}

impl Run {
    /// A pass to these servers, in the memory of another one if there is any.
    pub(super) fn begin(
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        gateway: &'static dyn Gateway,
        target: Target,
    ) -> Box<Self> {
        let values_of = group::with_values(x, &target);
        let id = target.group();
        let picker = group::picker(x, target);
        let binding = match id {
            Some(id) if picker.is_sticky() => Binding::of(x, cx, id),
            _ => None,
        };
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let mut run = spare.unwrap_or_else(|| Box::new(Self::empty(gateway)));
        run.gateway = gateway;
        run.step = Step::Body;
        run.picker = Some(picker);
        run.values_of = values_of;
        run.binding = binding;
        run
    }

    pub(super) fn empty(gateway: &'static dyn Gateway) -> Self {
        Self {
            gateway,
            step: Step::Answered,
            picker: None,
            values_of: None,
            tries: None,
            counted: None,
            attempt_until_ms: u64::MAX,
            body: Body::None,
            request: None,
            options: None,
            binding: None,
            queued_ms: None,
            peer: None,
            hints_bytes: 0,
            notes_bytes: 0,
            buffer: None,
            storing: None,
            cache: None,
            filling: None,
        }
    }

    /// Keeps the pass with its exchange.
    pub(super) fn keep(self: Box<Self>, x: &mut Exchange) {
        record(x).pass = Some(self);
    }

    /// The settings of its location.
    pub(super) fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        self.gateway.conf(x, http)
    }

    /// An application has written to its error stream.
    pub(super) fn note(&mut self, x: &Exchange, text: &[u8], action: Action) -> Verdict {
        let note = Note {
            text,
            loggable_bytes: NOTES_BYTES.saturating_sub(self.notes_bytes),
            action: action.text(),
        };
        self.notes_bytes = self.notes_bytes.saturating_add(text.len());
        self.gateway.note(x, &note)
    }

    /// The response head of the server is passed on, or leads to an internal redirect.
    pub(super) fn answered(&mut self, x: &mut Exchange) {
        let header_ms = record(x).last().and_then(|attempt| attempt.header_ms());
        if let (Some(picker), Some(header_ms)) = (&mut self.picker, header_ms) {
            picker.answered(header_ms);
        }
    }

    /// Ends the attempt and reports its result to the group.
    pub(super) fn finish_attempt(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outcome: Outcome,
        action: Action,
    ) {
        let now_ms = cx.clock.mono_ms;
        let times = self.close_attempt(x, now_ms);
        if outcome == Outcome::Alive {
            self.learn_from_end(x, cx);
        }
        let picker = self.picker.as_mut();
        if self.peer.take().is_some() && picker.is_some_and(|p| p.finish(now_ms, outcome, times)) {
            let text = format_args!("upstream server temporarily disabled");
            x.log_while(Level::Warn, action.text(), text);
        }
    }

    /// Ends an attempt in progress with a response that is received no further. A server that has answered counts as alive;
    /// without an answer its state is unknown. Figures count either way.
    ///
    /// nginx counts a server as alive without an answer, too.
    pub(super) fn cut_attempt(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if self.peer.is_none() {
            return;
        }
        if self.buffer.is_some() {
            return self.finish_attempt(x, cx, Outcome::Cut, Action::Reading);
        }
        let last = record(x).last();
        if last.is_some_and(|attempt| attempt.ended_ms.is_none()) {
            self.close_attempt(x, cx.clock.mono_ms);
        }
        self.peer = None;
        if let Some(picker) = &mut self.picker {
            picker.give_up();
        }
    }

    /// Ends an attempt that the same server repeats, and counts its figures.
    pub(super) fn count_retried(&mut self, x: &mut Exchange, now_ms: u64) {
        self.close_attempt(x, now_ms);
        if let Some(picker) = &mut self.picker {
            picker.count_figures();
        }
    }

    /// Records the end of the attempt, and its figures for the group. Returns its times, if it brought a response head.
    fn close_attempt(&mut self, x: &mut Exchange, now_ms: u64) -> Option<AttemptTimes> {
        let upstream = record(x);
        upstream.close(now_ms);
        let attempt = upstream.last()?;
        if let Some(picker) = &mut self.picker
            && picker.wants_figures()
        {
            picker.set_figures(attempt.figures());
        }
        attempt.times()
    }

    /// Learns a session from the end of the attempt.
    pub(super) fn learn_from_end(&self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if self.peer.is_some()
            && let Some(binding) = &self.binding
        {
            binding.learn_from_end(x, cx);
        }
    }

    /// Empties the pass, and leaves its memory to another one.
    pub(super) fn recycle(mut self: Box<Self>) {
        self.clear();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_MAX {
                spare.push(self);
            }
        });
    }

    fn clear(&mut self) {
        self.step = Step::Answered;
        self.picker = None;
        self.values_of = None;
        self.tries = None;
        self.counted = None;
        self.attempt_until_ms = u64::MAX;
        self.body = Body::None;
        self.request = None;
        self.options = None;
        self.binding = None;
        self.queued_ms = None;
        self.peer = None;
        self.hints_bytes = 0;
        self.notes_bytes = 0;
        self.buffer = None;
        self.storing = None;
        self.cache = None;
        self.filling = None;
    }
}

/// Number of ended passes that are kept for their memory.
#[cfg(test)]
pub(super) fn spare_passes() -> usize {
    SPARE.with_borrow(Vec::len)
}

/// The record of the exchange's servers.
pub(super) fn record(x: &mut Exchange) -> &mut Upstream {
    let spare = &mut x.spare_upstream;
    (x.upstream).get_or_insert_with(|| spare.take().unwrap_or_default())
}

/// Maximum bytes of an application's error stream that are logged for one request.
const NOTES_BYTES: usize = 4 << 10;
/// Maximum number of ended passes that a thread keeps for their memory.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Memory of passes that have ended.
    #[allow(clippy::vec_box, reason = "a pass is boxed where it is used")]
    static SPARE: RefCell<Vec<Box<Run>>> = const { RefCell::new(Vec::new()) };
}
