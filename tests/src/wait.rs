//! Polling with a deadline: the only form of waiting in the tests.
//!
//! A condition is checked every few milliseconds until it holds. A test never assumes that the server finishes within
//! some time.

use std::time::{Duration, Instant};

/// Timeout of any single expectation, generous for a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(2);

/// Asks `condition` until it is true; panics with `what` when [`DEADLINE`] passes first.
///
/// # Panics
/// When the condition never held.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(DEADLINE, condition), "never came true: {what}");
}

/// Polls `condition` until it is true or `limit` passes; returns whether it is true.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Does nothing for a time: for scripted peers that are slow on purpose, never to wait for the server.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
