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
mod ended;
mod eviction_priority;
mod exchanges;
mod fetching;
mod h1;
mod handshake;
mod lifecycle;
mod memory;
mod mux;
mod outliving;
mod probe;
mod sniff;
mod state;
mod tls;
mod trace;
mod transport;

use server_base::waker::WakeKey;
use server_http::exchange::BODY_BUDGET_BYTES;

use super::disposition::Disposition;
use super::net::Net;
use super::readiness::{Part, Readiness, SocketFlags, TurnCause};
use super::shared::Shared;
use lifecycle::{close, deadline, expire, leave, settle, shutdown_write};
use sniff::receive;
use state::{Closed, ClosedBy, State};
use transport::write;

pub use eviction_priority::EvictionPriority;
pub use lifecycle::ENDED_MS;
pub use probe::accepted;
pub use probe::closed as end_probe;
pub use probe::{add_cpu, report_arms};
pub use state::Conn;
pub(crate) use trace::write as debug;

/// Reads received bytes before the turn. The loop reads all ready connections before any has its turn, so that one file
/// lookup serves all of them. False if the connection has ended.
pub fn read_ready<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, ready: Readiness) -> bool {
    c.flags.add(ready.socket);
    let is_open = receive(c, sh).is_ok();
    if is_open && sh.files.prefetches() {
        let h1 = c.state.h1();
        sh.files.expect(h1.and_then(|h1| h1.engine.ready_head()));
    }
    is_open
}

/// Does all that can be done on a connection now, or a part of that.
pub fn turn<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, ready: Readiness) -> Disposition {
    c.flags.add(ready.socket);
    if ready.cause == TurnCause::Aborted {
        return close(c, sh);
    }
    if matches!(c.state, State::Outlived(_)) {
        return outliving::turn(c, sh);
    }
    if ready.cause == TurnCause::Broken {
        return leave(c, sh, ClosedBy::Client);
    }
    if ready.cause == TurnCause::Expired
        && let Err(by) = expire(c, sh)
    {
        return leave(c, sh, by);
    }
    sh.turn.bytes = 0;
    let mut part = ready.part;
    for _ in 0..sh.turn.passes_max {
        match pass(c, sh, part) {
            Ok(true) if sh.turn.bytes < sh.turn.bytes_max => part = Part::Whole,
            Ok(true) => break,
            Ok(false) => {
                if let Some(activity) = c.activity() {
                    c.counted.set(activity);
                }
                return Disposition::Keep {
                    deadline_ms: deadline(c, sh),
                };
            }
            Err(Closed) => return leave(c, sh, ClosedBy::Client),
        }
    }
    // There may be more to do, but other connections have their turn first.
    Disposition::Keep {
        deadline_ms: sh.clock.mono_ms,
    }
}

/// Result of answering ahead of the rest of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerResult {
    /// Nothing: the turn is to do all.
    Nothing,
    /// The response to a request of HTTP/1 is made, as far as it can be.
    Response,
    /// A response with a body read by filters. It took so long that others are written before more is made.
    CostlyResponse,
    /// The connection is to be closed.
    End,
}

/// Answers the HTTP/1 request that was read, ahead of the rest of the turn, unless there may be more to read. That
/// input may be the kernel's timestamps of the previous response: its sample must be complete before the next response
/// is written. A connection with streams already has many responses for one write.
pub fn answer<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> AnswerResult {
    if c.flags.readable || c.state.h1().is_none() {
        return AnswerResult::Nothing;
    }
    match turn(c, sh, Readiness::of_part(Part::Answer)) {
        Disposition::Close => AnswerResult::End,
        Disposition::Keep { .. } if sh.budget.get() < BODY_BUDGET_BYTES => {
            AnswerResult::CostlyResponse
        }
        Disposition::Keep { .. } => AnswerResult::Response,
    }
}

/// Continues exchanges of the connection that were woken, then runs a turn of it.
pub fn wake<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, keys: &[WakeKey]) -> Disposition {
    fetching::wake(c, keys);
    exchanges::resume_woken(c, sh, keys);
    turn(c, sh, Readiness::default())
}

/// One pass down and up, or a part of one; true if there may be more to do at once.
#[inline(always)] // It is called once; a call costs a thousandth of an exchange.
fn pass<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, part: Part) -> Result<bool, Closed> {
    let mut read = false;
    if part != Part::Write {
        sh.budget.set(BODY_BUDGET_BYTES);
        read = part == Part::Whole && receive(c, sh)?;
        exchanges::run(c, sh)?;
        if part == Part::Answer {
            return Ok(false);
        }
    }
    let wrote = write(c, sh)?;
    let settled = settle(c, sh)?;
    // The engine may have been too full for bytes in the socket, and no event reports those again.
    Ok(read || wrote || settled || (c.flags.readable && c.wants_input()))
}

/// Makes the response in progress, or else the next one, the last. A connection that is kept alive ends at once, unless
/// `keepalive_min_timeout` spares it or a request has come that was not read yet.
pub fn drain<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    if c.sends_goaway() {
        // The engine announces the end to the client, and ends after that.
        if sh.stopping {
            c.announce_drain();
        } else {
            c.drain();
        }
        return turn(c, sh, Readiness::default());
    }
    let ends = c.is_kept_alive() && !c.is_spared(sh.clock.mono_ms);
    c.drain();
    let ready = Readiness::of_socket(SocketFlags {
        readable: ends,
        ..SocketFlags::default()
    });
    let disposition = turn(c, sh, ready);
    if !ends || !c.is_kept_alive() || disposition == Disposition::Close {
        return disposition;
    }
    match shutdown_write(c, sh) {
        Ok(_) => turn(c, sh, Readiness::default()),
        Err(Closed) => leave(c, sh, ClosedBy::Client),
    }
}
