//! Name resolution over sockets: a resolver engine with its servers, one per `resolver` and thread.
//!
//! The engine (`engines::dns`) makes queries and reads answers. This file adds sockets and randomness. Each server has
//! a datagram socket, opened for the first query and closed when idle. So every burst of queries uses another port. A
//! truncated answer is requested again over a stream.
//!
//! Usage: a caller that needs a name calls [`Resolver::ask`] with the token to wake (a connection's key). The loop
//! passes events with a token in [`Resolver::tokens`] to [`Resolver::ready`]. It includes [`Resolver::deadline`] in its
//! own deadlines, and calls [`Resolver::expire`] at that time. Then it takes answers from [`Resolver::event`], which
//! names the token to wake. None of this blocks.
//!
//! The worker's main thread has resolvers for its background fetches. Serving threads have them in `worker::names`; a
//! request there has no access to the poller. It calls [`Resolver::ask_later`], and the next [`Resolver::transmit`]
//! sends the query.
//!
//! Source: nginx documentation, `resolver`; RFC 1035, section 4.2; RFC 7766.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;

use engines::dns::{
    Event, Failure, Frames, Key, Route, Settings, Subject, Transport, UDP_MESSAGE_BYTES_MAX,
};
use server_base::errlog::{ErrorLog, Level};
use server_base::resolver_status::{Request, ResolverStatus, Response};
use server_http::conf_core::NameServers;
use sys::poll::{Interest, Poller, Ready};
use sys::{connect, random, socket};

/// A resolver and its sockets. `W` identifies the waiter of an answer.
pub struct Resolver<W> {
    names: engines::dns::Resolver,
    servers: Vec<Server>,
    first_token: u64,
    waiting: BTreeMap<Key, W>,
    numbers: Numbers,
    log: ErrorLog,
    status: Option<ResolverStatus>,
    /// Buffer for the query being sent.
    query: Vec<u8>,
}

struct Server {
    address: SocketAddr,
    datagrams: Option<OwnedFd>,
    stream: Option<Stream>,
}

struct Stream {
    socket: OwnedFd,
    frames: Frames,
    unsent: Vec<u8>,
    /// Time at which it is closed unless more can be sent before, monotonic milliseconds.
    close_at_ms: u64,
}

