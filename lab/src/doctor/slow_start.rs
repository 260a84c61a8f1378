//! Round trips that bytes take at the beginning of a connection.
//!
//! A server sends its initial window at once, then waits for acknowledgements; each round trip doubles the window. Loss and
//! delayed acknowledgements make a connection slower, never faster.
//!
//! Source: RFC 6928 section 2 (ten segments), RFC 5681 section 3.1 (slow start).

/// Bytes of a segment: an MTU of 1500 without the heads of IPv4 and TCP and the timestamps that Linux sends.
pub(super) const SEGMENT_BYTES: u64 = 1448;

/// Bytes that a server sends before it hears of the client.
pub(super) const INITIAL_WINDOW_BYTES: u64 = 10 * SEGMENT_BYTES;

/// Round trips of `bytes` after the first one.
pub(super) fn further_round_trips(bytes: u64) -> u32 {
    let (mut sent, mut window, mut trips) = (INITIAL_WINDOW_BYTES, INITIAL_WINDOW_BYTES, 0);
    while sent < bytes {
        window = window.saturating_mul(2);
        sent = sent.saturating_add(window);
        trips += 1;
    }
    trips
}

/// Bytes above the initial window; 0 if all fit.
pub(super) fn over_window(bytes: u64) -> u64 {
    bytes.saturating_sub(INITIAL_WINDOW_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double() {
        let window = INITIAL_WINDOW_BYTES;
        assert_eq!(window, 14_480);
        for (bytes, trips) in [
            (0, 0),
            (window, 0),
            (window + 1, 1),
            (3 * window, 1),
            (3 * window + 1, 2),
            (7 * window, 2),
            (7 * window + 1, 3),
        ] {
            assert_eq!(further_round_trips(bytes), trips, "{bytes}");
        }
        assert!(further_round_trips(u64::MAX) < 64);
        assert_eq!((over_window(window), over_window(window + 1)), (0, 1));
    }
}
