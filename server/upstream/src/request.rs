//! One attempt with a server: a mailbox between an exchange and a connection to the server.
//!
//! ```text
//! exchange:    UpstreamRequest   send, end          pieces of the request body
//!                                next               events: head, body, end, failure
//!                                set_window         limit of waiting response bytes
//!                                drop               abandons the attempt
//! connection:  UpstreamCall      take_head, take_body, body_end
//!                                deliver            puts an event in and wakes the exchange
//!                                window             bytes that may be read now
//!                                is_given_up
//! ```
//!
//! Back-pressure in both directions is a count of bytes. The connection reads no more than the window permits. The
//! exchange takes no more of the request body from its client than [`UpstreamRequest::room`] returns. Each side wakes the
//! other by a key in the thread's [`WakeQueue`]: the exchange by its waker, the connection by the key it was attached with.
//! A superfluous wake is harmless, since each side checks its state.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::{BodyLength, Chunk, Fields, ResponseHead};

use server_base::handshakes::HandshakeResult;
use server_base::waker::{WakeKey, WakeQueue, Waker};

pub use crate::error::{Failure, UpstreamError};

/// A request to a server.
#[derive(Clone, Debug, Default)]
pub struct RequestSpec {
    /// The fields, in the [form](crate::protocol::RequestForm) of the protocol.
    pub fields: Fields,
    /// The version in the request line, if the protocol has versions.
    pub http10: bool,
    /// Length of the body. `Length` and `Unknown` match the `Content-Length` or `Transfer-Encoding` in the fields.
    pub body: BodyLength,
    /// The request has an upgrade, so that 101 is a valid response.
    pub upgrade: bool,
    /// The connection may serve another request afterwards.
    pub keep: bool,
    /// Two bytes for the application in a packet's head, if the protocol has them.
    pub modifiers: [u8; 2],
}

/// Events of an upstream server, in order.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// An interim response: 1xx except 101.
    Interim(Box<ResponseHead>),
    /// The head of the response, and its size in bytes.
    Head(Box<ResponseHead>, u64),
    /// A piece of the body, or of a tunnel.
    Data(Chunk),
    /// A piece of a FastCGI application's error stream, before or after the head.
    Note(Vec<u8>),
    /// The trailer section, if it has fields.
    Trailers(Fields),
    /// The response is complete, or the server has ended a tunnel.
    End,
    /// After a 101 head: the connection is a tunnel now.
    Upgraded,
    /// The attempt has failed. This is the last event.
    Failed(UpstreamError),
}

/// Facts of an attempt, for variables and logs. Times are monotonic milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptFacts {
    /// Start of the attempt.
    pub started_ms: u64,
    /// Time at which the connection was established; for an idle connection, the start of the attempt.
    pub connected_ms: Option<u64>,
    /// Time at which the connection had taken the whole request.
    pub sent_ms: Option<u64>,
    /// Time at which the head of the response was complete.
    pub head_ms: Option<u64>,
    /// End of the attempt.
    pub ended_ms: Option<u64>,
    /// Bytes sent to the server.
    pub sent_bytes: u64,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// The connection was idle in a pool before.
    pub reused: bool,
    /// The socket was connected, and the handshake of TLS was begun.
    pub handshaking: bool,
    /// The result of a handshake of TLS for this attempt; `None` without a handshake, or if it was abandoned.
    pub handshake: Option<HandshakeResult>,
}

/// The exchange's side of an attempt. Dropping it abandons the attempt.
#[derive(Debug)]
pub struct UpstreamRequest(Rc<Mailbox>);

/// Facts of an attempt, available after it was abandoned, too.
#[derive(Clone, Debug)]
pub struct AttemptWatch(Rc<Mailbox>);

/// The connection's side of an attempt.
///
/// Dropping it fails the attempt, unless it has ended.
#[derive(Debug)]
pub struct UpstreamCall(Rc<Mailbox>);

#[derive(Debug)]
struct Mailbox {
    /// The exchange's waker; `None` while no exchange owns the mailbox.
    waker: Option<Waker>,
    queue: WakeQueue,
    state: RefCell<State>,
}

