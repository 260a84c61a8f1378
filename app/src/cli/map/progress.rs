//! A progress bar of reading, on standard error while somebody watches.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use lab::map::log::Progress;

/// The bar.
pub(super) struct Bar {
    began: Instant,
    shown: Instant,
    is_watched: bool,
    is_there: bool,
}

impl Bar {
    /// A bar; logs that are followed have none, since they have no end.
    pub(super) fn new(follows: bool) -> Self {
        Self {
            began: Instant::now(),
            shown: Instant::now(),
            is_watched: !follows && io::stderr().is_terminal(),
            is_there: false,
        }
    }

    /// Shows the progress; the first time after a while.
    pub(super) fn show(&mut self, progress: Progress) {
        if !self.is_watched || self.shown.elapsed() < SHOWN_EVERY {
            return;
        }
        (self.shown, self.is_there) = (Instant::now(), true);
        let line = line(progress, self.began.elapsed());
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if self.is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[#####     ] 50 %, 12.3 million lines, 1.20 million a second, 12 s left`.
fn line(progress: Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let millions = |number: f64| number / 1e6;
    let lines = progress.lines as f64;
    let rate = format!(
        "{:.1} million lines, {:.2} million a second",
        millions(lines),
        millions(lines / seconds)
    );
    let Some(total) = progress.total.filter(|total| *total > 0) else {
        return rate;
    };
    let share = (progress.bytes as f64 / total as f64).min(1.0);
    let bar = "#".repeat((share * WIDTH as f64) as usize);
    let left = match share > 0.0 {
        true => format!(", {:.0} s left", seconds / share - seconds),
        false => String::new(),
    };
    format!("[{bar:WIDTH$}] {:3.0} %, {rate}{left}", share * 100.0)
}

const WIDTH: usize = 30;
/// Time between two lines.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_rate_and_rest() {
        let mut progress = Progress {
            bytes: 250,
            total: Some(1000),
            lines: 3_000_000,
        };
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            line(progress, elapsed),
            "[#######                       ]  25 %, 3.0 million lines, 1.50 million a second, 6 s left"
        );
        let rate = "3.0 million lines, 1.50 million a second";
        // A pipe has no size, an empty file nothing to show.
        for total in [None, Some(0)] {
            progress.total = total;
            assert_eq!(line(progress, elapsed), rate);
        }
        (progress.total, progress.bytes) = (Some(10), 0);
        assert!(line(progress, elapsed).ends_with("a second"));
    }
}
