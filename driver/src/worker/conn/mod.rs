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

mod ending;
mod preface;
mod state;
mod trace;

use std::io;
use std::rc::Rc;

use engines::h1::{Event, Next, Phase};
use engines::http::{FieldId, RequestHead};
use server_core::conf_core::{CoreLoc, Lingering};
use server_core::debug_http;
use server_core::errlog::Level;
use server_core::exchange::{Pulled, State};
use server_core::phases;
use server_core::stats::{self, Activity};

use super::net::Net;
use super::shared::Shared;
pub use ending::{ENDED_MS, retire};
use ending::{close, deadline, expire, linger, log_unfinished};
use preface::read_preface;
pub use state::{Active, Cause, Conn, Fate};
use state::{Closed, Closing, Mode, Preface, Queued, client};
use trace::debug_conn;
pub(in crate::worker) use trace::write as debug;

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
    for _ in 0..sh.passes_a_turn {
        match pass(c, sh) {
            Ok(true) => {}
            Ok(false) => {
                c.counted.set(c.activity());
                return Fate::Keep {
                    deadline_ms: deadline(c, sh),
                };
            }
            Err(Closed) => return close(c, sh),
        }
    }
    // There may be more to do, but it is the others' turn.
    Fate::Keep {
        deadline_ms: sh.clock.mono_ms,
    }
}

/// One pass down and up; true if there may be more to do at once.
fn pass<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let read = receive(c, sh)?;
    loop {
        deliver(c, sh)?;
        abandon(c)?;
        if !pump(c, sh)? {
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
            trace::received(c, sh, 0);
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
    trace::received(c, sh, n);
    sh.files.input_received();
    // A short read has emptied the socket: a new event will say when there is more. A peer that hung up gives no new
    // event, so its end must be read now.
    c.readable = n == sh.scratch.len() || c.hung_up;
    let start = match &c.preface {
        Preface::Awaited(_) => read_preface(c, sh, n)?,
        _ => 0,
    };
    if start == n {
        return Ok(true);
    }
    let now = sh.clock.mono_ms;
    if c.active.is_none() {
        if c.ended {
            return Ok(true);
        }
        debug_conn!(HTTP, c, sh, "{}", c.waiting());
        c.mark_ms = now;
        c.active = Some(sh.activate(c.port()));
    }
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    if a.mode != Mode::Serve {
        c.mark_ms = now;
    }
    if !matches!(a.mode, Mode::Linger { .. }) {
        a.engine.receive(&sh.scratch[start..n]);
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
    let Some(a) = &mut c.active else {
        return Ok(());
    };
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
                None if a.next == Next::AwaitBody => {
                    a.next = a.engine.finish();
                    a.mode = Mode::Serve;
                }
                None => a.engine.close_after(),
            },
            // The request is here, if not all of its body: it is answered, and that is the end.
            Event::Eof if started.is_some() => a.engine.close_after(),
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
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
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
        log_unfinished(
            c,
            sh,
            400,
            "client prematurely closed connection while reading the request head",
        );
    }
    Err(Closed)
}

