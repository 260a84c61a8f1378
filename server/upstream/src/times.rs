//! Response times of a peer: moving averages of finished attempts, and attempts in progress.
//!
//! Source: nginx's behaviour with `least_time`.

/// The times of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimes {
    /// From its start to the response head, milliseconds.
    pub header_ms: u64,
    /// From its start to the end of the response, milliseconds.
    pub response_ms: u64,
}

/// Averages of a peer. They are kept only if the method of the group reads them.
#[derive(Clone, Debug, Default)]
pub struct ResponseTimes {
    header_ms: u64,
    response_ms: u64,
    /// Average age of attempts in progress, as of the last choice.
    in_flight_ms: u64,
    /// Number of attempts in progress that count.
    in_flight: u64,
    /// The sum of their starts, monotonic milliseconds; it may wrap.
    starts_ms: u64,
}

impl ResponseTimes {
    /// Returns the average time until a response head, milliseconds; 0: there was none.
    pub fn header_ms(&self) -> u64 {
        self.header_ms
    }

    /// Returns the average time until the end of a response, milliseconds; 0: there was none.
    pub fn response_ms(&self) -> u64 {
        self.response_ms
    }

    /// Returns the average age of attempts in progress as of the last choice, milliseconds; 0 if there are none.
    pub(crate) fn in_flight_ms(&self) -> u64 {
        match self.in_flight {
            0 => 0,
            _ => self.in_flight_ms,
        }
    }

    /// Returns the number of attempts in progress that count.
    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Adds the time of a response head to its average.
    pub(crate) fn add_header(&mut self, ms: u64) {
        self.header_ms = moved(self.header_ms, ms);
    }

    /// Adds the time of a whole response to its average.
    pub(crate) fn add_response(&mut self, ms: u64) {
        self.response_ms = moved(self.response_ms, ms);
    }

    /// Counts an attempt in progress.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.in_flight += 1;
        self.starts_ms = self.starts_ms.wrapping_add(now_ms);
    }

    /// Uncounts an attempt that began at this time.
    pub(crate) fn end(&mut self, started_ms: u64) {
        self.in_flight -= 1;
        self.starts_ms = self.starts_ms.wrapping_sub(started_ms);
    }

    /// Adds the mean age of the attempts in progress to its average.
    pub(crate) fn average_in_flight(&mut self, now_ms: u64) {
        let ages_ms = self
            .in_flight
            .wrapping_mul(now_ms)
            .wrapping_sub(self.starts_ms);
        if let Some(mean_ms) = ages_ms.checked_div(self.in_flight) {
            self.in_flight_ms = moved(self.in_flight_ms, mean_ms);
        }
    }
}

/// Returns an exponential moving average with one more value, rounded; an average of 0 is replaced.
fn moved(average: u64, value: u64) -> u64 {
    match average {
        0 => value,
        _ => (0.5 + (value as f64 * NEW_SHARE + average as f64 * OLD_SHARE)) as u64,
    }
}

/// Weights of a new value, and of the average before it.
const NEW_SHARE: f64 = 0.05;
const OLD_SHARE: f64 = 0.95;

#[cfg(test)]
#[path = "times_tests.rs"]
mod tests;
