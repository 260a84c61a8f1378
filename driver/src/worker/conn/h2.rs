//! A connection that speaks HTTP/2: an exchange for each stream.
//!
//! The engine asks for body pieces in the order of priorities; what it gives leaves in one write. An exchange ends when
//! its last byte has been written. How the connection waits and ends is in `ending`.

mod ending;

use std::collections::VecDeque;
use std::rc::Rc;

use engines::h2::{self, Event, Plan, Want};
use engines::http::{Gather, RequestHead};
use server_core::conf_core::{Http2Loc, Lingering};
use server_core::debug_http;
use server_core::errlog::Level;
use server_core::exchange::{Exchange, Pulled, State};
use server_core::phases;
use server_core::stats::Protocol;

use super::state::{Closed, Closing, Conn, Queued, client};
use super::{CLIENT_CLOSED_REQUEST, QUEUE_BYTES, open_exchange, trace};
use crate::worker::net::Net;
use crate::worker::shared::{Pool, Shared};

use ending::Linger;
pub(super) use ending::{close, resume, settle};

/// What a connection has from its preface to its end.
pub(in crate::worker) struct H2 {
    pub(super) engine: h2::Conn,
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
    /// The stream whose header block has begun to come, and since when.
    block_since: Option<(u32, u64)>,
    /// When to look for streams whose client takes nothing.
    look_at_ms: u64,
    /// Up to when the passing of time has been told to the engine.
    told_ms: u64,
    /// Since when the client knows that there is an end.
    announced_ms: Option<u64>,
    closing: Closing,
    linger: Option<Linger>,
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
pub(super) fn open<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let settings = Rc::clone(&sh.generation.h2[c.port()]);
    let now_ms = sh.clock.mono_ms;
    c.counted.speak(Protocol::Http2);
    c.h2 = Some(Box::new(H2 {
        engine: h2::Conn::new(settings),
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
    }));
}

