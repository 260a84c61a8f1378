//! A connection that speaks HTTP/2: an exchange for each stream.
//!
//! The engine asks for body pieces in the order of priorities; what it gives leaves in one write. An exchange ends when
//! its last byte has been written.

use std::collections::VecDeque;
use std::rc::Rc;

use engines::h2::{self, Event, Plan, Want};
use engines::http::{Gather, RequestHead};
use server_core::conf_core::{CoreLoc, Http2Loc};
use server_core::errlog::Level;
use server_core::exchange::{Exchange, Pulled, State};
use server_core::phases;

use super::state::{Closed, Conn, Queued, client};
use super::{CLIENT_CLOSED_REQUEST, QUEUE_BYTES, open_exchange};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// What a connection has from its preface to its end.
pub(in crate::worker) struct H2 {
    pub(super) engine: h2::Conn,
    pub(super) out: Gather,
    /// Bytes put into `out` since the connection began.
    queued: u64,
    /// Bytes written since the connection began.
    pub(super) sent: u64,
    running: Vec<Running>,
    /// Exchanges whose responses are queued whole.
    tail: VecDeque<Queued>,
    /// Since when a part of a frame is held.
    partial_since_ms: Option<u64>,
}

/// An exchange whose response is not queued whole.
struct Running {
    stream: u32,
    exchange: Box<Exchange>,
    /// Bytes of its response so far.
    bytes: u64,
}

/// Begins HTTP/2 on a connection.
pub(super) fn open<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let settings = Rc::clone(&sh.generation.h2[c.port()]);
    c.h2 = Some(Box::new(H2 {
        engine: h2::Conn::new(settings),
        out: Gather::default(),
        queued: 0,
        sent: 0,
        running: Vec::new(),
        tail: VecDeque::new(),
        partial_since_ms: None,
    }));
}

