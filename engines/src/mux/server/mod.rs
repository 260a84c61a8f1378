//! A server of HTTP/2 or SPDY: the same state, the same rules about windows, streams and their ends.
//!
//! Wire formats are the [`Protocol`]'s. It reports the meaning of its frames to the functions in `receive`;
//! responses are sent in `send`.
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
use super::{Broken, Event, Frames, HeaderCache, RecvWindow, Sender, StreamTable, Window};
use crate::http::{OutputQueue, RequestHead, ResponseHead};
use crate::reassembly::ReassemblyBuffer;
pub(crate) use stream::{State, Stream};

/// One connection in the server role.
#[derive(Debug)]
pub struct Conn<P: Protocol> {
    pub(crate) protocol: P,
    /// The received part of an incomplete frame.
    pub(crate) partial: ReassemblyBuffer,
    /// SETTINGS of the peer have arrived: the first are free.
    pub(crate) settled: bool,
    eof: bool,
    /// The window of a new stream, from the peer's SETTINGS.
    pub(crate) window_bytes: u32,
    pub(crate) streams: StreamTable<Stream>,
    pub(crate) sender: Sender,
    pub(crate) recv_window: RecvWindow,
    /// The last encoded response head.
    pub(crate) header_cache: HeaderCache,
    /// Highest number of a stream of the client.
    pub(crate) last_stream: u32,
    pub(crate) ending: Ending,
    pub(crate) events: VecDeque<Event<P::ProtocolError>>,
    pub(crate) out: OutputQueue,
    pub(crate) budget: Budget,
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub(crate) spares: Vec<Box<RequestHead>>,
}

/// Operations that differ between the protocols, and state specific to one of them.
pub trait Protocol: fmt::Debug + Sized {
    /// Protocol errors of a connection.
    type ProtocolError: fmt::Debug + From<Broken>;
    /// The frames that both roles send alike.
    type Frames: Frames<ProtocolError = Self::ProtocolError>;

    /// Handles the complete frames; returns their length in bytes.
    ///
    /// # Errors
    /// The client breaks the connection.
    fn frames(conn: &mut Conn<Self>, input: &[u8]) -> Result<usize, Self::ProtocolError>;

    /// Drops a partly received frame or header block.
    fn forget_part(&mut self);

    /// Whether a stream was never opened, by either side.
    fn is_idle(conn: &Conn<Self>, id: u32) -> bool;

    /// Called if the response has ended before the request.
    fn outlived(_conn: &mut Conn<Self>, _id: u32) {}

    /// Longest body of a DATA frame that is sent.
    fn frame_bytes(&self) -> usize;

    /// Sends the head of a response; returns its bytes.
    fn put_response(conn: &mut Conn<Self>, stream: u32, head: &ResponseHead, ended: bool) -> u64;

    /// Sends trailers and the end of the stream; returns their bytes.
    fn put_trailers(conn: &mut Conn<Self>, stream: u32, trailers: &ResponseHead) -> u64;

    /// Sends RST_STREAM.
    fn put_reset(conn: &mut Conn<Self>, stream: u32, code: u32);

    /// Panics if its part of the connection contradicts itself.
    fn check_invariants(conn: &Conn<Self>);
}

/// State of the connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Open,
    /// The end was announced without its last stream; only in HTTP/2, which sends a PING to learn that the peer has
    /// read it.
    Announced,
    /// Streams above this number are not served.
    After(u32),
    /// The peer broke the protocol.
    Failed,
}

impl<P: Protocol> Conn<P> {
    /// Memory of the connection, bytes, without that of its protocol and of bodies.
    pub(crate) fn common_memory_bytes(&self) -> usize {
        self.partial.memory_bytes()
            + self.streams.memory_bytes()
            + self.header_cache.memory_bytes()
            + self.out.memory_bytes()
    }

    /// A connection on which nothing has been received.
    pub(crate) fn begin(protocol: P, abuse_budget: u32) -> Self {
        let window_bytes = P::Frames::DEFAULT_WINDOW;
        Self {
            protocol,
            partial: ReassemblyBuffer::default(),
            settled: false,
            eof: false,
            window_bytes,
            streams: StreamTable::default(),
            sender: Sender::new(Window::new(window_bytes)),
            recv_window: RecvWindow::new(),
            header_cache: HeaderCache::default(),
            last_stream: 0,
            ending: Ending::Open,
            events: VecDeque::new(),
            out: OutputQueue::default(),
            budget: Budget::new(abuse_budget),
            spares: Vec::new(),
        }
    }

