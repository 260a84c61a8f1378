//! Signals as data: blocked for the process and read from a descriptor in the poll loop.
//!
//! A handler could do almost nothing safely; a signalfd lets the event loop log, reload and reap. Threads started
//! later inherit the blocked mask. Source: signalfd(2).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{check, retry};

/// A blocked set of signals and the descriptor they are read from.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

/// One signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signo: i32,
    /// The sending process; 0 for the kernel, or for one outside of this process's PID namespace.
    pub sender: u32,
    /// The kernel sent it: for instance a terminal's signal to all processes in its foreground.
    pub by_kernel: bool,
}

impl Signals {
    /// Blocks `signals` for this thread and its later children, and makes them readable.
    ///
    /// # Errors
    /// The descriptor limit is reached, or a number is no signal.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals)?;
        // SAFETY: `set` is initialized; the old mask is not requested.
        let error =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: `set` is initialized, and -1 requests a new descriptor.
        let fd = check(unsafe { libc::signalfd(-1, &raw const set, flags) })?;
        // SAFETY: signalfd has just made `fd`, and it has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// The next signal, if one waits.
    ///
    /// # Errors
    /// Only a broken descriptor fails.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        match retry(|| rustix::io::read(&self.fd, &mut info)) {
            Ok(_) => Ok(Some(Received {
                signo: i32::try_from(field(&info, SIGNO_AT)).unwrap_or(0),
                sender: field(&info, PID_AT),
                // The code of signals sent by processes is 0 or negative, as a signed number.
                by_kernel: (1..1 << 31).contains(&field(&info, CODE_AT)),
            })),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Unblocks every signal of this thread, for a new process that inherited a blocked mask.
///
/// # Errors
/// None is known.
pub fn unblock_all() -> io::Result<()> {
    let set = set_of(&[])?;
    // SAFETY: `set` is initialized; the old mask is not requested.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) }
    {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes the process ignore `signo`.
///
/// # Errors
/// `signo` is no signal or cannot be ignored.
pub fn ignore(signo: i32) -> io::Result<()> {
    // SAFETY: SIG_IGN runs no code of ours.
    if unsafe { libc::signal(signo, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether the process ignores `signo`, from its start or by [`ignore`]; false for a number that is no signal.
#[must_use]
pub fn is_ignored(signo: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no action is set, and on success the call has written the current one.
    unsafe {
        libc::sigaction(signo, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The name of a signal, such as `SIGHUP`; empty for one without a name here.
#[must_use]
pub fn name(signo: i32) -> &'static str {
    NAMES
        .iter()
        .find(|(number, _)| *number == signo)
        .map_or("", |(_, name)| name)
}

fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the set.
    let mut set = unsafe {
        check(libc::sigemptyset(set.as_mut_ptr()))?;
        set.assume_init()
    };
    for signo in signals {
        // SAFETY: `set` is initialized, and a bad number is refused with EINVAL.
        check(unsafe { libc::sigaddset(&raw mut set, *signo) })?;
    }
    Ok(set)
}

fn field(info: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&info[at..at + 4]);
    u32::from_ne_bytes(bytes)
}

const SIGNO_AT: usize = std::mem::offset_of!(libc::signalfd_siginfo, ssi_signo);
const CODE_AT: usize = std::mem::offset_of!(libc::signalfd_siginfo, ssi_code);
const PID_AT: usize = std::mem::offset_of!(libc::signalfd_siginfo, ssi_pid);

/// A fast stop: SIGTERM.
pub const TERM: i32 = libc::SIGTERM;
/// A fast stop from the terminal: SIGINT.
pub const INT: i32 = libc::SIGINT;
/// A graceful stop: SIGQUIT.
pub const QUIT: i32 = libc::SIGQUIT;
/// A reload: SIGHUP.
pub const HUP: i32 = libc::SIGHUP;
/// Reopening the logs: SIGUSR1.
pub const USR1: i32 = libc::SIGUSR1;
/// Changing the binary: SIGUSR2.
pub const USR2: i32 = libc::SIGUSR2;
/// A graceful stop of the workers alone: SIGWINCH.
pub const WINCH: i32 = libc::SIGWINCH;
/// A child ended: SIGCHLD.
pub const CHLD: i32 = libc::SIGCHLD;
/// A timer of the process: SIGALRM.
pub const ALRM: i32 = libc::SIGALRM;
/// A descriptor became readable or writable: SIGIO.
pub const IO: i32 = libc::SIGIO;
/// An unknown system call: SIGSYS.
pub const SYS: i32 = libc::SIGSYS;
/// Write to a pipe without readers: SIGPIPE.
pub const PIPE: i32 = libc::SIGPIPE;
/// The signal that cannot be blocked: SIGKILL.
pub const KILL: i32 = libc::SIGKILL;

const NAMES: &[(i32, &str)] = &[
    (TERM, "SIGTERM"),
    (INT, "SIGINT"),
    (QUIT, "SIGQUIT"),
    (HUP, "SIGHUP"),
    (USR1, "SIGUSR1"),
    (USR2, "SIGUSR2"),
    (WINCH, "SIGWINCH"),
    (CHLD, "SIGCHLD"),
    (ALRM, "SIGALRM"),
    (IO, "SIGIO"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_signal_is_read_with_its_sender() {
        // WINCH is ignored by default, so other test threads do not notice it.
        let signals = Signals::new(&[WINCH]).expect("signalfd");
        assert_eq!(signals.receive().expect("read"), None);
        // SAFETY: pthread_kill on the calling thread; its mask blocks the signal.
        let error = unsafe { libc::pthread_kill(libc::pthread_self(), WINCH) };
        assert_eq!(error, 0);
        let received = signals.receive().expect("read").expect("a signal");
        assert_eq!(
            received,
            Received {
                signo: WINCH,
                sender: std::process::id(),
                by_kernel: false,
            }
        );
        assert_eq!(name(received.signo), "SIGWINCH");
        unblock_all().expect("unblock");
    }

    #[test]
    fn ignored_signal_is_known_as_one() {
        assert!(!is_ignored(IO) && !is_ignored(4_000));
        ignore(IO).expect("it can be");
        assert!(is_ignored(IO));
    }

    #[test]
    fn bad_number_is_refused() {
        Signals::new(&[4_000]).expect_err("no such signal");
        assert_eq!(name(4_000), "");
    }
}
