//! Processes of the server under test, seen through /proc.
//!
//! Only processes with a known id are inspected or signalled: the supervisor's id is known to the test that started it,
//! and a worker's is in the kernel's list of the supervisor's children.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Sends `signal` to the process `pid`; returns whether it existed.
pub fn signal(pid: u32, signal: Signal) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The children of `pid`, as the kernel lists them.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let mut found: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    found.retain(|&child| is_alive(child));
    found
}

/// True while the process exists and is not a zombie waiting to be collected.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    !matches!(state(pid), Some('Z' | 'X') | None)
}

/// True while the first thread of the process waits for something.
#[must_use]
pub fn is_waiting(pid: u32) -> bool {
    state(pid) == Some('S')
}

/// True while a signal keeps the process stopped.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// CPU time of a process, hundredths of a second.
#[must_use]
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // Fields 14 and 15 of proc_pid_stat(5); the state is the third.
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; the state follows the last bracket.
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// CPU time of a process.
///
/// # Panics
/// If the process is gone.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let after = stat.rsplit(')').next().unwrap_or_default();
    // In user mode and in the kernel; the state is the first field here.
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}

/// The effective user of a process.
#[must_use]
pub fn effective_user(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("Uid:"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

/// Returns one value of /proc/PID/status, or an empty text.
#[must_use]
pub fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_default().trim_start_matches(':');
    value.trim().to_owned()
}

/// The unit of times in /proc, on every Linux that these tests run on.
const TICKS_A_SECOND: u64 = 100;
