//! Limits of header lines: nginx's header buffers, counted without them.
//!
//! nginx reads a head into one small buffer, then into up to N large ones. A line never spans two
//! buffers: if it does not fit in the rest of one, it moves to a new one. This rule decides which
//! heads nginx refuses, and configurations are tuned to it. So this server refuses the same heads,
//! although it stores the bytes differently. Unlike in nginx every request starts with fresh
//! buffers, also a pipelined one: acceptance must not depend on when bytes arrive. Source: nginx's
//! `client_header_buffer_size`, `large_client_header_buffers`.

use super::Settings;

/// The room left for header lines of one message.
#[derive(Clone, Debug)]
pub(super) struct LineBudget {
    first_bytes: usize,
    large_bytes: usize,
    large_left: u32,
    /// Bytes left in the current buffer.
    room: usize,
}

impl LineBudget {
    /// The buffers of a request head.
    pub(super) fn of_head(settings: &Settings) -> Self {
        let (large, large_bytes) = settings.large_header_buffers;
        let first_bytes = settings.header_buffer_bytes.max(1);
        Self {
            first_bytes,
            large_bytes,
            large_left: large,
            room: first_bytes,
        }
    }

    /// The buffers of a trailer section: large ones only.
    pub(super) fn of_trailers(settings: &Settings) -> Self {
        let (large, large_bytes) = settings.large_header_buffers;
        let first_bytes = large_bytes.max(1);
        Self {
            first_bytes,
            large_bytes,
            large_left: large.saturating_sub(1),
            room: first_bytes,
        }
    }

    /// Maximum length of the next line, bytes, line end included.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        // A full buffer is moved only into a larger one.
        if self.large_left == 0 || self.room >= self.large_bytes {
            self.room
        } else {
            self.large_bytes
        }
    }

    /// Takes the next line of `len` bytes, which is at most the capacity.
    #[inline]
    pub(super) fn take(&mut self, len: usize) {
        debug_assert!(
            len <= self.capacity(),
            "the caller has checked the capacity"
        );
        if len <= self.room {
            self.room -= len;
        } else {
            self.large_left = self.large_left.saturating_sub(1);
            self.room = self.large_bytes.saturating_sub(len);
        }
    }

    /// Takes `len` line-end bytes before a request line; a buffer full of them is reused from its start.
    pub(super) fn skip(&mut self, len: usize) {
        let used = (self.first_bytes - self.room + len) % self.first_bytes;
        self.room = self.first_bytes - used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(first: usize, large: (u32, usize)) -> LineBudget {
        LineBudget::of_head(&Settings {
            header_buffer_bytes: first,
            large_header_buffers: large,
            ..Settings::default()
        })
    }

    #[test]
    fn a_line_that_does_not_fit_the_rest_moves_to_a_large_buffer() {
        let mut budget = budget(128, (1, 256));
        budget.take(100);
        assert_eq!(budget.capacity(), 256);
        budget.take(29);
        assert_eq!(budget.capacity(), 227, "the one large buffer is in use");
    }

    #[test]
    fn a_line_that_fits_exactly_leaves_no_room() {
        let mut budget = budget(128, (1, 256));
        budget.take(128);
        budget.take(256);
        assert_eq!(budget.capacity(), 0);
    }

    #[test]
    fn small_lines_fill_a_large_buffer_before_the_next_is_taken() {
        let mut budget = budget(10, (2, 100));
        for _ in 0..4 {
            budget.take(50);
        }
        assert_eq!(budget.capacity(), 0);
    }

    #[test]
    fn a_first_buffer_beyond_the_large_size_limits_a_line_by_itself() {
        assert_eq!(budget(512, (4, 256)).capacity(), 512);
        assert_eq!(budget(128, (0, 256)).capacity(), 128);
    }

    #[test]
    fn line_ends_before_a_request_use_the_first_buffer_over_and_over() {
        let mut budget = budget(10, (0, 0));
        budget.skip(4);
        assert_eq!(budget.capacity(), 6);
        budget.skip(6);
        assert_eq!(budget.capacity(), 10);
        budget.skip(25);
        assert_eq!(budget.capacity(), 5);
    }
}
