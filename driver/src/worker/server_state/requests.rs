//! Requests on a connection to a server: one at a time, several in a queue, or several as streams.

use std::collections::VecDeque;

use engines::http::Chunk;
use server_upstream::request::{Failure, UpstreamCall, UpstreamError, UpstreamEvent};
use server_upstream::route::{Route, Timeouts};

/// Requests in progress on a connection.
pub(crate) enum Requests {
    /// One at a time.
    One(Attempt),
    /// Several, answered in their order (memcached).
    Queue(Box<Queue>),
    /// Several at a time, each a stream (HTTP/2).
    Streams(Box<Streams>),
}

/// A request that has its connection for itself.
pub(crate) struct Attempt {
    /// None while the memory waits for a request.
    call: Option<UpstreamCall>,
    /// When something last came, or could first be waited for.
    pub(crate) read_ms: u64,
    /// Bytes of the request that the socket took.
    pub(crate) sent_bytes: u64,
    pub(crate) request: Sending,
    pub(crate) response: Receiving,
    /// Nothing is read, since the exchange has no room.
    pub(crate) paused: bool,
    /// It is the last of a queue, and its route.
    pub(crate) last_of: Option<Box<Route>>,
}

/// State of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Its body is incomplete, or the tunnel is open.
    Body,
    /// All of it is in the output queue.
    Queued,
    /// The socket has taken all of it.
    Sent,
}

/// State of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// No byte of it has come.
    Nothing,
    /// A part of its head has come, or an interim response.
    Head,
    /// Its head has come; this many bytes are left, if that is known.
    Body(Option<u64>),
    /// The connection is a tunnel.
    Tunnel,
    /// The server has ended its side of the tunnel.
    TunnelEnded,
    /// The server has ended its side without a response: a reset may follow, until `until_ms`.
    AwaitingReset {
        /// Monotonic milliseconds.
        until_ms: u64,
    },
}

/// Requests that share a connection and are answered in their order.
pub(crate) struct Queue {
    /// The way to the server, for requests that are repeated.
    pub(crate) route: Route,
    /// Unanswered requests in their order. Never empty.
    pub(crate) requests: VecDeque<Queued>,
    /// Whether the socket has taken all requests.
    pub(crate) is_sent: bool,
    /// When it had taken them.
    pub(crate) sent_ms: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) read_ms: u64,
    /// Bytes received, and the part of them that belongs to delivered answers.
    pub(crate) received_bytes: u64,
    pub(crate) delivered_bytes: u64,
    /// Length of the answer being delivered.
    pub(crate) answer_bytes: u64,
}

/// A request of a [`Queue`].
pub(crate) struct Queued {
    pub(crate) call: UpstreamCall,
    /// Its length, and the bytes of it that the socket has not taken.
    pub(crate) bytes: u64,
    pub(crate) left: u64,
}

/// Requests that share a connection as streams.
pub(crate) struct Streams {
    /// The open streams, by number.
    pub(crate) open: Vec<Stream>,
    /// Numbers of streams that were woken since the last turn.
    pub(crate) woken: Vec<u32>,
    /// The connection's token, which wakes it.
    pub(crate) owner: u64,
    /// Bytes that the socket has taken.
    pub(crate) taken_bytes: u64,
    /// Bytes of requests in the output queue, in their order.
    pub(crate) unsent: VecDeque<UnsentBytes>,
    /// The number of further requests that other attempts see; `None` if it has to be set again.
    pub(crate) announced: Option<usize>,
    /// No request may be added.
    pub(crate) closing: bool,
    /// The head of a response has come.
    pub(crate) was_answered: bool,
    /// Memory for names in lower case.
    pub(crate) names: Vec<u8>,
}

/// A request that is a stream.
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) call: UpstreamCall,
    pub(crate) timeouts: Timeouts,
    pub(crate) request: Sending,
    /// Offset behind its last byte so far, in all bytes written to the connection.
    pub(crate) end: u64,
    /// Bytes of it that the socket has taken.
    pub(crate) sent_bytes: u64,
    /// The head of the response has come.
    pub(crate) has_head: bool,
    /// Nothing is expected of the server, since the exchange has no room.
    pub(crate) paused: bool,
    /// When something last came, or could first be waited for.
    pub(crate) read_ms: u64,
    /// When its body last moved on.
    pub(crate) wrote_ms: u64,
    /// Bytes of its body for which no window was opened again.
    pub(crate) unconsumed: u64,
    /// The rest of a piece of a file.
    pub(crate) rest: Option<Chunk>,
    /// A part of its body waits for a window.
    pub(crate) is_held: bool,
    /// Bytes of its body that the engine had encoded at the last look.
    pub(crate) encoded_bytes: u64,
    /// A response had come on the connection before the stream was opened.
    pub(crate) was_answered: bool,
}

