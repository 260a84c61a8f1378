//! A connection that speaks HTTP/2 or SPDY: an exchange for each stream.
//!
//! The engine asks for body pieces in the order of priorities; what it gives leaves in one write. An exchange ends when
//! its last byte has been written. How the connection waits and ends is in `ending`.

mod body;
mod timeouts;

use std::collections::VecDeque;
use std::fmt::Display;
use std::rc::Rc;

use engines::http::{Gather, RequestHead};
use engines::mux::{Event, Want};
use engines::{h2, spdy};
use server_core::conf_core::{CoreLoc, Lingering, SpdySrv};
use server_core::debug_http;
use server_core::errlog::Level;
use server_core::exchange::{Exchange, Pulled, State};
use server_core::memory;
use server_core::phases;
use server_core::reply::REQUEST_TIMEOUT;
use server_core::stats::Protocol;
use server_core::timing::{ALL, Sampling};

use super::state::{Closed, Closing, Conn, Queued, client};
use super::{CLIENT_CLOSED_REQUEST, QUEUE_BYTES, early_responses, open_exchange, trace};
use crate::worker::net::Net;
use crate::worker::shared::{Pool, Shared};

use super::engine::{Engine, NO_STREAM, Reason};
use timeouts::{Linger, is_last};
pub(super) use timeouts::{close, resume, say_last, settle, wake};

/// What a connection has from its preface to its end.
pub(in crate::worker) struct Mux {
    pub(super) engine: Engine,
    pub(super) out: Gather,
    /// Bytes put into `out` since the connection began.
    queued: u64,
    /// Bytes written since the connection began.
    pub(super) sent: u64,
    /// When bytes were last read, monotonic microseconds, where moments are noted.
    pub(super) read_us: u64,
    running: Vec<Running>,
    /// One of them is to get no response.
    any_aborted: bool,
    /// Exchanges whose responses are queued whole.
    tail: VecDeque<Queued>,
    /// Since when there is no exchange; `None` while there is one.
    idle_since_ms: Option<u64>,
    /// The stream whose header block has begun to come, and since when; for [`NO_STREAM`], when the last of it came.
    block_since: Option<(u32, u64)>,
    /// When to look for streams whose client takes nothing.
    look_at_ms: u64,
    /// Up to when the passing of time has been told to the engine.
    told_ms: u64,
    /// Since when the client knows that there is an end.
    announced_ms: Option<u64>,
    closing: Closing,
    linger: Option<Linger>,
    /// SPDY has times of its own; those of HTTP/2 are those of HTTP/1.
    times: Option<Times>,
}

/// `spdy_keepalive_timeout` and `spdy_recv_timeout`.
#[derive(Clone, Copy)]
struct Times {
    idle_ms: u64,
    frame_ms: u64,
}

/// An exchange whose response is not queued whole.
struct Running {
    stream: u32,
    exchange: Box<Exchange>,
    /// Bytes of its response that the engine was given.
    bytes: u64,
    /// Value of `queued` before its head, where moments are noted.
    start: u64,
}

/// Begins HTTP/2 on a connection.
pub(super) fn open_h2<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let settings = Rc::clone(&sh.generation.h2[c.port()]);
    open(c, sh, Engine::H2(h2::Conn::new(settings)), None);
}

/// Begins SPDY on a connection.
pub(super) fn open_spdy<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let settings = Rc::clone(&sh.generation.spdy[c.port()]);
    let engine = Engine::Spdy(Box::new(spdy::Conn::new(settings)));
    let http = &sh.generation.http;
    let server = http.ports[c.port()].addr(None).default_server;
    let conf: &SpdySrv = http.servers[server].confs.get();
    c.idle_ms = conf.keepalive_timeout.0;
    let times = Times {
        idle_ms: conf.keepalive_timeout.0,
        frame_ms: conf.recv_timeout.0,
    };
    open(c, sh, engine, Some(times));
}

