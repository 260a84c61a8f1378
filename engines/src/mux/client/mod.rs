//! A client of HTTP/2 or SPDY: the same state, the same rules about windows, streams and their ends.
//!
//! Wire formats are the [`Protocol`]'s, which reports the meaning of its frames to the functions in `receive`. A
//! response that breaks the rules for messages costs its stream, a frame that breaks those for connections costs
//! the connection. Work that serves no request is limited by a budget, as for clients: a server may be as hostile.
//!
//! Absent: frames, header blocks, and the announcement of a connection.
//!
//! Source: RFC 9113; draft-mbelshe-httpbis-spdy-00.

mod receive;
mod send;
mod stream;

use std::collections::VecDeque;
use std::fmt;

use super::budget::Budget;
use super::{Broken, Frames, RecvWindow, StreamTable, Window};
use crate::client::{self, Bodies, Event, SendError, Spares};
use crate::http::ResponseHead;
use crate::reassembly::ReassemblyBuffer;
pub(crate) use stream::{Pairs, Receiving, Stream};

/// One connection in the client role.
#[derive(Debug)]
pub struct Client<P: Protocol> {
    pub(crate) protocol: P,
    pub(crate) bodies: Bodies,
    /// A part of a frame.
    pub(crate) partial: ReassemblyBuffer,
    pub(crate) streams: StreamTable<Stream>,
    next_stream: u32,
    /// The server's limit of open streams.
    pub(crate) max_streams: usize,
    /// Send window of the connection, and the initial one of a stream, in bytes.
    window: Window,
    window_bytes: u32,
    /// Streams with a body blocked by the connection's window, in turn.
    waiting: VecDeque<u32>,
    /// Receive window of the connection, and the initial one of a stream, in bytes.
    recv_window: RecvWindow,
    preread_bytes: u32,
    ending: Ending,
    pub(crate) budget: Budget,
    pub(crate) events: VecDeque<Event<P::ProtocolError>>,
    pub(crate) out: Vec<u8>,
    pub(crate) spares: Spares,
}

/// Operations that differ between the protocols, and state specific to one of them.
pub trait Protocol: fmt::Debug + Sized {
    /// Protocol errors of a connection.
    type ProtocolError: fmt::Debug + From<Broken>;
    /// The frames that both roles send alike.
    type Frames: Frames<ProtocolError = Self::ProtocolError>;
    /// The head of a frame.
    type Head: Copy;

    /// The head at the start of `input`, if it is complete, and the length of its payload.
    ///
    /// # Errors
    /// Whether the head of a frame alone shows that the server breaks the connection.
    fn head(
        client: &Client<Self>,
        input: &[u8],
    ) -> Result<Option<(Self::Head, usize)>, Self::ProtocolError>;

    /// Takes a frame.
    ///
    /// # Errors
    /// The server breaks the connection.
    fn frame(
        client: &mut Client<Self>,
        head: Self::Head,
        payload: &[u8],
    ) -> Result<(), Self::ProtocolError>;

    /// Longest body of a DATA frame that is sent.
    fn frame_bytes(&self) -> usize;

    /// Appends trailers, which end the stream.
    fn put_trailers(&mut self, out: &mut Vec<u8>, stream: u32, fields: &Pairs);

    /// Panics if its part of the connection contradicts itself.
    fn check_invariants(client: &Client<Self>);
}

/// State of the connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Open,
    /// The server takes no new stream.
    Closing,
    /// Nothing more is read.
    Over,
}

impl<P: Protocol> Client<P> {
    /// A connection on which nothing has been received; `out` holds its first bytes. The windows for responses are
    /// of `preread_bytes`.
    pub(crate) fn begin(
        protocol: P,
        bodies: Bodies,
        preread_bytes: u32,
        abuse_budget: u32,
        out: Vec<u8>,
    ) -> Self {
        let window_bytes = P::Frames::DEFAULT_WINDOW;
        Self {
            protocol,
            bodies,
            partial: ReassemblyBuffer::default(),
            streams: StreamTable::default(),
            next_stream: 1,
            max_streams: STREAMS_BEFORE_SETTINGS,
            window: Window::new(window_bytes),
            window_bytes,
            waiting: VecDeque::new(),
            recv_window: RecvWindow::new(),
            preread_bytes,
            ending: Ending::Open,
            budget: Budget::new(abuse_budget),
            events: VecDeque::new(),
            out,
            spares: Spares::default(),
        }
    }

