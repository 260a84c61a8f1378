//! Whether another server is tried when an attempt has failed.
//!
//! The rules are nginx's, and one more. A server may close an idle connection just as a request is sent. If it has
//! certainly processed nothing, the request is sent again over a new connection, with any method (RFC 9110, section
//! 9.2.2).
//!
//! Source: nginx documentation, `proxy_next_upstream`, `proxy_next_upstream_tries`, `proxy_next_upstream_timeout`.

use engines::http::Method;
use server_upstream::request::{Failure, UpstreamError};

use super::conf::NextUpstream;

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
    /// Retry on this server, over a new connection.
    Again,
    /// Retry on another server.
    Other,
    /// The failure is the answer.
    GiveUp,
}

/// The attempts that are left to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    left: u32,
    /// Attempts over idle connections so far that cost none of `left`.
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
}

impl Tries {
    /// Allows as many attempts as the group has servers, `*_next_upstream_tries` at most (0: no limit), begun within
    /// `*_next_upstream_timeout` (0: no limit).
    pub(super) fn new(servers: u32, most: u32, timeout_ms: u64, now_ms: u64) -> Self {
        Self {
            left: if most == 0 {
                servers
            } else {
                servers.min(most)
            },
            free: 0,
            until_ms: match timeout_ms {
                0 => u64::MAX,
                _ => now_ms.saturating_add(timeout_ms),
            },
        }
    }

    /// Returns whether the next attempt may use an idle connection.
    pub(super) fn may_reuse(self) -> bool {
        self.free < FREE_MAX
    }

    /// Whether a response is left for another server's. Nothing is counted yet.
    pub(super) fn passes_by(self, failed: Failed, rules: Rules) -> bool {
        self.left > 1 && self.admits(failed, rules)
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
        // A dead idle connection is no failure of the server.
        match is_free && failed.reason == NextUpstream::ERROR {
            true => self.free += 1,
            false => self.left = self.left.saturating_sub(1),
        }
        match self.left > 0 && self.admits(failed, rules) {
            true => Next::Other,
            false => Next::GiveUp,
        }
    }

    fn admits(self, failed: Failed, rules: Rules) -> bool {
        let idempotent = !matches!(rules.method, Method::Post | Method::Lock | Method::Patch);
        let needed = match failed.sent && !failed.untouched && !idempotent {
            true => failed.reason | NextUpstream::NON_IDEMPOTENT,
            false => failed.reason,
        };
        rules.on.has_all(needed)
            && !(failed.sent && rules.unbuffered)
            && !rules.body_is_gone
            && rules.now_ms < self.until_ms
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
        for (untouched, next) in [(true, Next::Again), (false, Next::Other)] {
            let mut tries = Tries::new(1, 0, 0, 0);
            for _ in 0..FREE_MAX {
                assert!(tries.may_reuse());
                assert_eq!(tries.after(over_idle(untouched), rules(0)), next);
            }
            assert!(!tries.may_reuse());
            assert_eq!(tries.after(over_idle(untouched), rules(0)), Next::GiveUp);
        }
    }
}