fn open<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, engine: Engine, times: Option<Times>) {
    let now_ms = sh.clock.mono_ms;
    c.counted.speak(match engine {
        Engine::H2(_) => Protocol::Http2,
        Engine::Spdy(_) => Protocol::Spdy,
    });
    c.mux = Some(Box::new(Mux {
        engine,
        out: Gather::default(),
        queued: 0,
        sent: 0,
        read_us: 0,
        running: Vec::new(),
        any_aborted: false,
        tail: VecDeque::new(),
        idle_since_ms: Some(now_ms),
        block_since: None,
        look_at_ms: u64::MAX,
        told_ms: now_ms,
        announced_ms: None,
        closing: Closing {
            rule: Lingering::On,
            time_ms: 30_000,
            timeout_ms: 5_000,
        },
        linger: None,
        times,
    }));
}

impl Mux {
    /// Takes bytes from the peer; requests use the memory of `spares`.
    pub(super) fn receive(&mut self, input: &[u8], now_ms: u64, spares: &mut Pool<RequestHead>) {
        if let Some(linger) = &mut self.linger {
            linger.mark_ms = now_ms;
            return;
        }
        let seconds = now_ms.saturating_sub(self.told_ms) / 1000;
        if seconds > 0 {
            self.told_ms += seconds * 1000;
            self.engine
                .seconds_passed(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        self.engine.receive(input, spares);
        self.block_since = match (self.engine.awaited(), self.block_since) {
            (Some(id), Some((before, since))) if id == before && id != NO_STREAM => {
                Some((id, since))
            }
            (Some(id), _) => Some((id, now_ms)),
            (None, _) => None,
        };
    }

    /// Whether more bytes can be taken.
    pub(super) fn wants_input(&self) -> bool {
        self.linger.is_some() || (self.engine.wants_input() && self.out.len() < UNREAD_ABOVE_BYTES)
    }

    /// Whether a request is under way, or its response.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.tail.is_empty()
    }

    /// The exchange whose settings count for writing: the one that has waited for longest.
    fn front(&self) -> Option<&Exchange> {
        let queued = self.tail.front().map(|queued| &*queued.exchange);
        queued.or(self.running.first().map(|running| &*running.exchange))
    }

    /// What is to be written, the exchange whose settings count for that, and whether more may come.
    pub(super) fn writing(&mut self) -> (&mut Gather, Option<&Exchange>, bool) {
        let queued = self.tail.front().map(|queued| &*queued.exchange);
        let front = queued.or(self.running.first().map(|running| &*running.exchange));
        let more = front.is_some();
        (&mut self.out, front, more)
    }

    /// Whether exchanges under way are logged at level debug.
    pub(super) fn set_debug(&mut self, on: bool) {
        let running = self.running.iter_mut().map(|running| &mut running.exchange);
        let queued = self.tail.iter_mut().map(|queued| &mut queued.exchange);
        for x in running.chain(queued) {
            x.client.debug = on;
        }
    }

    /// How long the connection may be idle after a request in this location.
    fn idle_ms(&self, loc: &CoreLoc) -> u64 {
        match self.times {
            Some(times) => times.idle_ms,
            None => loc.keepalive().idle_ms,
        }
    }

    fn transmit(&mut self) {
        let before = self.out.len();
        self.engine.transmit(&mut self.out);
        self.queued += self.out.len() - before;
    }

    fn position(&self, stream: u32) -> Option<usize> {
        self.running
            .iter()
            .position(|running| running.stream == stream)
    }

    /// Takes an exchange out, with the bytes of its response that were sent.
    fn take(&mut self, at: usize, sent_bytes: u64) -> Box<Exchange> {
        let mut x = self.running.remove(at).exchange;
        x.bytes_sent = sent_bytes;
        x
    }

    /// Resets the stream of an exchange, which ends with that.
    fn break_off<N: Net>(&mut self, at: usize, reason: Reason, sh: &mut Shared<N>) {
        let stream = self.running[at].stream;
        let sent_bytes = self.engine.sent_bytes(stream);
        self.engine.reset(stream, reason);
        let x = self.take(at, sent_bytes);
        self.note_times(&x);
        sh.finish(x);
    }

    /// Notes how the connection is closed after this exchange.
    fn note_times(&mut self, x: &Exchange) {
        let loc = x.core_loc(&x.http);
        self.closing = Closing {
            rule: *loc.lingering_close,
            time_ms: loc.lingering_time.0,
            timeout_ms: loc.lingering_timeout.0,
        };
    }
}

/// Takes the engine's events.
pub(super) fn deliver<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    while let Some(mux) = &mut c.mux {
        match &mut mux.engine {
            Engine::H2(engine) => match engine.event() {
                Some(event) => take(c, sh, event)?,
                None => break,
            },
            Engine::Spdy(engine) => match engine.event() {
                Some(event) => take(c, sh, event)?,
                None => break,
            },
        }
    }
    Ok(())
}

