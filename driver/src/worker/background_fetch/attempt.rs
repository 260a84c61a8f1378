//! One run of a fetch: a connection to one address after another, until one has responded.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use server_base::background_fetch::{BackgroundFetch, Endpoint};
use server_base::errlog::{ErrorLog, Level};
use sys::poll::{Interest, Poller};
use sys::{connect, socket};

use super::http::HttpFetch;
use super::unix_s;

/// A fetch in progress.
pub(super) struct Attempt {
    addresses: std::vec::IntoIter<SocketAddr>,
    connection: Option<Connection>,
    /// When the connection has taken too long.
    pub(super) deadline_ms: u64,
}

struct Connection {
    socket: OwnedFd,
    peer: SocketAddr,
    request: Vec<u8>,
    /// Bytes of the request that were sent.
    sent: usize,
    http: HttpFetch,
}

/// Result of driving an attempt.
pub(super) enum Outcome {
    /// The socket will be ready again.
    Pending,
    /// The fetch has ended.
    Ended {
        /// A response was accepted.
        succeeded: bool,
    },
}

impl Attempt {
    /// An attempt that has not connected yet.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses: addresses.into_iter(),
            connection: None,
            deadline_ms: u64::MAX,
        }
    }

    /// Abandons a connection that has taken too long.
    pub(super) fn time_out(&mut self, to: &Endpoint, log: &ErrorLog) {
        if let Some(connection) = self.connection.take() {
            let text = format_args!("{} timed out ({TIMED_OUT})", to.peer);
            write_log(log, Level::Error, to, Some(connection.peer), text);
        }
    }

    /// Sends and receives as far as the socket goes; connects to the next address where one has failed.
    pub(super) fn drive(
        &mut self,
        fetch: &dyn BackgroundFetch,
        poller: &Poller,
        token: u64,
        now_ms: u64,
        log: &ErrorLog,
    ) -> Outcome {
        let to = fetch.endpoint();
        let error = |peer, text: &str| {
            write_log(log, Level::Error, to, Some(peer), format_args!("{text}"));
        };
        loop {
            let Some(connection) = &mut self.connection else {
                let Some(peer) = self.addresses.next() else {
                    return Outcome::Ended { succeeded: false };
                };
                match Connection::open(peer, fetch, poller, token) {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        self.deadline_ms = now_ms.saturating_add(to.timeout_ms);
                    }
                    Err(text) => error(peer, &text),
                }
                continue;
            };
            let peer = connection.peer;
            let result = match connection.drive(to.peer) {
                Ok(None) => return Outcome::Pending,
                other => other,
            };
            self.connection = None;
            match result.map(|body| fetch.accept(&body.unwrap_or_default(), unix_s())) {
                Ok(Ok(())) => return Outcome::Ended { succeeded: true },
                // A response of no use: another address would send the same.
                Ok(Err(text)) => {
                    error(peer, &text);
                    return Outcome::Ended { succeeded: false };
                }
                Err(text) => error(peer, &text),
            }
        }
    }
}

impl Connection {
    fn open(
        peer: SocketAddr,
        fetch: &dyn BackgroundFetch,
        poller: &Poller,
        token: u64,
    ) -> Result<Self, String> {
        let http = HttpFetch::new(fetch.request());
        let (http, request) = http.map_err(|_| "the request cannot be sent".to_owned())?;
        let socket = connect::stream(peer).map_err(failed("connect()"))?;
        let added = poller.add(&socket, token, Interest::Connection);
        added.map_err(failed("epoll_ctl()"))?;
        Ok(Self {
            socket,
            peer,
            request,
            sent: 0,
            http,
        })
    }

    /// Sends until the socket is full and receives until it is empty, since readiness of either is reported once. Returns
    /// the body of the response, `None` while it is not complete; an error is the text for the log.
    fn drive(&mut self, role: &str) -> Result<Option<Vec<u8>>, String> {
        while self.sent < self.request.len() {
            match connect::send(&self.socket, &self.request[self.sent..]) {
                Ok(taken) => self.sent += taken,
                Err(error) if not_yet(&error) => return Ok(None),
                // Nothing was sent: what failed is the connection.
                Err(error) if self.sent == 0 => return Err(failed("connect()")(error)),
                Err(error) => return Err(failed("send()")(error)),
            }
        }
        let mut buffer = [0; READ_BYTES];
        loop {
            let body = match socket::receive(&self.socket, &mut buffer) {
                Ok(0) => self.http.end().map(Some),
                Ok(length) => self.http.receive(&buffer[..length]),
                Err(error) if not_yet(&error) => return Ok(None),
                Err(error) => return Err(failed("recv()")(error)),
            };
            match body {
                Ok(None) => {}
                other => return other.map_err(|error| error.message(role)),
            }
        }
    }
}

/// Whether nothing was received, or the socket is not connected yet.
fn not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("{call} failed ({})", sys::os_error(&error))
}

/// Logs a message with its purpose, in nginx's form.
pub(super) fn write_log(
    log: &ErrorLog,
    level: Level,
    to: &Endpoint,
    peer: Option<SocketAddr>,
    text: fmt::Arguments<'_>,
) {
    let peer = peer.map(|peer| format!(", peer: {peer}"));
    let (action, peer, purpose) = (&to.action, peer.unwrap_or_default(), &to.purpose);
    log.write(level, format_args!("{text} while {action}{peer}{purpose}"));
}

/// Error of the system for a connection that takes too long.
const TIMED_OUT: &str = "110: Connection timed out";
const READ_BYTES: usize = 4096;
