//! State of a connection on which a protocol is served: the engine, the output queue, the exchanges in progress.
//!
//! All protocols have the same [`Exchanges`]. An exchange is active until its response is queued whole; then it is flushed
//! up to its end in the queue, and ends. HTTP/1 has one stream, [`H1_STREAM`], and one active exchange at most.
//!
//! Absent: their steps, which are in `exchanges`, `h1` and `mux`.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use engines::h1::{self, Next};
use engines::http::{OutputQueue, RequestHead};
use server_http::conf_core::{CoreLoc, Lingering};
use server_http::exchange::Exchange;
use server_http::stats::Activity;

use super::mux_engine::{Engine, NO_STREAM, Pool};
use super::outliving::Outliving;
use crate::io::read_ahead::ReadAhead;
use crate::worker::thread_config::Timeouts;

/// The protocol that is served.
pub(crate) enum Protocol {
    H1(Box<H1State>),
    /// A protocol with streams.
    Mux(Box<MuxState>),
}

/// HTTP/1 from the first byte of a request until the connection is idle.
pub struct H1State {
    pub(crate) exchanges: Exchanges,
    pub(crate) engine: h1::Conn,
    /// Next state of the connection when the queue is empty.
    pub(crate) next: Next,
    pub(crate) input: H1Input,
}

/// State of the input of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum H1Input {
    /// Requests.
    Requests,
    /// The rest of a body after its response; it is dropped until then.
    Discarded { until_ms: u64 },
}

/// A protocol with streams from the preface to the end.
pub(crate) struct MuxState {
    pub(crate) exchanges: Exchanges,
    pub(crate) engine: Engine,
    /// Exchanges that continue after a reset of their stream.
    pub(crate) outliving: Outliving,
    /// An active exchange is to get no response.
    pub(crate) any_aborted: bool,
    /// Since when there is no exchange; `None` while there is one.
    pub(crate) idle_since_ms: Option<u64>,
    /// The stream with an incomplete header block, and since when; for [`NO_STREAM`], the time of its last part.
    pub(crate) block_since: Option<(u32, u64)>,
    /// When to look for streams with closed windows.
    pub(crate) send_check_ms: u64,
    /// Since when the client knows that the connection ends.
    pub(crate) announced_ms: Option<u64>,
    /// Timeouts of the protocol, if they differ from those of HTTP/1.
    pub(crate) timeouts: Option<Timeouts>,
}

/// The exchanges in progress, and the queue of their output.
pub(crate) struct Exchanges {
    /// Output to be written.
    pub(crate) out: OutputQueue,
    /// Bytes put into `out` since serving began.
    pub(crate) queued: u64,
    /// Bytes written from it.
    pub(crate) sent: u64,
    /// Exchanges without a whole response in the queue.
    pub(crate) active: Vec<ActiveExchange>,
    /// Exchanges with a whole response in the queue, in the order of their ends.
    pub(crate) flushing: VecDeque<FlushingExchange>,
    /// When bytes were last read, monotonic microseconds, if events are wanted.
    pub(crate) read_us: u64,
    /// The first response of a recorded connection has begun, or the connection is not recorded.
    pub(crate) first_begun: bool,
    pub(crate) closing: Closing,
    /// Read-ahead of the files in `out`, if some data was not in memory.
    pub(crate) ahead: Option<Box<ReadAhead>>,
}

/// An exchange without a whole response in the queue.
pub(crate) struct ActiveExchange {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) stream: u32,
    /// Bytes of the response passed to an engine with streams.
    pub(crate) bytes: u64,
    /// Position of the response in the output queue; `u64::MAX` if unknown.
    pub(crate) start: u64,
}

/// An exchange with a whole response in the queue.
pub(crate) struct FlushingExchange {
    pub(crate) exchange: Box<Exchange>,
    /// Position of the response in the output queue; `u64::MAX` if unknown.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Bytes of the response. Those of other streams may lie between them.
    pub(crate) bytes: u64,
}

/// How a connection is closed, from the location of its last request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(crate) rule: Lingering,
    pub(crate) time_ms: u64,
    pub(crate) timeout_ms: u64,
}

impl Protocol {
    #[inline(always)]
    pub(crate) fn exchanges(&self) -> &Exchanges {
        match self {
            Self::H1(h1) => &h1.exchanges,
            Self::Mux(mux) => &mux.exchanges,
        }
    }

    #[inline(always)]
    pub(crate) fn exchanges_mut(&mut self) -> &mut Exchanges {
        match self {
            Self::H1(h1) => &mut h1.exchanges,
            Self::Mux(mux) => &mut mux.exchanges,
        }
    }

