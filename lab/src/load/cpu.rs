//! CPU time and memory of processes, and the load of the machine.
//!
//! Source: proc(5).

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, nanoseconds.
pub(super) fn own_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// CPU time of this thread, nanoseconds.
pub(super) fn thread_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether a process exists.
#[must_use]
pub fn exists(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or(true)
}

/// A process and its children, down to the last.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        at += 1;
        let tasks = fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|id| id.parse().ok());
            for child in children {
                if !found.contains(&child) {
                    found.push(child);
                }
            }
        }
    }
    found
}

/// CPU time of processes so far, nanoseconds, without threads that have ended; `None` if no process exists.
pub(super) fn cpu_ns(pids: &[u32]) -> Option<u64> {
    let mut total = None;
    for pid in pids {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let times = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let ran = times.split_whitespace().next();
            if let Some(ns) = ran.and_then(|ns| ns.parse::<u64>().ok()) {
                *total.get_or_insert(0) += ns;
            }
        }
    }
    total
}

/// Resident memory of processes, bytes; shared memory is counted for each process.
pub(super) fn memory_bytes(pids: &[u32]) -> Option<u64> {
    let of = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024)
    };
    let all: Vec<u64> = pids.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// Use of the machine's CPUs since its start, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// All of it.
    pub(super) total: u64,
    /// Neither idle nor waiting.
    pub(super) busy: u64,
    /// Taken by the machine that runs this one.
    pub(super) steal: u64,
}

impl Machine {
    /// Reads it from /proc/stat.
    pub(super) fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let numbers: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .map_while(|number| number.parse().ok())
            .collect();
        let at = |n: usize| numbers.get(n).copied().unwrap_or(0);
        // Guests are counted among the first two.
        let total = numbers.iter().take(8).sum();
        Self {
            total,
            busy: total - at(3) - at(4),
            steal: at(7),
        }
    }

    /// Shares of the time since then: busy, and taken by others.
    pub(super) fn since(&self, before: &Self) -> (f64, f64) {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        let busy = self.busy.saturating_sub(before.busy) as f64;
        let steal = self.steal.saturating_sub(before.steal) as f64;
        (busy / total, steal / total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_the_machine_are_read() {
        let before = Machine::parse("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2\n");
        assert_eq!((before.total, before.busy, before.steal), (100, 20, 0));
        let after = Machine::parse("cpu  20 0 20 140 10 0 0 10 5 0\n");
        assert_eq!(after.since(&before), (0.3, 0.1));
        assert_eq!(Machine::parse(""), Machine::default());
    }

    #[test]
    fn a_process_and_its_children_use_time() {
        let script = "while :; do :; done & while :; do :; done";
        let mut shell = std::process::Command::new("sh");
        let mut busy = shell
            .args(["-c", script])
            .spawn()
            .expect("there is a shell");
        let (began, own) = (std::time::Instant::now(), own_ns());
        let mut pids = Vec::new();
        // Threads of this process come and go with other tests, so that its sum may fall.
        while began.elapsed().as_secs() < 10 && cpu_ns(&pids).is_none_or(|ns| ns < 30_000_000) {
            std::thread::sleep(std::time::Duration::from_millis(5));
            pids = family(busy.id());
        }
        let (found, memory) = (cpu_ns(&pids), memory_bytes(&pids));
        for pid in pids.iter().filter(|pid| **pid != busy.id()) {
            let _ = std::process::Command::new("kill")
                .arg(pid.to_string())
                .status();
        }
        let _ = busy.kill();
        let _ = busy.wait();
        assert_eq!((pids.len(), pids[0]), (2, busy.id()));
        assert!(found.is_some_and(|ns| ns >= 30_000_000), "{found:?}");
        assert!(memory.is_some_and(|bytes| bytes > 100_000), "{memory:?}");
        assert!(own_ns() > own);
        assert_eq!(cpu_ns(&[u32::MAX]), None);
    }
}
