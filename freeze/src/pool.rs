//! Work on many files by several threads, with a progress bar if standard error is a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Calls a function for each of `count` indices and returns the results in their order.
///
/// # Errors
/// The first error; indices that were not begun by then are skipped.
pub(super) fn each<T: Send>(
    threads: usize,
    what: &str,
    count: usize,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<T>> = Vec::new();
    results.resize_with(count, || None);
    let mut failure = None;
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            let sender = sender.clone();
            let (next, stopped, work) = (&next, &stopped, &work);
            scope.spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || sender.send((index, work(index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut bar = Bar::new(what, count);
        let mut done = 0;
        loop {
            match receiver.recv_timeout(INTERVAL) {
                Ok((index, Ok(result))) => {
                    results[index] = Some(result);
                    done += 1;
                }
                Ok((_, Err(why))) => {
                    stopped.store(true, Ordering::Relaxed);
                    failure = failure.take().or(Some(why));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            bar.show(done);
        }
        bar.clear();
    });
    match failure {
        Some(why) => Err(why),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

/// Progress display.
struct Bar<'a> {
    what: &'a str,
    count: usize,
    /// When it was shown last; `None` without a terminal.
    shown: Option<Instant>,
    is_there: bool,
}

impl<'a> Bar<'a> {
    fn new(what: &'a str, count: usize) -> Self {
        Self {
            what,
            count,
            shown: io::stderr().is_terminal().then(Instant::now),
            is_there: false,
        }
    }

    fn show(&mut self, done: usize) {
        let Some(shown) = &mut self.shown else { return };
        if shown.elapsed() < INTERVAL {
            return;
        }
        *shown = Instant::now();
        self.is_there = true;
        let text = line(self.what, done, self.count);
        let _ = write!(io::stderr(), "\r{text}\x1b[K");
    }

    fn clear(&mut self) {
        if self.is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[#####               ] 25% writing 100 of 400`.
fn line(what: &str, done: usize, count: usize) -> String {
    let full = done * WIDTH / count.max(1);
    let percent = done * 100 / count.max(1);
    let bar = "#".repeat(full);
    format!("[{bar:WIDTH$}] {percent:3}% {what} {done} of {count}")
}

const INTERVAL: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let squares = each(3, "squaring", 100, |n| Ok(n * n)).expect("nothing fails");
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(n, square)| n * n == *square)
        );
        assert_eq!(squares.len(), 100);
        assert_eq!(each(3, "nothing", 0, Ok), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let failed = each(2, "failing", 1000, |n| {
            if n == 3 {
                Err("three".to_owned())
            } else {
                Ok(n)
            }
        });
        assert_eq!(failed, Err("three".to_owned()));
    }

    #[test]
    fn the_bar_says_how_far_it_is() {
        assert_eq!(
            line("writing", 100, 400),
            "[#######                       ]  25% writing 100 of 400"
        );
        assert!(line("writing", 0, 0).contains("  0% "));
    }
}
