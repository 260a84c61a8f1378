//! One connection: its socket, its HTTP/1 engine, its queue of output, its deadline.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use engines::h1::{Conn, Event, Next, Settings};
use engines::http::{Chunk, Method, OutputQueue, RequestHead};
use sys::socket::{self, receive};

use super::response::{Request, Response, Shared, stream_head};

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    engine: Conn,
    out: OutputQueue,
    pub(super) state: State,
    /// Last time that bytes moved in either direction, or the state changed.
    moved: Instant,
    /// Distinguishes connections that had the same place.
    pub(super) serial: u64,
    may_read: bool,
    has_ended: bool,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A request is expected, or is being received.
    Reading,
    /// A response was queued; its request body is still being received.
    Draining,
    /// A thread makes the response.
    Waiting,
    /// An event stream.
    Streaming,
    /// The rest of the output is sent, then the connection is closed.
    Flushing,
    /// The output was sent; bytes of the peer are read and dropped.
    Lingering,
    /// Nothing more to do.
    Closed,
}

/// Request that needs an answer.
#[derive(Debug)]
pub(super) enum Incoming {
    /// GET, or HEAD if the flag is set.
    Request(Request, bool),
    /// The request has a fault, or another method; the response is known.
    Refused(Response),
}

impl Connection {
    /// A new connection.
    pub(super) fn new(socket: OwnedFd, settings: &Rc<Settings>, serial: u64, now: Instant) -> Self {
        Self {
            socket,
            engine: Conn::new(Rc::clone(settings)),
            out: OutputQueue::default(),
            state: State::Reading,
            moved: now,
            serial,
            may_read: true,
            has_ended: false,
        }
    }

    /// Bytes that wait to be sent.
    pub(super) fn queued(&self) -> u64 {
        self.out.len()
    }

    /// Notes an event of the poller.
    pub(super) fn ready(&mut self, readable: bool, closed: bool) {
        self.may_read |= readable;
        // A stream has no further request, so its peer's end is its end.
        if closed && self.state == State::Streaming {
            self.state = State::Closed;
        }
    }

    /// Reads while the engine has room, and returns the next request.
    pub(super) fn next(&mut self, buffer: &mut [u8], now: Instant) -> Option<Incoming> {
        loop {
            if let Some(found) = self.events(now) {
                return Some(found);
            }
            if !self.read(buffer, now) {
                return None;
            }
        }
    }

    /// Takes events of the engine up to a request that needs an answer.
    fn events(&mut self, now: Instant) -> Option<Incoming> {
        // Pipelined requests wait until most of the output has been sent.
        while self.out.len() < QUEUE_BYTES && matches!(self.state, State::Reading | State::Draining)
        {
            match self.engine.event()? {
                Event::Head(head) => {
                    self.moved = now;
                    let found = incoming(&head);
                    self.engine.discard_body();
                    self.engine.recycle(head);
                    return Some(found);
                }
                Event::BodyEnd | Event::BodyFault(_) if self.state == State::Draining => {
                    self.finish(now);
                }
                Event::Eof => self.set(State::Flushing, now),
                Event::BodyEnd | Event::BodyFault(_) | Event::Data(_) | Event::Trailers(_) => {}
            }
        }
        None
    }

    /// Receives once; returns whether the engine got something.
    fn read(&mut self, buffer: &mut [u8], now: Instant) -> bool {
        let is_dropped = matches!(self.state, State::Lingering | State::Streaming);
        let is_wanted = is_dropped || self.engine.wants_input() && !self.has_ended;
        if !self.may_read || !is_wanted || self.state == State::Closed {
            return false;
        }
        match receive(&self.socket, buffer) {
            Ok(0) => {
                self.may_read = false;
                self.has_ended = true;
                match is_dropped {
                    true => self.state = State::Closed,
                    false => self.engine.receive_eof(),
                }
                true
            }
            Ok(_) if is_dropped => true,
            Ok(n) => {
                // Time of a head counts from its first byte, so a slow head has a limit.
                if self.engine.phase() != engines::h1::Phase::Head {
                    self.moved = now;
                }
                self.engine.receive(&buffer[..n]);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_read = false;
                false
            }
            Err(_) => {
                self.state = State::Closed;
                false
            }
        }
    }

    /// Queues a response.
    pub(super) fn respond(&mut self, response: &Shared, now: Instant) {
        self.engine.send_head(&response.head);
        self.engine.send_data(response.body.clone());
        self.engine.send_end(None);
        self.finish(now);
    }

    fn finish(&mut self, now: Instant) {
        let next = match self.engine.finish() {
            Next::KeepAlive => State::Reading,
            Next::AwaitBody => State::Draining,
            Next::Linger | Next::Close => State::Flushing,
        };
        self.engine.transmit(&mut self.out);
        self.set(next, now);
    }

    /// Queues the head of an event stream, then a first text.
    pub(super) fn stream(&mut self, first: &str, now: Instant) {
        self.engine.send_head(&stream_head());
        self.engine
            .send_data(Chunk::Owned(first.as_bytes().to_vec()));
        self.engine.transmit(&mut self.out);
        self.set(State::Streaming, now);
    }

    /// Queues an event. A reader with unsent output misses it: each event has all figures.
    pub(super) fn event(&mut self, event: &Chunk, now: Instant) {
        if self.out.is_empty() {
            self.engine.send_data(event.clone());
            self.engine.transmit(&mut self.out);
            self.moved = now;
        }
    }

