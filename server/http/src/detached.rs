//! Running exchanges without a client: their responses are read and dropped.
//!
//! The driver calls [`turn`] for a [`DetachedRequest`](crate::exchange::DetachedRequest), [`discard`] for a request that
//! outlives its client, and [`end`] after them.

use crate::decision::CLIENT_CLOSED;
use crate::exchange::upstream;
use crate::exchange::{Ctx, DetachedEnd, DetachedRequest, Exchange, Logging, Pulled, State};
use crate::phases;

/// State of an exchange without a client after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// It waits.
    Pending,
    /// It has done enough in this turn, and has woken itself for the next.
    BudgetSpent,
    /// It has ended.
    Ended(DetachedEnd),
}

/// Begins a detached request or continues it. Its response is dropped up to the limits of the request. A response that is
/// stored as a file has no limits.
pub fn turn(request: &mut DetachedRequest, cx: &mut Ctx<'_>) -> Discarded {
    let done = discard_up_to(&mut request.exchange, cx, &mut request.rest.bytes);
    let has_head = request.exchange.progress.state == State::Responding;
    if has_head && !is_stored(&request.exchange) && request.rest.ms != u64::MAX {
        let until_ms = cx.clock.mono_ms.saturating_add(request.rest.ms);
        request.until_ms = request.until_ms.min(until_ms);
        request.rest.ms = u64::MAX;
    }
    done
}

/// Begins an exchange without a client or continues it, and drops its response so far.
pub fn discard(x: &mut Exchange, cx: &mut Ctx<'_>) -> Discarded {
    discard_up_to(x, cx, &mut { u64::MAX })
}

/// Reads no more than `bytes` of the response, from which it subtracts the bytes it has read.
fn discard_up_to(x: &mut Exchange, cx: &mut Ctx<'_>, bytes: &mut u64) -> Discarded {
    match x.progress.state {
        State::Running => phases::run(x, cx),
        State::Waiting(_) if x.is_due(cx.clock.mono_ms) => phases::resume(x, cx),
        State::Waiting(_) => {}
        State::Responding | State::Aborted => {
            x.progress.pull_wait = None;
            x.arrived(cx);
        }
    }
    if x.is_waiting() {
        return Discarded::Pending;
    }
    while x.progress.state == State::Responding {
        match x.pull(cx) {
            // A file of a part would be useless.
            Pulled::Chunk(_) if is_stored(x) => {}
            Pulled::Chunk(chunk) => match bytes.checked_sub(chunk.len()) {
                Some(left) => *bytes = left,
                None => return Discarded::Ended(DetachedEnd::Complete),
            },
            Pulled::Pending => return Discarded::Pending,
            Pulled::BudgetSpent => {
                x.waker(cx).wake();
                return Discarded::BudgetSpent;
            }
            Pulled::End => {
                if let Some(on_end) = x.response.on_end {
                    on_end(x, cx);
                }
                return Discarded::Ended(DetachedEnd::Complete);
            }
            Pulled::Broken => break,
        }
    }
    Discarded::Ended(DetachedEnd::Broken)
}

/// Whether its response is being stored as a file.
fn is_stored(x: &Exchange) -> bool {
    let upstream = x.upstream.as_ref();
    upstream.is_some_and(|upstream| upstream.is_storing())
}

/// Ends a detached request: its observer sees the exchange, then it is logged if its creator wants that. Returns whether it
/// was logged.
pub fn end(request: &mut DetachedRequest, cx: &mut Ctx<'_>, end: DetachedEnd) -> bool {
    let x = &mut request.exchange;
    match end {
        DetachedEnd::Complete => x.response.completed = true,
        DetachedEnd::Broken => {}
        DetachedEnd::TimedOut => abandon(x, GATEWAY_TIMEOUT),
        DetachedEnd::Closed => abandon(x, CLIENT_CLOSED),
    }
    // The observer reads the times of a finished attempt, as the log does.
    upstream::close(x, cx);
    request.observe(end);
    let x = &mut request.exchange;
    let is_logged = match request.logging {
        Logging::None => false,
        Logging::AsSubrequest => *x.route.core_loc().log_subrequest,
        Logging::Always => true,
    };
    match is_logged {
        true => phases::log(x, cx),
        false => phases::release(x, cx),
    }
    is_logged
}

/// Sets the status of an exchange that ends without a response. One that was aborted has its own.
pub fn abandon(x: &mut Exchange, status: u16) {
    if !x.progress.header_sent && x.progress.state != State::Aborted {
        x.route.err_status = status;
        x.reply.status = status;
    }
}

/// Status of a request that its time limit ended.
const GATEWAY_TIMEOUT: u16 = 504;

#[cfg(test)]
#[path = "detached_tests.rs"]
mod tests;
