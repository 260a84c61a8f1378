//! Ends of requests and deadlines of connections to servers.

use engines::http::OutputQueue;
use server_base::handshakes::{HandshakeFailure, HandshakeResult};
use server_upstream::request::{AttemptFacts, Failure, UpstreamError, UpstreamEvent};

use super::link::is_silent;
use super::outcome::{EPIPE, Ending};
use super::turn::record_handshake;
use super::{link, queue, streams};
use crate::worker::net::Net;
use crate::worker::server_state::{
    ActiveConn, Attempt, Disposition, Io, Link, PoolPlace, Receiving, Requests, Sending,
    ServerConn, State,
};
use crate::worker::shared::Shared;

/// Ends the requests, and decides over the connection.
// Long: each way of using a connection ends differently, and the memory goes back in one place.
pub(super) fn finish<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ending: Ending,
) -> Disposition {
    if matches!(c.state, State::Idle { .. }) {
        return Disposition::Close;
    }
    let wanted = !matches!(c.state, State::Draining(..));
    if let (State::Handshaking(active), Ending::Failed(failure)) = (&c.state, &ending) {
        // A more precise result was recorded before.
        let why = match failure {
            Failure::TimedOut => HandshakeFailure::TimedOut,
            _ => HandshakeFailure::Other,
        };
        record_handshake(active, HandshakeResult::Failed(why));
    }
    let (State::Connecting(mut active)
    | State::Handshaking(mut active)
    | State::Open(mut active)
    | State::Draining(mut active, _)) = std::mem::replace(&mut c.state, State::Closed)
    else {
        return Disposition::Close;
    };
    let now_ms = sh.clock.mono_ms;
    let end = |facts: &mut AttemptFacts| {
        facts.ended_ms.get_or_insert(now_ms);
    };
    let ActiveConn { io, requests } = &mut *active;
    let mut disposition = Disposition::Close;
    match requests {
        Requests::One(one) => {
            one.call().record(end);
            match ending {
                Ending::GivenUp | Ending::Retry => {}
                Ending::Failed(failure) if is_retried(one, &failure) => {
                    queue::retry_last(io, one, sh);
                }
                Ending::Complete => {
                    if wanted && one.response != Receiving::TunnelEnded {
                        one.call().deliver(UpstreamEvent::End);
                    }
                    let is_sent = one.request == Sending::Sent;
                    if is_sent
                        && io.out.is_empty()
                        && let Some(place) = reusable_place(&mut c.link, io, sh)
                    {
                        // Bytes acknowledged beyond that are of the next request.
                        c.link.sent_before += one.sent_bytes;
                        disposition = park(c, place, None, now_ms);
                    }
                }
                Ending::Failed(failure) => {
                    let untouched =
                        one.sent_bytes == 0 || is_untouched(&mut c.link, io, one, sh, &failure);
                    one.call().deliver(UpstreamEvent::Failed(UpstreamError {
                        failure,
                        sent_bytes: one.sent_bytes,
                        reused: io.reused,
                        untouched,
                    }));
                }
            }
        }
        Requests::Queue(queue) => {
            for queued in &queue.requests {
                queued.call.record(end);
            }
            match ending {
                Ending::Retry => queue::retry(io, queue, sh),
                Ending::Failed(failure) => queue::fail(io, queue, &failure),
                Ending::GivenUp | Ending::Complete => {}
            }
        }
        Requests::Streams(streams) => {
            streams::leave(io, streams, sh);
            match ending {
                Ending::Failed(failure) => streams::fail_all(io, streams, &failure, now_ms),
                Ending::Complete if !streams.closing => {
                    if let Some(place) = reusable_place(&mut c.link, io, sh) {
                        io.out = OutputQueue::default();
                        return park(c, place, Some(active), now_ms);
                    }
                }
                _ => {}
            }
        }
    }
    sh.attempts.release(active);
    disposition
}

/// Puts a connection into its pool; one with streams keeps its engine.
fn park<S>(
    c: &mut ServerConn<S>,
    place: PoolPlace,
    kept: Option<Box<ActiveConn>>,
    now_ms: u64,
) -> Disposition {
    let until_ms = now_ms.saturating_add(place.pool.timeout_ms);
    c.state = State::Idle {
        pool: place.pool.id,
        until_ms,
        kept,
    };
    Disposition::Park {
        place,
        deadline_ms: until_ms,
    }
}

/// Whether the last request of a queue has failed without a head: those before it may be the reason.
fn is_retried(one: &Attempt, failure: &Failure) -> bool {
    let is_last = one.last_of.is_some() && one.response == Receiving::Head;
    is_last && *failure != Failure::TimedOut
}

