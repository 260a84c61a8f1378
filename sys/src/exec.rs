//! Starting a program beside this one, with open descriptors passed by number.
//!
//! The program gets this process's environment, and a variable for each list of descriptors in nginx's
//! form, `fd;fd;`. Everything else that is open here is closed on exec. Source: execve(2), nginx's
//! `NGINX` variable.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{check, signal};

/// Descriptors for the new program, under the name of the variable that lists them.
pub type Passed<'a> = (&'a str, Vec<BorrowedFd<'a>>);

/// Starts `arguments[0]` with `arguments`, in the environment without the variables of `removed` and with
/// those of `passed`, and returns its process number; its end is reaped like any child's. A name
/// without a slash is looked for in PATH, as the shell did that started this process.
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

/// Has `command` start with no signal blocked, whatever the calling thread blocks.
pub fn unblocked(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec one system call is made: nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(signal::unblock_all) }
}

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
        let script = "test -S /proc/self/fd/${SOCKETS%;} && \
                      printf '%s %s' \"$0\" \"${HOME-none}\" >&${OUT%;}";
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
    fn missing_program_is_the_error_of_execve() {
        let error = start(&words(&["/nonexistent/program"]), &[], &[]).expect_err("no file");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = start(&[], &[], &[]).expect_err("no name");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