    /// Takes bytes from the peer.
    // Not inlined, like `advance`: that would slow down the turns of HTTP/1.
    #[inline(never)]
    pub fn receive(&mut self, input: &[u8]) {
        if self.ending == Ending::Failed {
            return;
        }
        let all = self.partial.join(input);
        match P::frames(self, &all) {
            Ok(used) => self.partial.keep(all, used),
            Err(error) => self.fail(error),
        }
    }

    /// Takes the end of the peer's bytes.
    pub fn receive_eof(&mut self) {
        if !self.eof {
            self.eof = true;
            self.events.push_back(Event::Eof);
        }
    }

    /// Whether more bytes can be taken.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.eof && self.ending != Ending::Failed && self.out.len() < OUT_BYTES
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event<P::ProtocolError>> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    pub fn transmit(&mut self, out: &mut OutputQueue) {
        out.append(&mut self.out);
    }

    /// Swaps the heads kept for requests with `spares`, so that connections can share their memory.
    #[inline]
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub fn swap_spares(&mut self, spares: &mut Vec<Box<RequestHead>>) {
        std::mem::swap(&mut self.spares, spares);
    }

    /// Whether the connection has ended: it drains, and no response is in progress.
    #[must_use]
    pub fn is_over(&mut self) -> bool {
        match self.ending {
            Ending::Open | Ending::Announced => false,
            Ending::After(_) => {
                let mut running = false;
                self.streams
                    .each(|_, stream| running |= stream.is_running());
                !running
            }
            Ending::Failed => true,
        }
    }

    /// Whether the last stream has been announced.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        !matches!(self.ending, Ending::Open | Ending::Announced)
    }

    /// Advances time to `now_ms`; the client's budget is refilled with time.
    #[inline]
    pub fn tick(&mut self, now_ms: u64) {
        self.budget.tick(now_ms);
    }

    /// Ends the connection: no stream after this one is served, even if its request has arrived.
    pub fn end_after(&mut self, last: u32) {
        if self.is_ending() {
            return;
        }
        self.ending = Ending::After(last);
        // The number is one of the client's; promised streams are kept.
        let is_later = |id: u32| id > last && !id.is_multiple_of(2);
        let later: Vec<u32> = self.streams.ids().filter(|id| is_later(*id)).collect();
        for id in later {
            self.streams.remove(id);
        }
        self.events
            .retain(|event| event.stream().is_none_or(|id| !is_later(id)));
        self.out
            .push_with(|out| P::Frames::put_goaway(out, last, None));
    }

    /// Ends the connection because of an error.
    fn fail(&mut self, error: P::ProtocolError) {
        // An announced number never grows (RFC 9113 section 6.8).
        let last = match self.ending {
            Ending::After(last) => last,
            _ => self.last_stream,
        };
        self.ending = Ending::Failed;
        self.partial.clear();
        self.protocol.forget_part();
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.remove_stream(id);
        }
        self.sender.clear();
        self.out
            .push_with(|out| P::Frames::put_goaway(out, last, Some(&error)));
        self.events.push_back(Event::Failed(error));
    }

    /// Removes a stream; queues an event if its response was not complete.
    pub(crate) fn remove_stream(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (running, sent_bytes) = (stream.is_running(), stream.out.sent_bytes);
        self.streams.remove(id);
        if running {
            self.events.push_back(Event::Reset {
                stream: id,
                sent_bytes,
            });
        }
    }

    /// Resets and removes a stream, if it is open.
    pub fn reset(&mut self, id: u32, code: u32) {
        if self.streams.remove(id) {
            self.put_reset(id, code);
        }
    }

    pub(crate) fn put_reset(&mut self, id: u32, code: u32) {
        P::put_reset(self, id, code);
    }

    /// Whether a stream was never opened, by either side.
    pub(crate) fn is_idle(&self, id: u32) -> bool {
        P::is_idle(self, id)
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        P::check_invariants(self);
        let idle = self.streams.ids().any(|id| self.is_idle(id));
        assert!(!idle, "a stream that nobody opened");
        let Self {
            streams, sender, ..
        } = self;
        streams.each(|id, stream| {
            stream.check_invariants();
            sender.check_invariants(id, &stream.out);
        });
    }
}

/// Queued output, in bytes, above which no more input is read.
const OUT_BYTES: u64 = 64 << 10;
