//! Commands at the ends of a link: one at the client's end, which ends everything when it ends, and servers at the
//! other.
//!
//! `FIRSTBYTE_VIA_SERVER` and `FIRSTBYTE_VIA_CLIENT` are the addresses; the names `server.via` and `client.via` are in
//! their /etc/hosts. Each server has a process group and writes its output to standard error.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use sys::os_error;
use sys::{exec, mount, namespace, process, signal};

use super::{FAILED, Inside, pid_namespace};
use crate::{Counters, Lateness, inside};

/// Commands to run.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// The command at the client's end, and its arguments.
    pub client: Vec<OsString>,
    /// Commands at the server's end, for the shell.
    pub servers: Vec<OsString>,
}

/// Its outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The client's status as in a shell: 126 and 127 if it could not be started.
    pub status: u8,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Counters of the link.
    pub counters: Counters,
    /// Packets that the link could not read in time.
    pub unread: u64,
    /// Lateness of the link.
    pub lateness: Lateness,
    /// Remarks about the run.
    pub notes: Vec<String>,
}

/// Runs the commands at the ends of the link, until the client has ended and the servers are stopped.
///
/// # Errors
/// A server does not start, or ends before it listens.
pub fn run(at: &Inside, commands: &Commands) -> io::Result<Outcome> {
    let mut notes = Vec::new();
    let Inside { link, .. } = at;
    let (client, server) = (link.client_address(), link.server_address());
    if let Err(error) = name_ends(client, server) {
        notes.push(format!(
            "the names server.via and client.via are missing: {}",
            os_error(&error)
        ));
    }
    let mut ends = Ends {
        at,
        servers: Vec::new(),
        notes,
    };
    for text in &commands.servers {
        ends.start_server(text)?;
    }
    ends.await_servers()?;
    let begun = Instant::now();
    let status = match ends.start_client(&commands.client) {
        Ok(pid) => ends.attend(pid)?,
        Err(error) => {
            let name = commands.client.first().map(|name| name.to_string_lossy());
            ends.notes.push(format!(
                "{}: {}",
                name.unwrap_or_default(),
                os_error(&error)
            ));
            unstarted(&error)
        }
    };
    let elapsed = begun.elapsed();
    ends.let_connections_end()?;
    ends.stop_servers()?;
    let unread = link.unread().unwrap_or_else(|error| {
        let reason = os_error(&error);
        let note = format!("the link was cut, or what it could not read is not known: {reason}");
        ends.notes.push(note);
        0
    });
    Ok(Outcome {
        status,
        elapsed,
        counters: link.counters(),
        unread,
        lateness: link.lateness(),
        notes: ends.notes,
    })
}

/// The status of a command that could not be started, as in env(1).
fn unstarted(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound => 127,
        ErrorKind::PermissionDenied => 126,
        _ => FAILED,
    }
}

/// Puts the names of both ends into the /etc/hosts that the commands see.
fn name_ends(client: Ipv4Addr, server: Ipv4Addr) -> io::Result<()> {
    let path = Path::new("/etc/hosts");
    // Comments may be in any encoding.
    let mut hosts = fs::read(path)?;
    if !hosts.ends_with(b"\n") {
        hosts.push(b'\n');
    }
    hosts.extend(format!("{client} client.via\n{server} server.via\n").bytes());
    mount::cover(path, &hosts, Path::new("/tmp"))
}

struct Server {
    pid: u32,
    text: String,
}

struct Ends<'a> {
    at: &'a Inside,
    /// Running servers.
    servers: Vec<Server>,
    notes: Vec<String>,
}

