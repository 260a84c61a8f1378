//! The condition that an exchange waits for.

/// The events that end a wait, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// This time, monotonic milliseconds; `u64::MAX`: it has no time of its own.
    pub until_ms: u64,
    /// Arrival of request body.
    pub body: bool,
    /// The exchange's [`Waker`](server_base::waker::Waker).
    pub wake: bool,
}

impl Wait {
    /// Ends at this time, monotonic milliseconds, and not before.
    pub fn until(until_ms: u64) -> Self {
        Self {
            until_ms,
            body: false,
            wake: false,
        }
    }

    /// Ends when the exchange is woken.
    pub fn woken() -> Self {
        Self::woken_or_until(u64::MAX)
    }

    /// Ends when the exchange is woken, at this time at the latest.
    pub fn woken_or_until(until_ms: u64) -> Self {
        Self {
            until_ms,
            body: false,
            wake: true,
        }
    }

    /// Ends when the request body is complete or cannot be had, at this time at the latest.
    pub fn body_or_until(until_ms: u64) -> Self {
        Self {
            until_ms,
            body: true,
            wake: false,
        }
    }
}
