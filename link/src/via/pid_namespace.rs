//! The process that holds all others: the first of a namespace of processes, ended with its parent.
//!
//! Signals come to the parent and are passed on, but for those of a terminal, which the kernel sends to all processes
//! in the foreground anyway.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::namespace::{self, Rights};
use sys::os_error;
use sys::process::{self, Exit, Fork};
use sys::signal::{self, Signals};

use super::FAILED;

/// Runs `inside` in the namespace, and returns its status.
pub(super) fn run(inside: impl FnOnce(Signals, Rights) -> u8) -> io::Result<u8> {
    let signals = Signals::new(&WATCHED)?;
    let rights = namespace::isolate().map_err(refused)?;
    // The child sees by this pipe that its parent ended before `be_killed_with_parent`.
    let (ends_with_parent, kept) = io::pipe()?;
    match process::fork()? {
        Fork::Parent(child) => {
            drop(ends_with_parent);
            let status = attend(child, &signals);
            drop(kept);
            status
        }
        Fork::Child => {
            drop(kept);
            let begun = process::be_killed_with_parent();
            let mut parent = [PollFd::new(&ends_with_parent, PollFlags::IN)];
            let _ = poll(&mut parent, Some(&Timespec::default()));
            if begun.is_err() || !parent[0].revents().is_empty() {
                process::exit_now(i32::from(FAILED));
            }
            // A panic must not continue in a copy of the parent; the panic hook has printed its message.
            let status = catch_unwind(AssertUnwindSafe(|| inside(signals, rights)));
            process::exit_now(i32::from(status.unwrap_or(FAILED)));
        }
    }
}

fn refused(error: io::Error) -> io::Error {
    let known = [
        ErrorKind::PermissionDenied,
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
    ];
    // ENOSPC: the machine's limit of user namespaces, which may be 0.
    if !known.contains(&error.kind()) {
        return error;
    }
    let reason = os_error(&error);
    let why = format!("a link needs root, or user namespaces that anybody may make ({reason})");
    io::Error::new(ErrorKind::Unsupported, why)
}

/// Passes signals to the child until it ends.
fn attend(child: u32, signals: &Signals) -> io::Result<u8> {
    loop {
        while let Some(received) = signals.receive()? {
            if received.signo != signal::CHLD {
                pass(child, &received);
                continue;
            }
            if let Some((_, exit)) = process::reap().into_iter().find(|(pid, _)| *pid == child) {
                return Ok(status(exit));
            }
        }
        wait(signals, None);
    }
}

/// Passes a signal on, unless the terminal sent it to all.
pub(super) fn pass(pid: u32, received: &signal::Received) {
    if !received.by_kernel {
        // It may have ended just now.
        let _ = process::kill(pid, received.signo);
    }
}

/// Waits for a signal, at most so long.
pub(super) fn wait(signals: &Signals, limit: Option<Timespec>) {
    // An interruption does not matter: the caller reads the received signals.
    let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], limit.as_ref());
}

/// An end as shells show it.
pub(super) fn status(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        Exit::Signal { signo, .. } => u8::try_from(128 + signo).unwrap_or(u8::MAX),
    }
}

/// Signals that are passed on, and SIGCHLD.
const WATCHED: [i32; 7] = [
    signal::HUP,
    signal::INT,
    signal::QUIT,
    signal::TERM,
    signal::USR1,
    signal::USR2,
    signal::CHLD,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_shells() {
        assert_eq!(status(Exit::Code(0)), 0);
        assert_eq!(status(Exit::Code(255)), 255);
        let killed = Exit::Signal {
            signo: signal::KILL,
            core_dumped: false,
        };
        assert_eq!(status(killed), 137);
    }
}
