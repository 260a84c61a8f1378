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

mod early_responses;
mod engine;
mod h1;
mod lifecycle;
mod mux;
mod sampling;
mod sniff;
mod standing;
mod state;
mod timings;
mod tls;
mod trace;
mod wake;

use std::io;
use std::rc::Rc;

use engines::h2::PREFACE;
use engines::http::{FieldId, RequestHead};
use server_core::errlog::Level;
use server_core::exchange::{BODY_BUDGET_BYTES, Exchange};
use server_core::stats::{self, Activity};

use super::net::Net;
use super::shared::Shared;
pub use lifecycle::{ENDED_MS, retire};
use lifecycle::{close, deadline, expire};
pub use sampling::end as end_sampling;
use sniff::read_preface;
pub use standing::Standing;
pub use state::{Active, Cause, Choice, Conn, Fate};
use state::{Closed, Mode, Preface, client};
pub use tls::Sealer;
use trace::debug_conn;
pub(in crate::worker) use trace::write as debug;
pub use wake::wake;

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
    sh.budget.set(BODY_BUDGET_BYTES);
    let read = receive(c, sh)?;
    if c.mux.is_some() {
        mux::deliver(c, sh)?;
        mux::pump(c, sh)?;
    } else {
        loop {
            h1::deliver(c, sh)?;
            h1::abandon(c)?;
            if !h1::pump(c, sh)? {
                break;
            }
        }
    }
    let wrote = write(c, sh)?;
    let settled = if c.mux.is_some() {
        mux::settle(c, sh)?
    } else {
        h1::settle(c, sh)?
    };
    // The engine may have been too full to take what waits in the socket, and no event tells of that again.
    Ok(read || wrote || settled || (c.readable && c.wants_input()))
}

/// Reads once, if something may be there and is wanted; true if anything came.
fn receive<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    if !c.readable || !c.wants_input() {
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
            if c.stamps {
                // What looked like the end of the connection may be times that the kernel tells.
                sampling::take_stamps(c, sh);
            }
            return Ok(false);
        }
        Err(_) => return Err(Closed),
    };
    trace::received(c, sh, n);
    timings::received(sh);
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
    if c.ended {
        return Ok(true);
    }
    // The buffer is the thread's; it is taken out while the connection works on it.
    let mut input = std::mem::take(&mut sh.scratch);
    let result = if c.tls.is_some() {
        tls::receive(c, sh, &mut input[start..n])
    } else {
        take_plain(c, sh, &input[start..n])
    };
    sh.scratch = input;
    result.map(|()| true)
}

/// Gives bytes to the protocol that the connection speaks; the first ones may have to tell which.
fn take_plain<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    input: &[u8],
) -> Result<(), Closed> {
    if let Some(mux) = &mut c.mux {
        mux.receive(input, sh.clock.mono_ms, &mut sh.heads);
        mux.read_us = sh.read_us;
        return Ok(());
    }
    if c.undecided.is_some() {
        return decide(c, sh, input);
    }
    take_h1(c, sh, input);
    Ok(())
}

fn take_h1<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, input: &[u8]) {
    let now = sh.clock.mono_ms;
    let port = c.port();
    if c.active.is_none() {
        debug_conn!(HTTP, c, sh, "{}", c.waiting());
        if c.requests > 0 {
            // As in nginx: the first head has its time from the accept on, its handshake included; later ones from their
            // first byte.
            c.mark_ms = now;
        }
        c.active = Some(sh.activate(port));
    }
    let Some(a) = &mut c.active else { return };
    if a.mode != Mode::Serve {
        c.mark_ms = now;
    }
    if !matches!(a.mode, Mode::Linger { .. }) {
        a.engine.receive(input);
        a.read_us = sh.read_us;
    }
}