    /// Whether a response is to come or has not left. The request of a new connection may be on its way.
    pub(super) fn is_owed_a_response(&self, now: Instant) -> bool {
        match self.state {
            State::Reading => !self.out.is_empty() || now.duration_since(self.moved) < REQUEST_WAIT,
            State::Draining | State::Waiting | State::Flushing => true,
            State::Streaming | State::Lingering | State::Closed => false,
        }
    }

    /// Whether a stream has been quiet for [`KEEP_ALIVE`].
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.state == State::Streaming && now.duration_since(self.moved) >= KEEP_ALIVE
    }

    /// Sends as much as the socket takes.
    pub(super) fn write(&mut self, now: Instant) {
        while !self.out.is_empty() && self.state != State::Closed {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.out.slices(&mut slices);
            match socket::send_vectored(&self.socket, &slices[..count], false) {
                Ok(sent) if sent.bytes > 0 => {
                    self.out.advance(sent.bytes);
                    self.moved = now;
                }
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.state = State::Closed,
            }
        }
        if self.state == State::Streaming && self.out.is_empty() {
            // A thousand streams at rest keep no buffers.
            self.out.shrink();
        }
        if self.state == State::Flushing && self.out.is_empty() {
            self.linger(now);
        }
    }

    /// Closes at once if the peer has ended its side. Otherwise a reset could overtake the response.
    fn linger(&mut self, now: Instant) {
        let failed = socket::shutdown_write(&self.socket).is_err();
        let next = match self.has_ended || failed {
            true => State::Closed,
            false => State::Lingering,
        };
        self.set(next, now);
    }

    fn set(&mut self, state: State, now: Instant) {
        self.state = state;
        self.moved = now;
    }

    /// Whether the connection has waited for too long.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        let limit = match self.state {
            _ if !self.out.is_empty() => SEND_LIMIT,
            State::Waiting | State::Streaming => return false,
            State::Reading if self.engine.phase() == engines::h1::Phase::Idle => IDLE_LIMIT,
            State::Reading | State::Draining => RECEIVE_LIMIT,
            State::Flushing | State::Lingering | State::Closed => LINGER_LIMIT,
        };
        now.duration_since(self.moved) >= limit
    }
}

/// Finds out if a request may be answered.
fn incoming(head: &RequestHead) -> Incoming {
    if let Some(fault) = head.fault {
        // Two codes of nginx for bad heads have no meaning outside of it.
        let status = match fault.status() {
            494..=497 => 400,
            status => status,
        };
        return Incoming::Refused(Response::line(status, fault.message()));
    }
    match head.method {
        Method::Get | Method::Head => {
            Incoming::Request(Request::of(head), head.method == Method::Head)
        }
        _ => Incoming::Refused(Response::line(405, "The dashboard has GET and HEAD only.")),
    }
}

/// Output of a connection above which no further request of it is answered, bytes.
const QUEUE_BYTES: u64 = 64 * 1024;
/// Time in which a reader must take some bytes; then it is closed.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(20);
/// Time between requests.
const IDLE_LIMIT: Duration = Duration::from_secs(75);
/// Time of a request head, and between two pieces of a request body.
const RECEIVE_LIMIT: Duration = Duration::from_secs(10);
/// Time in which the peer must close after the last response.
const LINGER_LIMIT: Duration = Duration::from_secs(2);
/// Time without a byte after which a connection without a request is closed at the stop.
const REQUEST_WAIT: Duration = Duration::from_millis(200);
/// A quiet stream gets a comment, so that proxies do not close it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pieces of one write.
const SLICES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    use crate::web::http::response::TEXT;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn each_step_has_a_limit() {
        let (mut peer, own) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("it is a socket");
        let start = Instant::now();
        let mut connection = Connection::new(own.into(), &Rc::default(), 1, start);
        let mut buffer = [0; 1024];
        let mut late_after = |connection: &mut Connection, limit: Duration, from: Instant| {
            assert!(connection.next(&mut buffer, from).is_none());
            assert!(!connection.is_late(from + limit - MS) && connection.is_late(from + limit));
        };
        late_after(&mut connection, IDLE_LIMIT, start);
        // Further bytes of a head do not prolong it.
        for n in 1..4 {
            io::Write::write_all(&mut peer, b"GET").expect("it fits");
            connection.ready(true, false);
            assert!(connection.next(&mut [0; 1024], start + n * MS).is_none());
        }
        late_after(&mut connection, RECEIVE_LIMIT, start + MS);
    }

    #[test]
    fn a_reader_that_takes_nothing_is_late() {
        let (mut peer, own) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("it is a socket");
        let now = Instant::now();
        let mut connection = Connection::new(own.into(), &Rc::default(), 1, now);
        io::Write::write_all(&mut peer, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").expect("it fits");
        assert!(connection.next(&mut [0; 1024], now).is_some());
        connection.state = State::Waiting;
        assert!(
            !connection.is_late(now + SEND_LIMIT),
            "threads take their time"
        );
        let response = Response::made(200, TEXT, "x".repeat(8 << 20)).shared();
        connection.respond(&response, now);
        connection.write(now);
        assert!(connection.queued() > 0);
        assert!(!connection.is_late(now + SEND_LIMIT - MS) && connection.is_late(now + SEND_LIMIT));
        // Each byte that it takes counts.
        io::Read::read_exact(&mut peer, &mut vec![0; 1 << 16]).expect("it sends");
        connection.write(now + SEND_LIMIT);
        assert!(!connection.is_late(now + SEND_LIMIT));
    }
}
