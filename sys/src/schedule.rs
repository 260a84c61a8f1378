//! Scheduling of threads: their CPUs and their priorities.
//!
//! Source: sched(7), sched_setattr(2), sched_setaffinity(2), setpriority(2).

use std::io;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::check;

/// Binds the calling thread to these CPUs; numbers beyond the kernel's set are left out.
///
/// # Errors
/// None of the CPUs exists.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        set.set(*cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Sets the scheduling priority of the process, -20 (first) to 19 (last).
///
/// # Errors
/// A smaller number than now needs root.
pub fn set_priority(priority: i32) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None::<Pid>, priority)?)
}

/// Lets the calling thread run on every CPU that the process's first thread may use, with a lower priority: its
/// nice value rises by `niceness`, to 19 at most. Its time slice is the default one again.
///
/// # Errors
/// None is known.
pub fn run_in_background(niceness: i32) -> io::Result<()> {
    let own = rustix::process::getpriority_process(None::<Pid>)?;
    rustix::process::setpriority_process(None::<Pid>, (own + niceness).min(19))?;
    // If the kernel refuses, the thread keeps its initial slice.
    let _ = set_time_slice(Duration::ZERO);
    let cpus = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()))?;
    Ok(rustix::thread::sched_setaffinity(None, &cpus)?)
}

/// Number of CPUs on which the process's first thread may run, regardless of the calling thread's affinity; 1 if
/// unknown.
#[must_use]
pub fn cpu_count() -> usize {
    let cpus = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()));
    cpus.map_or(1, |cpus| cpus.count() as usize)
}

/// Shortens the time slice of the calling thread, and of threads that it starts, to 0.1 ms, the minimum. When such
/// a thread wakes it preempts threads with longer slices (0.7 to 3 ms by default), even within these, unless it has
/// used more than its share of the CPU. Its share is unchanged.
///
/// Kernels before Linux 6.12 accept the value and ignore it. Source: sched_setattr(2); Linux kernel documentation,
/// "EEVDF Scheduler".
///
/// # Errors
/// The kernel's. Only SCHED_OTHER and SCHED_BATCH have slices; a thread with another policy is left unchanged.
pub fn shorten_time_slice() -> io::Result<()> {
    set_time_slice(TIME_SLICE)
}

/// Sets the time slice of the calling thread; zero is the default one.
fn set_time_slice(slice: Duration) -> io::Result<()> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).expect("a struct is small");
    // SAFETY: a sched_attr consists of numbers, for which zeroes are valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to the pointer's target.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) })?;
    let policy = i32::try_from(attributes.sched_policy).unwrap_or(i32::MAX);
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&policy) {
        return Ok(());
    }
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the kernel reads `size` bytes, the size set in the struct, from the pointer's target.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) })?;
    Ok(())
}

/// The kernel's minimum.
const TIME_SLICE: Duration = Duration::from_micros(100);

/// Schedules the calling thread before all threads that are not real-time, and before real-time ones with a lower
/// priority (1 to 99). Threads that it starts are included if `inherited`. For measuring, never for serving,
/// because such a thread starves others while it runs.
///
/// # Errors
/// CAP_SYS_NICE is missing, the cgroup has no real-time share, or the priority is invalid.
pub fn set_realtime_thread(priority: i32, inherited: bool) -> io::Result<()> {
    // SAFETY: a sched_param consists of numbers, for which zeroes are valid; some libraries have more fields than
    // the priority.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    let reset = if inherited {
        0
    } else {
        libc::SCHED_RESET_ON_FORK
    };
    let policy = libc::SCHED_FIFO | reset;
    // SAFETY: pthread_self always names a living thread, and the parameters are valid for the call.
    match unsafe {
        libc::pthread_setschedparam(libc::pthread_self(), policy, &raw const parameters)
    } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_in_the_background_leaves_what_it_was_bound_to() {
        let all = cpu_count();
        let thread = std::thread::spawn(move || {
            set_affinity(&(0..CpuSet::MAX_CPU).collect::<Vec<_>>()).expect("any CPU");
            let before = rustix::process::getpriority_process(None::<Pid>).expect("known");
            run_in_background(5).expect("it may");
            let own = rustix::thread::sched_getaffinity(None).expect("known");
            let after = rustix::process::getpriority_process(None::<Pid>).expect("known");
            (own.count() as usize, before, after)
        });
        let (cpus, before, after) = thread.join().expect("it ends");
        assert_eq!((cpus, after), (all, (before + 5).min(19)));
        assert_eq!(
            rustix::process::getpriority_process(None::<Pid>),
            Ok(before),
            "of that thread alone"
        );
    }

    #[test]
    fn a_thread_has_a_short_slice_and_hands_it_on() {
        let slice = || {
            // SAFETY: a sched_attr is numbers; the kernel writes no more than its size.
            unsafe {
                let mut attributes: libc::sched_attr = std::mem::zeroed();
                let size = size_of::<libc::sched_attr>();
                let result =
                    libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
                assert_eq!(result, 0);
                (attributes.sched_runtime, attributes.sched_nice)
            }
        };
        let thread = std::thread::spawn(move || {
            let default = slice();
            shorten_time_slice().expect("it may");
            let shortened = slice();
            let started = std::thread::spawn(slice).join().expect("it ends");
            run_in_background(3).expect("it may");
            (default, shortened, started, slice())
        });
        let (default, shortened, started, behind) = thread.join().expect("it ends");
        // 0 before Linux 6.12.
        assert!([100_000, 0].contains(&shortened.0), "{shortened:?}");
        assert_eq!(shortened.1, default.1, "the nice value");
        assert_eq!(started, shortened);
        assert_eq!(behind, (default.0, (default.1 + 3).min(19)));
    }
}
