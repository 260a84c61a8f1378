//! The end of a measurement by a signal, after which nothing of it may be left.

use std::io;

use sys::signal::{self, HUP, INT, Signals, TERM};

/// Blocks the signals that end a measurement; the returned value receives them. An ignored hangup stays ignored, as
/// under nohup. The other two always count, since shells start background programs with SIGINT ignored.
///
/// # Errors
/// The limit of descriptors is reached.
pub(super) fn interruptions() -> io::Result<Signals> {
    let all: &[i32] = match signal::is_ignored(HUP) {
        true => &[INT, TERM],
        false => &[INT, TERM, HUP],
    };
    Signals::new(all)
}
