//! The loop over all connections.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use engines::h1::Settings;
use engines::http::{Chunk, SharedBytes};
use sys::poll::{Events, Interest, Poller, Ready, Waker};

use super::cache::{Cache, Found};
use super::connection::{Connection, Incoming, State};
use super::pool::{Done, Handler, Pool, Route};
use super::response::{Request, Response};

/// Serves connections of a listener until `stop` can be read or its other end is closed.
///
/// Then streams end at once, and other requests of accepted connections have [`STOP_WAIT`] for their responses.
///
/// # Errors
/// If the listener cannot be polled, or the system has no room for threads.
pub(in crate::web) fn run(
    listener: &OwnedFd,
    handler: &Arc<dyn Handler>,
    stop: &OwnedFd,
) -> io::Result<()> {
    rustix::io::ioctl_fionbio(listener, true)?;
    raise_file_limit();
    let poller = Poller::new()?;
    let waker = Arc::new(Waker::new()?);
    poller.add(stop, STOP, Interest::Readable)?;
    poller.add(&*waker, WAKER, Interest::Readable)?;
    poller.add(listener, LISTENER, Interest::Readable)?;
    let pool = Pool::start(handler, &waker)?;
    let mut server = Server {
        listener,
        handler: &**handler,
        poller,
        pool,
        cache: Cache::default(),
        settings: Rc::new(settings()),
        slots: Vec::new(),
        free: Vec::new(),
        serial: 0,
        again: Vec::new(),
        accepting: Accepting::Polled,
        last_event: None,
        stop_at: None,
        buffer: vec![0; BUFFER_BYTES],
        now: Instant::now(),
    };
    server.serve(&waker, stop)
}

struct Server<'a> {
    listener: &'a OwnedFd,
    handler: &'a dyn Handler,
    poller: Poller,
    pool: Pool,
    cache: Cache,
    settings: Rc<Settings>,
    slots: Vec<Option<Connection>>,
    /// Places without a connection.
    free: Vec<usize>,
    serial: u64,
    /// Connections with requests at hand.
    again: Vec<usize>,
    accepting: Accepting,
    /// The newest event, for streams that begin.
    last_event: Option<(Instant, String)>,
    /// End of the time for requests in progress, once no further connection is accepted.
    stop_at: Option<Instant>,
    buffer: Vec<u8>,
    now: Instant,
}

/// State of the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    Polled,
    /// All places are taken.
    Full,
    /// The system has no room for another connection; when to try again.
    Pausing(Instant),
}

