//! The timeouts that only connections of streams have.
//!
//! A client that takes nothing of one response for `send_timeout` loses that stream. A header block that is not
//! complete after `client_header_timeout` costs its stream. A protocol with
//! [`Timeouts`](crate::worker::thread_config::Timeouts) of its own has one for every frame. An idle connection releases
//! memory that the engine can spare. Common parts of all protocols are in `lifecycle`.
//!
//! Source: nginx documentation, `send_timeout`, `keepalive_timeout`, `client_header_timeout`.

use server_base::errlog::Level;

use super::super::ended;
use super::super::probe::ProbeState;
use super::super::state::{Closed, Conn, State};
use super::streams::reset;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::mux_engine::{NO_STREAM, Reason};
use crate::worker::state::serving::{MuxState, Protocol};

/// Returns the deadline of the connection's streams, header blocks and idleness; `header_ms` is
/// `client_header_timeout`, `idle_ms` how long the connection may be idle now.
pub(crate) fn deadline_ms(
    mux: &MuxState,
    last_progress_ms: u64,
    header_ms: u64,
    idle_ms: u64,
) -> u64 {
    let send_check_ms = (!mux.exchanges.active.is_empty()).then_some(mux.send_check_ms);
    let all = [
        send_check_ms,
        block_at_ms(mux, header_ms),
        shrink_at_ms(mux),
        idle_at_ms(mux, last_progress_ms, idle_ms),
    ];
    all.into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// When the header block that is incomplete must be whole.
fn block_at_ms(mux: &MuxState, header_ms: u64) -> Option<u64> {
    let (id, since_ms) = mux.block_since?;
    let wait_ms = mux.timeouts.map_or(header_ms, |timeouts| timeouts.frame_ms);
    // A frame without a block has this time limit only if no exchange is in progress.
    let counts = id != NO_STREAM || !mux.exchanges.is_busy();
    counts.then_some(since_ms.saturating_add(wait_ms))
}

/// When an idle connection releases the memory that only requests need.
fn shrink_at_ms(mux: &MuxState) -> Option<u64> {
    let idle = mux.idle_since_ms.filter(|_| mux.engine.can_shrink());
    idle.map(|since_ms| since_ms.saturating_add(SHRINK_AFTER_MS))
}

/// When the connection has been idle for long enough.
fn idle_at_ms(mux: &MuxState, last_progress_ms: u64, idle_ms: u64) -> Option<u64> {
    let since_ms = mux.idle_since_ms.filter(|_| mux.block_since.is_none())?;
    let at_ms = since_ms.saturating_add(idle_ms);
    // Queued output, above all GOAWAY, has as long as the client may be silent.
    Some(match mux.exchanges.out.is_empty() {
        true => at_ms,
        false => at_ms.max(last_progress_ms.saturating_add(mux.exchanges.closing.timeout_ms)),
    })
}

/// Handles expired timeouts of streams, header blocks and idleness.
pub(crate) fn on_deadline<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    header_ms: u64,
) -> Result<(), Closed> {
    let State::Serving(Protocol::Mux(mux)) = &mut c.state else {
        return Err(Closed);
    };
    let now_ms = sh.clock.mono_ms;
    let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if !mux.exchanges.active.is_empty() && mux.send_check_ms <= now_ms {
        reset_stuck(mux, &mut c.probe, sh, now_ms);
    } else if is_due(shrink_at_ms(mux)) {
        mux.engine.shrink();
    } else if is_due(block_at_ms(mux, header_ms)) {
        if mux
            .block_since
            .take()
            .is_some_and(|(id, _)| id == NO_STREAM)
        {
            let text = format_args!("{} while {}", ended::TIMED_OUT, ended::processing(c));
            ended::log(c, sh, Level::Info, text);
            return Err(Closed);
        }
        mux.idle_since_ms = mux.idle_since_ms.map(|_| now_ms);
        if let Some(head) = mux.engine.give_up_block() {
            ended::unfinished(c, sh, *head, 408, ended::TIMED_OUT);
        }
    } else if !mux.exchanges.is_busy() {
        if !mux.exchanges.out.is_empty() {
            // The client has not even taken the GOAWAY.
            return Err(Closed);
        }
        mux.engine.end();
    }
    Ok(())
}

/// Resets streams after the client has kept their windows closed for too long.
fn reset_stuck<N: Net>(
    mux: &mut MuxState,
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
    now_ms: u64,
) {
    let mut next_ms = u64::MAX;
    let mut at = 0;
    while let Some(active) = mux.exchanges.active.get(at) {
        let x = &active.exchange;
        let timeout_ms = x.route.core_loc().connection.send_timeout.0;
        let since_ms = mux.engine.blocked_since(active.stream);
        // The window of the connection may have been closed before this request came.
        let since_ms = since_ms.unwrap_or(now_ms + 1).max(x.started_ms);
        let until_ms = since_ms.saturating_add(timeout_ms);
        if until_ms <= now_ms {
            x.log(Level::Info, format_args!("{}", ended::TIMED_OUT));
            reset(mux, probe_state, sh, at, Reason::TimedOut);
        } else {
            next_ms = next_ms.min(until_ms);
            at += 1;
        }
    }
    mux.send_check_ms = next_ms;
}

/// Time for which a connection is idle before it releases memory.
const SHRINK_AFTER_MS: u64 = 1000;
