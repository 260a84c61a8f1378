//! Processes: fork, daemon, limits, death of children, local time.
//!
//! The supervisor forks while it is single-threaded; everything here is called by it or by a worker process before
//! its threads start. Source: fork(2), prctl(2), wait(2), setrlimit(2).

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};

use super::check;

/// Which side of a fork this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// In the calling process; the child's number.
    Parent(u32),
    /// The new process.
    Child,
}

/// Exit status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// Its number.
        signo: i32,
        /// A core was written.
        core_dumped: bool,
    },
}

/// Duplicates the process.
///
/// # Errors
/// The process limit is reached; `Unsupported` if the process has more than one thread, because the child would
/// inherit locks that none of its threads can release.
pub fn fork() -> io::Result<Fork> {
    if thread_count() > 1 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "fork with several threads",
        ));
    }
    // SAFETY: with one thread, no held lock and no partial change is inherited. If the number of threads is
    // unknown, libc still leaves its own locks in a usable state.
    let pid = check(unsafe { libc::fork() })?;
    Ok(u32::try_from(pid)
        .ok()
        .filter(|pid| *pid != 0)
        .map_or(Fork::Child, Fork::Parent))
}

/// Returns the number of threads of this process. Without /proc 2 means "several", and 1 may mean "unknown": a
/// seccomp filter may refuse the call.
pub(super) fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or_else(|_| one_or_several(), Iterator::count)
}

/// Returns 2 if this process has several threads, else 1. Source: unshare(2), `CLONE_THREAD`.
fn one_or_several() -> usize {
    // SAFETY: the call has no effect: with one thread it does nothing, with several the kernel refuses it.
    let refused = unsafe { libc::unshare(libc::CLONE_THREAD) } != 0;
    let several = io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    if refused && several { 2 } else { 1 }
}

/// The parent of a daemon, which waits until the start has succeeded. It exits with 1 if this is dropped first.
#[derive(Debug)]
pub struct Starting(PipeWriter);

impl Starting {
    /// Has the parent exit with 0.
    pub fn succeeded(mut self) {
        // A parent that was killed does not wait.
        let _ = self.0.write_all(&[1]);
    }
}

/// Continues in a child with a session of its own, no umask, and /dev/null for input and output. The calling
/// process runs `leave` with the child's number, waits for [`Starting`], and exits. This returns after `leave`.
///
/// # Errors
/// pipe, fork, setsid or opening /dev/null failed; the text names the call.
pub fn daemonize(leave: impl FnOnce(u32)) -> Result<Starting, (&'static str, io::Error)> {
    let (mut result, starting) = io::pipe().map_err(|error| ("pipe()", error))?;
    let (mut parent_left, leaving) = io::pipe().map_err(|error| ("pipe()", error))?;
    if let Fork::Parent(child) = fork().map_err(|error| ("fork()", error))? {
        drop((starting, parent_left));
        leave(child);
        drop(leaving);
        let started = result.read_exact(&mut [0]).is_ok();
        exit_now(i32::from(!started));
    }
    drop((result, leaving));
    // A service manager ignores messages of the child before it knows the child as the main process.
    let _ = parent_left.read(&mut [0]);
    rustix::process::setsid().map_err(|error| ("setsid()", error.into()))?;
    rustix::process::umask(rustix::fs::Mode::empty());
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| ("open(\"/dev/null\")", error))?;
    duplicate(&null, libc::STDIN_FILENO).map_err(|error| ("dup2(STDIN)", error))?;
    duplicate(&null, libc::STDOUT_FILENO).map_err(|error| ("dup2(STDOUT)", error))?;
    Ok(Starting(starting))
}

/// Denies others write access to files of this process, regardless of the requested mode; returns the previous
/// umask.
#[must_use]
pub fn restrict_umask() -> u32 {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let both = before | rustix::fs::Mode::from_raw_mode(0o022);
    rustix::process::umask(both);
    before.bits()
}

/// Makes `file` the standard error of the process.
///
/// # Errors
/// The descriptor limit is reached.
pub fn redirect_stderr(file: impl AsFd) -> io::Result<()> {
    duplicate(file, libc::STDERR_FILENO)
}

/// Puts `file` in the place of a standard stream.
fn duplicate(file: impl AsFd, standard: libc::c_int) -> io::Result<()> {
    // SAFETY: the source is open, and the numbers of the standard streams have no owner.
    check(unsafe { libc::dup2(file.as_fd().as_raw_fd(), standard) })?;
    Ok(())
}