/// Finds out whether a plain connection begins with the preface of HTTP/2 (RFC 9113 section 3.3), or with a control frame of
/// SPDY, whose first byte no method has.
fn decide<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, input: &[u8]) -> Result<(), Closed> {
    let Some(choice) = c.undecided else {
        return Err(Closed);
    };
    let held = std::mem::take(&mut c.held);
    let first = [&held, input].concat();
    let n = first.len().min(TELLING_BYTES);
    if choice.spdy && first.first() == Some(&SPDY_CONTROL) {
        c.undecided = None;
        mux::open_spdy(c, sh);
        return take_plain(c, sh, &first);
    }
    if !choice.http2 || first[..n] != PREFACE[..n] {
        c.undecided = None;
        take_h1(c, sh, &first);
    } else if n < TELLING_BYTES {
        c.held = first.into_boxed_slice();
    } else {
        c.undecided = None;
        mux::open_h2(c, sh);
        return take_plain(c, sh, &first);
    }
    Ok(())
}

/// The peer has ended its side.
fn end_of_input<S>(c: &mut Conn<S>) -> Result<bool, Closed> {
    c.hung_up = false;
    if c.ended {
        return Err(Closed);
    }
    if let Some(mux) = &mut c.mux {
        mux.engine.receive_eof();
        return Ok(true);
    }
    match &mut c.active {
        Some(a) if !matches!(a.mode, Mode::Linger { .. }) => {
            a.engine.receive_eof();
            Ok(true)
        }
        _ => Err(Closed),
    }
}

/// An exchange for a request that has just come.
fn open_exchange<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    head: &RequestHead,
) -> Result<Box<Exchange>, Closed> {
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
    if let Some(tls) = &c.tls {
        x.tls = tls.facts();
    }
    timings::begun(c, sh, &mut x);
    Ok(x)
}

/// Writes what is queued; true if there may be more to do at once.
fn write<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    if !c.writable {
        return Ok(false);
    }
    if sh.sampled && !sampling::begin(c, sh)? {
        return Ok(c.writable);
    }
    let (out, x, more) = match (&mut c.mux, &mut c.active) {
        (Some(mux), _) => mux.writing(),
        (None, Some(a)) => {
            let x = a.tail.front().map(|q| &q.exchange).or(a.exchange.as_ref());
            (&mut a.out, x.map(|x| &**x), a.exchange.is_some())
        }
        (None, None) => (&mut sh.nothing, None, false),
    };
    let unsent = c.tls.as_ref().is_some_and(|tls| tls.has_output());
    let held = c.tls.as_ref().is_some_and(|tls| tls.holds());
    if (out.is_empty() || held) && !unsent {
        return Ok(false);
    }
    let (nodelay, chunk) = x.map_or((true, 0), |x| {
        let loc = x.core_loc(&x.http);
        (*loc.tcp_nodelay, loc.sendfile_max_chunk.0)
    });
    if nodelay != c.nodelay {
        c.nodelay = nodelay;
        sh.net.set_nodelay(&mut c.socket, nodelay);
    }
    let result = match &mut c.tls {
        None => sh.net.send(&mut c.socket, out, WRITE_BYTES, chunk),
        Some(tls) => tls::send(
            tls,
            &mut c.socket,
            out,
            &mut sh.net,
            &mut sh.sealer,
            sh.clock.mono_ms,
        ),
    };
    match result {
        Ok(sent) => {
            c.writable = !sent.blocked;
            if sent.bytes > 0 {
                c.mark_ms = sh.clock.mono_ms;
            }
            let left = out.len();
            let more = left > 0 || more;
            match (&mut c.mux, &mut c.active) {
                (Some(mux), _) => mux.sent += sent.bytes,
                (None, Some(a)) => a.sent += sent.bytes,
                (None, None) => {}
            }
            timings::sent(c, sh);
            trace::sent(c, sh, sent.bytes, left);
            Ok(c.writable && more && !held)
        }
        Err(e) => {
            if let Some(x) = x {
                truncated(x, &e);
            }
            Err(Closed)
        }
    }
}

/// Logs that a file became shorter than it was promised to be, if that is the error.
fn truncated(x: &Exchange, error: &io::Error) {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        x.log(
            Level::Error,
            format_args!("the file was truncated while it was sent"),
        );
    }
}

/// Bytes of a connection that tell whether it begins with the preface of HTTP/2.
const TELLING_BYTES: usize = PREFACE.len();
/// The first byte of every control frame of SPDY.
const SPDY_CONTROL: u8 = 0x80;
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
