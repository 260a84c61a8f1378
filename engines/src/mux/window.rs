//! A flow-control window: the number of bytes that may still be sent.
//!
//! It may become negative if the peer lowers its initial size. Source: RFC 9113 sections 5.2, 6.9.

/// A window grew beyond 2^31-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Bytes that may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window(i64);

impl Window {
    /// A window of this many bytes.
    #[must_use]
    pub const fn new(bytes: u32) -> Self {
        Self(bytes as i64)
    }

    /// Returns the number of bytes that may be sent; 0 while the window is negative.
    #[inline]
    #[must_use]
    pub fn available(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Takes `bytes` for sending; false, with nothing taken, if they exceed the window.
    #[inline]
    #[must_use]
    pub fn take(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.available();
        if fits {
            self.0 -= bytes as i64;
        }
        fits
    }

    /// Grows or shrinks the window by the peer's update.
    ///
    /// # Errors
    /// It would exceed 2^31-1.
    pub fn adjust(&mut self, bytes: i64) -> Result<(), Overflow> {
        let sum = self.0 + bytes;
        if sum > MAX_WINDOW as i64 {
            return Err(Overflow);
        }
        self.0 = sum;
        Ok(())
    }
}

/// Largest window, in bytes (RFC 9113 section 6.9.1).
pub(crate) const MAX_WINDOW: u64 = (1 << 31) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_may_be_negative_but_not_above_its_maximum() {
        let mut window = Window::new(10);
        assert!(window.take(10) && !window.take(1) && window.take(0));
        assert_eq!(window.adjust(-5), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.adjust(6), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.adjust(MAX_WINDOW as i64 - 1), Ok(()));
        assert_eq!(window.adjust(1), Err(Overflow));
    }
}