impl H2 {
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
        self.engine.swap_spares(spares);
        self.engine.receive(input);
        self.engine.swap_spares(spares);
        self.block_since = match (self.engine.awaited_block(), self.block_since) {
            (Some(id), Some((before, since))) if id == before => Some((id, since)),
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

    /// Whether an exchange began before this configuration.
    pub(super) fn is_older_than(&self, number: u64) -> bool {
        let running = self.running.iter().map(|running| &running.exchange);
        let queued = self.tail.iter().map(|queued| &queued.exchange);
        running.chain(queued).any(|x| x.http.number < number)
    }

    /// Whether exchanges under way are logged at level debug.
    pub(super) fn set_debug(&mut self, on: bool) {
        let running = self.running.iter_mut().map(|running| &mut running.exchange);
        let queued = self.tail.iter_mut().map(|queued| &mut queued.exchange);
        for x in running.chain(queued) {
            x.client.debug = on;
        }
    }

    /// Notes which responses have begun to leave.
    pub(super) fn note_first_bytes(&mut self, now_us: u64) {
        let queued = self.tail.iter_mut().map(|q| (q.start, &mut q.exchange));
        let running = self.running.iter_mut().map(|r| (r.start, &mut r.exchange));
        for (start, x) in queued.chain(running) {
            if start < self.sent && x.moments.first_byte_us == 0 {
                x.moments.first_byte_us = now_us;
            }
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
    fn break_off<N: Net>(&mut self, at: usize, code: u32, sh: &mut Shared<N>) {
        let stream = self.running[at].stream;
        let sent_bytes = self.engine.sent_bytes(stream);
        self.engine.reset(stream, code);
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
    while let Some(event) = c.h2.as_mut().and_then(|h2| h2.engine.event()) {
        match event {
            Event::Head { stream, head } => begin(c, sh, stream, head)?,
            Event::Data { stream, bytes } => {
                if let Some(h2) = &mut c.h2 {
                    let len = bytes.len() as u64;
                    if let Some(at) = h2.position(stream) {
                        h2.running[at].exchange.request_bytes += len;
                    }
                    h2.engine.consumed(stream, len);
                }
            }
            Event::Trailers { .. } | Event::BodyEnd(_) => {}
            Event::BodyFault(stream, fault) => body_fault(c, sh, stream, fault),
            Event::Reset { stream, sent_bytes } => drop_exchange(c, sh, stream, sent_bytes),
            Event::Failed(misdeed) => note(c, sh, format_args!("{misdeed}")),
            Event::Eof => return Err(Closed),
        }
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
    if c.gone
        && let Some(h2) = &mut c.h2
    {
        // Nobody serves it here any more; the client may ask elsewhere.
        h2.engine.reset(stream, h2::REFUSED_STREAM);
        sh.recycle(head);
        return Ok(());
    }
    let mut x = open_exchange(c, sh, &head)?;
    std::mem::swap(&mut x.head, &mut head);
    sh.recycle(head);
    let Some(h2) = &mut c.h2 else {
        return Err(Closed);
    };
    phases::begin(&mut x, &mut sh.ctx());
    if is_last(&x) {
        h2.engine.end_after(stream);
    }
    let loc = x.core_loc(&x.http);
    let look_at_ms = sh.clock.mono_ms.saturating_add(loc.send_timeout.0);
    h2.look_at_ms = h2.look_at_ms.min(look_at_ms);
    h2.idle_since_ms = None;
    c.idle_ms = loc.keepalive().idle_ms;
    c.min_idle_ms = loc.keepalive_min_timeout.0;
    h2.running.push(Running {
        stream,
        exchange: x,
        bytes: 0,
        start: u64::MAX,
    });
    let at = h2.running.len() - 1;
    respond(h2, at);
    if matches!(h2.running[at].exchange.state, State::Waiting(_)) {
        sh.timer_set = true;
    }
    Ok(())
}

/// Whether the connection has had as many requests, or as much time, as it may have.
fn is_last(x: &Exchange) -> bool {
    let loc = x.core_loc(&x.http);
    let age_ms = x.started_ms.saturating_sub(x.client.since_ms);
    x.client.requests >= loc.keepalive_requests.0
        || age_ms > loc.keepalive_time.0
        || loc.keepalive().idle_ms == 0
}

/// Sends the head of an exchange that has one.
fn respond(h2: &mut H2, at: usize) {
    let running = &mut h2.running[at];
    let (x, stream) = (&mut running.exchange, running.stream);
    match x.state {
        State::Running | State::Waiting(_) => {}
        State::Aborted => h2.any_aborted = true,
        State::Responding => {
            h2.engine.discard_body(stream);
            let plan = Plan {
                trailers: x.on_end.is_some(),
                chunk_bytes: x.loc::<Http2Loc>(&x.http).chunk_size.0 as usize,
            };
            debug_http!(x, "{}", trace::Head(&x.response));
            if x.http.timed {
                // What the engine has ready goes before the head, so that its place in the queue is known.
                let before = h2.out.len();
                h2.engine.transmit(&mut h2.out);
                h2.queued += h2.out.len() - before;
                running.start = h2.queued;
            }
            x.header_bytes = h2.engine.send_head(stream, &x.response, plan);
            running.bytes = x.header_bytes;
        }
    }
}

/// The request body is not as announced: if nothing has been answered yet, that is.
fn body_fault<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    fault: engines::http::Fault,
) {
    let Some(h2) = &mut c.h2 else { return };
    let Some(at) = h2.position(stream) else {
        return;
    };
    let x = &mut h2.running[at].exchange;
    if matches!(x.state, State::Waiting(_)) {
        phases::refuse_body(x, &mut sh.ctx(), fault);
        respond(h2, at);
    }
}

/// Ends an exchange whose stream is gone.
fn drop_exchange<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    sent_bytes: u64,
) {
    let Some(h2) = &mut c.h2 else { return };
    let Some(at) = h2.position(stream) else {
        return;
    };
    let mut x = h2.take(at, sent_bytes);
    h2.note_times(&x);
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
    let Some(h2) = &mut c.h2 else { return Ok(()) };
    if h2.linger.is_some() {
        return Ok(());
    }
    let was_empty = h2.out.is_empty();
    if std::mem::take(&mut h2.any_aborted) {
        abort(h2, sh);
    }
    loop {
        let room = QUEUE_BYTES.saturating_sub(h2.out.len());
        match h2.engine.advance(room, sh.clock.mono_ms) {
            Want::Nothing => break,
            Want::Sent { stream, bytes } => {
                h2.transmit();
                keep(h2, stream, bytes);
            }
            Want::Body(stream) => feed(h2, sh, stream),
        }
    }
    h2.transmit();
    if was_empty && !h2.out.is_empty() {
        // What was not there to be sent was no silence of the client.
        c.mark_ms = sh.clock.mono_ms;
    }
    Ok(())
}

/// Resets the streams of exchanges that are to get no response.
fn abort<N: Net>(h2: &mut H2, sh: &mut Shared<N>) {
    let aborted = |running: &Running| running.exchange.state == State::Aborted;
    while let Some(at) = h2.running.iter().position(aborted) {
        h2.break_off(at, h2::INTERNAL_ERROR, sh);
    }
}

/// Pulls the next piece of a body.
fn feed<N: Net>(h2: &mut H2, sh: &mut Shared<N>, stream: u32) {
    let Some(at) = h2.position(stream) else {
        h2.engine.reset(stream, h2::INTERNAL_ERROR);
        return;
    };
    let running = &mut h2.running[at];
    let x = &mut running.exchange;
    let pulled = if x.has_rate() {
        x.pull_within(&mut sh.ctx(), running.bytes)
    } else {
        Some(x.pull(&mut sh.ctx()))
    };
    match pulled {
        None => h2.engine.stall(stream),
        Some(Pulled::Chunk(chunk)) => {
            running.bytes += chunk.len();
            h2.engine.send_data(stream, chunk);
        }
        Some(Pulled::End) => {
            if let Some(on_end) = x.on_end {
                on_end(x, &mut sh.ctx());
            }
            let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
            h2.engine.send_end(stream, trailers);
        }
        Some(Pulled::Broken) => h2.break_off(at, h2::INTERNAL_ERROR, sh),
    }
}

/// A response is queued whole.
fn keep(h2: &mut H2, stream: u32, bytes: u64) {
    let Some(at) = h2.position(stream) else {
        return;
    };
    let start = h2.running[at].start;
    let exchange = h2.take(at, bytes);
    trace::finalized(&exchange);
    h2.note_times(&exchange);
    h2.tail.push_back(Queued {
        start,
        end: h2.queued,
        bytes,
        exchange,
    });
}

/// Bytes in the queue above which nothing is read: answers to what the peer sends would only add to them.
const UNREAD_ABOVE_BYTES: u64 = 256 << 10;
