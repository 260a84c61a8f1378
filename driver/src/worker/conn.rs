//! The way of a byte: [`turn`] does the same after any cause.
//!
//! ```text
//! receive -> engine.receive
//! while engine.event:   deliver      a head starts an exchange, which runs through the phases
//! pump                               the exchange's body -> engine.send_data
//! transmit -> one write              then the ends of exchanges: log, keep, linger or close
//! ```
//!
//! An idle connection has no [`Active`] part: no buffer, one slab entry and one timer slot. What a connection waits
//! for is told by the deadline that [`turn`] returns.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use engines::h1::{self, Event, Next, Phase};
use engines::http::{Gather, RequestHead};
use server_core::conf_core::{CoreLoc, CoreSrv, Lingering};
use server_core::errlog::Level;
use server_core::exchange::{Client, Exchange, Peer, Pulled, State};
use server_core::phases;

use super::net::Net;
use super::shared::Shared;

/// One connection.
pub struct Conn<S> {
    socket: S,
    peer: Peer,
    local: Option<Box<SocketAddr>>,
    port: u32,
    requests: u32,
    serial: u64,
    since_ms: u64,
    /// When what the connection waits for began: the head, the idle time, the last progress.
    mark_ms: u64,
    /// How long the connection may be idle, from the location of its last request.
    idle_ms: u64,
    readable: bool,
    writable: bool,
    /// The peer has ended its side or reset: read until that is seen.
    hung_up: bool,
    nodelay: bool,
    /// No request after the one under way or the next.
    retired: bool,
    active: Option<Box<Active>>,
}

/// What a connection has only while something happens on it.
pub struct Active {
    engine: h1::Conn,
    out: Gather,
    /// Bytes put into `out` and taken from it since the connection became active.
    queued: u64,
    sent: u64,
    exchange: Option<Box<Exchange>>,
    /// Value of `queued` when the exchange began.
    start: u64,
    /// Exchanges whose responses are queued whole.
    tail: VecDeque<Queued>,
    /// What to do when the queue is empty.
    next: Next,
    closing: Closing,
    mode: Mode,
}

/// An exchange whose response is queued whole.
struct Queued {
    exchange: Box<Exchange>,
    start: u64,
    end: u64,
}

/// How a connection is closed, from the location of its last request.
#[derive(Clone, Copy, Debug)]
struct Closing {
    rule: Lingering,
    time_ms: u64,
    timeout_ms: u64,
}

/// What the connection is in besides an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Requests and responses.
    Serve,
    /// The response is sent, the rest of the request body is dropped: until when.
    AwaitBody { until_ms: u64 },
    /// Our side is ended, what the peer still sends is dropped: until when.
    Linger { until_ms: u64 },
}

/// Why a connection takes its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// There may be something to read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// The peer has ended its side, or the connection is broken.
    pub hung_up: bool,
    /// The deadline has passed.
    pub expired: bool,
    /// Reading found the connection at its end.
    pub broken: bool,
}

/// What is to be done with the connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Keep it; take a turn at this time at the latest.
    Keep {
        /// Monotonic milliseconds.
        deadline_ms: u64,
    },
    /// Close it.
    Close,
}

/// The connection ends here and now.
struct Closed;

impl Active {
    pub(super) fn new(settings: Rc<h1::Settings>) -> Self {
        Self {
            engine: h1::Conn::new(settings),
            out: Gather::default(),
            queued: 0,
            sent: 0,
            exchange: None,
            start: 0,
            tail: VecDeque::new(),
            next: Next::KeepAlive,
            closing: Closing { rule: Lingering::On, time_ms: 30_000, timeout_ms: 5_000 },
            mode: Mode::Serve,
        }
    }

    pub(super) fn reset(&mut self, settings: Rc<h1::Settings>) {
        self.engine.reset(settings);
        self.out.clear();
        self.queued = 0;
        self.sent = 0;
        self.next = Next::KeepAlive;
        self.mode = Mode::Serve;
    }

