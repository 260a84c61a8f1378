//! Progress and limits of a body that is taken piece by piece, or only counted.

use super::pace::Pace;

/// A body that is taken piece by piece.
pub(crate) struct Stream {
    /// The limits of a body; a tunnel has none.
    pub(crate) limits: Option<Limits>,
    /// Bytes or the end have arrived since the handler last took a piece.
    pub(crate) due: bool,
    /// Whether the handler waits for more; else since when it does not, monotonic milliseconds.
    waits: Result<(), u64>,
    /// Why there is no more.
    pub(crate) failed: Option<u16>,
    /// Number of bytes that the handler has taken.
    pub(crate) taken: u64,
    /// All of them, for `$request_body`; `None` if they are larger than a buffer.
    copy: Option<Vec<u8>>,
    copy_most: u64,
}

/// The time limits of a body.
pub(crate) struct Limits {
    pub(crate) pace: Pace,
    /// `client_max_body_size` of a body without announced length; 0: no limit.
    pub(crate) most: u64,
}

impl Stream {
    pub(crate) fn new(limits: Option<Limits>, now_ms: u64) -> Self {
        Self {
            limits,
            due: false,
            waits: Err(now_ms),
            failed: None,
            taken: 0,
            copy: None,
            copy_most: 0,
        }
    }

    /// Keeps a copy of a body of at most `most` bytes.
    pub(crate) fn keep_copy(&mut self, most: u64) {
        (self.copy, self.copy_most) = (Some(Vec::new()), most);
    }

    /// The handler takes a piece.
    pub(crate) fn record_taken(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        if self.taken > self.copy_most {
            self.copy = None;
        }
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(bytes);
        }
    }

    /// The pieces that the handler has taken, if they fit into one buffer.
    pub(crate) fn copy(&self) -> Option<&[u8]> {
        self.copy.as_deref()
    }

    /// The pieces that the handler has taken, for another one that needs the whole body.
    ///
    /// # Errors
    /// It is not kept, or the body failed with this status.
    pub(crate) fn into_taken(self) -> Result<Vec<u8>, Option<u16>> {
        match self.failed {
            Some(status) => Err(Some(status)),
            None if self.taken == 0 => Ok(Vec::new()),
            None => self.copy.ok_or(None),
        }
    }

    /// Whether the handler waits for more.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.is_ok()
    }

    /// Whether bytes or the end have arrived since the handler last took a piece.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// When more must have come, if the handler waits for it.
    pub(crate) fn until_ms(&self) -> Option<u64> {
        let limits = self.limits.as_ref().filter(|_| self.is_waiting());
        limits.map(|limits| limits.pace.until_ms())
    }

    /// No more bytes will be received.
    pub(crate) fn end(&mut self) {
        self.due = true;
        // Nothing is waited for any more.
        if self.is_waiting() {
            self.waits = Err(u64::MAX);
        }
    }

    /// The handler has taken all there is. Returns the limit that the client has broken by not sending more, if any;
    /// the body then fails with this status.
    pub(crate) fn wait(&mut self, now_ms: u64, too_late: u16) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.waits, Ok(()));
        let limits = self.limits.as_mut()?;
        if let Err(since_ms) = before {
            limits.pace.exclude_pause(since_ms, now_ms);
            return None;
        }
        let broken = limits.pace.broken(now_ms)?;
        (self.failed, self.waits) = (Some(too_late), Err(u64::MAX));
        Some(broken)
    }

    pub(crate) fn stop_waiting(&mut self, now_ms: u64) {
        if self.is_waiting() {
            self.waits = Err(now_ms);
        }
    }
}

/// Longest pause of a client before the response to a counted body is sent, milliseconds. It covers the round trip of a slow
/// link.
pub(crate) const PAUSE_MS: u64 = 250;

/// Counts a body.
pub(crate) struct Unread {
    /// `client_max_body_size`, bytes.
    pub(crate) most: u64,
    pub(crate) pace: Pace,
}

impl Unread {
    /// Takes note of a piece of `len` bytes. Returns the time up to which the next one is waited for, monotonic milliseconds.
    pub(crate) fn record(&mut self, len: u64, now_ms: u64) -> u64 {
        self.pace.record(len, now_ms);
        self.until_ms(now_ms)
    }

    /// Returns the time up to which the next piece is waited for, monotonic milliseconds.
    pub(crate) fn until_ms(&self, now_ms: u64) -> u64 {
        self.pace.until_ms().min(now_ms.saturating_add(PAUSE_MS))
    }

    /// Returns whether a body of this size is too large.
    pub(crate) fn is_exceeded(&self, received: u64) -> bool {
        received > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf_core::BodyRate;

    #[test]
    fn a_counted_body_is_waited_for_until_a_pause() {
        for (gap_ms, wait_ms) in [
            (PAUSE_MS - 1, PAUSE_MS - 1),
            (PAUSE_MS, PAUSE_MS),
            (PAUSE_MS + 1, PAUSE_MS),
        ] {
            let pace = Pace::begin(gap_ms, 0, BodyRate::default(), 1000);
            let mut unread = Unread { most: 10, pace };
            assert_eq!(unread.until_ms(1000), 1000 + wait_ms);
            assert_eq!(unread.record(5, 1100), 1100 + wait_ms, "each piece counts");
        }
        let pace = Pace::begin(1000, 0, BodyRate::default(), 0);
        let unread = Unread { most: 10, pace };
        let exceeded = [9, 10, 11].map(|received| unread.is_exceeded(received));
        assert_eq!(exceeded, [false, false, true]);
    }
}