/// Memory of ended attempts, for later ones of the thread.
#[derive(Debug, Default)]
pub struct Spares {
    mailboxes: Vec<Rc<Mailbox>>,
    fields: Vec<Fields>,
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    heads: Vec<Box<ResponseHead>>,
}

#[derive(Debug, Default)]
struct State {
    head: Option<RequestSpec>,
    /// Request body bytes for the connection.
    body: VecDeque<Chunk>,
    body_bytes: u64,
    body_end: Option<Option<Fields>>,
    /// Events of the server that were not taken yet.
    events: VecDeque<UpstreamEvent>,
    event_bytes: u64,
    /// Maximum number of response body bytes in `events`.
    window: u64,
    /// Time to wake the exchange, monotonic milliseconds.
    wake_at_ms: Option<u64>,
    facts: AttemptFacts,
    /// The connection of the attempt.
    connection: Option<WakeKey>,
    given_up: bool,
    /// The server's last event is in `events`, or was taken.
    over: bool,
}

/// Makes both sides of an attempt.
pub fn attempt(
    head: RequestSpec,
    waker: Waker,
    queue: &WakeQueue,
    now_ms: u64,
) -> (UpstreamRequest, UpstreamCall) {
    let mailbox = Rc::new(Mailbox {
        waker: Some(waker),
        queue: queue.clone(),
        state: RefCell::new(State::of(head, now_ms)),
    });
    (UpstreamRequest(Rc::clone(&mailbox)), UpstreamCall(mailbox))
}

impl Spares {
    /// Begins an attempt like [`attempt`], in the memory of an ended one if possible. All have the same queue.
    pub fn attempt(
        &mut self,
        head: RequestSpec,
        waker: Waker,
        queue: &WakeQueue,
        now_ms: u64,
    ) -> (UpstreamRequest, UpstreamCall) {
        let Some(mut mailbox) = self.mailboxes.pop() else {
            return attempt(head, waker, queue, now_ms);
        };
        if let Some(mailbox) = Rc::get_mut(&mut mailbox) {
            mailbox.waker = Some(waker);
            mailbox.state.get_mut().begin(head, now_ms);
        }
        (UpstreamRequest(Rc::clone(&mailbox)), UpstreamCall(mailbox))
    }

    /// Keeps the memory of an attempt, if the connection has dropped its side.
    pub fn release(&mut self, watch: AttemptWatch) {
        let AttemptWatch(mut mailbox) = watch;
        let Some(unshared) = Rc::get_mut(&mut mailbox) else {
            return;
        };
        let state = unshared.state.get_mut();
        if let Some(spec) = state.head.take() {
            self.release_fields(spec.fields);
        }
        state.body.clear();
        state.events.clear();
        unshared.waker = None;
        let is_small = state.body.capacity().max(state.events.capacity()) <= SPARE_EVENTS;
        if is_small && self.mailboxes.len() < SPARES_MAX {
            self.mailboxes.push(mailbox);
        }
    }

    /// Keeps the memory of a list of fields.
    fn release_fields(&mut self, mut fields: Fields) {
        if self.fields.len() < SPARES_MAX && fields.arena.capacity() <= SPARE_BYTES {
            fields.clear();
            self.fields.push(fields);
        }
    }

    /// Returns an empty list of fields.
    pub fn fields(&mut self) -> Fields {
        self.fields.pop().unwrap_or_default()
    }

    /// Keeps the memory of a response's head.
    pub fn release_head(&mut self, head: Box<ResponseHead>) {
        if self.heads.len() < SPARES_MAX && head.arena.capacity() <= SPARE_BYTES {
            self.heads.push(head);
        }
    }

    /// The memory of a head, with its old content.
    pub fn head(&mut self) -> Option<Box<ResponseHead>> {
        self.heads.pop()
    }
}

impl State {
    fn of(head: RequestSpec, now_ms: u64) -> Self {
        let mut state = Self::default();
        state.begin(head, now_ms);
        state
    }

    /// Resets this to the state of a new attempt. The queues are empty.
    fn begin(&mut self, head: RequestSpec, now_ms: u64) {
        *self = Self {
            head: Some(head),
            window: WINDOW_BYTES,
            facts: AttemptFacts {
                started_ms: now_ms,
                ..AttemptFacts::default()
            },
            body: std::mem::take(&mut self.body),
            events: std::mem::take(&mut self.events),
            ..Self::default()
        };
    }
}