    /// Idle time limit of a protocol that has one of its own.
    #[inline]
    pub(crate) fn own_idle_ms(&self) -> Option<u64> {
        match self {
            Self::H1(_) => None,
            Self::Mux(mux) => mux.timeouts.map(|timeouts| timeouts.idle_ms),
        }
    }

    /// When an active exchange continues without a wake: its wait is over, or more of its body may be there. One of
    /// HTTP/1 does not while earlier responses are flushed, since its client may send more only after it has them.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let (exchanges, outliving_ms) = match self {
            Self::H1(h1) if !h1.exchanges.flushing.is_empty() => return None,
            Self::H1(h1) => (&h1.exchanges, None),
            Self::Mux(mux) => (&mux.exchanges, mux.outliving.due_ms()),
        };
        let due = |active: &ActiveExchange| active.waits_until_ms();
        let all = exchanges.active.iter().filter_map(due);
        all.chain(outliving_ms).min()
    }

    pub(crate) fn activity(&self) -> Activity {
        match self {
            Self::Mux(mux) if mux.exchanges.is_busy() => Activity::Writing,
            Self::Mux(_) => Activity::Waiting,
            Self::H1(h1) if !h1.exchanges.is_settled() || h1.input != H1Input::Requests => {
                Activity::Writing
            }
            Self::H1(_) => Activity::Reading,
        }
    }

    /// Whether more bytes can be taken.
    #[inline]
    pub(crate) fn wants_input(&self) -> bool {
        match self {
            Self::H1(h1) => {
                let active = h1.exchanges.active.first();
                active.is_none_or(|active| active.exchange.has_body_room())
                    && h1.engine.wants_input()
            }
            // Answers to the peer would only add to a long queue.
            Self::Mux(mux) => {
                mux.engine.wants_input() && mux.exchanges.out.len() < UNREAD_ABOVE_BYTES
            }
        }
    }
}

impl H1State {
    pub(crate) fn new(settings: Rc<h1::Settings>) -> Self {
        Self {
            exchanges: Exchanges::new(),
            engine: h1::Conn::new(settings),
            next: Next::KeepAlive,
            input: H1Input::Requests,
        }
    }

    /// Makes this the state of another connection and keeps the memory.
    pub(crate) fn reset(&mut self, settings: Rc<h1::Settings>) {
        self.engine.reset(settings);
        self.exchanges.out.clear();
        self.exchanges.ahead = None;
        self.exchanges.queued = 0;
        self.exchanges.sent = 0;
        self.exchanges.read_us = 0;
        self.next = Next::KeepAlive;
        self.input = H1Input::Requests;
    }

    /// Moves the output of the engine to the output queue.
    #[inline]
    pub(crate) fn transmit(&mut self) {
        self.exchanges.queue(|out| self.engine.transmit(out));
    }
}

impl MuxState {
    pub(crate) fn new(engine: Engine, timeouts: Option<Timeouts>, now_ms: u64) -> Self {
        Self {
            exchanges: Exchanges::new(),
            engine,
            outliving: Outliving::default(),
            any_aborted: false,
            idle_since_ms: Some(now_ms),
            block_since: None,
            send_check_ms: u64::MAX,
            announced_ms: None,
            timeouts,
        }
    }

    /// Takes bytes from the peer; requests use the memory of `spares`.
    pub(crate) fn receive(&mut self, input: &[u8], now_ms: u64, spares: &mut Pool<RequestHead>) {
        self.engine.tick(now_ms);
        self.engine.receive(input, spares);
        self.block_since = match (self.engine.awaited(), self.block_since) {
            (Some(id), Some((before, since))) if id == before && id != NO_STREAM => {
                Some((id, since))
            }
            (Some(id), _) => Some((id, now_ms)),
            (None, _) => None,
        };
    }

    /// Moves the output of the engine to the output queue.
    #[inline]
    pub(crate) fn transmit(&mut self) {
        self.exchanges.queue(|out| self.engine.transmit(out));
    }

    /// Returns the idle time limit after a request in this location.
    #[inline]
    pub(crate) fn idle_ms(&self, loc: &CoreLoc) -> u64 {
        match self.timeouts {
            Some(timeouts) => timeouts.idle_ms,
            None => loc.connection.keepalive().idle_ms,
        }
    }
}

impl Exchanges {
    fn new() -> Self {
        Self {
            out: OutputQueue::default(),
            queued: 0,
            sent: 0,
            active: Vec::new(),
            flushing: VecDeque::new(),
            read_us: 0,
            first_begun: false,
            closing: Closing {
                rule: Lingering::On,
                time_ms: 30_000,
                timeout_ms: 5_000,
            },
            ahead: None,
        }
    }