/// Takes one event; `M` is what can be wrong with a connection of the protocol.
#[inline]
fn take<N: Net, M: Display>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    event: Event<M>,
) -> Result<(), Closed> {
    match event {
        Event::Head { stream, head } => begin(c, sh, stream, head)?,
        Event::Data { stream, bytes } => body::data(c, sh, stream, bytes),
        Event::BodyEnd(stream) => body::end(c, sh, stream),
        Event::Trailers { .. } => {}
        Event::BodyFault(stream, fault) => body::fault(c, sh, stream, fault),
        Event::Reset { stream, sent_bytes } => drop_exchange(c, sh, stream, sent_bytes),
        Event::Failed(misdeed) => note(c, sh, format_args!("{misdeed}")),
        Event::Eof => return Err(Closed),
    }
    Ok(())
}

/// A line in the error log that is about the connection.
fn note<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, text: std::fmt::Arguments<'_>) {
    if c.gone {
        return;
    }
    let client = client(c, sh, false);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    x.log(Level::Info, text);
    sh.drop_unlogged(x);
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    mut head: Box<RequestHead>,
) -> Result<(), Closed> {
    if (c.gone || memory::is_full())
        && let Some(mux) = &mut c.mux
    {
        // Nobody serves it here, or not now; the client may ask elsewhere or again.
        mux.engine.reset(stream, Reason::Refused);
        sh.recycle(head);
        return Ok(());
    }
    let mut x = open_exchange(c, sh, &head)?;
    std::mem::swap(&mut x.head, &mut head);
    sh.recycle(head);
    let Some(mux) = &mut c.mux else {
        return Err(Closed);
    };
    x.client.may_push = mux.engine.may_push(stream);
    x.client.offers = mux.engine.offers();
    x.client.wake.stream = stream;
    phases::begin(&mut x, &mut sh.ctx());
    // As in nginx, a connection of SPDY is not ended by the number of its requests.
    if mux.times.is_none() && is_last(&x) && !stream.is_multiple_of(2) {
        mux.engine.end_after(stream);
    }
    let loc = x.core_loc(&x.http);
    let look_at_ms = sh.clock.mono_ms.saturating_add(loc.send_timeout.0);
    mux.look_at_ms = mux.look_at_ms.min(look_at_ms);
    mux.idle_since_ms = None;
    c.idle_ms = mux.idle_ms(loc);
    c.min_idle_ms = loc.keepalive_min_timeout.0;
    mux.running.push(Running {
        stream,
        exchange: x,
        bytes: 0,
        start: u64::MAX,
    });
    let at = mux.running.len() - 1;
    respond(mux, at);
    if mux.running[at].exchange.is_waiting() {
        sh.timer_set = true;
    }
    Ok(())
}

/// Sends the head of an exchange that has one.
fn respond(mux: &mut Mux, at: usize) {
    let running = &mut mux.running[at];
    let (x, stream) = (&mut running.exchange, running.stream);
    if x.ahead.is_some()
        && let Engine::H2(engine) = &mut mux.engine
    {
        early_responses::over_h2(x, engine, stream);
    }
    match x.state {
        State::Running => {}
        State::Waiting(_) => body::ask(mux, at),
        State::Aborted => mux.any_aborted = true,
        State::Responding => {
            mux.engine.discard_body(stream);
            debug_http!(x, "{}", trace::Head(&x.response));
            if x.http.timed && (x.http.timed_share == ALL || x.sampled.state == Sampling::Drawn) {
                // What the engine has ready goes before the head, so that its place in the queue is known.
                let before = mux.out.len();
                mux.engine.transmit(&mut mux.out);
                mux.queued += mux.out.len() - before;
                running.start = mux.queued;
            }
            x.header_bytes += mux.engine.send_head(stream, x);
            running.bytes = x.header_bytes;
        }
    }
}

