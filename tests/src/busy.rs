//! Whether the machine is too busy to judge what depends on time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a thread was kept from running by the machine's other work while `task` ran, as far as one can see that
/// rests for a millisecond at a time.
///
/// # Panics
/// When the task does.
pub fn worst_stall_while(task: impl FnOnce()) -> Duration {
    const NAP: Duration = Duration::from_millis(1);
    let over = AtomicBool::new(false);
    // A task that panics must not leave the watch behind, for which the scope waits.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                thread::park_timeout(NAP);
                worst = worst.max(asleep.elapsed().saturating_sub(NAP));
            }
            worst
        });
        let end = Over(&over);
        task();
        drop(end);
        watch.join().expect("the watch does not panic")
    })
}

/// Says that a test could not judge, and why.
pub fn inconclusive(why: &str) {
    use std::io::Write;
    let line = format!("\ninconclusive: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
