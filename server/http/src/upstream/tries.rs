//! Whether another server is tried when an attempt has failed.
//!
//! The rules are nginx's, and one more. A server may close an idle connection just as a request is sent. If it has
//! certainly processed nothing, the request is sent again over a new connection, with any method (RFC 9110, section
//! 9.2.2).
//!
//! Directives that nginx does not have add attempts with the same server, a delay before them, and a budget of retries
//! (`server_upstream::retry_budget`).
//!
//! Source: nginx documentation, `proxy_next_upstream`, `proxy_next_upstream_tries`, `proxy_next_upstream_timeout`.

use engines::http::Method;
use server_upstream::request::{Failure, UpstreamError};

use super::conf::{NextUpstream, Retry};

/// Why an attempt brought no response that is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// One of the reasons of [`NextUpstream`].
    pub(super) reason: u32,
    /// Something of the request was sent.
    pub(super) sent: bool,
    /// The connection had been idle.
    pub(super) reused: bool,
    /// The server has processed nothing of the request.
    pub(super) untouched: bool,
}

impl Failed {
    /// By a failure of the connection.
    pub(super) fn of(error: &UpstreamError) -> Self {
        let reason = match error.failure {
            Failure::TimedOut => NextUpstream::TIMEOUT,
            Failure::Invalid(_) | Failure::InvalidDetail(_) => NextUpstream::INVALID_HEADER,
            Failure::Socket { .. }
            | Failure::NoConnection
            | Failure::Closed
            | Failure::Handshake(_)
            | Failure::Certificate(_)
            | Failure::Unsendable(_) => NextUpstream::ERROR,
        };
        Self {
            reason,
            sent: error.sent_bytes > 0,
            reused: error.reused,
            untouched: error.untouched,
        }
    }

    /// By the response of the server.
    pub(super) fn by_response(reason: u32) -> Self {
        Self {
            reason,
            sent: true,
            reused: false,
            untouched: false,
        }
    }

    /// Before anything was sent.
    pub(super) fn before_sending(reason: u32) -> Self {
        Self {
            sent: false,
            ..Self::by_response(reason)
        }
    }

    /// The status of a response to the client for this failure.
    pub(super) fn status(self) -> u16 {
        match self.reason {
            NextUpstream::TIMEOUT | NextUpstream::HTTP_504 => 504,
            NextUpstream::HTTP_500 => 500,
            NextUpstream::HTTP_503 => 503,
            NextUpstream::HTTP_403 | NextUpstream::DENIED => 403,
            NextUpstream::HTTP_404 => 404,
            NextUpstream::HTTP_429 => 429,
            _ => 502,
        }
    }
}

/// The reason for which a status may lead to another server.
pub(super) fn reason_of(status: u16) -> Option<u32> {
    Some(match status {
        500 => NextUpstream::HTTP_500,
        502 => NextUpstream::HTTP_502,
        503 => NextUpstream::HTTP_503,
        504 => NextUpstream::HTTP_504,
        403 => NextUpstream::HTTP_403,
        404 => NextUpstream::HTTP_404,
        429 => NextUpstream::HTTP_429,
        _ => return None,
    })
}

/// The decision on a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Send the request to this server again at once, over a new connection. It costs nothing.
    Again,
    /// Choose a server again at once: the failure cost no server any work.
    Anew,
    /// Retry on this server, within the budget and after the delay.
    Same,
    /// Retry on another server, within the budget and after the delay.
    Other,
    /// The failure is the answer.
    GiveUp,
}

/// The attempts that are left to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    /// Attempts left, with the current one.
    attempts: u32,
    /// Servers left, with the current one.
    servers: u32,
    /// Attempts left with the current server, without the current one; and for each server.
    same: u32,
    same_each: u32,
    /// Attempts over idle connections so far that cost none of `attempts`.
    free: u8,
    /// When no further attempt begins any more, monotonic milliseconds.
    until_ms: u64,
}

/// Attempts of a request that fail over idle connections, or with refused streams, and are not counted. Later attempts use new
/// connections, and each failure counts.
const FREE_MAX: u8 = 32;

/// The conditions of the decision besides the failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// `*_next_upstream`.
    pub(super) on: NextUpstream,
    /// The method of the request.
    pub(super) method: Method,
    /// Its body is passed on as it comes.
    pub(super) unbuffered: bool,
    /// Some of it is kept nowhere.
    pub(super) body_is_gone: bool,
    /// Monotonic milliseconds.
    pub(super) now_ms: u64,
    /// `*_next_upstream_delay`, milliseconds.
    pub(super) delay_ms: u64,
}