impl Ends<'_> {
    fn start_server(&mut self, text: &OsStr) -> io::Result<()> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(text)
            .stdin(Stdio::null())
            .stdout(process::duplicate_stderr()?)
            .process_group(0);
        let pid = self.start(&self.at.link.server, &mut command)?;
        let text = text.to_string_lossy().into_owned();
        self.servers.push(Server { pid, text });
        Ok(())
    }

    fn start_client(&self, words: &[OsString]) -> io::Result<u32> {
        let (program, arguments) = words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        self.start(&self.at.link.client, command.args(arguments))
    }

    /// Starts a command in a network; its end is reaped by `ended`.
    fn start(&self, network: &namespace::Network, command: &mut Command) -> io::Result<u32> {
        let link = &self.at.link;
        command
            .env("FIRSTBYTE_VIA_SERVER", link.server_address().to_string())
            .env("FIRSTBYTE_VIA_CLIENT", link.client_address().to_string());
        exec::unblocked(command);
        inside(network, || {
            if self.at.rights == namespace::Rights::Own {
                namespace::keep_network_rights()?;
            }
            Ok(command.spawn()?.id())
        })
    }

    /// Waits until as many sockets listen at the server's end as there are servers.
    fn await_servers(&mut self) -> io::Result<()> {
        if self.servers.is_empty() {
            return Ok(());
        }
        let limit = Instant::now() + STARTING_MAX;
        while inside(&self.at.link.server, || sockets(&[LISTEN]))? < self.servers.len() {
            if Instant::now() > limit {
                let note = "no server listens after 10 s; the command is started all the same";
                self.notes.push(note.to_owned());
                return Ok(());
            }
            pid_namespace::wait(&self.at.signals, Timespec::try_from(LOOK).ok());
            let (ended, interrupted) = self.ended()?;
            if let Some(text) = ended {
                let why = format!("the server \"{text}\" ended before it listened");
                return Err(io::Error::other(why));
            }
            if interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }

    /// Passes signals to the client until it ends; returns its status.
    fn attend(&mut self, client: u32) -> io::Result<u8> {
        loop {
            while let Some(received) = self.at.signals.receive()? {
                if received.signo != signal::CHLD {
                    pid_namespace::pass(client, &received);
                    continue;
                }
                if let Some(status) = self.reap(client) {
                    return Ok(status);
                }
            }
            pid_namespace::wait(&self.at.signals, None);
        }
    }

    /// Takes the ends of all children: those of servers are noted, and others were left to us by their parents.
    fn reap(&mut self, client: u32) -> Option<u8> {
        let mut status = None;
        for (pid, exit) in process::reap() {
            if pid == client {
                status = Some(pid_namespace::status(exit));
            } else if let Some(place) = self.servers.iter().position(|server| server.pid == pid) {
                let Server { text, .. } = self.servers.swap_remove(place);
                let status = pid_namespace::status(exit);
                self.notes.push(format!(
                    "the server \"{text}\" ended with status {status} before the command did"
                ));
            }
        }
        status
    }

    /// Returns the text of a server that has ended, and whether a signal requested the end.
    fn ended(&mut self) -> io::Result<(Option<String>, bool)> {
        let (mut text, mut interrupted) = (None, false);
        while let Some(received) = self.at.signals.receive()? {
            interrupted |= received.signo != signal::CHLD;
        }
        for (pid, _) in process::reap() {
            if let Some(place) = self.servers.iter().position(|server| server.pid == pid) {
                text = Some(self.servers.swap_remove(place).text);
            }
        }
        Ok((text, interrupted))
    }

    /// Waits until servers know of connections that the client has ended, or they would keep them: for as long as FIN
    /// and its acknowledgement take, and a loss of either.
    fn let_connections_end(&mut self) -> io::Result<()> {
        let link = &self.at.link;
        let limit = Instant::now() + 2 * link.round_trip() + ENDING_MAX;
        while Instant::now() < limit && inside(&link.client, || sockets(&ENDING))? > 0 {
            pid_namespace::wait(&self.at.signals, Timespec::try_from(LOOK).ok());
            let (_, interrupted) = self.ended()?;
            if interrupted {
                break;
            }
        }
        Ok(())
    }

    /// Stops servers and waits for a while; the end of the namespace kills the rest.
    fn stop_servers(&mut self) -> io::Result<()> {
        for server in &self.servers {
            // It may have ended just now.
            let _ = process::kill_group(server.pid, signal::TERM);
        }
        let limit = Instant::now() + ENDING_MAX;
        while !self.servers.is_empty() && Instant::now() < limit {
            pid_namespace::wait(&self.at.signals, Timespec::try_from(LOOK).ok());
            self.ended()?;
        }
        for server in &self.servers {
            self.notes
                .push(format!("the server \"{}\" was killed", server.text));
        }
        Ok(())
    }
}

/// TCP's states as the kernel numbers them.
const LISTEN: &str = "0A";
/// FIN_WAIT1, LAST_ACK, CLOSING: the other end has not acknowledged this one's end.
const ENDING: [&str; 3] = ["04", "09", "0B"];

/// Returns the number of TCP sockets of the calling thread's network in one of these states.
fn sockets(states: &[&str]) -> io::Result<usize> {
    // The state is the fourth column.
    let count = |table: &str| {
        let found = table
            .lines()
            .filter_map(|line| line.split_whitespace().nth(3));
        found.filter(|state| states.contains(state)).count()
    };
    let ipv4 = fs::read_to_string("/proc/thread-self/net/tcp")?;
    // Missing if the kernel has no IPv6.
    let ipv6 = fs::read_to_string("/proc/thread-self/net/tcp6").unwrap_or_default();
    Ok(count(&ipv4) + count(&ipv6))
}

/// Time limit of servers until they listen.
const STARTING_MAX: Duration = Duration::from_secs(10);
/// Time for servers to end before they are killed.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// Interval between checks of sockets and processes.
const LOOK: Duration = Duration::from_millis(5);
