//! USR2: starts another binary, which may replace this one. If it ends first, this one serves again.
//!
//! The new binary is started beside this one with the same arguments and the listening sockets, so both serve. An
//! administrator then ends the old or the new one. Until then the pid file of this process has the suffix `.oldbin`. If
//! the new one ends first, the file is renamed back, and finishing workers are replaced. The descriptors are passed in
//! a list of variables (`exec::Passed`). Further data for the next binary must be added to that list. Source: nginx
//! documentation, "Upgrading Executable on the Fly".

use std::borrow::Cow;
use std::ops::ControlFlow::Continue;
use std::os::fd::{AsFd, BorrowedFd};

use server_base::errlog::Level;
use sys::exec;
use sys::process::{self, Exit};

use super::inherit::{ACTIVATED, OWN_VARIABLES, SOCKETS};
use super::left_file::LeftFile;
use super::listeners::{self, Listener, Origin, OtherServer};
use super::pid_file;
use super::state::{Flow, Phase, Successor, Supervisor};
use super::worker::log_exit_at;

impl Supervisor {
    /// The other server with the same sockets.
    pub(super) fn other_server(&self) -> OtherServer {
        match self.predecessor {
            _ if self.successor.is_some() => OtherServer::Successor,
            Some(pid) if pid == process::parent_id() => OtherServer::Predecessor,
            _ => OtherServer::None,
        }
    }

    /// Returns whether USR2 is accepted now.
    pub(super) fn can_change_binary(&self) -> bool {
        // As in nginx, a process without a supervisor of its own does not start another.
        self.current.main.master_process && self.other_server() == OtherServer::None
    }

    /// Starts the file that is now at the path of this binary.
    pub(super) fn change_binary(&mut self) {
        if !matches!(self.phase, Phase::Serving | Phase::Paused) {
            return;
        }
        if self.other_server() != OtherServer::None {
            self.console.report(
                Level::Crit,
                format_args!(
                    "the changing binary signal is ignored: you should shutdown or terminate \
                     before either old or new binary's process"
                ),
            );
            return;
        }
        if !self.current.main.master_process {
            return;
        }
        self.abandon_reload();
        self.notify.refused(&self.console);
        self.console.notice(format_args!("changing binary"));
        let program = self.program().into_owned();
        let when = format_args!("before executing new binary process \"{program}\"");
        let pid_path = &self.current.main.pid;
        let Ok(oldbin) = pid_file::set_aside(pid_path, when, &self.console) else {
            return;
        };
        match self.execute() {
            Ok(pid) => {
                self.console
                    .notice(format_args!("start new binary process {pid}"));
                self.successor = Some(Successor { pid, oldbin });
            }
            Err(error) => {
                let reason = sys::os_error(&error);
                self.console.report(
                    Level::Alert,
                    format_args!(
                        "execve() failed while executing new binary process \"{program}\" ({reason})"
                    ),
                );
                let when =
                    format_args!("after an attempt to execute new binary process \"{program}\"");
                pid_file::put_back(&oldbin, pid_path, when, &self.console);
            }
        }
    }

    fn program(&self) -> Cow<'_, str> {
        self.arguments
            .first()
            .map_or(Cow::Borrowed(""), |program| program.to_string_lossy())
    }

    fn execute(&self) -> std::io::Result<u32> {
        let sockets = |wanted: fn(&Listener) -> bool| -> Vec<BorrowedFd<'_>> {
            let listeners = self.current.listeners.iter();
            let sockets = listeners
                .filter(|listener| wanted(listener))
                .flat_map(Listener::sockets);
            sockets.map(AsFd::as_fd).collect()
        };
        let mut passed = vec![(SOCKETS, sockets(|_| true))];
        let managed = sockets(|listener| listener.origin() == Origin::Manager);
        if !managed.is_empty() {
            passed.push((ACTIVATED, managed));
        }
        exec::start(&self.arguments, OWN_VARIABLES, &passed)
    }

    /// The new binary has ended: this process is the only one again.
    pub(super) fn successor_ended(&mut self, successor: &Successor, exit: Exit) -> Flow {
        // An administrator ends it with code 0. Any other exit is the reason of its failure.
        let level = match exit {
            Exit::Code(0) => Level::Notice,
            _ => Level::Error,
        };
        let name = format!("new binary process {}", successor.pid);
        log_exit_at(level, &self.console, &name, exit);
        let program = self.program();
        let when = format_args!("after the new binary process \"{program}\" exited");
        let pid_path = &self.current.main.pid;
        pid_file::put_back(&successor.oldbin, pid_path, when, &self.console);
        self.resume()
    }

    /// Starts workers again after WINCH has ended them.
    pub(super) fn resume(&mut self) -> Flow {
        if self.phase != Phase::Paused {
            return Continue(());
        }
        self.phase = Phase::Serving;
        self.console.notice(format_args!("start worker processes"));
        self.start_worker()
    }

    /// Removes the files of UNIX-domain sockets in `gone` but not in `kept`, if this process owns them.
    pub(super) fn remove_unix_files(&mut self, gone: &[Listener], kept: &[Listener]) {
        let left = listeners::remove_unix_files(gone, kept, self.other_server(), &self.console);
        self.left.extend(left.into_iter().filter_map(LeftFile::of));
    }

    /// Removes the files that were left to the predecessor, once it has ended. A replaced file belongs to another
    /// server.
    pub(super) fn remove_left_files(&mut self) {
        if self.other_server() == OtherServer::Predecessor {
            return;
        }
        for left in std::mem::take(&mut self.left) {
            if let Some(path) = left.path() {
                listeners::unlink(path, &self.console);
            }
        }
    }
}
