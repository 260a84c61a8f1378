//! A sampled response: timestamps requested of the kernel and received, and when its first byte counts as late.

use engines::http::probe::{ProbeEvent, Stall};
use server_base::clock::Clock;
use server_base::transport::TcpInfo;
use server_http::exchange::Exchange;

/// A response with requested kernel timestamps.
pub(crate) struct Sample {
    /// The connection, the stream and the time of the head, kept here since the exchange may be logged before the
    /// kernel's times are known.
    pub(super) event: ProbeEvent,
    /// Time at which the first byte was written to the kernel, in monotonic microseconds.
    pub(super) given_us: u64,
    /// Wall-clock time at which the first byte was written to the kernel, in microseconds since 1970.
    pub(super) given_wall_us: u64,
    /// TCP_INFO of the connection before the send.
    pub(super) before: TcpInfo,
    /// Nothing was in progress before it.
    pub(super) idle: bool,
    /// The send ended at another byte, so the timestamps are of that byte.
    pub(super) void: bool,
    pub(super) left_us: Option<u64>,
    /// When the byte was first sent again.
    pub(super) again_us: Option<u64>,
    /// Deadline of the timestamps; `u64::MAX` if the sample is complete.
    pub(super) until_ms: u64,
    /// It has ended, and its log waits.
    pub(super) held: Option<HeldLog>,
}

/// Byte of a send that the kernel will timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampedByte {
    /// The first byte of the response, with this many bytes before it in the send.
    After(u64),
    /// An earlier byte: the socket did not take all.
    Another,
    /// None: it took nothing.
    Nothing,
}

/// An exchange that ended, and when.
pub(super) struct HeldLog {
    pub(super) exchange: Box<Exchange>,
    pub(super) clock: Clock,
}

impl Sample {
    /// Converts a kernel time to our clock; `None` if the clocks have moved against each other.
    pub(super) fn monotonic(&self, wall_us: u64, now_us: u64) -> Option<u64> {
        let us = (self.given_us + wall_us).checked_sub(self.given_wall_us)?;
        let plausible = self.given_us.saturating_sub(CLOCKS_US)..=now_us.saturating_add(CLOCKS_US);
        plausible
            .contains(&us)
            .then_some(us.clamp(self.given_us, now_us.max(self.given_us)))
    }

    /// Returns the cause of a late acknowledgement at `acked_us`, or of one still missing then; `None` if it is on
    /// time.
    pub(super) fn stall(&self, acked_us: u64, now: Option<TcpInfo>) -> Option<Stall> {
        let now = now?;
        let window_us = |info: &TcpInfo| info.rwnd_limited_us.unwrap_or(0);
        let left_us = self.left_us.unwrap_or(acked_us);
        if left_us.saturating_sub(self.given_us) > STALL_US
            && window_us(&now) > window_us(&self.before)
        {
            return Some(Stall::Window);
        }
        let min_rtt_us = u64::from(now.min_rtt_us.unwrap_or(0));
        let sent_us = self.left_us.unwrap_or(self.given_us);
        if acked_us.saturating_sub(sent_us) <= min_rtt_us + STALL_US {
            return None;
        }
        // An acknowledgement sooner than a round trip after the retransmission is of the first transmission. So is a
        // report that the byte arrived twice.
        let again = match (self.left_us, self.again_us) {
            (Some(_), again_us) => again_us.is_some_and(|us| acked_us >= us + min_rtt_us),
            (None, _) => true,
        };
        let grown = |of: fn(&TcpInfo) -> u32| of(&now).saturating_sub(of(&self.before));
        let lost = grown(|info| info.total_retrans) > grown(|info| info.dsack_dups.unwrap_or(0));
        Some(match again && lost {
            true => Stall::Retransmit,
            false => Stall::DelayedAck,
        })
    }
}

/// Delay beyond the least round trip from which an acknowledgement is late. Smaller delays
/// are the jitter of links; delayed acknowledgements of clients take 40 ms or more.
pub(super) const STALL_US: u64 = 30_000;
/// Tolerance of a time of the kernel outside of those between which it was taken.
const CLOCKS_US: u64 = 1000;

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