/// Bytes of one stream that are contiguous in the output queue.
pub(crate) struct UnsentBytes {
    pub(crate) stream: u32,
    pub(crate) bytes: u64,
    /// Offset behind the last of them, in all bytes written to the connection.
    pub(crate) end: u64,
}

/// Attempts that get one connection.
pub struct Group {
    /// Their route.
    pub route: Route,
    /// The first.
    pub call: UpstreamCall,
    /// The others.
    pub behind: Vec<UpstreamCall>,
}

/// Attempts of one turn, by their routes.
#[derive(Default)]
pub struct Groups(VecDeque<Group>);

impl Requests {
    /// The mailboxes of the requests in progress.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &UpstreamCall> {
        let (one, queue, streams) = match self {
            Self::One(one) => (one.call.as_ref(), None, None),
            Self::Queue(queue) => (None, Some(&queue.requests), None),
            Self::Streams(streams) => (None, None, Some(&streams.open)),
        };
        let queue = queue.into_iter().flatten().map(|queued| &queued.call);
        let streams = streams.into_iter().flatten().map(|stream| &stream.call);
        one.into_iter().chain(queue).chain(streams)
    }

    /// Whether no exchange waits for an answer.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.calls().all(UpstreamCall::is_given_up)
    }
}

impl Attempt {
    /// A request that begins now.
    pub(crate) fn new(call: UpstreamCall, request: Sending, now_ms: u64) -> Self {
        Self {
            call: Some(call),
            read_ms: now_ms,
            sent_bytes: 0,
            request,
            response: Receiving::Nothing,
            paused: false,
            last_of: None,
        }
    }

    /// The exchange's attempt.
    #[inline]
    pub(crate) fn call(&self) -> &UpstreamCall {
        self.call.as_ref().expect("it has one until it is let go")
    }

    /// Lets go of the exchange's attempt.
    #[inline]
    pub(crate) fn take_call(&mut self) -> Option<UpstreamCall> {
        self.call.take()
    }
}

impl Streams {
    /// No streams, on a connection that this token wakes.
    pub(crate) fn new(owner: u64) -> Self {
        Self {
            open: Vec::new(),
            woken: Vec::new(),
            owner,
            taken_bytes: 0,
            unsent: VecDeque::new(),
            announced: None,
            closing: false,
            was_answered: false,
            names: Vec::new(),
        }
    }

    /// The index of a stream in `open`.
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }
}

impl Group {
    /// An attempt that gets a connection for itself.
    pub fn alone(route: Route, call: UpstreamCall) -> Self {
        Self {
            route,
            call,
            behind: Vec::new(),
        }
    }

    /// Fails all attempts before anything was sent.
    pub fn fail(&self, failure: &Failure) {
        for call in std::iter::once(&self.call).chain(&self.behind) {
            let error = UpstreamError::unsent(failure.clone(), false);
            call.deliver(UpstreamEvent::Failed(error));
        }
    }
}

impl Groups {
    /// Adds an attempt to a group with its route, or to a new group.
    pub fn add(&mut self, route: Route, call: UpstreamCall) {
        let mut last = self.0.iter_mut().rev().take(GROUPS_SEARCHED_MAX);
        let most = route.protocol.pipelining.map_or(1, |own| own.requests_max);
        let fits = |group: &&mut Group| 1 + group.behind.len() < most && group.route == route;
        match last.find(|group| fits(group)) {
            Some(group) => group.behind.push(call),
            None => self.0.push_back(Group::alone(route, call)),
        }
    }

    /// Takes the first group.
    pub fn take(&mut self) -> Option<Group> {
        self.0.pop_front()
    }
}

/// Maximum number of groups searched for one that takes an attempt.
const GROUPS_SEARCHED_MAX: usize = 16;
