//! The browser's processes, from their start to the end of all of them.
//!
//! The first process leads a process group that its children join. Two crash handlers leave the group. All processes
//! have the path of the browser's own directory in their arguments, and no other process has it, so they are found by
//! it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use sys::{exec, process, signal};

use super::flags;
use super::options::Options;
use super::pipe::Pipe;
use super::profile::Profile;
use super::vendor::PageHosts;

/// A browser that runs; dropping it ends all of its processes.
pub(super) struct Process<'a> {
    child: Child,
    profile: &'a Profile,
    has_ended: bool,
}

impl<'a> Process<'a> {
    /// Starts the program with pipes to it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        program: &Path,
        options: &Options,
        hosts: &PageHosts,
        profile: &'a Profile,
    ) -> io::Result<(Self, Pipe)> {
        let (pipe, ends) = Pipe::create()?;
        let mut command = Command::new(program);
        command
            .args(flags::arguments(options, hosts, &profile.data(), is_root()))
            .env("HOME", profile.home())
            .env("TMPDIR", profile.temporary())
            // Directories of the user that would replace those below HOME, and the user's proxy.
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("SSLKEYLOGFILE")
            .current_dir(profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(ends.errors);
        let child = exec::attached(&mut command, vec![ends.commands, ends.responses]).spawn()?;
        let process = Self {
            child,
            profile,
            has_ended: false,
        };
        Ok((process, pipe))
    }

    /// Waits at most `limit` for the browser to exit, then kills its remaining processes.
    pub(super) fn end(&mut self, limit: Duration) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        until(limit, || self.is_over());
        // The id of the group is the pid of the first process. The kernel cannot reuse it before the process is reaped.
        let _ = process::kill_group(self.child.id(), signal::KILL);
        let _ = self.child.wait();
        let own = self.profile.path();
        until(WATCHERS_MAX, || remaining(own).is_empty());
        for pid in remaining(own) {
            let _ = process::kill(pid, signal::KILL);
        }
        until(WATCHERS_MAX, || remaining(own).is_empty());
    }

    /// Whether the first process has ended; it is not reaped.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // A child that cannot be waited for no longer exists.
        pid.is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Whether this process is the administrator's, under whom the browser's sandbox does not work.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Processes that run and have the path of a directory among their arguments.
fn remaining(own: &Path) -> Vec<u32> {
    let own = own.as_os_str().as_bytes();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    numbers
        .filter(|pid| {
            // Empty for one that has ended and waits to be reaped.
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(own.len()).any(|part| part == own)
        })
        .collect()
}

/// Waits until something is so, `limit` at most.
fn until(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_so() && Instant::now() < end {
        thread::sleep(PAUSE);
    }
}

/// Longest wait for processes outside of the group to see the exit of the browser.
const WATCHERS_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
