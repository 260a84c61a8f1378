//! Counters of a server in a shared group, for the API and for metrics.
//!
//! They are changed under the lock of the group, with the choice of a server and with the end of an attempt. Times of an
//! attempt are averaged with weights that halve after [`AVERAGE_OF`] attempts or so. Absent: results of health checks, except
//! for the time in which they exclude the server.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Upstream Server".

use server_base::code_counts::CodeCounts;
use server_base::handshakes::{HandshakeCounts, HandshakeResult};

/// Facts of an attempt that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptFigures {
    /// Status of the response; 0 without a response.
    pub status: u16,
    /// Time until the head of the response was complete, milliseconds; `None` without a response.
    pub head_ms: Option<u64>,
    /// Time of the whole attempt, milliseconds; `None` if its response was cut.
    pub response_ms: Option<u64>,
    /// Bytes sent to the server.
    pub sent_bytes: u64,
    /// Bytes received from the server.
    pub received_bytes: u64,
    /// The result of its handshake of TLS, if there was one.
    pub handshake: Option<HandshakeResult>,
}

/// Counters of a server. Times are monotonic milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Number of times that it was chosen.
    pub requests: u64,
    /// The time of the last choice.
    pub selected_ms: Option<u64>,
    /// Responses by status.
    pub codes: CodeCounts,
    /// Handshakes of TLS.
    pub handshakes: HandshakeCounts,
    /// Bytes sent to it.
    pub sent_bytes: u64,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// Failed attempts.
    pub fails: u64,
    /// Number of times that `max_fails` was reached.
    pub unavailable: u64,
    /// Average time until the head of a response.
    head_us: Average,
    /// Average time of a whole response.
    response_us: Average,
    /// Times of whole responses.
    pub histogram: ResponseTimes,
    /// The start of the time in which it is unavailable; `None` while it is available.
    pub down_since_ms: Option<u64>,
    /// The last start of such a time.
    pub down_start_ms: Option<u64>,
    /// The sum of earlier times in which it was unavailable, milliseconds.
    down_ms: u64,
}

/// Times of responses in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTimes {
    /// Number of responses up to each of [`BOUNDS_MS`] and above the bound before it; the last is for longer times.
    pub buckets: [u64; BOUNDS_MS.len() + 1],
    /// Sum of all times, milliseconds.
    pub sum_ms: u64,
}

/// An average in which later values count more, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Average(Option<u64>);

impl PeerStats {
    /// Counts a choice, which ends a time in which it was unavailable.
    #[inline]
    pub fn chosen(&mut self, now_ms: u64) {
        self.up(now_ms);
        self.requests += 1;
        self.selected_ms = Some(now_ms);
    }

    /// Counts an ended attempt.
    pub fn ended(&mut self, attempt: &AttemptFigures) {
        self.sent_bytes += attempt.sent_bytes;
        self.received_bytes += attempt.received_bytes;
        if let Some(result) = attempt.handshake {
            self.handshakes.count(result);
        }
        let Some(head_ms) = attempt.head_ms else {
            return;
        };
        self.codes.count(attempt.status);
        self.head_us.add(head_ms);
        if let Some(response_ms) = attempt.response_ms {
            self.response_us.add(response_ms);
            self.histogram.add(response_ms);
        }
    }

    /// Counts a failed attempt. `is_out`: it is unavailable from now on.
    pub fn failed(&mut self, is_out: bool, now_ms: u64) {
        self.fails += 1;
        if is_out && self.down_since_ms.is_none() {
            self.unavailable += 1;
            self.down(now_ms);
        }
    }

    /// Records that it is unavailable, unhealthy or being checked.
    pub fn down(&mut self, now_ms: u64) {
        if self.down_since_ms.is_none() {
            self.down_since_ms = Some(now_ms);
            self.down_start_ms = Some(now_ms);
        }
    }

    /// Records that it is available.
    #[inline]
    pub fn up(&mut self, now_ms: u64) {
        if let Some(since_ms) = self.down_since_ms.take() {
            self.down_ms += now_ms.saturating_sub(since_ms);
        }
    }

    /// Returns the time in which it was unavailable, milliseconds.
    pub fn downtime_ms(&self, now_ms: u64) -> u64 {
        let current = self
            .down_since_ms
            .map_or(0, |since| now_ms.saturating_sub(since));
        self.down_ms + current
    }

