//! The end of a measurement by a signal, after which nothing of it may be left.

use std::io;

use sys::signal::{self, HUP, INT, Signals, TERM};

/// Blocks the signals that end a measurement, which are read from here on. A hangup that whoever started it has it ignore, as nohup
/// does, ends nothing; the other two always do, since shells have programs in the background ignore SIGINT.
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