/// Makes `target` refer to the file of `new`; later writes to `target` reach that file.
///
/// # Errors
/// The call failed, which is impossible for two open descriptors.
pub fn replace_descriptor(target: impl AsFd, new: impl AsFd) -> io::Result<()> {
    let (target, new) = (target.as_fd().as_raw_fd(), new.as_fd().as_raw_fd());
    // SAFETY: both descriptors are open and borrowed for the call; the number of `target` stays open and owned as before.
    check(unsafe { libc::dup3(new, target, libc::O_CLOEXEC) })?;
    Ok(())
}

/// A descriptor of standard error of its own.
///
/// # Errors
/// The descriptor limit is reached, or standard error is closed.
pub fn duplicate_stderr() -> io::Result<OwnedFd> {
    io::stderr().as_fd().try_clone_to_owned()
}

/// A file in memory, freed with its last descriptor; /proc shows it as `name`.
///
/// # Errors
/// There is no memory, or the descriptor limit is reached.
pub fn memory_file(name: &str) -> io::Result<OwnedFd> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create(name, flags)?)
}

/// Returns the name of this machine in lower case, for logs. Source: uname(2), `nodename`.
#[must_use]
pub fn hostname() -> Vec<u8> {
    let names = rustix::system::uname();
    names.nodename().to_bytes().to_ascii_lowercase()
}

/// The number of the calling thread.
#[must_use]
pub fn thread_id() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Whether the calling thread is the first of its process.
#[must_use]
pub fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// Ends the process without running exit handlers, which belong to the parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Reaps all ended children.
#[must_use]
pub fn reap() -> Vec<(u32, Exit)> {
    let mut ended = Vec::new();
    while let Ok(Some((pid, status))) = super::retry(|| rustix::process::wait(WaitOptions::NOHANG))
    {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signo)) => Exit::Signal {
                signo,
                core_dumped: libc::WCOREDUMP(status.as_raw()),
            },
            (None, None) => continue,
        };
        ended.push((pid.as_raw_nonzero().get().unsigned_abs(), exit));
    }
    ended
}

/// Sends a signal to a process.
///
/// # Errors
/// ESRCH if there is none, EPERM if it belongs to another user; EINVAL for an invalid signal number.
pub fn kill(pid: u32, signo: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // The number 0 would mean the whole process group.
    if pid == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the call takes two numbers.
    check(unsafe { libc::kill(pid, signo) })?;
    Ok(())
}

/// Sends a signal to a process group; its number is that of its leader.
///
/// # Errors
/// As those of [`kill`].
pub fn kill_group(leader: u32, signo: i32) -> io::Result<()> {
    let group = i32::try_from(leader).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // Neither this process's own group nor all processes.
    if group <= 1 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the call takes two numbers.
    check(unsafe { libc::kill(-group, signo) })?;
    Ok(())
}

/// Makes the kernel send SIGTERM to this process when its parent dies; returns false if `parent` is dead already.
///
/// # Errors
/// None is known.
pub fn die_with_parent(parent: u32) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    Ok(parent_id() == parent)
}

/// Makes the kernel kill this process at once when the thread that forked it ends.
///
/// # Errors
/// None is known.
pub fn be_killed_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(
        Signal::KILL,
    ))?)
}

/// The number of the parent process, or of the one that adopted this one; 0 for one outside of this process's PID
/// namespace.
#[must_use]
pub fn parent_id() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// This process's number.
#[must_use]
pub fn id() -> u32 {
    std::process::id()
}

/// Sets both limits of open files.
///
/// # Errors
/// Raising the hard limit needs root.
pub fn set_rlimit_nofile(files: u64) -> io::Result<()> {
    set_rlimit(Resource::Nofile, files)
}

/// Sets both limits of open files of another process.
///
/// # Errors
/// It is gone, or belongs to another user; raising the hard limit needs root.
pub fn set_rlimit_nofile_of(pid: u32, files: u64) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // None would mean this process.
    let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let limits = Rlimit {
        current: Some(files),
        maximum: Some(files),
    };
    rustix::process::prlimit(Some(pid), Resource::Nofile, limits)?;
    Ok(())
}

/// Raises the soft limit of open files to the hard one.
///
/// # Errors
/// None is known.
pub fn raise_rlimit_nofile() -> io::Result<()> {
    let limits = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}