    /// Whether nothing is under way.
    fn is_settled(&self) -> bool {
        self.exchange.is_none() && self.tail.is_empty() && self.out.is_empty()
    }
}

impl<S> Conn<S> {
    /// A connection that has just been accepted on a port.
    pub fn new(socket: S, peer: Peer, port: usize, serial: u64, now_ms: u64) -> Self {
        Self {
            socket,
            peer,
            local: None,
            port: port as u32,
            requests: 0,
            serial,
            since_ms: now_ms,
            mark_ms: now_ms,
            idle_ms: 0,
            readable: false,
            writable: true,
            hung_up: false,
            nodelay: true,
            retired: false,
            active: None,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, for the simulator.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The port on which it was accepted.
    pub fn port(&self) -> usize {
        self.port as usize
    }

    /// Gives the connection the index that its port has in a new configuration.
    pub fn set_port(&mut self, port: usize) {
        self.port = port as u32;
    }

    /// Has had a request and waits for the next.
    pub fn is_kept_alive(&self) -> bool {
        self.active.is_none() && self.requests > 0
    }

    /// Between requests, or before the first one.
    pub fn is_idle(&self) -> bool {
        self.active.is_none()
    }

    /// When the connection became what it is, monotonic milliseconds.
    pub fn mark_ms(&self) -> u64 {
        self.mark_ms
    }

    /// Whether it has been retired, or has a request under way that began before this configuration.
    pub fn is_older_than(&self, number: u64) -> bool {
        self.retired || self.active.as_ref().and_then(|a| a.exchange.as_ref()).is_some_and(|x| x.http.number < number)
    }

    /// Makes the response under way, or else the next one, the last.
    pub fn retire(&mut self) {
        self.retired = true;
        if let Some(active) = &mut self.active {
            active.engine.close_after();
        }
    }
}

/// Reads what has come, ahead of the turn: the loop does so for all connections that are ready before any has its turn, so
/// that one look at a file serves all of them. False if the connection has ended.
pub fn intake<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, cause: Cause) -> bool {
    c.readable |= cause.readable || cause.hung_up;
    c.writable |= cause.writable;
    c.hung_up |= cause.hung_up;
    receive(c, sh).is_ok()
}

/// Does all that can be done on a connection now.
pub fn turn<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, cause: Cause) -> Fate {
    c.readable |= cause.readable || cause.hung_up;
    c.writable |= cause.writable;
    c.hung_up |= cause.hung_up;
    if cause.broken || (cause.expired && expire(c, sh).is_err()) {
        return close(c, sh);
    }
    loop {
        match pass(c, sh) {
            Ok(true) => {}
            Ok(false) => return Fate::Keep { deadline_ms: deadline(c, sh) },
            Err(Closed) => return close(c, sh),
        }
    }
}

/// One pass down and up; true if there may be more to do at once.
fn pass<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let read = receive(c, sh)?;
    loop {
        deliver(c, sh)?;
        if !pump(c, sh) {
            break;
        }
    }
    let wrote = write(c, sh)?;
    let settled = settle(c, sh)?;
    Ok(read || wrote || settled)
}

/// Reads once, if something may be there and is wanted; true if anything came.
fn receive<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let wanted = match &c.active {
        Some(a) => matches!(a.mode, Mode::Linger { .. }) || a.engine.wants_input(),
        None => true,
    };
    if !c.readable || !wanted {
        return Ok(false);
    }
    let n = match sh.net.receive(&mut c.socket, &mut sh.scratch) {
        Ok(0) => {
            c.readable = false;
            return end_of_input(c);
        }
        Ok(n) => n,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            c.readable = false;
            c.hung_up = false;
            return Ok(false);
        }
        Err(_) => return Err(Closed),
    };
    sh.files.input_received();
    // A short read has emptied the socket: a new event will say when there is more. A peer that hung up gives no new
    // event, so its end must be read now.
    c.readable = n == sh.scratch.len() || c.hung_up;
    let now = sh.clock.mono_ms;
    if c.active.is_none() {
        c.mark_ms = now;
        c.active = Some(sh.activate(c.port()));
    }
    let Some(a) = &mut c.active else { return Err(Closed) };
    if a.mode != Mode::Serve {
        c.mark_ms = now;
    }
    if !matches!(a.mode, Mode::Linger { .. }) {
        a.engine.receive(&sh.scratch[..n]);
    }
    Ok(true)
}

