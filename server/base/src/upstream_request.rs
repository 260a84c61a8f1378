//! One attempt with a server: a mailbox between an exchange and a connection to the server.
//!
//! ```text
//! exchange:    UpstreamRequest   send, end          pieces of the request body
//!                                next               events: head, body, end, failure
//!                                set_window         how many bytes of the response may wait here
//!                                drop               gives the attempt up
//! connection:  UpstreamCall      take_head, take_body, body_end
//!                                tell               puts an event in and wakes the exchange
//!                                window             how many bytes may be read now
//!                                is_given_up
//! ```
//!
//! Back-pressure in both directions is a count of bytes: the connection reads no more than the window leaves room for, the
//! exchange takes no more of the request body from its client than [`UpstreamRequest::room`] says. Each side wakes the
//! other by a key in the thread's [`WakeQueue`]: the exchange by its waker, the connection by the key it was attached with.
//! A wake too many is harmless, since each side looks what is there.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::{BodyLength, Chunk, Fields, ResponseHead};

use crate::waker::{WakeKey, WakeQueue, Waker};

/// A request as it is sent to a server.
#[derive(Clone, Debug, Default)]
pub struct RequestSpec {
    /// `:method` and `:path`, then the fields as they are sent and in their order, `Host` and `Connection` among them.
    pub fields: Fields,
    /// The version named in the request line, where the protocol has versions.
    pub http10: bool,
    /// How long the body is. `Length` and `Unknown` agree with the `Content-Length` or `Transfer-Encoding` in the fields.
    pub body: BodyLength,
    /// The request asks for another protocol, so that 101 is an answer.
    pub upgrade: bool,
}

/// What a server does, in order.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// An interim response, 1xx but 101.
    Interim(Box<ResponseHead>),
    /// The head of the response, and its size in bytes.
    Head(Box<ResponseHead>, u64),
    /// A piece of the body, or of a tunnel.
    Data(Chunk),
    /// The trailer section, if it has fields.
    Trailers(Fields),
    /// The response is complete; a tunnel has been ended by the server.
    End,
    /// Behind the head of 101: from here on the connection is a tunnel.
    Upgraded,
    /// The attempt has failed; nothing follows.
    Failed(UpstreamError),
}

/// Why an attempt failed, and whether another one is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamError {
    /// What happened.
    pub failure: Failure,
    /// Bytes of the request that were given to the socket.
    pub sent_bytes: u64,
    /// The connection had been idle in a pool.
    pub reused: bool,
    /// The server is known to have processed nothing of the request: sending it again is safe whatever its method is.
    pub untouched: bool,
}

/// What happened to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A call on the socket failed: its name as in nginx's log ("connect()", "recv()", "writev()"), and the error number.
    Socket {
        /// The call.
        call: &'static str,
        /// The error number of the system.
        errno: i32,
    },
    /// The time for connecting, sending or reading is over.
    TimedOut,
    /// The server closed the connection before the response was complete.
    Closed,
    /// The response is none, or breaks the protocol: what is wrong, behind "upstream ".
    Invalid(&'static str),
    /// The request cannot be sent: what is wrong with it.
    Unsendable(&'static str),
}

/// What is known of an attempt, for variables and logs. Times are monotonic milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptFacts {
    /// When the attempt began.
    pub started_ms: u64,
    /// When the connection stood; at once for one that was idle.
    pub connected_ms: Option<u64>,
    /// When the connection had taken all of the request.
    pub sent_ms: Option<u64>,
    /// When the head of the response was complete.
    pub head_ms: Option<u64>,
    /// When the attempt ended.
    pub ended_ms: Option<u64>,
    /// Bytes sent to the server.
    pub sent_bytes: u64,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// The connection had been idle in a pool.
    pub reused: bool,
}

/// The exchange's side of an attempt. Dropping it gives the attempt up.
#[derive(Debug)]
pub struct UpstreamRequest(Rc<Mailbox>);

/// What is known of an attempt, also after it was given up.
#[derive(Clone, Debug)]
pub struct AttemptWatch(Rc<Mailbox>);

/// The connection's side of an attempt.
///
/// Dropping it fails the attempt, unless it has ended.
#[derive(Debug)]
pub struct UpstreamCall(Rc<Mailbox>);

#[derive(Debug)]
struct Mailbox {
    /// The exchange's.
    waker: Waker,
    queue: WakeQueue,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    head: Option<RequestSpec>,
    /// The request body on its way to the connection.
    body: VecDeque<Chunk>,
    body_bytes: u64,
    body_end: Option<Option<Fields>>,
    /// What the server did and nobody has taken yet.
    events: VecDeque<UpstreamEvent>,
    event_bytes: u64,
    /// How many bytes of the response body may wait in `events`.
    window: u64,
    facts: AttemptFacts,
    /// The connection that has the attempt.
    connection: Option<WakeKey>,
    given_up: bool,
    /// The server's last event is in `events`, or has been taken.
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
        waker,
        queue: queue.clone(),
        state: RefCell::new(State {
            head: Some(head),
            window: WINDOW_BYTES,
            facts: AttemptFacts {
                started_ms: now_ms,
                ..AttemptFacts::default()
            },
            ..State::default()
        }),
    });
    (UpstreamRequest(Rc::clone(&mailbox)), UpstreamCall(mailbox))
}

