//! Notifications of the service manager, if it started the supervisor.
//!
//! `READY=1` is sent once a worker serves, so that units ordered after the service find it serving. `RELOADING=1` and
//! `READY=1` enclose a HUP, and `STOPPING=1` comes at the end. `MAINPID=` is sent when another process becomes the main
//! one: a daemon after its fork, or a new binary when the old one ends. Until then only the old one sends messages,
//! since the new one may be abandoned. Without `NOTIFY_SOCKET` nothing is sent. Source: sd_notify(3),
//! systemd.service(5).

use server_base::errlog::Level;
use sys::notify::{ServiceManager, monotonic_us};
use sys::process;

use crate::console::Console;

/// The service manager, and the last state sent to it.
#[derive(Debug)]
pub(super) struct Notify {
    manager: Option<ServiceManager>,
    state: State,
    /// The main process is this one; another speaks for the service otherwise.
    main: bool,
    /// The supervisor that started this one in its place, and is the main process while it lives.
    predecessor: Option<u32>,
}

/// State of the server as sent to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Reloading,
    Stopping,
}

impl Notify {
    /// Finds the service manager. An invalid name is reported, and the server starts without it.
    pub(super) fn from_environment(predecessor: Option<u32>, console: &Console) -> Self {
        let manager = ServiceManager::from_environment().unwrap_or_else(|error| {
            console.failed(Level::Warn, format_args!("NOTIFY_SOCKET"), &error);
            None
        });
        Self {
            manager,
            state: State::Starting,
            main: true,
            predecessor,
        }
    }

    fn has_predecessor(&self) -> bool {
        self.predecessor == Some(process::parent_id())
    }

    /// Reports that a worker serves the last requested configuration.
    pub(super) fn ready(&mut self, console: &Console) {
        self.settle("serving", console);
    }

    /// A reload has failed: the configuration before it serves on.
    pub(super) fn refused(&mut self, console: &Console) {
        self.settle(
            "last reload refused, serving the previous configuration",
            console,
        );
    }

    fn settle(&mut self, status: &str, console: &Console) {
        let before = self.state;
        if !matches!(before, State::Starting | State::Reloading) {
            return;
        }
        self.state = State::Ready;
        if !self.has_predecessor() {
            let pid = process::id();
            self.send(&format!("READY=1\nMAINPID={pid}\nSTATUS={status}"), console);
        } else if before == State::Reloading {
            self.send(&format!("READY=1\nSTATUS={status}"), console);
        }
    }

    /// A reload begins.
    pub(super) fn reloading(&mut self, console: &Console) {
        // Before its first worker serves, the server is starting whatever it reads.
        if matches!(self.state, State::Ready | State::Reloading) {
            self.state = State::Reloading;
            let now = monotonic_us();
            self.send(
                &format!("RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reloading"),
                console,
            );
        }
    }

    /// Reports that this process ends, at once or after its requests. With `successor`, the new binary becomes the main
    /// process.
    pub(super) fn stopping(&mut self, successor: Option<u32>, console: &Console) {
        if self.state == State::Stopping {
            return;
        }
        self.state = State::Stopping;
        match successor {
            Some(pid) => self.main_process(pid, console),
            // The predecessor continues the service.
            None if self.has_predecessor() => {}
            None => self.send("STOPPING=1\nSTATUS=stopping", console),
        }
    }

    /// Another process is the main one from now on and speaks for the service; this one again by its own number.
    pub(super) fn main_process(&mut self, pid: u32, console: &Console) {
        self.main = true;
        self.send(&format!("MAINPID={pid}"), console);
        self.main = pid == process::id();
    }

    fn send(&self, lines: &str, console: &Console) {
        let manager = self.manager.as_ref().filter(|_| self.main);
        if let Some(Err(error)) = manager.map(|manager| manager.tell(lines)) {
            console.failed(
                Level::Warn,
                format_args!("notifying the service manager"),
                &error,
            );
        }
    }
}
