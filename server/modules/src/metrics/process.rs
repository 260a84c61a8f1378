//! Resource usage of the process, as the kernel counts it.
//!
//! Source: proc(5); Prometheus documentation, "Writing client libraries", process metrics.

use std::fs;

/// Resource usage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// Processor time, user's and system's, seconds.
    pub(super) cpu_s: f64,
    /// Memory in RAM, bytes.
    pub(super) resident_bytes: u64,
    /// Memory in all.
    pub(super) virtual_bytes: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Open descriptors.
    pub(super) open_fds: u64,
    /// When it began, seconds since 1970.
    pub(super) started_s: f64,
}

impl Process {
    /// This process; `None` without /proc.
    pub(super) fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let mut process = Self::read(&stat, &status, &system)?;
        process.open_fds = fs::read_dir("/proc/self/fd").map_or(0, |list| list.count() as u64);
        Some(process)
    }

    fn read(stat: &str, status: &str, system: &str) -> Option<Self> {
        // The name of the program is in parentheses and may contain any character.
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |n: usize| fields.get(n - FIRST_FIELD)?.parse::<u64>().ok();
        let line = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let booted_s = line(system, "btime ")?;
        Some(Self {
            cpu_s: (ticks(14)? + ticks(15)?) as f64 / TICKS_A_SECOND,
            resident_bytes: line(status, "VmRSS:")? * 1024,
            virtual_bytes: line(status, "VmSize:")? * 1024,
            threads: line(status, "Threads:")?,
            open_fds: 0,
            started_s: booted_s as f64 + ticks(22)? as f64 / TICKS_A_SECOND,
        })
    }
}

/// Number of the first field of /proc/self/stat after the name of the program.
const FIRST_FIELD: usize = 3;
/// USER_HZ, equal on all Linux platforms of Rust's standard library.
const TICKS_A_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_costs_something() {
        let now = Process::now().expect("Linux has /proc");
        assert!(now.resident_bytes > 0 && now.virtual_bytes >= now.resident_bytes);
        assert!(now.threads > 0 && now.open_fds > 0 && now.started_s > 1e9);
    }

    #[test]
    fn the_name_of_the_program_is_no_field() {
        let stat = "7 (a) b c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 3 0 1000 1 1";
        let status = "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t3\n";
        let process = Process::read(stat, status, "cpu 1\nbtime 1700000000\n");
        let expected = Process {
            cpu_s: 2.0,
            resident_bytes: 1 << 20,
            virtual_bytes: 2 << 20,
            threads: 3,
            open_fds: 0,
            started_s: 1_700_000_010.0,
        };
        assert_eq!(process, Some(expected));
        assert_eq!(Process::read("7 (a", status, ""), None);
        assert_eq!(Process::read(") S", status, "btime 1"), None);
    }
}