/// The peer has ended its side.
fn end_of_input<S>(c: &mut Conn<S>) -> Result<bool, Closed> {
    c.hung_up = false;
    match &mut c.active {
        Some(a) if !matches!(a.mode, Mode::Linger { .. }) => {
            a.engine.receive_eof();
            Ok(true)
        }
        _ => Err(Closed),
    }
}

/// Takes the engine's events; a head starts an exchange.
fn deliver<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else { return Ok(()) };
    let mut started: Option<RequestHead> = None;
    while let Some(event) = a.engine.event() {
        match event {
            Event::Head(head) => started = Some(head),
            Event::Data(bytes) => {
                if let Some(x) = &mut a.exchange {
                    x.request_bytes += bytes.len() as u64;
                } else if let Some(head) = &mut started {
                    head.size_bytes += bytes.len() as u64;
                }
            }
            Event::Trailers(_) => {}
            Event::BodyEnd => {
                if a.next == Next::AwaitBody {
                    a.next = a.engine.finish();
                    a.mode = Mode::Serve;
                }
            }
            Event::BodyFault(fault) => match &mut started {
                // The response is not decided yet: answer the broken body instead.
                Some(head) => head.fault = head.fault.or(Some(fault)),
                None if a.next == Next::AwaitBody => a.next = a.engine.finish(),
                None => a.engine.close_after(),
            },
            Event::Eof => {
                peer_ended(c, sh)?;
                break;
            }
        }
    }
    match started {
        Some(head) => begin(c, sh, head),
        None => Ok(()),
    }
}

/// The peer ended its side between requests, or inside of one.
fn peer_ended<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else { return Err(Closed) };
    if a.next == Next::AwaitBody && a.is_settled() {
        return Err(Closed);
    }
    if a.exchange.is_some() || !a.out.is_empty() {
        // The request is here, if not all of its body. The response still goes out.
        a.engine.close_after();
        if a.exchange.is_none() {
            a.next = Next::Close;
        }
        return Ok(());
    }
    if a.engine.phase() == Phase::Head {
        log_unfinished(c, sh, 400, "client prematurely closed connection while reading the request head");
    }
    Err(Closed)
}

/// Starts an exchange.
fn begin<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, head: RequestHead) -> Result<(), Closed> {
    c.requests = c.requests.saturating_add(1);
    let client = client(c, sh);
    let mut x = sh.exchange(client, c.port());
    let old = std::mem::replace(&mut x.head, head);
    let Some(a) = &mut c.active else { return Err(Closed) };
    a.engine.recycle(old);
    a.start = a.queued;
    let stopping = sh.stopping || c.retired;
    phases::begin(&mut x, &mut sh.ctx());
    if stopping {
        x.keep_alive = false;
        x.response.keep_alive = false;
    }
    a.exchange = Some(x);
    respond(c, sh)
}

/// What the exchange knows of the connection.
fn client<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Client {
    let port = &sh.generation.http.ports[c.port as usize];
    if port.needs_local_addr && c.local.is_none() {
        c.local = sh.net.local_addr(&mut c.socket).map(Box::new);
    }
    Client {
        peer: c.peer,
        local: c.local.as_deref().copied(),
        connection: c.serial,
        requests: u64::from(c.requests),
        since_ms: c.since_ms,
        pipelined: c.active.as_ref().is_some_and(|a| a.queued > 0),
    }
}

/// Sends the head of an exchange that has one.
fn respond<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else { return Err(Closed) };
    let Some(x) = &mut a.exchange else { return Ok(()) };
    match x.state {
        State::Running | State::Waiting(_) => Ok(()),
        State::Aborted => Err(Closed),
        State::Responding => {
            if !a.engine.body_done() {
                if x.head.expect_continue && x.err_status == 0 {
                    a.engine.send_interim(100, None);
                }
                a.engine.discard_body();
            }
            x.header_bytes = a.engine.send_head(&x.response);
            if a.out.is_empty() {
                c.mark_ms = sh.clock.mono_ms;
            }
            Ok(())
        }
    }
}