impl Server<'_> {
    fn serve(&mut self, waker: &Waker, stop: &OwnedFd) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        let mut next_look = Instant::now() + TICK;
        loop {
            self.poller.wait(&mut events, self.wait_ms(next_look))?;
            self.now = Instant::now();
            for ready in events.iter() {
                match ready.token {
                    STOP => self.stop(stop)?,
                    WAKER => waker.drain(),
                    LISTENER if self.stop_at.is_none() => self.accept()?,
                    LISTENER => {}
                    _ => self.ready(ready),
                }
            }
            for at in std::mem::take(&mut self.again) {
                self.turn(at);
            }
            self.take_results();
            let streams = self.streams();
            self.pool.streams.store(streams, Ordering::Relaxed);
            if self.now >= next_look {
                self.check_deadlines();
                next_look = self.now + TICK;
            }
            if let Some(stop_at) = self.stop_at {
                let is_late = self.now >= stop_at;
                let mut all = self.slots.iter().flatten();
                if is_late || !all.any(|one| one.is_owed_a_response(self.now)) {
                    return Ok(());
                }
                next_look = next_look.min(self.now + STOP_LOOK);
            }
        }
    }

    /// Accepts no further connection: they wait in the listener's queue for the next server.
    fn stop(&mut self, stop: &OwnedFd) -> io::Result<()> {
        self.stop_at = Some(self.now + STOP_WAIT);
        self.poller.remove(stop)?;
        if self.accepting == Accepting::Polled {
            self.poller.remove(self.listener)?;
        }
        Ok(())
    }

    /// Time of the next wait.
    fn wait_ms(&self, next_look: Instant) -> Option<u64> {
        let left = next_look.saturating_duration_since(Instant::now());
        match self.again.is_empty() {
            false => Some(0),
            // Without connections and responses nothing has a deadline.
            true if self.connections() == 0
                && self.cache.is_empty()
                && self.accepting == Accepting::Polled =>
            {
                None
            }
            true => Some(left.as_millis() as u64 + 1),
        }
    }

    /// Number of event streams.
    fn streams(&self) -> usize {
        let all = self.slots.iter().flatten();
        all.filter(|one| one.state == State::Streaming).count()
    }

    fn connections(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_TOGETHER {
            if self.connections() >= CONNECTIONS_MAX {
                self.accepting = Accepting::Full;
                return self.poller.remove(self.listener);
            }
            match sys::socket::accept(self.listener) {
                Ok((socket, _)) => self.add(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptors or no memory: connections that end make room.
                Err(_) => {
                    self.accepting = Accepting::Pausing(self.now + ACCEPT_PAUSE);
                    return self.poller.remove(self.listener);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, socket: OwnedFd) {
        let at = self.free.pop().unwrap_or(self.slots.len());
        let token = CONNECTIONS + at as u64;
        let is_polled = self
            .poller
            .add(&socket, token, Interest::Connection)
            .is_ok();
        self.serial += 1;
        let made = Connection::new(socket, &self.settings, self.serial, self.now);
        match at < self.slots.len() {
            true => self.slots[at] = Some(made),
            false => self.slots.push(Some(made)),
        }
        match is_polled {
            true => self.turn(at),
            false => self.remove(at),
        }
    }

    fn ready(&mut self, ready: Ready) {
        let at = (ready.token - CONNECTIONS) as usize;
        // An event of a connection that has just been closed finds none.
        let Some(connection) = self.slots.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        connection.ready(ready.readable, ready.closed);
        self.turn(at);
    }

    /// Answers requests of a connection, sends, and removes it if it has ended.
    fn turn(&mut self, at: usize) {
        let now = self.now;
        for _ in 0..REQUESTS_TOGETHER {
            let Some(connection) = self.slots[at].as_mut() else {
                return;
            };
            let Some(incoming) = connection.next(&mut self.buffer, now) else {
                return self.write(at);
            };
            match incoming {
                Incoming::Refused(response) => self.send(at, response),
                Incoming::Request(request, is_head) => self.answer(at, request, is_head),
            }
            self.write(at);
        }
        // Further requests are held already, so no event of the poller would come.
        self.again.push(at);
    }

    fn answer(&mut self, at: usize, request: Request, is_head: bool) {
        match self.handler.route(&request) {
            Route::Now(response) => self.send(at, response),
            Route::Stream if is_head => self.send(at, Response::stream_head()),
            Route::Stream => self.stream(at),
            Route::Thread => self.queue(at, request),
        }
    }

    /// Answers from the cache, or has a thread make the response.
    fn queue(&mut self, at: usize, request: Request) {
        let queued: u64 = self.slots.iter().flatten().map(Connection::queued).sum();
        let Some(connection) = self.slots[at].as_mut() else {
            return;
        };
        let waiter = (at, connection.serial);
        match self.cache.find(&request, waiter, self.now) {
            Found::Ready(response) => return connection.respond(response, self.now),
            Found::Joined => return connection.state = State::Waiting,
            Found::Missing => {}
        }
        if queued > QUEUED_BYTES_MAX || !self.pool.offer(request.clone()) {
            return self.send(at, Response::line(503, BUSY));
        }
        connection.state = State::Waiting;
        self.cache.begin(request, waiter);
    }

    fn stream(&mut self, at: usize) {
        if self.streams() >= STREAMS_MAX {
            return self.send(at, Response::line(503, STREAMS_TAKEN));
        }
        let Some(connection) = self.slots[at].as_mut() else {
            return;
        };
        let newest = self.last_event.as_ref();
        let newest = newest.filter(|(at, _)| self.now.duration_since(*at) < EVENT_LIFE);
        let event = newest.map_or("", |(_, event)| event.as_str());
        connection.stream(&format!("retry: {RETRY_MS}\n\n{event}"), self.now);
    }

    fn send(&mut self, at: usize, response: Response) {
        if let Some(connection) = self.slots[at].as_mut() {
            connection.respond(&response.shared(), self.now);
        }
    }

    fn write(&mut self, at: usize) {
        let Some(connection) = self.slots[at].as_mut() else {
            return;
        };
        connection.write(self.now);
        if connection.state == State::Closed {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) {
        // Closing the socket ends its registration.
        self.slots[at] = None;
        self.free.push(at);
        if self.accepting == Accepting::Full && self.stop_at.is_none() {
            self.accept_again();
        }
    }

    fn accept_again(&mut self) {
        let added = self.poller.add(self.listener, LISTENER, Interest::Readable);
        self.accepting = match added {
            Ok(()) => Accepting::Polled,
            Err(_) => Accepting::Pausing(self.now + ACCEPT_PAUSE),
        };
    }

    /// Sends results of threads.
    fn take_results(&mut self) {
        while let Some(done) = self.pool.take_result() {
            match done {
                Done::Page(request, response) => self.page(&request, response),
                Done::Event(event) => self.broadcast(event),
            }
        }
    }

    fn page(&mut self, request: &Request, response: Response) {
        let response = response.shared();
        for (at, serial) in self.cache.end(request, &response, self.now) {
            let Some(connection) = self.slots[at].as_mut() else {
                continue;
            };
            // The slot may have another connection now.
            if connection.serial == serial && connection.state == State::Waiting {
                connection.respond(&response, self.now);
                self.turn(at);
            }
        }
    }

    /// Sends an event to all streams. Its bytes are in memory once.
    fn broadcast(&mut self, event: String) {
        let chunk = Chunk::Shared(SharedBytes::from(event.as_bytes()));
        self.last_event = Some((self.now, event));
        self.send_event(&chunk, |_, _| true);
    }

    fn send_event(&mut self, event: &Chunk, wants: impl Fn(&Connection, Instant) -> bool) {
        for at in 0..self.slots.len() {
            let Some(connection) = self.slots[at].as_mut() else {
                continue;
            };
            if connection.state == State::Streaming && wants(connection, self.now) {
                connection.event(event, self.now);
                self.write(at);
            }
        }
    }

    /// Closes late connections and keeps quiet streams alive.
    fn check_deadlines(&mut self) {
        self.cache.expire(self.now);
        self.send_event(&Chunk::Static(COMMENT), Connection::is_quiet);
        for at in 0..self.slots.len() {
            let Some(connection) = self.slots[at].as_ref() else {
                continue;
            };
            if connection.is_late(self.now) {
                self.remove(at);
            }
        }
        if let Accepting::Pausing(until) = self.accepting
            && self.stop_at.is_none()
            && until <= self.now
        {
            self.accept_again();
        }
    }
}

/// Limits of request heads. HTTP/0.9 has no place here.
fn settings() -> Settings {
    Settings {
        allow_http09: false,
        max_headers: 100,
        ..Settings::default()
    }
}

/// Raises the soft limit of open files to the number for all connections, at most to the hard limit.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = (CONNECTIONS_MAX + OTHER_FILES) as u64;
    let wanted = limit.maximum.map_or(wanted, |most| wanted.min(most));
    if limit.current.is_some_and(|current| current < wanted) {
        // Without success fewer connections are accepted at a time.
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Event streams that are open at a time; the next one gets 503.
pub const STREAMS_MAX: usize = 1024;
/// Connections at a time; the next ones wait in the listener's queue.
pub const CONNECTIONS_MAX: usize = STREAMS_MAX + 256;
/// Output of all connections above which no further page is made, bytes.
const QUEUED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files that the process has open besides connections.
const OTHER_FILES: usize = 256;
/// Connections accepted before others have a turn.
const ACCEPTED_TOGETHER: usize = 64;
/// Requests of a connection answered before others have a turn.
const REQUESTS_TOGETHER: usize = 16;
const BUFFER_BYTES: usize = 16 * 1024;
/// Time between two looks at deadlines.
const TICK: Duration = Duration::from_secs(1);
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Time for responses after the stop, and between two looks whether all have left.
const STOP_WAIT: Duration = Duration::from_secs(3);
const STOP_LOOK: Duration = Duration::from_millis(20);
/// Age of an event above which a new stream waits for the next one.
const EVENT_LIFE: Duration = Duration::from_secs(10);
/// Time after which a browser connects again, ms.
const RETRY_MS: u32 = 5000;
const COMMENT: &[u8] = b":\n\n";
const BUSY: &str = "The dashboard is busy. Please try again in some seconds.";
const STREAMS_TAKEN: &str = "All event streams are taken. The pages work without live figures.";

const STOP: u64 = 0;
const WAKER: u64 = 1;
const LISTENER: u64 = 2;
const CONNECTIONS: u64 = 3;