    /// Appends to the output queue.
    #[inline(always)]
    fn queue(&mut self, put: impl FnOnce(&mut OutputQueue)) {
        let before = self.out.len();
        put(&mut self.out);
        self.queued += self.out.len() - before;
    }

    /// Whether a request is in progress, or its response.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty() || !self.flushing.is_empty()
    }

    /// Whether nothing is in progress and all is written.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_busy() && self.out.is_empty()
    }

    /// The oldest exchange: its settings count for writing.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Exchange> {
        match self.flushing.front() {
            Some(flushing) => Some(&flushing.exchange),
            None => self.active.first().map(|active| &*active.exchange),
        }
    }

    /// The exchanges in progress, with the positions of their responses in the output queue.
    pub(crate) fn in_progress(&mut self) -> impl Iterator<Item = (u64, &mut Exchange)> {
        let flushing = self.flushing.iter_mut();
        let flushing = flushing.map(|flushing| (flushing.start, &mut *flushing.exchange));
        let active = self.active.iter_mut();
        flushing.chain(active.map(|active| (active.start, &mut *active.exchange)))
    }

    /// Whether an exchange began before this configuration.
    pub(crate) fn is_older_than(&self, number: u64) -> bool {
        let flushing = self.flushing.iter().map(|flushing| &flushing.exchange);
        let active = self.active.iter().map(|active| &active.exchange);
        flushing.chain(active).any(|x| x.route.http.number < number)
    }

    /// The positions of the next byte to leave and of the end of the output queue.
    pub(crate) fn unsent(&self) -> Range<u64> {
        self.queued.saturating_sub(self.out.len())..self.queued
    }

    /// A write has failed: bytes that left before the error count as sent. Over TLS so do those of its records.
    #[cold]
    pub(crate) fn record_failed_write(&mut self) {
        self.sent = self.sent.max(self.unsent().start);
    }

    /// The place of a stream's exchange among the active ones.
    #[inline]
    pub(crate) fn position(&self, stream: u32) -> Option<usize> {
        self.active
            .iter()
            .position(|active| active.stream == stream)
    }

    /// When the peer has taken none of the waiting output for too long (`send_timeout`).
    pub(crate) fn stuck_at_ms(&self, last_progress_ms: u64) -> Option<u64> {
        if self.out.is_empty() && self.flushing.is_empty() {
            return None;
        }
        let x = self.front()?;
        Some(last_progress_ms.saturating_add(x.route.core_loc().connection.send_timeout.0))
    }

    /// Takes over how the location of an exchange has the connection closed.
    #[inline]
    pub(crate) fn set_closing(&mut self, x: &Exchange) {
        let loc = x.route.core_loc();
        self.closing = Closing {
            rule: *loc.connection.lingering_close,
            time_ms: loc.connection.lingering_time.0,
            timeout_ms: loc.connection.lingering_timeout.0,
        };
    }

    /// The response of an active exchange is queued whole.
    #[inline]
    pub(crate) fn flush(&mut self, exchange: Box<Exchange>, start: u64, bytes: u64) {
        self.set_closing(&exchange);
        self.flushing.push_back(FlushingExchange {
            exchange,
            start,
            end: self.queued,
            bytes,
        });
    }
}

impl ActiveExchange {
    /// Latest end of its wait, for itself or for the next piece of its response.
    #[inline]
    pub(crate) fn waits_until_ms(&self) -> Option<u64> {
        self.exchange.due_ms()
    }
}

impl FlushingExchange {
    /// Bytes of the response that were sent, of `sent` on the connection. If bytes of other streams are between them, all
    /// count.
    pub(crate) fn sent_bytes(&self, sent: u64) -> u64 {
        if self.start.checked_add(self.bytes) == Some(self.end) {
            sent.clamp(self.start, self.end) - self.start
        } else {
            self.bytes
        }
    }
}

/// The stream that requests of HTTP/1 belong to.
pub(crate) const H1_STREAM: u32 = 1;
/// Bytes of response that may wait in a connection's queue before no more body is pulled; file ranges count in full.
pub const QUEUE_BYTES: u64 = 64 << 10;
/// Responses of pipelined requests that leave in one write.
pub const PIPELINE_DEPTH: usize = 64;
/// Bytes in the queue above which nothing is read from a connection of streams.
const UNREAD_ABOVE_BYTES: u64 = 256 << 10;