impl Tries {
    /// Allows attempts with as many servers as the group has, `*_next_upstream_same` further ones with each. There are
    /// `*_next_upstream_tries` attempts at most (0: no limit), begun within `*_next_upstream_timeout` (0: no limit).
    pub(super) fn new(servers: u32, retry: &Retry, now_ms: u64) -> Self {
        Self {
            attempts: match retry.tries {
                0 => u32::MAX,
                most => most,
            },
            servers,
            same: retry.same,
            same_each: retry.same,
            free: 0,
            until_ms: match retry.timeout_ms {
                0 => u64::MAX,
                timeout_ms => now_ms.saturating_add(timeout_ms),
            },
        }
    }

    /// Returns when no further attempt begins any more, monotonic milliseconds.
    pub(super) fn until_ms(self) -> u64 {
        self.until_ms
    }

    /// Returns whether the next attempt may use an idle connection.
    pub(super) fn may_reuse(self) -> bool {
        self.free < FREE_MAX
    }

    /// Whether a response is left for that of another attempt. Nothing is counted yet.
    pub(super) fn passes_by(self, failed: Failed, rules: Rules) -> bool {
        let is_left = self.attempts > 1 && (self.same > 0 || self.servers > 1);
        is_left && self.admits(failed, rules, rules.delay_ms)
    }

    /// Counts a failed attempt, and returns the next step.
    pub(super) fn after(&mut self, failed: Failed, rules: Rules) -> Next {
        if failed.reason == NextUpstream::NO_LIVE {
            return Next::GiveUp;
        }
        let is_free = failed.reused && self.free < FREE_MAX;
        if is_free && failed.untouched && !rules.body_is_gone {
            self.free += 1;
            return Next::Again;
        }
        if is_free && failed.reason == NextUpstream::ERROR {
            // A dead idle connection is no failure of the server.
            self.free += 1;
            return match self.admits(failed, rules, 0) {
                true => Next::Anew,
                false => Next::GiveUp,
            };
        }
        self.attempts = self.attempts.saturating_sub(1);
        let is_denied = failed.reason == NextUpstream::DENIED;
        let delay_ms = if is_denied { 0 } else { rules.delay_ms };
        if self.attempts == 0 || !self.admits(failed, rules, delay_ms) {
            return Next::GiveUp;
        }
        if self.same > 0 && !is_denied {
            self.same -= 1;
            return Next::Same;
        }
        self.servers = self.servers.saturating_sub(1);
        self.same = self.same_each;
        match self.servers {
            0 => Next::GiveUp,
            _ if is_denied => Next::Anew,
            _ => Next::Other,
        }
    }

    fn admits(self, failed: Failed, rules: Rules, delay_ms: u64) -> bool {
        let idempotent = !matches!(rules.method, Method::Post | Method::Lock | Method::Patch);
        let needed = match failed.sent && !failed.untouched && !idempotent {
            true => failed.reason | NextUpstream::NON_IDEMPOTENT,
            false => failed.reason,
        };
        rules.on.has_all(needed)
            && !(failed.sent && rules.unbuffered)
            && !rules.body_is_gone
            && rules.now_ms.saturating_add(delay_ms) < self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(now_ms: u64) -> Rules {
        Rules {
            on: NextUpstream(NextUpstream::ERROR | NextUpstream::TIMEOUT),
            method: Method::Get,
            unbuffered: false,
            body_is_gone: false,
            now_ms,
            delay_ms: 0,
        }
    }

    fn over_idle(untouched: bool) -> Failed {
        Failed {
            reason: NextUpstream::ERROR,
            sent: true,
            reused: true,
            untouched,
        }
    }

    #[test]
    fn failures_over_idle_connections_are_free_up_to_their_maximum() {
        for (untouched, next) in [(true, Next::Again), (false, Next::Anew)] {
            let mut tries = Tries::new(1, &Retry::default(), 0);
            for _ in 0..FREE_MAX {
                assert!(tries.may_reuse());
                assert_eq!(tries.after(over_idle(untouched), rules(0)), next);
            }
            assert!(!tries.may_reuse());
            assert_eq!(tries.after(over_idle(untouched), rules(0)), Next::GiveUp);
        }
    }
}