impl Mailbox {
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
        // Small pieces of one turn are joined: each might become a chunk of its own.
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

    /// Ends the request body, or our side of a tunnel. A request without a body needs no end.
    pub fn end(&self, trailers: Option<Fields>) {
        let mut state = self.0.state.borrow_mut();
        state.body_end = Some(trailers);
        self.0.wake_connection(&state);
    }

    /// How many more bytes of the body should be sent now; the exchange is woken when there is room again.
    pub fn room(&self) -> u64 {
        BODY_WINDOW_BYTES.saturating_sub(self.0.state.borrow().body_bytes)
    }

    /// The next thing that the server did.
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

    /// Sets how many bytes of the response body may wait to be taken; 0 stops reading. No more than the window leaves room
    /// for is read from the socket.
    pub fn set_window(&self, bytes: u64) {
        let mut state = self.0.state.borrow_mut();
        let was_full = state.event_bytes >= state.window;
        state.window = bytes;
        if was_full && state.event_bytes < bytes {
            self.0.wake_connection(&state);
        }
    }

    /// What is known of the attempt so far.
    pub fn facts(&self) -> AttemptFacts {
        self.0.state.borrow().facts
    }

    /// For those who ask what is known when the attempt is over.
    pub fn watch(&self) -> AttemptWatch {
        AttemptWatch(Rc::clone(&self.0))
    }
}

impl AttemptWatch {
    /// What is known of the attempt.
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
    /// Names the connection that has the attempt, so that it is woken.
    pub fn attach(&self, connection: WakeKey) {
        self.0.state.borrow_mut().connection = Some(connection);
    }

    /// The head of the request, once.
    pub fn take_head(&self) -> Option<RequestSpec> {
        self.0.state.borrow_mut().head.take()
    }

    /// Puts the head back, for an attempt that is begun again on another connection.
    pub fn put_head_back(&self, head: RequestSpec) {
        self.0.state.borrow_mut().head = Some(head);
    }

    /// The next piece of the request body. The exchange is woken where there was no room and is some now.
    pub fn take_body(&self) -> Option<Chunk> {
        let mut state = self.0.state.borrow_mut();
        let chunk = state.body.pop_front()?;
        let was_full = state.body_bytes >= BODY_WINDOW_BYTES;
        state.body_bytes -= chunk.len();
        let wakes = was_full && state.body_bytes < BODY_WINDOW_BYTES;
        drop(state);
        if wakes {
            self.0.waker.wake();
        }
        Some(chunk)
    }

    /// Takes the end of the request body, with its trailers, once all of the body has been taken.
    pub fn take_body_end(&self) -> Option<Option<Fields>> {
        let mut state = self.0.state.borrow_mut();
        match state.body.is_empty() {
            true => state.body_end.take(),
            false => None,
        }
    }

    /// Whether something of the request waits to be taken.
    pub fn has_body(&self) -> bool {
        let state = self.0.state.borrow();
        !state.body.is_empty() || state.body_end.is_some()
    }

    /// Tells the exchange of something, and wakes it.
    pub fn tell(&self, event: UpstreamEvent) {
        let mut state = self.0.state.borrow_mut();
        match &event {
            UpstreamEvent::Data(chunk) => state.event_bytes += chunk.len(),
            UpstreamEvent::End | UpstreamEvent::Failed(_) => state.over = true,
            _ => {}
        }
        state.events.push_back(event);
        drop(state);
        self.0.waker.wake();
    }

    /// How many bytes of the response body may be read now.
    pub fn window(&self) -> u64 {
        let state = self.0.state.borrow();
        state.window.saturating_sub(state.event_bytes)
    }

    /// Changes what is known of the attempt.
    pub fn note(&self, change: impl FnOnce(&mut AttemptFacts)) {
        change(&mut self.0.state.borrow_mut().facts);
    }

    /// Whether the exchange has given the attempt up.
    pub fn is_given_up(&self) -> bool {
        self.0.state.borrow().given_up
    }
}

impl Drop for UpstreamCall {
    /// An attempt whose connection is gone has failed: the exchange is not left to wait for ever.
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.connection = None;
        if state.over || state.given_up {
            return;
        }
        let facts = state.facts;
        drop(state);
        self.tell(UpstreamEvent::Failed(UpstreamError {
            failure: Failure::Closed,
            sent_bytes: facts.sent_bytes,
            reused: facts.reused,
            untouched: facts.sent_bytes == 0,
        }));
    }
}

/// How many bytes of a response body wait in a mailbox unless [`UpstreamRequest::set_window`] says otherwise.
pub const WINDOW_BYTES: u64 = 64 << 10;
/// Bytes up to which pieces of a request body are joined.
const JOINED_BYTES: usize = 16 << 10;
/// How many bytes of a request body wait in a mailbox.
pub const BODY_WINDOW_BYTES: u64 = 64 << 10;

#[cfg(test)]
#[path = "upstream_request_tests.rs"]
mod tests;