    /// Returns the average time until the head of a response, milliseconds; `None` before the first response.
    pub fn head_ms(&self) -> Option<u64> {
        self.head_us.0.map(|us| us / 1000)
    }

    /// Returns the average time of a response, milliseconds; `None` before the first response.
    pub fn response_ms(&self) -> Option<u64> {
        self.response_us.0.map(|us| us / 1000)
    }

    /// Sets all counters to 0. Whether the server is available stays known.
    pub fn reset(&mut self, now_ms: u64) {
        let is_down = self.down_since_ms.is_some();
        *self = Self {
            selected_ms: self.selected_ms,
            down_since_ms: is_down.then_some(now_ms),
            down_start_ms: self.down_start_ms.filter(|_| is_down),
            ..Self::default()
        };
    }
}

impl ResponseTimes {
    /// Returns the number of responses.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    fn add(&mut self, ms: u64) {
        let bucket = BOUNDS_MS.iter().position(|bound| ms <= *bound);
        self.buckets[bucket.unwrap_or(BOUNDS_MS.len())] += 1;
        self.sum_ms += ms;
    }
}

impl Average {
    fn add(&mut self, ms: u64) {
        let us = ms.saturating_mul(1000);
        self.0 = Some(match self.0 {
            None => us,
            Some(known) => known - known / AVERAGE_OF + us / AVERAGE_OF,
        });
    }
}

/// Upper bounds of buckets, milliseconds.
pub const BOUNDS_MS: [u64; 14] = [
    5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000,
];
/// Share of a new value in an average: one part of this many.
const AVERAGE_OF: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(status: u16, response_ms: u64) -> AttemptFigures {
        AttemptFigures {
            status,
            head_ms: (status != 0).then_some(response_ms / 2),
            response_ms: Some(response_ms),
            sent_bytes: 3,
            received_bytes: 5,
            handshake: None,
        }
    }

    #[test]
    fn attempts_are_counted_by_status_and_time() {
        let mut stats = PeerStats::default();
        for ms in [5, 6, 10_000, 10_001] {
            stats.chosen(ms);
            stats.ended(&attempt(200, ms));
        }
        stats.chosen(20_000);
        stats.ended(&attempt(0, 7));
        assert_eq!((stats.requests, stats.selected_ms), (5, Some(20_000)));
        assert_eq!((stats.sent_bytes, stats.received_bytes), (15, 25));
        assert_eq!(stats.codes.total(), 4, "one had no response");
        let buckets = &stats.histogram.buckets;
        assert_eq!(
            (buckets[0], buckets[1], buckets[13], buckets[14]),
            (1, 1, 1, 1)
        );
        assert_eq!(
            (stats.histogram.count(), stats.histogram.sum_ms),
            (4, 20_012)
        );
    }

    #[test]
    fn averages_follow_later_values() {
        let mut stats = PeerStats::default();
        assert_eq!((stats.head_ms(), stats.response_ms()), (None, None));
        stats.ended(&attempt(200, 100));
        assert_eq!(
            (stats.head_ms(), stats.response_ms()),
            (Some(50), Some(100))
        );
        for _ in 0..200 {
            stats.ended(&attempt(200, 10));
        }
        assert_eq!((stats.head_ms(), stats.response_ms()), (Some(5), Some(10)));
    }

    #[test]
    fn times_without_service_are_added_up() {
        let mut stats = PeerStats::default();
        stats.up(0);
        stats.failed(false, 10);
        assert_eq!(
            (stats.fails, stats.unavailable, stats.downtime_ms(20)),
            (1, 0, 0)
        );
        stats.failed(true, 20);
        stats.failed(true, 30);
        assert_eq!((stats.fails, stats.unavailable), (3, 1));
        assert_eq!((stats.down_start_ms, stats.downtime_ms(50)), (Some(20), 30));
        stats.chosen(60);
        assert_eq!((stats.down_start_ms, stats.downtime_ms(99)), (Some(20), 40));
        stats.failed(true, 100);
        stats.reset(110);
        assert_eq!((stats.fails, stats.downtime_ms(115)), (0, 5));
        stats.up(120);
        stats.reset(130);
        let empty = PeerStats {
            selected_ms: Some(60),
            ..PeerStats::default()
        };
        assert_eq!(stats, empty);
    }
}
