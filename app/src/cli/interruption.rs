//! The end of a measurement by a signal, after which nothing of it may be left.

use std::io;

use sys::signal::{self, HUP, INT, Signals, TERM};

/// Blocks the signals that end a measurement, which are read from here on. A hangup that whoever started it has it ignore, as nohup
/// does, ends nothing.
///
/// # Errors
/// The limit of descriptors is reached.
pub(super) fn interruptions() -> io::Result<Signals> {
    let all = [INT, TERM, HUP];
    let kept: Vec<i32> = all
        .into_iter()
        .filter(|one| !signal::is_ignored(*one))
        .collect();
    Signals::new(&kept)
}

/// The exit status of a program that SIGINT has ended.
pub(super) const INTERRUPTED: u8 = 130;