impl Mailbox {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }

    fn wake_connection(&self, state: &RefMut<'_, State>) {
        if let Some(key) = state.connection {
            self.queue.push(key);
        }
    }
}

impl UpstreamRequest {
    /// Appends a piece of the request body, or of a tunnel.
    pub fn send(&self, chunk: Chunk) {
        let mut state = self.0.state.borrow_mut();
        state.body_bytes += chunk.len();
        // Small pieces of one turn are joined, since each could become a chunk.
        match (state.body.back_mut(), chunk) {
            (Some(Chunk::Owned(last)), Chunk::Owned(next))
                if last.len() + next.len() <= JOINED_BYTES =>
            {
                last.extend_from_slice(&next);
            }
            (_, chunk) => state.body.push_back(chunk),
        }
        self.0.wake_connection(&state);
    }

    /// Ends the request body, or the client's side of a tunnel. A request without a body needs no end.
    pub fn end(&self, trailers: Option<Fields>) {
        let mut state = self.0.state.borrow_mut();
        state.body_end = Some(trailers);
        self.0.wake_connection(&state);
    }

    /// Returns the number of body bytes that should be sent now. The exchange is woken when there is room again.
    pub fn room(&self) -> u64 {
        BODY_WINDOW_BYTES.saturating_sub(self.0.state.borrow().body_bytes)
    }

    /// Takes the next event of the server.
    pub fn next(&self) -> Option<UpstreamEvent> {
        let mut state = self.0.state.borrow_mut();
        let event = state.events.pop_front()?;
        if let UpstreamEvent::Data(chunk) = &event {
            let was_full = state.event_bytes >= state.window;
            state.event_bytes -= chunk.len();
            if was_full && state.event_bytes < state.window {
                self.0.wake_connection(&state);
            }
        }
        Some(event)
    }

    /// The request for another attempt, if the connection has put it back.
    pub fn take_head(&self) -> Option<RequestSpec> {
        self.0.state.borrow_mut().head.take()
    }

    /// Takes the rest of a response, if it is complete and consists of body pieces alone; returns its length in bytes.
    pub fn take_whole(&self, to: &mut VecDeque<Chunk>) -> Option<u64> {
        let mut state = self.0.state.borrow_mut();
        if !matches!(state.events.back(), Some(UpstreamEvent::End)) {
            return None;
        }
        let before = state.events.len() - 1;
        let is_data = |event: &UpstreamEvent| matches!(event, UpstreamEvent::Data(_));
        if !state.events.iter().take(before).all(is_data) {
            return None;
        }
        for event in state.events.drain(..) {
            if let UpstreamEvent::Data(chunk) = event {
                to.push_back(chunk);
            }
        }
        Some(std::mem::take(&mut state.event_bytes))
    }

    /// Sets the maximum number of response body bytes in the mailbox; 0 stops reading. The connection reads no more
    /// from the socket than the window allows.
    pub fn set_window(&self, bytes: u64) {
        let mut state = self.0.state.borrow_mut();
        let was_full = state.event_bytes >= state.window;
        state.window = bytes;
        if was_full && state.event_bytes < bytes {
            self.0.wake_connection(&state);
        }
    }

    /// Requests a wake at `at_ms`, monotonic milliseconds, independent of the server; it replaces an earlier request.
    pub fn wake_at(&self, at_ms: u64) {
        let mut state = self.0.state.borrow_mut();
        if state.wake_at_ms.replace(at_ms) != Some(at_ms) {
            // The connection sets its timer at the end of its turn.
            self.0.wake_connection(&state);
        }
    }

    /// Returns the facts of the attempt so far.
    pub fn facts(&self) -> AttemptFacts {
        self.0.state.borrow().facts
    }

    /// Returns a handle to the facts, which outlives the attempt.
    pub fn watch(&self) -> AttemptWatch {
        AttemptWatch(Rc::clone(&self.0))
    }
}

impl AttemptWatch {
    /// Returns the facts of the attempt.
    pub fn facts(&self) -> AttemptFacts {
        self.0.state.borrow().facts
    }
}

impl Drop for UpstreamRequest {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.given_up = true;
        self.0.wake_connection(&state);
    }
}

