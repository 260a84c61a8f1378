//! The threads that do what takes long, such as comparing passwords, for the threads that serve.
//!
//! They belong to the process and are started when there is work: what does not use them does not pay for them. Work is done
//! in the order in which it came. They run on any CPU and after the threads that serve, so that a machine with nothing to
//! spare answers other requests first. Absent: ending them, since a thread that waits costs nothing.

use server_base::offload::{Full, Work};
use sys::schedule;

use crate::pool::{Limits, Pool};

/// Has work done by one of the threads.
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

/// Pieces of work that wait, besides those in progress.
const WORK_MAX: usize = 1024;
/// Threads, where the process has as many CPUs.
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
