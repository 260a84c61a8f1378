//! Standard output of the program. Nothing else writes to it.
//!
//! A failed write is an error for all callers, so that a full disk never passes for success. A closed pipe is none: its reader
//! has seen enough, as `head` has.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use sys::os_error;

/// A write has met a closed pipe.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether the reader of standard output is gone.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Writes a text and flushes it.
///
/// # Errors
/// A sentence with the system's error.
pub(crate) fn write(text: &str) -> Result<(), String> {
    write_with(|out| out.write_all(text.as_bytes()))
}

/// Calls `put` with standard output, and flushes it.
///
/// # Errors
/// A sentence with the system's error.
pub(crate) fn write_with(put: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut out = io::stdout().lock();
    let written = put(&mut out).and_then(|()| out.flush());
    if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
        CLOSED.store(true, Ordering::Relaxed);
    }
    outcome("output", written)
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a text to standard error, in place of standard output, as nginx does with `-v`, `-V` and `-h`.
///
/// # Errors
/// A sentence with the system's error.
pub(crate) fn write_stderr(text: &str) -> Result<(), String> {
    outcome("error", io::stderr().write_all(text.as_bytes()))
}

/// A closed pipe is no error.
fn outcome(stream: &str, written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let why = os_error(&error);
            Err(format!("cannot write standard {stream}: {why}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_error() {
        let of = |code| outcome("output", Err(io::Error::from_raw_os_error(code)));
        let (epipe, enospc) = (32, 28);
        assert_eq!(of(epipe), Ok(()));
        let why = "cannot write standard output: 28: No space left on device";
        assert_eq!(of(enospc), Err(why.to_owned()));
        assert_eq!(outcome("output", Ok(())), Ok(()));
    }
}