/// Ends an exchange that waits for a timer if the peer is gone: nobody waits for the answer any more. The engine tells
/// of the end only where a request may begin.
fn abandon<S>(c: &mut Conn<S>) -> Result<(), Closed> {
    if let Some(a) = &mut c.active
        && let Some(x) = &mut a.exchange
        && matches!(x.state, State::Waiting(_))
        && a.engine.input_ended()
        && !a.engine.has_buffered()
        && a.tail.is_empty()
    {
        x.err_status = CLIENT_CLOSED_REQUEST;
        x.reply.status = CLIENT_CLOSED_REQUEST;
        return Err(Closed);
    }
    Ok(())
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    head: RequestHead,
) -> Result<(), Closed> {
    if c.gone {
        return Err(Closed);
    }
    c.requests = c.requests.saturating_add(1);
    stats::request();
    c.counted.set(Activity::Writing);
    // Without a host the address itself names the server.
    let hostless = head.authority.is_none() && head.field(FieldId::Host).is_none();
    let client = client(c, sh, hostless);
    let mut x = sh.exchange(client, c.port());
    if let Preface::Read(header) = &c.preface {
        x.proxied = Some(Rc::clone(header));
    }
    let old = std::mem::replace(&mut x.head, head);
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
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

/// Sends the head of an exchange that has one.
fn respond<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    let Some(x) = &mut a.exchange else {
        return Ok(());
    };
    match x.state {
        State::Running => Ok(()),
        State::Waiting(_) => {
            sh.timer_set = true;
            Ok(())
        }
        // Responses to requests before this one still leave, and are logged before it.
        State::Aborted => Ok(()),
        State::Responding => {
            if !a.engine.body_done() {
                if x.head.expect_continue && x.err_status == 0 {
                    a.engine.send_interim(100, None);
                }
                a.engine.discard_body();
            }
            debug_http!(x, "{}", trace::Head(&x.response));
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
fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Ok(false);
    };
    let Some(x) = &mut a.exchange else {
        return Ok(false);
    };
    if x.state != State::Responding {
        return Ok(false);
    }
    let mut ended = false;
    let limited = x.has_rate();
    if limited && a.out.is_empty() {
        // What was held back is no silence of the client.
        c.mark_ms = sh.clock.mono_ms;
    }
    while !ended && a.out.len() < QUEUE_BYTES {
        let pulled = if limited {
            match x.pull_within(&mut sh.ctx(), a.queued - a.start) {
                Some(pulled) => pulled,
                None => break,
            }
        } else {
            x.pull(&mut sh.ctx())
        };
        match pulled {
            Pulled::Broken => return Err(Closed),
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
        return Ok(false);
    }
    let Some(exchange) = a.exchange.take() else {
        return Ok(false);
    };
    trace::finalized(&exchange);
    let loc: &CoreLoc = exchange.loc(&exchange.http);
    a.closing = Closing {
        rule: *loc.lingering_close,
        time_ms: loc.lingering_time.0,
        timeout_ms: loc.lingering_timeout.0,
    };
    c.idle_ms = loc.keepalive().idle_ms;
    c.min_idle_ms = loc.keepalive_min_timeout.0;
    c.lingers = a.closing.rule != Lingering::Off;
    a.tail.push_back(Queued {
        exchange,
        start: a.start,
        end: a.queued,
    });
    a.next = a.engine.finish();
    Ok(a.next == Next::KeepAlive && a.out.len() < QUEUE_BYTES && a.tail.len() < PIPELINE_DEPTH)
}

/// Writes what is queued; true if there may be more to do at once.
fn write<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Ok(false);
    };
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
            let (bytes, left) = (sent.bytes, a.out.len());
            let more = left > 0 || a.exchange.is_some();
            c.writable = !sent.blocked;
            if sent.bytes > 0 {
                c.mark_ms = sh.clock.mono_ms;
            }
            trace::sent(c, sh, bytes, left);
            Ok(c.writable && more)
        }
        Err(e) => {
            if e.kind() == io::ErrorKind::UnexpectedEof
                && let Some(x) = x
            {
                x.log(
                    Level::Error,
                    format_args!("the file was truncated while it was sent"),
                );
            }
            Err(Closed)
        }
    }
}

/// Ends exchanges whose last byte has been written; with nothing left, decides what becomes of the connection. True if
/// there may be more to do at once.
fn settle<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Ok(false);
    };
    let mut any = false;
    let sent = a.sent;
    while let Some(queued) = a.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        x.bytes_sent = queued.end - queued.start;
        x.completed = true;
        sh.finish(x);
    }
    let current = a.exchange.as_deref();
    if a.tail.is_empty()
        && let Some(x) = current
        && x.state == State::Aborted
    {
        if *x.loc::<CoreLoc>(&x.http).reset_timedout_connection {
            sh.net.reset(&mut c.socket);
        }
        return Err(Closed);
    }
    if !a.is_settled() || a.mode != Mode::Serve {
        return Ok(false);
    }
    match a.next {
        Next::KeepAlive => {
            if a.engine.phase() == Phase::Idle && !a.engine.has_buffered() {
                // Not even a byte of a next request: the connection becomes idle.
                if c.gone || (c.idle_ms == 0 && c.requests > 0) {
                    return Err(Closed);
                }
                debug_conn!(HTTP, c, sh, "set http keepalive handler");
                if let Some(active) = c.active.take() {
                    sh.release(active);
                }
                c.mark_ms = sh.clock.mono_ms;
                return Ok(c.readable);
            }
            if any {
                c.mark_ms = sh.clock.mono_ms;
                debug_conn!(HTTP, c, sh, "pipelined request");
            }
            Ok(any)
        }
        Next::AwaitBody => {
            a.mode = Mode::AwaitBody {
                until_ms: sh.clock.mono_ms + a.closing.time_ms,
            };
            c.mark_ms = sh.clock.mono_ms;
            Ok(c.readable)
        }
        next => linger(c, sh, next),
    }
}

/// The status logged for a request whose client left before it was answered, as nginx's.
const CLIENT_CLOSED_REQUEST: u16 = 499;
/// Bytes of response that may wait in a connection's queue before no more body is pulled; file ranges count in full.
pub const QUEUE_BYTES: u64 = 64 << 10;
/// Passes of one turn, so that a client that always has more to say does not keep a thread.
pub const PASSES_A_TURN: usize = 4;
/// Bytes of one write, so that one fast reader does not keep a thread.
pub const WRITE_BYTES: u64 = 2 << 20;
/// Responses of pipelined requests that leave in one write.
pub const PIPELINE_DEPTH: usize = 64;
