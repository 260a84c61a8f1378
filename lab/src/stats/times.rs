//! Times of requests and connections, as histograms.

use hdrhistogram::Histogram;

/// Part of a request or connection that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// From the time at which a request should have been sent to the end of its response; at a constant rate alone.
    Response,
    /// From sending to the end of the response.
    Service,
    /// From sending to the head of the response.
    FirstByte,
    /// From the first packet to an open connection.
    Connect,
    /// From there to the end of the handshake.
    Handshake,
}

impl Metric {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::Response,
        Self::Service,
        Self::FirstByte,
        Self::Connect,
        Self::Handshake,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::FirstByte => "first_byte",
            Self::Connect => "connect",
            Self::Handshake => "handshake",
        }
    }
}

/// Times of one metric, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    /// Those that count.
    pub valid: Histogram<u64>,
    /// Number of excluded samples, which do not measure the server.
    pub excluded: u64,
}

impl Default for Times {
    fn default() -> Self {
        // Three digits of any value between 1 ns and the longest.
        let valid = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Self {
            valid: valid.expect("the bounds are in order"),
            excluded: 0,
        }
    }
}

impl Times {
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.valid.saturating_record(ns.max(1));
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        let added = self.valid.add(&other.valid);
        added.expect("all have the same bounds");
        self.excluded += other.excluded;
    }

    /// Number of samples, including excluded ones.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.valid.len() + self.excluded
    }
}

/// The longest time that is recorded exactly: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