    /// Returns the number of exchanges that can begin now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_closed() {
            return 0;
        }
        self.max_streams.saturating_sub(self.streams.len())
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ending != Ending::Open || self.next_stream > MAX_STREAM
    }

    /// Whether a request can be taken now.
    pub(crate) fn admit(&self) -> Result<(), SendError> {
        if self.is_closed() {
            Err(SendError::Closed)
        } else if self.room() == 0 {
            Err(SendError::Busy)
        } else {
            Ok(())
        }
    }

    /// The number of the next stream.
    pub(crate) fn take_number(&mut self) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
        id
    }

    /// The head of a request has been sent.
    pub(crate) fn open(&mut self, id: u32, ended: bool, is_head: bool) {
        let window = Window::new(self.window_bytes);
        let allowed_bytes = u64::from(self.preread_bytes);
        let stream = self.streams.insert_with(id, Stream::default);
        stream.begin(window, allowed_bytes, ended, is_head);
    }

    /// Abandons a stream.
    pub fn cancel(&mut self, id: u32) {
        if self.streams.remove(id) {
            P::Frames::put_reset(&mut self.out, id, P::Frames::CODES.cancel);
        }
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event<P::ProtocolError>> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        client::hand_over(&mut self.out, out);
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Advances time to `now_ms`; the server's budget is refilled with time.
    #[inline]
    pub fn tick(&mut self, now_ms: u64) {
        self.budget.tick(now_ms);
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        if self.ending == Ending::Over {
            return;
        }
        let all = self.partial.join(input);
        match self.frames(&all) {
            Ok(used) => self.partial.keep(all, used),
            Err(error) => {
                // We take no streams of the server.
                P::Frames::put_goaway(&mut self.out, 0, Some(&error));
                self.end_with(Event::Failed(error));
            }
        }
    }

    /// Handles complete frames; returns their length in bytes.
    fn frames(&mut self, input: &[u8]) -> Result<usize, P::ProtocolError> {
        let mut at = 0;
        while let Some((head, len)) = P::head(self, &input[at..])? {
            let start = at + P::Frames::HEAD_BYTES;
            let Some(payload) = input.get(start..start + len) else {
                break;
            };
            P::frame(self, head, payload)?;
            at = start + len;
        }
        Ok(at)
    }

    /// Handles the end of the server's bytes. `whole` is irrelevant here, since frames mark the ends of bodies.
    pub fn receive_eof(&mut self, _whole: bool) {
        if self.ending == Ending::Over {
            return;
        }
        let mut awaited = false;
        self.streams
            .each(|_, stream| awaited |= stream.receiving != Receiving::Ended);
        self.end_with(if awaited {
            Event::Failed(Broken::Closed.into())
        } else {
            Event::Eof
        });
    }

    /// Records that no stream can be opened any more, by the server's GOAWAY or ours; returns false if that was
    /// known before.
    pub(crate) fn close(&mut self) -> bool {
        let was_open = self.ending == Ending::Open;
        if was_open {
            self.ending = Ending::Closing;
        }
        was_open
    }

    /// Ends the connection, with all its exchanges.
    fn end_with(&mut self, event: Event<P::ProtocolError>) {
        self.ending = Ending::Over;
        self.partial.clear();
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.streams.remove(id);
        }
        self.waiting.clear();
        self.events.push_back(event);
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        P::check_invariants(self);
        let next = self.next_stream;
        self.streams.each(|id, stream| {
            assert!(id < next, "a stream that nobody opened");
            assert!(!stream.is_done(), "a stream that has ended is kept");
        });
    }
}

/// Streams to open before the server's limit is known (RFC 9113 section 6.5.2 recommends no fewer).
const STREAMS_BEFORE_SETTINGS: usize = 100;
/// Largest number of a stream.
const MAX_STREAM: u32 = (1 << 31) - 1;