/// Moves the body from the exchange to the engine and on to the queue; true if the response is queued whole and bytes
/// of a next request are at hand, whose response can leave in the same write.
fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> bool {
    let Some(a) = &mut c.active else { return false };
    let Some(x) = &mut a.exchange else { return false };
    if x.state != State::Responding {
        return false;
    }
    let mut ended = false;
    while !ended && a.out.len() < QUEUE_BYTES {
        match x.pull() {
            Pulled::Chunk(chunk) => a.engine.send_data(chunk),
            Pulled::End => {
                if let Some(on_end) = x.on_end {
                    on_end(x, &mut sh.ctx());
                }
                let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
                a.engine.send_end(trailers);
                ended = true;
            }
        }
        let before = a.out.len();
        a.engine.transmit(&mut a.out);
        a.queued += a.out.len() - before;
    }
    if !ended {
        return false;
    }
    let Some(exchange) = a.exchange.take() else { return false };
    let loc: &CoreLoc = exchange.loc(&exchange.http);
    a.closing = Closing {
        rule: *loc.lingering_close,
        time_ms: loc.lingering_time.0,
        timeout_ms: loc.lingering_timeout.0,
    };
    c.idle_ms = loc.keepalive().idle_ms;
    a.tail.push_back(Queued { exchange, start: a.start, end: a.queued });
    a.next = a.engine.finish();
    a.next == Next::KeepAlive && a.out.len() < QUEUE_BYTES && a.tail.len() < PIPELINE_DEPTH
}

/// Writes what is queued; true if there may be more to do at once.
fn write<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else { return Ok(false) };
    if a.out.is_empty() || !c.writable {
        return Ok(false);
    }
    let x = a.tail.front().map(|q| &q.exchange).or(a.exchange.as_ref());
    let (nodelay, chunk) = x.map_or((true, 0), |x| {
        let loc: &CoreLoc = x.loc(&x.http);
        (*loc.tcp_nodelay, loc.sendfile_max_chunk.0)
    });
    if nodelay != c.nodelay {
        c.nodelay = nodelay;
        sh.net.set_nodelay(&mut c.socket, nodelay);
    }
    match sh.net.send(&mut c.socket, &mut a.out, WRITE_BYTES, chunk) {
        Ok(sent) => {
            a.sent += sent.bytes;
            c.writable = !sent.blocked;
            if sent.bytes > 0 {
                c.mark_ms = sh.clock.mono_ms;
            }
            Ok(c.writable && (!a.out.is_empty() || a.exchange.is_some()))
        }
        Err(e) => {
            if e.kind() == io::ErrorKind::UnexpectedEof
                && let Some(x) = x
            {
                x.log(Level::Error, format_args!("the file was truncated while it was sent"));
            }
            Err(Closed)
        }
    }
}

/// Ends exchanges whose last byte has been written; with nothing left, decides what becomes of the connection. True if
/// there may be more to do at once.
fn settle<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else { return Ok(false) };
    let mut any = false;
    let sent = a.sent;
    while let Some(queued) = a.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        x.bytes_sent = queued.end - queued.start;
        x.completed = true;
        sh.finish(x);
    }
    if !a.is_settled() || a.mode != Mode::Serve {
        return Ok(false);
    }
    match a.next {
        Next::KeepAlive => {
            if a.engine.phase() == Phase::Idle && !a.engine.has_buffered() {
                // Not even a byte of a next request: the connection becomes idle.
                if sh.stopping || (c.idle_ms == 0 && c.requests > 0) {
                    return Err(Closed);
                }
                if let Some(active) = c.active.take() {
                    sh.release(active);
                }
                c.mark_ms = sh.clock.mono_ms;
                return Ok(c.readable);
            }
            if any {
                c.mark_ms = sh.clock.mono_ms;
            }
            Ok(any)
        }
        Next::AwaitBody => {
            a.mode = Mode::AwaitBody { until_ms: sh.clock.mono_ms + a.closing.time_ms };
            c.mark_ms = sh.clock.mono_ms;
            Ok(c.readable)
        }
        next => linger(c, sh, next),
    }
}