impl H2 {
    /// Takes bytes from the peer.
    pub(super) fn receive(&mut self, input: &[u8], now_ms: u64) {
        self.engine.receive(input);
        if self.engine.is_between_frames() {
            self.partial_since_ms = None;
        } else {
            self.partial_since_ms.get_or_insert(now_ms);
        }
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

    /// When the connection is to take a turn for the sake of an exchange that waits.
    fn due_ms(&self) -> Option<u64> {
        let due = |running: &Running| match running.exchange.state {
            State::Waiting(until_ms) => Some(until_ms),
            _ => Some(running.exchange.rate.until_ms).filter(|until_ms| *until_ms != 0),
        };
        self.running.iter().filter_map(due).min()
    }

    /// When the connection is to take a turn if nothing happens before; `idle_ms` and `header_ms` are the times that a
    /// connection without a request may have, after and before its first one.
    pub(super) fn deadline(&self, mark_ms: u64, idle_ms: u64, header_ms: u64, first: bool) -> u64 {
        if self.is_busy() {
            let blocked = match self.front() {
                Some(x) => mark_ms.saturating_add(x.loc::<CoreLoc>(&x.http).send_timeout.0),
                None => u64::MAX,
            };
            let due = self.due_ms().unwrap_or(u64::MAX);
            let held = self.out.is_empty() && due != u64::MAX;
            return if held { due } else { due.min(blocked) };
        }
        let idle = mark_ms.saturating_add(if first { header_ms } else { idle_ms });
        let partial = self
            .partial_since_ms
            .map(|since| since.saturating_add(header_ms));
        partial.map_or(idle, |partial| partial.min(idle))
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
            Event::Reset(stream) => drop_exchange(c, sh, stream, CLIENT_CLOSED_REQUEST),
            Event::Failed(misdeed) => {
                let client = client(c, sh, false);
                let mut x = sh.exchange(client, c.port());
                x.head.clear();
                phases::place(&mut x);
                x.log(Level::Info, format_args!("{misdeed}"));
                sh.drop_unlogged(x);
            }
            Event::Eof => return Err(Closed),
        }
    }
    Ok(())
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    head: RequestHead,
) -> Result<(), Closed> {
    let mut x = open_exchange(c, sh, &head)?;
    let old = std::mem::replace(&mut x.head, head);
    let Some(h2) = &mut c.h2 else {
        return Err(Closed);
    };
    h2.engine.recycle(old);
    phases::begin(&mut x, &mut sh.ctx());
    if sh.stopping || c.retired || is_last(&x) {
        h2.engine.drain();
    }
    h2.running.push(Running {
        stream,
        exchange: x,
        bytes: 0,
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
    let loc: &CoreLoc = x.loc(&x.http);
    let age_ms = x.started_ms.saturating_sub(x.client.since_ms);
    x.client.requests >= loc.keepalive_requests.0 || age_ms > loc.keepalive_time.0
}

/// Sends the head of an exchange that has one.
fn respond(h2: &mut H2, at: usize) {
    let running = &mut h2.running[at];
    let (x, stream) = (&mut running.exchange, running.stream);
    match x.state {
        State::Running | State::Waiting(_) | State::Aborted => {}
        State::Responding => {
            if x.head.expect_continue && x.err_status == 0 {
                h2.engine.send_interim(stream, 100, None);
            }
            h2.engine.discard_body(stream);
            let plan = Plan {
                trailers: x.on_end.is_some(),
                chunk_bytes: x.loc::<Http2Loc>(&x.http).chunk_size.0 as usize,
            };
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
fn drop_exchange<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, stream: u32, status: u16) {
    let Some(h2) = &mut c.h2 else { return };
    let Some(at) = h2.position(stream) else {
        return;
    };
    let Running {
        exchange: mut x,
        bytes,
        ..
    } = h2.running.remove(at);
    if !x.header_sent {
        x.err_status = status;
        x.reply.status = status;
    }
    x.bytes_sent = bytes;
    keep_times(c, &x);
    sh.finish(x);
}

/// Moves bodies to the engine as it asks for them, and what it transmits to the queue.
pub(super) fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    loop {
        let Some(h2) = &mut c.h2 else { return Ok(()) };
        abort(h2, sh);
        let room = QUEUE_BYTES.saturating_sub(h2.out.len());
        match h2.engine.advance(room) {
            Want::Nothing => break,
            Want::Sent(stream) => {
                h2.transmit();
                if let Some(at) = h2.position(stream) {
                    let running = h2.running.remove(at);
                    keep(c, running);
                }
            }
            Want::Body(stream) => feed(c, sh, stream),
        }
    }
    if let Some(h2) = &mut c.h2 {
        h2.transmit();
    }
    Ok(())
}

/// Resets the streams of exchanges that are to get no response.
fn abort<N: Net>(h2: &mut H2, sh: &mut Shared<N>) {
    let aborted = |running: &Running| running.exchange.state == State::Aborted;
    while let Some(at) = h2.running.iter().position(aborted) {
        let running = h2.running.remove(at);
        h2.engine.reset(running.stream, h2::INTERNAL_ERROR);
        sh.finish(running.exchange);
    }
}

/// Pulls the next piece of a body.
fn feed<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, stream: u32) {
    let Some(h2) = &mut c.h2 else { return };
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
        Some(Pulled::Broken) => {
            h2.engine.reset(stream, h2::INTERNAL_ERROR);
            let running = h2.running.remove(at);
            sh.finish(running.exchange);
        }
    }
}

/// A response is queued whole.
fn keep<S>(c: &mut Conn<S>, running: Running) {
    keep_times(c, &running.exchange);
    if let Some(h2) = &mut c.h2 {
        h2.tail.push_back(Queued {
            start: 0,
            end: h2.queued,
            bytes: running.bytes,
            exchange: running.exchange,
        });
    }
}

/// Notes how long the connection may be idle after this exchange.
fn keep_times<S>(c: &mut Conn<S>, x: &Exchange) {
    let loc: &CoreLoc = x.loc(&x.http);
    c.idle_ms = loc.keepalive().idle_ms;
    c.min_idle_ms = loc.keepalive_min_timeout.0;
}

/// Ends exchanges whose last byte has been written, and the connection that has nothing left to do. True if there may be
/// more to do at once.
pub(super) fn settle<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(h2) = &mut c.h2 else {
        return Ok(false);
    };
    let mut any = false;
    let sent = h2.sent;
    while let Some(queued) = h2.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        x.bytes_sent = queued.bytes;
        x.completed = true;
        sh.finish(x);
    }
    if any && !h2.is_busy() {
        c.mark_ms = sh.clock.mono_ms;
    }
    if (sh.stopping || c.retired) && !h2.is_busy() && c.min_idle_ms == 0 {
        h2.engine.end();
        h2.transmit();
        any = true;
    }
    if h2.engine.is_over() && !h2.is_busy() && h2.out.is_empty() {
        return Err(Closed);
    }
    Ok(any)
}

/// What is due for exchanges that wait; false if it is the connection itself that has waited too long.
pub(super) fn resume<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> bool {
    let now_ms = sh.clock.mono_ms;
    let Some(h2) = &mut c.h2 else { return false };
    if h2.due_ms().is_none_or(|due_ms| due_ms > now_ms) {
        return false;
    }
    for at in 0..h2.running.len() {
        let x = &mut h2.running[at].exchange;
        match x.state {
            State::Waiting(until_ms) if until_ms <= now_ms => {
                phases::resume(x, &mut sh.ctx());
                sh.timer_set |= matches!(x.state, State::Waiting(_));
                respond(h2, at);
            }
            State::Responding if x.rate.until_ms != 0 && x.rate.until_ms <= now_ms => {
                x.rate.until_ms = 0;
                let stream = h2.running[at].stream;
                h2.engine.resume(stream);
            }
            _ => {}
        }
    }
    c.mark_ms = now_ms;
    true
}

/// Ends what is under way, logged as far as it came, and says goodbye as far as the socket takes it.
pub(super) fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let Some(mut h2) = c.h2.take() else { return };
    while let Some(queued) = h2.tail.pop_front() {
        let mut x = queued.exchange;
        x.bytes_sent = queued.bytes;
        sh.finish(x);
    }
    for running in h2.running.drain(..) {
        let mut x = running.exchange;
        x.bytes_sent = running.bytes;
        sh.finish(x);
    }
    h2.engine.end();
    h2.transmit();
    c.h2 = Some(h2);
}