impl<W> Resolver<W> {
    /// Makes a resolver without open sockets. Their tokens start at `first_token`.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(servers: &NameServers, first_token: u64, log: ErrorLog) -> io::Result<Self> {
        let settings = Settings {
            servers: servers.servers.len(),
            valid_ms: servers.valid_ms,
            ipv4: servers.ipv4,
            ipv6: servers.ipv6,
            ..Settings::default()
        };
        let resolver = Self::with_settings(&servers.servers, settings, first_token, log)?;
        Ok(Self {
            status: servers.status.clone(),
            ..resolver
        })
    }

    /// Makes a resolver with settings beyond those of `resolver`.
    ///
    /// # Errors
    /// As for [`Resolver::new`].
    pub fn with_settings(
        addresses: &[SocketAddr],
        settings: Settings,
        first_token: u64,
        log: ErrorLog,
    ) -> io::Result<Self> {
        let server = |address: &SocketAddr| Server {
            address: *address,
            datagrams: None,
            stream: None,
        };
        Ok(Self {
            names: engines::dns::Resolver::new(settings),
            servers: addresses.iter().map(server).collect(),
            first_token,
            waiting: BTreeMap::new(),
            numbers: Numbers::new()?,
            log,
            status: None,
            query: Vec::new(),
        })
    }

    /// Returns the tokens of its sockets.
    pub fn tokens(&self) -> Range<u64> {
        self.first_token..self.first_token + self.servers.len() as u64 * 2
    }

    /// Starts a query. `who` is returned with the answer, after at most `timeout_ms` (0: no limit). A cached answer is
    /// available at once.
    pub fn ask(
        &mut self,
        poller: &Poller,
        now_ms: u64,
        subject: Subject<'_>,
        timeout_ms: u64,
        who: W,
    ) -> Key {
        let key = self.ask_later(now_ms, subject, timeout_ms, who);
        self.transmit(poller, now_ms);
        key
    }

    /// Starts a query like [`Resolver::ask`], but the next [`Resolver::transmit`] sends it.
    pub fn ask_later(&mut self, now_ms: u64, subject: Subject<'_>, timeout_ms: u64, who: W) -> Key {
        let chance = u64::from_le_bytes(self.numbers.take());
        let key = self.names.ask(now_ms, subject, timeout_ms, chance);
        self.waiting.insert(key, who);
        key
    }

    /// Returns the number of queries whose answer was not taken.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Cancels the queries of waiters for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(&W) -> bool) {
        let gone = self.waiting.iter().filter(|(_, who)| !stays(who));
        let gone: Vec<Key> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            self.cancel(key);
        }
    }

    /// Cancels a query and returns its waiter.
    pub fn cancel(&mut self, key: Key) -> Option<W> {
        self.names.cancel(key);
        self.waiting.remove(&key)
    }

    /// Returns the next answer with its waiter.
    pub fn event(&mut self) -> Option<(W, Event)> {
        while let Some(event) = self.names.event() {
            if let (
                Some(status),
                Event::Failed {
                    why: Failure::TimedOut,
                    ..
                },
            ) = (&self.status, &event)
            {
                status.count_response(Response::TimedOut);
            }
            if let Some(who) = self.waiting.remove(&event.key()) {
                return Some((who, event));
            }
        }
        None
    }

    /// Returns the time for [`Resolver::expire`], or `None`.
    pub fn deadline(&self) -> Option<u64> {
        let streams = self
            .servers
            .iter()
            .filter_map(|server| server.stream.as_ref());
        let close = streams.map(|stream| stream.close_at_ms).min();
        [self.names.deadline(), close].into_iter().flatten().min()
    }

    /// Handles timeouts that are due.
    pub fn expire(&mut self, poller: &Poller, now_ms: u64) {
        for n in 0..self.servers.len() {
            let stream = &self.servers[n].stream;
            if stream
                .as_ref()
                .is_some_and(|stream| stream.close_at_ms <= now_ms)
            {
                let transport = Transport::Tcp;
                self.close_socket(
                    now_ms,
                    Route {
                        server: n,
                        transport,
                    },
                );
            }
        }
        self.names.expire(now_ms);
        self.transmit(poller, now_ms);
    }

    /// Handles readiness of a socket in [`Resolver::tokens`].
    pub fn ready(&mut self, poller: &Poller, now_ms: u64, ready: Ready) {
        if !self.tokens().contains(&ready.token) {
            return;
        }
        let route = self.route(ready.token);
        let result = match route.transport {
            Transport::Udp => self.read_datagrams(now_ms, route),
            Transport::Tcp => self.read_stream(now_ms, route),
        };
        if let Err(failed) = result {
            self.failed(now_ms, route, &failed);
        }
        self.transmit(poller, now_ms);
    }

    /// Whether no socket is open. This is so while no query is in progress.
    pub fn is_idle(&self) -> bool {
        let closed = |server: &Server| server.datagrams.is_none() && server.stream.is_none();
        self.servers.iter().all(closed)
    }

    /// Sends pending queries, and closes unused sockets.
    pub fn transmit(&mut self, poller: &Poller, now_ms: u64) {
        while self.names.wants_transmit() {
            let id = u16::from_le_bytes(self.numbers.take());
            let Some(route) = self.names.transmit(id, &mut self.query) else {
                break;
            };
            let sent = match route.transport {
                Transport::Udp => self.send_datagram(poller, route),
                Transport::Tcp => self.send_stream(poller, now_ms, route),
            };
            match sent {
                Ok(()) => self.count_query(),
                Err(failed) => self.failed(now_ms, route, &failed),
            }
        }
        if !self.names.is_asking() {
            for server in &mut self.servers {
                server.datagrams = None;
                server.stream = None;
            }
        }
    }

    /// Counts the query that was sent. Its type is before the last word, the class.
    fn count_query(&self) {
        let Some(status) = &self.status else {
            return;
        };
        if let [.., high, low, _, _] = self.query[..] {
            status.count_request(match u16::from_be_bytes([high, low]) {
                SRV => Request::Srv,
                PTR => Request::Addr,
                _ => Request::Name,
            });
        }
    }

    fn send_datagram(&mut self, poller: &Poller, route: Route) -> Result<(), Failed> {
        let token = self.token(route);
        let server = &mut self.servers[route.server];
        let opened;
        let socket = match &server.datagrams {
            Some(socket) => socket,
            None => {
                opened = connect::datagram(server.address).map_err(of("connect()"))?;
                let added = poller.add(&opened, token, Interest::Readable);
                added.map_err(of("epoll_ctl()"))?;
                server.datagrams.insert(opened)
            }
        };
        match connect::send(socket, &self.query) {
            // A datagram that the system has no room for counts as lost on the way.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop).map_err(of("send()")),
        }
    }

    fn send_stream(&mut self, poller: &Poller, now_ms: u64, route: Route) -> Result<(), Failed> {
        let token = self.token(route);
        let server = &mut self.servers[route.server];
        if server.stream.is_none() {
            let socket = connect::stream(server.address).map_err(of("connect()"))?;
            let added = poller.add(&socket, token, Interest::Connection);
            added.map_err(of("epoll_ctl()"))?;
            server.stream = Some(Stream {
                socket,
                frames: Frames::default(),
                unsent: Vec::new(),
                close_at_ms: now_ms + STREAM_MS,
            });
        }
        let Some(stream) = &mut server.stream else {
            return Ok(());
        };
        if stream.unsent.len() + self.query.len() > UNSENT_BYTES_MAX {
            return Err(of("send()")(io::ErrorKind::WriteZero.into()));
        }
        stream.unsent.extend_from_slice(&self.query);
        stream.flush(now_ms)
    }

    /// Receives datagrams. The poller reports remaining ones again.
    fn read_datagrams(&mut self, now_ms: u64, route: Route) -> Result<(), Failed> {
        let mut buffer = [0; UDP_MESSAGE_BYTES_MAX];
        for _ in 0..READS_MAX {
            let Some(socket) = &self.servers[route.server].datagrams else {
                return Ok(());
            };
            let length = match socket::receive(socket, &mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(of("recv()")(error)),
            };
            match self.names.receive(now_ms, route, &buffer[..length]) {
                Ok(()) => count_response(self.status.as_ref(), &buffer[..length]),
                Err(refused) => self.log_failure(route, format_args!("{refused}")),
            }
        }
        Ok(())
    }

    /// Receives all data of a stream, since the poller reports it once.
    fn read_stream(&mut self, now_ms: u64, route: Route) -> Result<(), Failed> {
        let mut buffer = [0; UDP_MESSAGE_BYTES_MAX];
        for _ in 0..READS_MAX {
            let Server {
                address,
                stream: Some(stream),
                ..
            } = &mut self.servers[route.server]
            else {
                return Ok(());
            };
            stream.flush(now_ms)?;
            let length = match socket::receive(&stream.socket, &mut buffer) {
                Ok(0) => return Err(of("recv()")(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => length,
                Err(error) if not_yet(&error) => return Ok(()),
                Err(error) => return Err(of("recv()")(error)),
            };
            stream.frames.receive(&buffer[..length]);
            while let Some(message) = stream.frames.message() {
                match self.names.receive(now_ms, route, message) {
                    Ok(()) => count_response(self.status.as_ref(), message),
                    Err(refused) => log_failure(&self.log, *address, format_args!("{refused}")),
                }
            }
        }
        // More than answers can have, without a pause. The poller would not report the rest again.
        Err(of("recv()")(io::ErrorKind::InvalidData.into()))
    }

    /// Logs a failed call on a socket and closes it. The end of a stream is not logged.
    fn failed(&mut self, now_ms: u64, route: Route, failed: &Failed) {
        let Failed { call, error } = failed;
        if error.kind() != io::ErrorKind::UnexpectedEof {
            let error = sys::os_error(error);
            self.log_failure(route, format_args!("{call} failed ({error})"));
        }
        self.close_socket(now_ms, route);
    }

    /// Closes a socket. Its queries go to the next server.
    fn close_socket(&mut self, now_ms: u64, route: Route) {
        let server = &mut self.servers[route.server];
        match route.transport {
            Transport::Udp => server.datagrams = None,
            Transport::Tcp => server.stream = None,
        }
        self.names.unreachable(now_ms, route);
    }

    fn log_failure(&self, route: Route, what: std::fmt::Arguments<'_>) {
        log_failure(&self.log, self.servers[route.server].address, what);
    }

    fn token(&self, route: Route) -> u64 {
        let stream = u64::from(route.transport == Transport::Tcp);
        self.first_token + route.server as u64 * 2 + stream
    }

    fn route(&self, token: u64) -> Route {
        let place = token - self.first_token;
        Route {
            server: (place / 2) as usize,
            transport: match place % 2 {
                0 => Transport::Udp,
                _ => Transport::Tcp,
            },
        }
    }
}

impl Stream {
    /// Sends as much as the socket takes.
    fn flush(&mut self, now_ms: u64) -> Result<(), Failed> {
        while !self.unsent.is_empty() {
            match connect::send(&self.socket, &self.unsent) {
                Ok(taken) => {
                    self.unsent.drain(..taken);
                    self.close_at_ms = now_ms + STREAM_MS;
                }
                Err(error) if not_yet(&error) => return Ok(()),
                Err(error) => return Err(of("send()")(error)),
            }
        }
        Ok(())
    }
}

/// Counts a response by its code, which is in the fourth byte.
fn count_response(status: Option<&ResolverStatus>, message: &[u8]) {
    if let (Some(status), Some(byte)) = (status, message.get(3)) {
        status.count_response(Response::of_code(byte & 15));
    }
}

/// Logs an error in nginx's wording for one server.
fn log_failure(log: &ErrorLog, server: SocketAddr, what: std::fmt::Arguments<'_>) {
    log.write(
        Level::Error,
        format_args!("{what} while resolving, resolver: {server}"),
    );
}

/// The failed call and its error.
struct Failed {
    call: &'static str,
    error: io::Error,
}

fn of(call: &'static str) -> impl Fn(io::Error) -> Failed {
    move |error| Failed { call, error }
}

/// Whether nothing has arrived, or the stream is not connected yet.
fn not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

/// Random numbers, fetched in bulk from the system.
struct Numbers {
    bytes: [u8; 256],
    used: usize,
}

impl Numbers {
    fn new() -> io::Result<Self> {
        let mut bytes = [0; 256];
        random::fill(&mut bytes)?;
        Ok(Self { bytes, used: 0 })
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        if self.bytes.len() - self.used < N {
            random::fill(&mut self.bytes).expect("the system gave random numbers before");
            self.used = 0;
        }
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[self.used..self.used + N]);
        self.used += N;
        taken
    }
}

/// Types of queries.
const PTR: u16 = 12;
const SRV: u16 = 33;
/// Lifetime of a stream after it took the last bytes, milliseconds; as in nginx.
const STREAM_MS: u64 = 5_000;
/// Maximum number of query bytes that wait for a stream; as in nginx.
const UNSENT_BYTES_MAX: usize = 8192;
/// Maximum number of reads of one socket in a turn: enough for the longest message, and fair to other sockets.
const READS_MAX: usize = 64;

#[cfg(test)]
#[path = "resolver_tests.rs"]
pub(crate) mod tests;
