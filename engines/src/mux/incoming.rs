//! The receiving half of multiplexed streams: the receive windows of a stream and of the connection.
//!
//! Source: RFC 9113 sections 5.2, 6.9, 8.1.1.

use super::window::MAX_WINDOW;

/// Receiving half of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Incoming {
    /// Bytes of the body that the peer may still send.
    pub(crate) allowed_bytes: u64,
    /// Bytes that were consumed and not yet granted again.
    consumed_bytes: u64,
    /// Size of the stream's receive window, bytes.
    window_bytes: u64,
    /// The whole body is wanted: its window is at the maximum.
    pub(crate) unlimited: bool,
    /// Outstanding bytes of `content-length`.
    pub(crate) length_left: Option<u64>,
}

impl Incoming {
    pub(crate) fn new(allowed_bytes: u64) -> Self {
        Self {
            allowed_bytes,
            window_bytes: allowed_bytes,
            ..Self::default()
        }
    }

    /// Takes bytes from the window; false, with nothing taken, if they exceed it.
    #[inline]
    #[must_use]
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let left = self.allowed_bytes.checked_sub(bytes);
        self.allowed_bytes = left.unwrap_or(self.allowed_bytes);
        left.is_some()
    }

    /// Counts bytes of the body against `content-length`; false if there are too many, or too few at the end.
    #[inline]
    #[must_use]
    pub(crate) fn fits(&mut self, bytes: u64, ended: bool) -> bool {
        let Some(left) = self.length_left else {
            return true;
        };
        match left.checked_sub(bytes) {
            Some(left) if left == 0 || !ended => {
                self.length_left = Some(left);
                true
            }
            _ => false,
        }
    }

    /// Whether announced bytes are outstanding.
    pub(crate) fn is_short(&self) -> bool {
        self.length_left.is_some_and(|left| left > 0)
    }

    /// Records consumed bytes; returns the increment for the peer, once it exceeds half of a window.
    #[inline]
    #[must_use]
    pub(crate) fn consumed(&mut self, bytes: u64, window_bytes: u64) -> Option<u64> {
        self.consumed_bytes += bytes;
        let window_bytes = if self.unlimited {
            MAX_WINDOW
        } else {
            window_bytes.max(self.window_bytes)
        };
        if self.consumed_bytes <= window_bytes / 2 {
            return None;
        }
        let grant = std::mem::take(&mut self.consumed_bytes);
        self.allowed_bytes += grant;
        Some(grant)
    }

    /// Raises the receive window to `bytes`; returns the increment in bytes, or `None` if it is as large already.
    #[must_use]
    pub(crate) fn open_to(&mut self, bytes: u64) -> Option<u64> {
        let grant = bytes.saturating_sub(self.window_bytes);
        if self.unlimited || grant == 0 {
            return None;
        }
        self.window_bytes = bytes;
        self.allowed_bytes += grant;
        Some(grant)
    }

    /// Raises the receive window to the maximum; returns the increment in bytes, or `None` if this has been done already.
    #[must_use]
    pub(crate) fn open_fully(&mut self) -> Option<u64> {
        if self.unlimited {
            return None;
        }
        let grant = MAX_WINDOW - self.allowed_bytes;
        *self = Self {
            allowed_bytes: MAX_WINDOW,
            consumed_bytes: 0,
            unlimited: true,
            ..*self
        };
        Some(grant)
    }
}

/// Receive window of a connection, in bytes, kept so large that it limits no sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvWindow {
    pub(crate) left_bytes: u64,
}

impl RecvWindow {
    pub(crate) fn new() -> Self {
        Self {
            left_bytes: MAX_WINDOW,
        }
    }

    /// Takes received bytes; returns the increment to announce now, mostly 0, or `None` if they exceed the window.
    #[inline]
    #[must_use]
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        self.left_bytes = self.left_bytes.checked_sub(bytes)?;
        if self.left_bytes >= MAX_WINDOW / 2 {
            return Some(0);
        }
        let grant = MAX_WINDOW - self.left_bytes;
        self.left_bytes = MAX_WINDOW;
        Some(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_may_have_what_is_allowed_and_announced() {
        let mut incoming = Incoming::new(10);
        assert!(!incoming.take(11) && incoming.take(10) && !incoming.take(1));
        assert!(incoming.fits(100, true), "nothing was announced");
        incoming.length_left = Some(3);
        assert!(!incoming.fits(4, false) && !incoming.fits(2, true) && incoming.is_short());
        assert!(incoming.fits(2, false) && incoming.fits(1, true) && !incoming.is_short());
    }

    #[test]
    fn more_than_half_a_window_is_allowed_anew() {
        let mut incoming = Incoming::new(0);
        assert_eq!(incoming.consumed(5, 10), None);
        assert_eq!(incoming.consumed(1, 10), Some(6));
        assert_eq!(incoming.open_fully(), Some(MAX_WINDOW - 6));
        assert_eq!(incoming.open_fully(), None);
        assert_eq!(incoming.consumed(MAX_WINDOW / 2, 10), None);
    }

    #[test]
    fn a_window_is_raised_once_and_kept_as_large() {
        let mut incoming = Incoming::new(10);
        assert_eq!(
            (incoming.open_to(10), incoming.open_to(30)),
            (None, Some(20))
        );
        assert_eq!(incoming.open_to(30), None);
        assert!(incoming.take(30) && !incoming.take(1));
        assert_eq!(incoming.consumed(15, 10), None);
        assert_eq!(incoming.consumed(1, 10), Some(16));
        assert!(incoming.take(16) && incoming.open_fully().is_some());
        assert_eq!(incoming.open_to(40), None);
    }

    #[test]
    fn connection_is_opened_again_before_it_could_stop_anybody() {
        let mut recv_window = RecvWindow::new();
        assert_eq!(recv_window.take(MAX_WINDOW / 2 + 1), Some(0));
        assert_eq!(recv_window.take(1), Some(MAX_WINDOW / 2 + 2));
        assert_eq!(recv_window.take(MAX_WINDOW + 1), None);
    }
}