/// Returns the place of a connection that may serve another request: its pool takes it, and no unrequested input has come.
fn reusable_place<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    sh: &mut Shared<N>,
) -> Option<PoolPlace> {
    let pool = io.pool?;
    let age_ms = sh.clock.mono_ms.saturating_sub(link.since_ms);
    let is_reusable = !sh.stopping
        && io.unwritable.is_none()
        && pool.connections > 0
        && u64::from(link.requests) < pool.requests
        && age_ms < pool.time_ms
        && io.engine.event().is_none()
        && io.engine.is_reusable()
        && (!(link.flags.readable || link.flags.hung_up) || is_silent(link, sh));
    is_reusable.then(|| PoolPlace {
        pool,
        addr: io.addr.clone(),
    })
}

/// Returns whether the server has certainly processed nothing of a request that was sent in part. Three facts together prove it.
/// The server had ended its side before: only then a reset is EPIPE here and not ECONNRESET. It has acknowledged no byte of
/// the request. It has answered with a reset, as systems do for a closed socket. Each fact alone also occurs after a server
/// has read the request, or could have.
///
/// One kind of open server is taken for a closed one: it has ended its side, reads on, and resets the connection before
/// its system acknowledges the read bytes. It could not have answered.
fn is_untouched<N: Net>(
    link: &mut Link<N::Socket>,
    io: &Io,
    one: &Attempt,
    sh: &mut Shared<N>,
    failure: &Failure,
) -> bool {
    let is_reset_after_end = matches!(failure, Failure::Socket { errno: EPIPE, .. });
    let unanswered = matches!(
        one.response,
        Receiving::Nothing | Receiving::AwaitingReset { .. }
    );
    if !io.reused || !unanswered || !is_reset_after_end {
        return false;
    }
    let acknowledged = link::acknowledged_bytes(link, sh);
    acknowledged.is_some_and(|bytes| bytes <= link.sent_before)
}

/// The deadline has passed, unless the connection has moved on since it was set; true if there is something to write.
pub(super) fn expire<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let now_ms = sh.clock.mono_ms;
    if deadline(c) > now_ms {
        return Ok(false);
    }
    match &mut c.state {
        State::Connecting(_) | State::Handshaking(_) => Err(Ending::Failed(Failure::TimedOut)),
        State::Open(active) => {
            let ActiveConn { io, requests } = &mut **active;
            match requests {
                Requests::One(one) => Err(Ending::Failed(match one.response {
                    // No reset has come.
                    Receiving::AwaitingReset { .. } => Failure::Closed,
                    _ => Failure::TimedOut,
                })),
                Requests::Queue(queue) if queue.is_late(io, now_ms) => Err(Ending::Retry),
                Requests::Queue(_) => Err(Ending::Failed(Failure::TimedOut)),
                Requests::Streams(streams) => streams::expire(&c.link, io, streams, now_ms),
            }
        }
        _ => Err(Ending::GivenUp),
    }
}

/// Returns when the connection is to take a turn if nothing happens before.
pub(super) fn deadline<S>(c: &ServerConn<S>) -> u64 {
    match &c.state {
        State::Connecting(active) | State::Handshaking(active) => {
            let io = &active.io;
            io.since_ms.saturating_add(io.timeouts.connect_ms)
        }
        State::Open(active) => {
            let io = &active.io;
            match &active.requests {
                Requests::One(one) => one_deadline(&c.link, io, one),
                Requests::Queue(queue) => queue.deadline(io),
                Requests::Streams(streams) => streams::deadline(&c.link, io, streams),
            }
        }
        State::Draining(_, draining) => draining.until_ms,
        State::Idle { until_ms, .. } => *until_ms,
        State::Closed => 0,
    }
}

fn one_deadline<S>(link: &Link<S>, io: &Io, one: &Attempt) -> u64 {
    if let Receiving::AwaitingReset { until_ms } = one.response {
        return until_ms;
    }
    let mut deadline_ms = one.call().wake_at_ms().unwrap_or(u64::MAX);
    if !link::is_flushed(link, io) {
        deadline_ms = deadline_ms.min(io.wrote_ms.saturating_add(io.timeouts.send_ms));
    }
    // While the request is on its way nothing is waited for, but for the rest of a response that has begun.
    let awaits = match one.response {
        Receiving::Nothing | Receiving::Head => one.request == Sending::Sent,
        Receiving::Body(_) | Receiving::Tunnel => true,
        Receiving::TunnelEnded | Receiving::AwaitingReset { .. } => false,
    };
    if awaits && one.call().window() > 0 {
        deadline_ms = deadline_ms.min(one.read_ms.saturating_add(io.timeouts.read_ms));
    }
    deadline_ms
}
