//! Ends of attempts and deadlines of connections to servers.

use server_upstream::request::{Failure, UpstreamError, UpstreamEvent};

use super::pipelined;
use super::state::{
    ActiveAttempt, Disposition, Ending, PoolPlace, Receiving, Sending, ServerConn, State,
};
use super::turn::{EPIPE, is_silent};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Ends the attempt, and says what becomes of the connection.
pub(super) fn finish<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ending: Ending,
) -> Disposition {
    if matches!(c.state, State::Idle { .. }) {
        return Disposition::Close;
    }
    let wanted = !matches!(c.state, State::Draining(..));
    let state = std::mem::replace(&mut c.state, State::Closed);
    let (State::Connecting(mut a)
    | State::Busy(mut a)
    | State::Pipelined(mut a)
    | State::Draining(mut a, _)) = state
    else {
        return Disposition::Close;
    };
    let now_ms = sh.clock.mono_ms;
    let mut disposition = Disposition::Close;
    a.note_all(|facts| {
        facts.ended_ms.get_or_insert(now_ms);
    });
    match ending {
        Ending::GivenUp => {}
        Ending::AskAgain => pipelined::ask_again(sh, &mut a),
        Ending::Failed(failure) if is_asked_again(&a, &failure) => pipelined::ask_again(sh, &mut a),
        Ending::Complete => {
            if wanted && a.response != Receiving::TunnelEnded {
                a.call().tell(UpstreamEvent::End);
            }
            if is_reusable(c, sh, &mut a)
                && let Some(pool) = a.pool
            {
                // What is acknowledged beyond that is of the next request.
                c.sent_before += a.sent_bytes;
                let until_ms = now_ms.saturating_add(pool.timeout_ms);
                c.state = State::Idle {
                    pool: pool.id,
                    until_ms,
                };
                disposition = Disposition::Park {
                    place: PoolPlace {
                        pool,
                        addr: a.addr.clone(),
                    },
                    deadline_ms: until_ms,
                };
            }
        }
        Ending::Failed(failure) => {
            let untouched = a.sent_bytes == 0 || is_untouched(c, sh, &a, &failure);
            a.tell_all(|| {
                UpstreamEvent::Failed(UpstreamError {
                    failure: failure.clone(),
                    sent_bytes: a.sent_bytes,
                    reused: a.reused,
                    untouched,
                })
            });
        }
    }
    sh.attempts.give(a);
    disposition
}

/// Whether the last of several requests on a connection has failed without a head: those before it may be the reason.
fn is_asked_again(a: &ActiveAttempt, failure: &Failure) -> bool {
    let is_last = a.pipeline.is_some() && a.response == Receiving::Head;
    is_last && *failure != Failure::TimedOut
}

/// Whether the connection may serve another request: both sides are complete, its pool takes it, and no unrequested
/// input comes.
fn is_reusable<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    a: &mut ActiveAttempt,
) -> bool {
    let Some(pool) = a.pool else {
        return false;
    };
    let age_ms = sh.clock.mono_ms.saturating_sub(c.since_ms);
    let is_complete =
        a.request == Sending::Sent && a.unwritable.is_none() && a.tools.out.is_empty();
    is_complete
        && !sh.stopping
        && pool.connections > 0
        && u64::from(c.requests) < pool.requests
        && age_ms < pool.time_ms
        && a.tools.engine.event().is_none()
        && a.tools.engine.is_reusable()
        && (!(c.flags.readable || c.flags.hung_up) || is_silent(c, sh))
}

/// Whether the server is known to have processed nothing of a request of which something was sent: it had ended its side
/// before (only then a reset is EPIPE for this side and not ECONNRESET), it has acknowledged no byte of the request, and it has
/// answered with a reset, as systems do for a socket that is closed. Each of the three also occurs where a server has read
/// the request, or could have.
///
/// One server is taken for a closed one that is not: it has ended its side, reads on, and resets the connection before its
/// system acknowledges what it read. It could not have answered.
fn is_untouched<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    a: &ActiveAttempt,
    failure: &Failure,
) -> bool {
    let is_reset_after_end = matches!(failure, Failure::Socket { errno: EPIPE, .. });
    let unanswered = matches!(
        a.response,
        Receiving::Nothing | Receiving::Unanswered { .. }
    );
    if !a.reused || !unanswered || !is_reset_after_end {
        return false;
    }
    let acknowledged = sh.net.acknowledged_bytes(&mut c.socket);
    acknowledged.is_some_and(|bytes| bytes <= c.sent_before)
}

/// The deadline has passed, unless the connection has moved on since it was set.
pub(super) fn expire<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<(), Ending> {
    if deadline(c) > sh.clock.mono_ms {
        return Ok(());
    }
    match &c.state {
        State::Connecting(_) => Err(Ending::Failed(Failure::TimedOut)),
        State::Pipelined(a) if is_late(a, sh.clock.mono_ms) => Err(Ending::AskAgain),
        State::Pipelined(_) => Err(Ending::Failed(Failure::TimedOut)),
        State::Busy(a) => Err(Ending::Failed(match a.response {
            // No reset has come.
            Receiving::Unanswered { .. } => Failure::Closed,
            _ => Failure::TimedOut,
        })),
        _ => Err(Ending::GivenUp),
    }
}

/// Returns when the connection is to take a turn if nothing happens before.
pub(super) fn deadline<S>(c: &ServerConn<S>) -> u64 {
    match &c.state {
        State::Connecting(a) => a.since_ms.saturating_add(a.timeouts.connect_ms),
        State::Busy(a) => busy_deadline(a),
        State::Pipelined(a) => pipelined::deadline(a),
        State::Draining(_, draining) => draining.until_ms,
        State::Idle { until_ms, .. } => *until_ms,
        State::Closed => 0,
    }
}

/// Whether requests that share a connection were not answered in time, though the server may take longer.
fn is_late(a: &ActiveAttempt, now_ms: u64) -> bool {
    let timed_out = match a.request {
        Sending::Sent => now_ms >= a.read_ms.saturating_add(a.timeouts.read_ms),
        _ => true,
    };
    !timed_out
}

fn busy_deadline(a: &ActiveAttempt) -> u64 {
    if let Receiving::Unanswered { until_ms } = a.response {
        return until_ms;
    }
    let mut deadline_ms = a.call().wake_at_ms().unwrap_or(u64::MAX);
    if !a.tools.out.is_empty() {
        deadline_ms = deadline_ms.min(a.wrote_ms.saturating_add(a.timeouts.send_ms));
    }
    // While the request is on its way nothing is waited for, but for the rest of a response that has begun.
    let awaits = match a.response {
        Receiving::Nothing | Receiving::Head => a.request == Sending::Sent,
        Receiving::Body(_) | Receiving::Tunnel => true,
        Receiving::TunnelEnded | Receiving::Unanswered { .. } => false,
    };
    if awaits && a.call().window() > 0 {
        deadline_ms = deadline_ms.min(a.read_ms.saturating_add(a.timeouts.read_ms));
    }
    deadline_ms
}
