//! One stream of a server: its state, its send window and its queued output.
//!
//! Source: RFC 9113 section 5.1; draft-mbelshe-httpbis-spdy-00 section 2.3.

use crate::mux::{Incoming, Outgoing, Priority, Window};

/// A stream that is open, or half-closed.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) state: State,
    pub(crate) is_head: bool,
    /// Bytes of the request that were discarded after our end, if the protocol counts them.
    pub(crate) past_bytes: u32,
    pub(crate) out: Outgoing,
    pub(crate) incoming: Incoming,
}

/// The state of a stream (RFC 9113 section 5.1). A stream that is idle or closed is not in the table.
///
/// ```text
/// idle -- request --> Open -- discard --> Discarding
///                      |                      |
///                      +-- the peer's end -----+--> HalfClosedRemote -- our end -----> closed
///                      +-- our end ------------+--> HalfClosedLocal -- the peer's end -> closed
///
/// idle -- malformed request --> Malformed { ended } -- our end, a reset ------------> closed
/// ```
///
/// A reset of either side closes a stream in every state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Request body and response are to come.
    #[default]
    Open,
    /// As `Open`, but the request body is dropped, since the core does not want it.
    Discarding,
    /// The request breaks the protocol: the stream is reset after its response, and frames until then are dropped.
    Malformed {
        /// The peer has ended its side, or further frames belong to no request.
        ended: bool,
    },
    /// The peer has ended its side.
    HalfClosedRemote,
    /// The response has been sent; the rest of the request body is dropped, if the protocol permits that.
    HalfClosedLocal,
}

impl State {
    /// The peer has ended its side of a stream with a pending response.
    #[inline]
    #[must_use]
    pub(crate) fn end_remote(self) -> Self {
        match self {
            Self::Malformed { .. } => Self::Malformed { ended: true },
            _ => Self::HalfClosedRemote,
        }
    }

    /// The request body is not wanted any more.
    #[inline]
    #[must_use]
    pub(crate) fn discard(self) -> Self {
        match self {
            Self::Open => Self::Discarding,
            other => other,
        }
    }

    /// The head of the request breaks the protocol.
    #[must_use]
    pub(crate) fn malformed(self) -> Self {
        Self::Malformed {
            ended: self == Self::HalfClosedRemote,
        }
    }

    /// Whether the bytes of the request body are delivered.
    #[inline]
    pub(crate) fn wants_body(self) -> bool {
        self == Self::Open
    }

    /// Whether the request is complete.
    #[inline]
    pub(crate) fn is_received(self) -> bool {
        matches!(
            self,
            Self::HalfClosedRemote | Self::Malformed { ended: true }
        )
    }
}

impl AsMut<Outgoing> for Stream {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Stream {
    /// Resets this to a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, priority: Priority) {
        *self = Self {
            out: self.out.renewed(window, priority),
            incoming: Incoming::new(allowed_bytes),
            ..Self::default()
        };
    }

    /// Whether a response may still be sent on it.
    pub(crate) fn is_running(&self) -> bool {
        self.out.is_running()
    }

    /// Panics if the stream contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        let is_sent = self.state == State::HalfClosedLocal;
        assert_eq!(is_sent, !self.is_running(), "a state of the other half");
    }
}

#[cfg(test)]
mod tests {
    use super::State::{self, *};

    #[test]
    fn transitions_are_those_of_the_diagram() {
        let malformed = |ended| Malformed { ended };
        let rows: [(State, State, State, bool, bool); 5] = [
            // state, with the peer's end, with the body discarded, wants its body, has its request
            (Open, HalfClosedRemote, Discarding, true, false),
            (Discarding, HalfClosedRemote, Discarding, false, false),
            (
                HalfClosedRemote,
                HalfClosedRemote,
                HalfClosedRemote,
                false,
                true,
            ),
            (
                malformed(false),
                malformed(true),
                malformed(false),
                false,
                false,
            ),
            (
                malformed(true),
                malformed(true),
                malformed(true),
                false,
                true,
            ),
        ];
        for (state, ended, discarded, wants_body, is_received) in rows {
            assert_eq!(state.end_remote(), ended, "{state:?}");
            assert_eq!(state.discard(), discarded, "{state:?}");
            assert_eq!(state.wants_body(), wants_body, "{state:?}");
            assert_eq!(state.is_received(), is_received, "{state:?}");
        }
        assert_eq!(Discarding.malformed(), malformed(false));
        assert_eq!(HalfClosedRemote.malformed(), malformed(true));
        assert_eq!(size_of::<State>(), 1);
    }
}