/// Ends an exchange whose stream is gone.
fn drop_exchange<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    sent_bytes: u64,
) {
    let Some(mux) = &mut c.mux else { return };
    let Some(at) = mux.position(stream) else {
        return;
    };
    let mut x = mux.take(at, sent_bytes);
    mux.note_times(&x);
    abandon(&mut x);
    sh.finish(x);
}

/// The client has left: what was not answered is logged so.
fn abandon(x: &mut Exchange) {
    if !x.header_sent {
        x.err_status = CLIENT_CLOSED_REQUEST;
        x.reply.status = CLIENT_CLOSED_REQUEST;
    }
}

/// Moves bodies to the engine as it asks for them, and what it transmits to the queue.
pub(super) fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(mux) = &mut c.mux else { return Ok(()) };
    if mux.linger.is_some() {
        return Ok(());
    }
    let was_empty = mux.out.is_empty();
    if std::mem::take(&mut mux.any_aborted) {
        abort(mux, sh);
    }
    loop {
        let room = QUEUE_BYTES.saturating_sub(mux.out.len());
        match mux.engine.advance(room, sh.clock.mono_ms) {
            Want::Nothing => break,
            Want::Sent { stream, bytes } => {
                mux.transmit();
                keep(mux, stream, bytes);
            }
            Want::Body(stream) => feed(mux, sh, stream),
        }
    }
    mux.transmit();
    if was_empty && !mux.out.is_empty() {
        // What was not there to be sent was no silence of the client.
        c.mark_ms = sh.clock.mono_ms;
    }
    Ok(())
}

/// Resets the streams of exchanges that are to get no response.
fn abort<N: Net>(mux: &mut Mux, sh: &mut Shared<N>) {
    let aborted = |running: &Running| running.exchange.state == State::Aborted;
    while let Some(at) = mux.running.iter().position(aborted) {
        let reason = match mux.running[at].exchange.reply.status {
            REQUEST_TIMEOUT => Reason::TimedOut,
            _ => Reason::Internal,
        };
        mux.break_off(at, reason, sh);
    }
}

/// Pulls the next piece of a body.
fn feed<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, stream: u32) {
    let Some(at) = mux.position(stream) else {
        mux.engine.reset(stream, Reason::Internal);
        return;
    };
    let running = &mut mux.running[at];
    let x = &mut running.exchange;
    let pulled = if x.has_rate() {
        x.pull_within(&mut sh.ctx(), running.bytes)
    } else {
        x.pull(&mut sh.ctx())
    };
    match pulled {
        Pulled::Pending | Pulled::BudgetSpent => mux.engine.stall(stream),
        Pulled::Chunk(chunk) => {
            running.bytes += chunk.len();
            mux.engine.send_data(stream, chunk);
        }
        Pulled::End => {
            if let Some(on_end) = x.on_end {
                on_end(x, &mut sh.ctx());
            }
            let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
            mux.engine.send_end(stream, trailers);
        }
        Pulled::Broken => mux.break_off(at, Reason::Internal, sh),
    }
}

/// A response is queued whole.
fn keep(mux: &mut Mux, stream: u32, bytes: u64) {
    let Some(at) = mux.position(stream) else {
        return;
    };
    let start = mux.running[at].start;
    let exchange = mux.take(at, bytes);
    trace::finalized(&exchange);
    mux.note_times(&exchange);
    mux.tail.push_back(Queued {
        start,
        end: mux.queued,
        bytes,
        exchange,
    });
}

/// Bytes in the queue above which nothing is read: answers to what the peer sends would only add to them.
const UNREAD_ABOVE_BYTES: u64 = 256 << 10;