/// Closes, or ends our side and reads on where the peer may still be sending: a close with unread bytes would reset the
/// connection and could take the response with it.
fn linger<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, next: Next) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else { return Err(Closed) };
    let wanted = match a.closing.rule {
        Lingering::Off => false,
        Lingering::On => next == Next::Linger || c.readable,
        Lingering::Always => true,
    };
    if !wanted {
        return Err(Closed);
    }
    sh.net.shutdown(&mut c.socket);
    a.mode = Mode::Linger { until_ms: sh.clock.mono_ms + a.closing.time_ms };
    c.mark_ms = sh.clock.mono_ms;
    Ok(c.readable)
}

/// The deadline has passed, unless the connection has moved on since it was set.
fn expire<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    if deadline(c, sh) > sh.clock.mono_ms {
        return Ok(());
    }
    let Some(a) = &mut c.active else { return Err(Closed) };
    if let Some(x) = &mut a.exchange
        && matches!(x.state, State::Waiting(_))
    {
        phases::resume(x, &mut sh.ctx());
        return respond(c, sh);
    }
    if a.is_settled() && a.mode == Mode::Serve && a.engine.phase() == Phase::Head {
        log_unfinished(c, sh, 408, "client timed out");
    }
    Err(Closed)
}

/// When the connection is to take a turn if nothing happens before.
fn deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let Some(a) = &c.active else {
        let wait = if c.requests == 0 { header_timeout(c, sh) } else { c.idle_ms };
        return c.mark_ms.saturating_add(wait);
    };
    match a.mode {
        Mode::AwaitBody { until_ms } | Mode::Linger { until_ms } => {
            return until_ms.min(c.mark_ms.saturating_add(a.closing.timeout_ms));
        }
        Mode::Serve => {}
    }
    let x = a.tail.front().map(|q| &q.exchange).or(a.exchange.as_ref());
    let wait = match x {
        Some(x) => match x.state {
            State::Waiting(until_ms) => return until_ms,
            _ => x.loc::<CoreLoc>(&x.http).send_timeout.0,
        },
        None => header_timeout(c, sh),
    };
    c.mark_ms.saturating_add(wait)
}

/// `client_header_timeout` of the port's default server.
fn header_timeout<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let http = &sh.generation.http;
    let server = http.ports[c.port as usize].addr(None).default_server;
    http.servers[server].confs.get::<CoreSrv>().client_header_timeout.0
}

/// Logs a request whose head never became complete.
fn log_unfinished<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, status: u16, why: &str) {
    c.requests = c.requests.saturating_add(1);
    let client = client(c, sh);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    x.err_status = status;
    x.log(Level::Info, format_args!("{why}"));
    sh.finish(x);
}

/// Gives back what the connection holds; exchanges under way are logged as far as they came.
fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Fate {
    let Some(mut a) = c.active.take() else { return Fate::Close };
    let sent = a.sent;
    while let Some(queued) = a.tail.pop_front() {
        let mut x = queued.exchange;
        x.bytes_sent = sent.clamp(queued.start, queued.end) - queued.start;
        sh.finish(x);
    }
    if let Some(mut x) = a.exchange.take() {
        x.bytes_sent = sent.saturating_sub(a.start);
        sh.finish(x);
    }
    sh.release(a);
    Fate::Close
}

/// Bytes of response that may wait in a connection's queue before no more body is pulled; file ranges count in full.
pub const QUEUE_BYTES: u64 = 64 << 10;
/// Bytes of one write, so that one fast reader does not keep a thread.
pub const WRITE_BYTES: u64 = 2 << 20;
/// Responses of pipelined requests that leave in one write.
pub const PIPELINE_DEPTH: usize = 64;
