//! Threads for long work of the serving threads, such as comparing passwords.
//!
//! They belong to the process and start with the first work, so they cost nothing without use. Work is done in the
//! order of its submission. They run on any CPU and with a lower priority than serving threads, so that a busy machine
//! answers other requests first. Absent: ending them, since a waiting thread costs nothing.

use server_base::offload::{Full, Work};
use sys::schedule;

use crate::pool::{Limits, Pool};

/// Queues work for one of the threads.
///
/// # Errors
/// [`WORK_MAX`] pieces of work wait already.
pub(super) fn offload(work: Work) -> Result<(), Full> {
    let limits = Limits {
        threads: threads_max(),
        waiting: WORK_MAX,
    };
    POOL.submit(work, limits, || {
        std::thread::Builder::new()
            .name("offload".to_owned())
            .spawn(serve)
            .is_ok()
    })
}

static POOL: Pool = Pool::new();

fn serve() {
    // It works with the priority and the CPUs of the thread that started it as well.
    let _ = schedule::run_in_background(NICENESS);
    POOL.serve();
}

fn threads_max() -> usize {
    schedule::cpu_count().clamp(1, THREADS_MAX)
}

/// Maximum number of tasks in the queue, besides those in progress.
const WORK_MAX: usize = 1024;
/// Maximum number of threads; no more than the process has CPUs.
const THREADS_MAX: usize = 16;
/// By how much later than the threads that serve they are scheduled.
const NICENESS: i32 = 5;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use sys::process;

    use super::*;

    #[test]
    fn a_panic_costs_no_thread() {
        let (done, results) = channel();
        let panics = threads_max() * 2;
        for _ in 0..panics {
            assert_eq!(offload(Box::new(|| panic!("as it is meant to"))), Ok(()));
        }
        let work = Box::new(move || done.send(process::thread_id()).expect("the test waits"));
        assert_eq!(offload(work), Ok(()));
        let thread = results.recv_timeout(Duration::from_secs(8));
        assert_ne!(thread, Ok(process::thread_id()));
        assert!(thread.is_ok());
    }
}
