//! The connections of one errand: one address after another, until one has answered.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use std::io;

use server_core::errand::{Conversation, Destination, Errand, Progress};
use server_core::errlog::{ErrorLog, Level};

use super::unix_s;
use crate::sys::poll::{Interest, Poller};
use crate::sys::{connect, socket};

/// An errand that is under way.
pub(super) struct Talk {
    addresses: std::vec::IntoIter<SocketAddr>,
    line: Option<Line>,
    /// When the connection has taken too long.
    pub(super) until_ms: u64,
}

/// A connection.
struct Line {
    socket: OwnedFd,
    peer: SocketAddr,
    conversation: Box<dyn Conversation>,
    sent: usize,
}

/// How far an errand is.
pub(super) enum Outcome {
    /// Its socket will tell.
    Waits,
    /// It has ended.
    Ended {
        /// With what was wanted.
        well: bool,
    },
}

impl Talk {
    /// Nothing is connected yet.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses: addresses.into_iter(),
            line: None,
            until_ms: u64::MAX,
        }
    }

    /// The connection has taken too long.
    pub(super) fn time_out(&mut self, errand: &dyn Errand, log: &ErrorLog) {
        if let Some(line) = self.line.take() {
            let to = errand.destination();
            let text = format_args!("{} timed out ({TIMED_OUT})", to.peer);
            say(log, Level::Error, to, Some(line.peer), text);
        }
    }

    /// Goes on with the connection, or with the next address.
    pub(super) fn go_on(
        &mut self,
        errand: &Arc<dyn Errand>,
        poller: &Poller,
        token: u64,
        now_ms: u64,
        log: &ErrorLog,
    ) -> Outcome {
        let to = errand.destination();
        loop {
            let Some(line) = &mut self.line else {
                let Some(peer) = self.addresses.next() else {
                    return Outcome::Ended { well: false };
                };
                let conversation = Arc::clone(errand).begin();
                match Line::open(peer, conversation, poller, token) {
                    Ok(line) => {
                        self.line = Some(line);
                        self.until_ms = now_ms.saturating_add(to.timeout_ms);
                    }
                    Err(text) => say(log, Level::Error, to, Some(peer), format_args!("{text}")),
                }
                continue;
            };
            let peer = line.peer;
            let (text, outcome) = match line.go_on() {
                Progress::More => return Outcome::Waits,
                Progress::Ended(Ok(())) => (None, Some(true)),
                Progress::Ended(Err(text)) => (Some(text), Some(false)),
                Progress::Elsewhere(text) => (Some(text), None),
            };
            self.line = None;
            if let Some(text) = text {
                say(log, Level::Error, to, Some(peer), format_args!("{text}"));
            }
            if let Some(well) = outcome {
                return Outcome::Ended { well };
            }
        }
    }
}

impl Line {
    fn open(
        peer: SocketAddr,
        conversation: Box<dyn Conversation>,
        poller: &Poller,
        token: u64,
    ) -> Result<Self, String> {
        let socket = connect::stream(peer).map_err(failed("connect()"))?;
        let added = poller.add(&socket, token, Interest::Connection);
        added.map_err(failed("epoll_ctl()"))?;
        Ok(Self {
            socket,
            peer,
            conversation,
            sent: 0,
        })
    }

    /// Sends what the socket takes, then takes what it has, to the end: either is told once.
    fn go_on(&mut self) -> Progress {
        loop {
            let rest = &self.conversation.request()[self.sent..];
            if rest.is_empty() {
                break;
            }
            match connect::send(&self.socket, rest) {
                Ok(taken) => self.sent += taken,
                Err(error) if not_yet(&error) => return Progress::More,
                // Nothing was sent: what failed is the connection.
                Err(error) if self.sent == 0 => {
                    return Progress::Elsewhere(failed("connect()")(error));
                }
                Err(error) => return Progress::Elsewhere(failed("send()")(error)),
            }
        }
        let mut buffer = [0; READ_BYTES];
        loop {
            let progress = match socket::receive(&self.socket, &mut buffer) {
                Ok(0) => match self.conversation.end(unix_s()) {
                    Progress::More => Progress::Elsewhere("the connection was ended".to_owned()),
                    other => other,
                },
                Ok(length) => self.conversation.receive(&buffer[..length], unix_s()),
                Err(error) if not_yet(&error) => return Progress::More,
                Err(error) => Progress::Elsewhere(failed("recv()")(error)),
            };
            if progress != Progress::More {
                return progress;
            }
        }
    }
}

/// Nothing has come, or the socket is not connected yet.
fn not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("{call} failed ({})", conf::os_error(&error))
}

/// Logs a message with what it is about, as nginx does.
pub(super) fn say(
    log: &ErrorLog,
    level: Level,
    to: &Destination,
    peer: Option<SocketAddr>,
    text: fmt::Arguments<'_>,
) {
    let peer = peer.map(|peer| format!(", peer: {peer}"));
    let (action, peer, purpose) = (&to.action, peer.unwrap_or_default(), &to.purpose);
    log.write(level, format_args!("{text} while {action}{peer}{purpose}"));
}

/// What the system says of a connection that takes too long.
const TIMED_OUT: &str = "110: Connection timed out";
const READ_BYTES: usize = 4096;
