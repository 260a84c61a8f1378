//! Starting a program beside this one, with open descriptors passed by number.
//!
//! The program gets this process's environment, and a variable for each list of descriptors in nginx's form,
//! `fd;fd;`. All other descriptors are closed on exec. Source: execve(2), nginx's `NGINX` variable.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{check, process, signal};

/// Descriptors for the new program, under the name of the variable that lists them.
pub type Passed<'a> = (&'a str, Vec<BorrowedFd<'a>>);

/// Starts `arguments[0]` with `arguments`, in the environment without the variables of `removed` and with those of
/// `passed`, and returns its process number; its end is reaped like any child's. A name without a slash is searched
/// in PATH, as by a shell.
///
/// # Errors
/// The error of fork or execve; `InvalidInput` without a program.
pub fn start(arguments: &[OsString], removed: &[&str], passed: &[Passed<'_>]) -> io::Result<u32> {
    let (program, rest) = arguments
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = Command::new(OsStr::new(program));
    command.args(rest);
    for name in removed {
        command.env_remove(name);
    }
    let mut kept: Vec<RawFd> = Vec::new();
    for (name, fds) in passed {
        let numbers = fds.iter().map(AsRawFd::as_raw_fd);
        kept.extend(numbers.clone());
        let list: String = numbers.map(|number| format!("{number};")).collect();
        command.env(name, list);
    }
    let prepare = move || {
        for fd in &kept {
            // SAFETY: the call takes numbers.
            check(unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) })?;
        }
        // The supervisor reads its signals from a descriptor; a program expects to be interrupted by them.
        signal::unblock_all()
    };
    // SAFETY: between fork and exec, `prepare` makes system calls alone: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
    Ok(command.spawn()?.id())
}

/// Makes `command` start with no signal blocked, regardless of the calling thread's mask.
pub fn unblocked(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec one system call is made: nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(signal::unblock_all) }
}

/// Makes `command` start as leader of its own process group, with `fds` as its descriptors from 3 on and no signal
/// blocked. The kernel kills it when the starting thread ends.
///
/// The descriptors stay open here until `command` is dropped; those past [`PASSED_MAX`] are not passed. The kernel
/// does not kill children of the program: they are in its group, for [`process::kill_group`].
pub fn attached(command: &mut Command, fds: Vec<OwnedFd>) -> &mut Command {
    command.process_group(0);
    let parent = process::id();
    let prepare = move || {
        process::be_killed_with_parent()?;
        if process::parent_id() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // A descriptor to pass may have the target number of another: all are moved out of the way first. No other
        // needed descriptor has such a number, because these descriptors, or their predecessors with these numbers,
        // are open while the program is started.
        let behind = FIRST_PASSED + fds.len() as libc::c_int;
        let mut moved = [-1; PASSED_MAX];
        for (fd, moved) in fds.iter().zip(&mut moved) {
            let fd = fd.as_raw_fd();
            // SAFETY: the call takes numbers.
            *moved = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, behind) })?;
        }
        for (moved, number) in moved.iter().zip(FIRST_PASSED..behind) {
            // SAFETY: the call takes numbers; in this process, which is about to be replaced, they have no owners.
            check(unsafe { libc::dup2(*moved, number) })?;
        }
        signal::unblock_all()
    };
    // SAFETY: between fork and exec, `prepare` makes system calls alone: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) }
}

/// Most descriptors passed by [`attached`].
pub const PASSED_MAX: usize = 4;
/// The first number behind the standard streams.
const FIRST_PASSED: libc::c_int = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn descriptors_are_open_in_the_program_and_named_in_its_environment() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("bind");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        // By path: a shell may accept only one-digit numbers behind `>&`.
        let script = "test -S /proc/self/fd/${SOCKETS%;} && \
                      printf '%s %s' \"$0\" \"${HOME-none}\" >/proc/self/fd/${OUT%;}";
        let passed = [
            ("SOCKETS", vec![socket.as_fd()]),
            ("OUT", vec![writer.as_fd()]),
        ];
        let pid = start(&words(&["sh", "-c", script, "zero"]), &["HOME"], &passed);
        drop(passed);
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("the program ends");
        assert_eq!(text, "zero none");
        assert!(pid.expect("started") > 0);
    }

    #[test]
    fn program_starts_with_no_signal_blocked() {
        // Blocked for a thread of this test alone.
        let ended = std::thread::spawn(|| {
            let _blocked = signal::Signals::new(&[signal::TERM]).expect("a signal");
            let mut command = Command::new("sh");
            command.args(["-c", "kill -TERM $$; exit 7"]);
            unblocked(&mut command).status()
        });
        use std::os::unix::process::ExitStatusExt;
        let status = ended.join().expect("no panic").expect("sh starts");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn attached_program_has_its_descriptors_in_order_and_a_group_of_its_own() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let (input, mut feed) = io::pipe().expect("a pipe");
        let mut command = Command::new("sh");
        command.args(["-c", "read word <&3; printf '%s %s' $word $$ >&4"]);
        // In the order in which each takes the number that the other may have.
        let fds = vec![OwnedFd::from(input), OwnedFd::from(writer)];
        let mut child = attached(&mut command, fds).spawn().expect("sh starts");
        drop(command);
        process::kill_group(child.id(), 0).expect("it leads a group");
        io::Write::write_all(&mut feed, b"word\n").expect("it reads");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it ends");
        assert_eq!(text, format!("word {}", child.id()));
        assert!(child.wait().expect("it has ended").success());
    }

    #[test]
    fn attached_program_dies_with_the_thread_that_started_it() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let started = std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            command.arg("600");
            let fds = vec![OwnedFd::from(writer)];
            attached(&mut command, fds).spawn().expect("sleep starts")
        });
        let mut child = started.join().expect("no panic");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("nobody writes");
        use std::os::unix::process::ExitStatusExt;
        let status = child.wait().expect("it has ended");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn missing_program_is_the_error_of_execve() {
        let error = start(&words(&["/nonexistent/program"]), &[], &[]).expect_err("no file");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = start(&[], &[], &[]).expect_err("no name");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
