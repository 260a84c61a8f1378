//! Progress on a terminal, and the wish to end.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use lab::doctor::Watch;
use sys::signal::Signals;

use crate::cli::interruption::interruptions;

/// Shows progress, and reads the signals that end an examination.
pub(super) struct Terminal {
    signals: Option<Signals>,
    is_stopped: AtomicBool,
    is_watched: bool,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self {
            signals: interruptions().ok(),
            is_stopped: AtomicBool::new(false),
            is_watched: io::stderr().is_terminal(),
        }
    }

    /// Removes the line of progress.
    pub(super) fn clear(&self) {
        if self.is_watched {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Watch for Terminal {
    fn step(&self, what: &str, done: usize, of: usize) {
        if self.is_watched {
            let _ = write!(io::stderr(), "\r{done} of {of}: {what}\x1b[K");
        }
    }

    fn is_stopped(&self) -> bool {
        let received = self.signals.as_ref().map(Signals::receive);
        if matches!(received, Some(Ok(Some(_)))) {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        self.is_stopped.load(Ordering::Relaxed)
    }
}
