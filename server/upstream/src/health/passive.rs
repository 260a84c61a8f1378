//! Passive health: results of requests decide whether a server is usable.
//!
//! A server with `max_fails` failures is excluded until `fail_timeout` is over. Then one request tries it, and a
//! success clears its failures. Times are whole seconds, as in nginx.
//!
//! Source: nginx documentation, `server`; nginx's behaviour.

/// Failures of one address.
#[derive(Clone, Debug)]
pub struct Failures {
    /// `max_fails`; 0: failures do not count.
    max: u64,
    /// `fail_timeout`, seconds.
    timeout_s: u64,
    count: u64,
    /// Time of the last failure, seconds.
    failed_s: u64,
    /// Start of the period in which failures count, seconds.
    checked_s: u64,
}

impl Failures {
    /// Makes a count without failures. With `max` 0 failures never count. `timeout_s` is in seconds.
    pub fn new(max: u64, timeout_s: u64) -> Self {
        Self {
            max,
            timeout_s,
            count: 0,
            failed_s: 0,
            checked_s: 0,
        }
    }

    /// Sets the limits. Failures so far stay counted.
    pub fn set_limits(&mut self, max: u64, timeout_s: u64) {
        (self.max, self.timeout_s) = (max, timeout_s);
    }

    /// Whether the server is excluded now.
    #[inline]
    pub fn has_failed(&self, now_s: u64) -> bool {
        self.is_at_limit() && now_s.saturating_sub(self.checked_s) <= self.timeout_s
    }

    /// Whether the server has as many failures as exclude it, for a time that may be over.
    #[inline]
    pub fn is_at_limit(&self) -> bool {
        self.max > 0 && self.count >= self.max
    }

    /// Returns the first second at which an excluded server may be tried again.
    pub fn retry_s(&self) -> u64 {
        self.checked_s
            .saturating_add(self.timeout_s)
            .saturating_add(1)
    }

    /// Counts a failure. Returns whether the server is excluded from now on.
    pub fn fail(&mut self, now_s: u64) -> bool {
        self.count += 1;
        self.failed_s = now_s;
        self.checked_s = now_s;
        self.max > 0 && self.count >= self.max
    }

    /// Counts a success. It clears the failures before the last check.
    #[inline]
    pub fn succeed(&mut self) {
        if self.failed_s < self.checked_s {
            self.count = 0;
        }
    }

    /// Clears all failures.
    #[inline]
    pub fn reset(&mut self) {
        self.count = 0;
    }

    /// Records that the server was chosen. If `fail_timeout` is over, failures count from now.
    #[inline]
    pub fn chosen(&mut self, now_s: u64) {
        if now_s.saturating_sub(self.checked_s) > self.timeout_s {
            self.checked_s = now_s;
        }
    }

    /// Returns how many times `fail_timeout`, with a second more, has passed since the server was checked or chosen.
    pub(crate) fn periods_since_check(&self, now_s: u64) -> u64 {
        now_s.saturating_sub(self.checked_s) / self.timeout_s.saturating_add(1)
    }

    /// Returns `max_fails`.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the number of failures that count.
    pub fn count(&self) -> u64 {
        self.count
    }
}