/// Sets both limits of a core file's size, bytes.
///
/// # Errors
/// Raising the hard limit needs root.
pub fn set_rlimit_core(bytes: u64) -> io::Result<()> {
    set_rlimit(Resource::Core, bytes)
}

/// The soft limit of open files; `None` is unlimited.
#[must_use]
pub fn rlimit_nofile() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).current
}

/// The hard limit of open files; `None` is unlimited.
#[must_use]
pub fn hard_rlimit_nofile() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).maximum
}

/// Returns the number of open files of this process. Its cost grows with that number; without /proc, with the
/// limit.
#[must_use]
pub fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd")
        .map_or_else(|_| probed_open_files(), |entries| entries.count() as u64)
}

/// Counts open files by trying every number: some 60 ms for a limit of a million.
fn probed_open_files() -> u64 {
    let limit = rlimit_nofile().unwrap_or(NR_OPEN).min(NR_OPEN);
    let numbers = 0..libc::c_int::try_from(limit).unwrap_or(libc::c_int::MAX);
    // SAFETY: the call takes no pointer and changes nothing; it refuses a number without a file.
    let is_open = |fd: &libc::c_int| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1;
    numbers.filter(is_open).count() as u64
}

/// Returns the largest limit of open files that the system permits: the kernel's default without /proc.
#[must_use]
pub fn most_open_files() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/fs/nr_open").unwrap_or_default();
    text.trim().parse().unwrap_or(NR_OPEN)
}

fn set_rlimit(resource: Resource, value: u64) -> io::Result<()> {
    let limits = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(rustix::process::setrlimit(resource, limits)?)
}

/// The offset of local time from UTC at `unix_s`, seconds; 0 if unknown.
#[must_use]
pub fn local_offset_s(unix_s: i64) -> i32 {
    let time: libc::time_t = unix_s;
    // SAFETY: a tm of zeroes is a value of its type: numbers and a null pointer.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call; localtime_r takes libc's own lock on the zone,
    // and the environment is only changed before threads start.
    if unsafe { libc::localtime_r(&raw const time, &raw mut local) }.is_null() {
        return 0;
    }
    i32::try_from(local.tm_gmtoff).unwrap_or(0)
}

/// Replaces the whole environment, before threads start.
///
/// # Errors
/// `Unsupported` if the process has more than one thread.
pub fn set_environment(variables: &[(OsString, OsString)]) -> io::Result<()> {
    if thread_count() > 1 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "environment with several threads",
        ));
    }
    let old: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in old {
        // SAFETY: there is one thread, so there are no concurrent readers of the environment.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in variables {
        let bad_name =
            name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0));
        if bad_name || value.as_bytes().contains(&0) {
            continue;
        }
        // SAFETY: there is one thread; name and value are valid for set_var.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

/// The kernel's own value of `fs.nr_open`.
const NR_OPEN: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fork_is_refused_with_several_threads() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || receiver.recv());
        let error = fork().expect_err("several threads");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        set_environment(&[]).expect_err("several threads");
        drop(sender);
        assert!(other.join().is_ok());
    }

    #[test]
    fn several_threads_are_known_without_proc() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || receiver.recv());
        assert_eq!(one_or_several(), 2);
        drop(sender);
        assert!(other.join().is_ok());
    }

    /// Other tests open and close files meanwhile.
    #[test]
    fn open_files_are_counted_without_proc() {
        let equal = (0..1000).any(|_| {
            let counted = open_files();
            // The directory that is read is open too.
            counted == probed_open_files() + 1
        });
        assert!(equal);
    }

    #[test]
    fn the_name_of_the_machine_is_the_kernels() {
        let text = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("/proc is mounted");
        assert_eq!(hostname(), text.trim().to_ascii_lowercase().into_bytes());
    }

    #[test]
    fn signal_to_nobody_is_an_error() {
        assert_eq!(
            kill(0, 0).expect_err("a group").raw_os_error(),
            Some(libc::EINVAL)
        );
        assert!(kill(u32::MAX, 0).is_err());
        for group in [0, 1, u32::MAX] {
            assert!(kill_group(group, 0).is_err(), "{group}");
        }
        kill(id(), 0).expect("we are");
    }

    #[test]
    fn offset_is_within_a_day() {
        assert!(local_offset_s(1_790_000_000).abs() <= 86_400);
    }

    #[test]
    fn open_file_limit_is_known() {
        assert!(rlimit_nofile().is_none_or(|files| files > 2));
    }
}
