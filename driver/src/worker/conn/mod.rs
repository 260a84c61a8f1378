//! The way of a byte: [`turn`] does the same after any cause.
//!
//! ```text
//! sniff       read, decrypt, find out the protocol -> engine.receive
//! exchanges   engine.event: a head starts an exchange, which runs through the phases
//!             the exchange's body -> engine.send_data -> output queue
//! transport   one write
//! lifecycle   then the ends of exchanges: log, keep, linger or close
//! ```
//!
//! A connection is a state machine ([`state`]). An idle one has no buffer: one slab entry and one timer slot. The time
//! it waits for is in the deadline that [`turn`] returns.

mod client;
mod early_responses;
mod engine;
mod exchanges;
mod fetching;
mod h1;
mod handshake;
mod lifecycle;
mod mux;
mod probe;
mod serving;
mod sniff;
mod standing;
mod state;
mod tls;
mod trace;
mod transport;

use server_base::waker::WakeKey;
use server_http::exchange::BODY_BUDGET_BYTES;

use super::net::Net;
use super::shared::Shared;
pub(crate) use engine::Pool;
use lifecycle::{close, deadline, expire, settle, shutdown_write};
use sniff::receive;
use state::Closed;
use transport::write;

pub use lifecycle::ENDED_MS;
pub(crate) use probe::accepted;
pub use probe::end as end_probe;
pub use serving::{H1State, PIPELINE_DEPTH, QUEUE_BYTES};
pub use standing::Standing;
pub use state::{BYTES_A_TURN, Conn, Disposition, PASSES_A_TURN, Readiness};
pub use tls::{TlsBuffers, WRITE_BYTES};
pub(crate) use trace::write as debug;

/// Reads what has come, ahead of the turn: the loop does so for all connections that are ready before any has its turn, so
/// that one look at a file serves all of them. False if the connection has ended.
pub fn read_ready<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, ready: Readiness) -> bool {
    c.add(ready);
    receive(c, sh).is_ok()
}

/// Result of answering ahead of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing: the turn does all.
    Nothing,
    /// The response to a request of HTTP/1 is made, as far as it can be.
    Response,
    /// A response whose body filters have read, which took so long that others are written before more is made.
    CostlyResponse,
    /// Nothing: the connection has ended.
    End,
}

impl Ahead {
    /// Whether the turn begins with writing.
    pub fn is_response(self) -> bool {
        matches!(self, Self::Response | Self::CostlyResponse)
    }
}

/// Answers the request of HTTP/1 that was read, ahead of the turn, which writes the response. A connection of streams has many
/// responses for one write by itself.
pub fn answer<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Ahead {
    if c.state.h1().is_none() {
        return Ahead::Nothing;
    }
    sh.budget.set(BODY_BUDGET_BYTES);
    match h1::run(c, sh) {
        Ok(()) if sh.budget.get() < BODY_BUDGET_BYTES => Ahead::CostlyResponse,
        Ok(()) => Ahead::Response,
        Err(Closed) => Ahead::End,
    }
}

/// Does all that can be done on a connection now.
pub fn turn<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, ready: Readiness) -> Disposition {
    c.add(ready);
    if ready.broken || (ready.expired && expire(c, sh).is_err()) {
        return close(c, sh);
    }
    sh.turn_bytes = 0;
    for _ in 0..sh.passes_a_turn {
        match pass(c, sh) {
            Ok(true) if sh.turn_bytes < sh.bytes_a_turn => {}
            Ok(true) => break,
            Ok(false) => return rest(c, sh),
            Err(Closed) => return close(c, sh),
        }
    }
    // There may be more to do, but it is the others' turn.
    Disposition::Keep {
        deadline_ms: sh.clock.mono_ms,
    }
}

/// Continues exchanges of the connection that were woken, then runs a turn of it.
pub fn wake<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, keys: &[WakeKey]) -> Disposition {
    fetching::wake(c, keys);
    exchanges::resume_woken(c, sh, keys);
    turn(c, sh, Readiness::default())
}

/// Writes a response that was made ahead, and does all else that can be done on the connection now.
pub fn turn_answered<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    sh.turn_bytes = 0;
    match pass_up(c, sh, false) {
        Ok(true) if sh.turn_bytes >= sh.bytes_a_turn => Disposition::Keep {
            deadline_ms: sh.clock.mono_ms,
        },
        Ok(true) => turn(c, sh, Readiness::default()),
        Ok(false) => rest(c, sh),
        Err(Closed) => close(c, sh),
    }
}

/// There is nothing to do on the connection until something happens, or its deadline passes.
#[inline(always)] // Once a turn.
fn rest<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    if let Some(activity) = c.activity() {
        c.counted.set(activity);
    }
    Disposition::Keep {
        deadline_ms: deadline(c, sh),
    }
}

/// One pass down and up; true if there may be more to do at once.
#[inline(always)] // It is called once; a call costs a thousandth of an exchange.
fn pass<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    sh.budget.set(BODY_BUDGET_BYTES);
    let read = receive(c, sh)?;
    exchanges::run(c, sh)?;
    pass_up(c, sh, read)
}

/// The part of a pass behind the exchanges.
#[inline(always)] // As `pass`.
fn pass_up<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    read: bool,
) -> Result<bool, Closed> {
    let wrote = write(c, sh)?;
    let settled = settle(c, sh)?;
    // The engine may have been too full to take what waits in the socket, and no event tells of that again.
    Ok(read || wrote || settled || (c.readable && c.wants_input()))
}

/// Makes the response in progress, or else the next one, the last. A connection that is kept alive ends at once, unless
/// `keepalive_min_timeout` spares it or a request has come that was not read yet.
pub fn drain<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    if c.sends_goaway() {
        // The engine knows what the client must be told, and ends when it is.
        if sh.stopping {
            c.announce_drain();
        } else {
            c.drain();
        }
        return turn(c, sh, Readiness::default());
    }
    let ends = c.is_kept_alive() && !c.is_spared(sh.clock.mono_ms);
    c.drain();
    let ready = Readiness {
        readable: ends,
        ..Readiness::default()
    };
    let disposition = turn(c, sh, ready);
    if !ends || !c.is_kept_alive() || disposition == Disposition::Close {
        return disposition;
    }
    match shutdown_write(c, sh) {
        Ok(_) => turn(c, sh, Readiness::default()),
        Err(Closed) => close(c, sh),
    }
}