impl UpstreamCall {
    /// Sets the connection to be woken.
    pub fn attach(&self, connection: WakeKey) {
        self.0.state.borrow_mut().connection = Some(connection);
    }

    /// Takes the head of the request; `None` the second time.
    pub fn take_head(&self) -> Option<RequestSpec> {
        self.0.state.borrow_mut().head.take()
    }

    /// Returns the head after it was taken, for another attempt.
    pub fn put_head_back(&self, head: RequestSpec) {
        self.0.state.borrow_mut().head = Some(head);
    }

    /// The next piece of the request body. Wakes the exchange if the body was full and has space now.
    pub fn take_body(&self) -> Option<Chunk> {
        let mut state = self.0.state.borrow_mut();
        let chunk = state.body.pop_front()?;
        let was_full = state.body_bytes >= BODY_WINDOW_BYTES;
        state.body_bytes -= chunk.len();
        let wakes = was_full && state.body_bytes < BODY_WINDOW_BYTES;
        drop(state);
        if wakes {
            self.0.wake();
        }
        Some(chunk)
    }

    /// Takes the end of the request body with its trailers, after the last piece.
    pub fn take_body_end(&self) -> Option<Option<Fields>> {
        let mut state = self.0.state.borrow_mut();
        match state.body.is_empty() {
            true => state.body_end.take(),
            false => None,
        }
    }

    /// Whether a part of the request can be taken.
    pub fn has_body(&self) -> bool {
        let state = self.0.state.borrow();
        !state.body.is_empty() || state.body_end.is_some()
    }

    /// Delivers an event to the exchange, and wakes it.
    pub fn deliver(&self, event: UpstreamEvent) {
        let mut state = self.0.state.borrow_mut();
        match &event {
            UpstreamEvent::Data(chunk) => state.event_bytes += chunk.len(),
            UpstreamEvent::End | UpstreamEvent::Failed(_) => state.over = true,
            _ => {}
        }
        state.events.push_back(event);
        drop(state);
        self.0.wake();
    }

    /// Returns the number of response body bytes that may be read now.
    pub fn window(&self) -> u64 {
        let state = self.0.state.borrow();
        state.window.saturating_sub(state.event_bytes)
    }

    /// Returns the time to wake the exchange, monotonic milliseconds ([`UpstreamRequest::wake_at`]).
    pub fn wake_at_ms(&self) -> Option<u64> {
        self.0.state.borrow().wake_at_ms
    }

    /// Wakes the exchange if its time has come.
    pub fn wake_if_due(&self, now_ms: u64) {
        let wake_at_ms = &mut self.0.state.borrow_mut().wake_at_ms;
        if wake_at_ms.take_if(|at_ms| *at_ms <= now_ms).is_some() {
            self.0.wake();
        }
    }

    /// Changes the recorded facts of the attempt.
    pub fn record(&self, change: impl FnOnce(&mut AttemptFacts)) {
        change(&mut self.0.state.borrow_mut().facts);
    }

    /// Whether the exchange has abandoned the attempt.
    pub fn is_given_up(&self) -> bool {
        self.0.state.borrow().given_up
    }
}

impl Drop for UpstreamCall {
    /// An attempt without a connection has failed: the exchange must not wait forever.
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.connection = None;
        if state.over || state.given_up {
            return;
        }
        let facts = state.facts;
        drop(state);
        self.deliver(UpstreamEvent::Failed(UpstreamError {
            failure: Failure::Closed,
            sent_bytes: facts.sent_bytes,
            reused: facts.reused,
            untouched: facts.sent_bytes == 0,
        }));
    }
}

/// Default limit of response bytes in a mailbox; see [`UpstreamRequest::set_window`].
pub const WINDOW_BYTES: u64 = 64 << 10;
/// Maximum size of joined pieces of a request body, bytes.
const JOINED_BYTES: usize = 16 << 10;
/// Maximum number of kept objects of each kind. Next: maximum size of a kept head, bytes, and of a list of events.
const SPARES_MAX: usize = 256;
const SPARE_BYTES: usize = 4096;
const SPARE_EVENTS: usize = 32;
/// Maximum number of request body bytes in a mailbox.
pub const BODY_WINDOW_BYTES: u64 = 64 << 10;

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
