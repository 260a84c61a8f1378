//! What a connection is made of.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use engines::h1::{self, Next};
use engines::http::Gather;
use engines::proxy_protocol;
use server_core::conf_core::Lingering;
use server_core::exchange::{Client, Exchange, Peer};
use server_core::stats::{Activity, Counted};
use server_core::waker::WakeKey;

use super::mux::Mux;
use super::sampling::Sample;
use super::tls::Tls;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// One connection.
pub struct Conn<S> {
    pub(super) socket: S,
    pub(super) peer: Peer,
    pub(super) local: Option<Box<SocketAddr>>,
    pub(super) port: u32,
    pub(super) requests: u32,
    pub(super) serial: u64,
    pub(super) since_ms: u64,
    /// When what the connection waits for began: the head, the idle time, the last progress.
    pub(super) mark_ms: u64,
    /// How long an idle connection is spared when the server ends, from the location of its last request.
    pub(super) min_idle_ms: u64,
    /// How long the connection may be idle, from the location of its last request.
    pub(super) idle_ms: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer has ended its side or reset: read until that is seen.
    pub(super) hung_up: bool,
    pub(super) nodelay: bool,
    /// The kernel may put times into the socket's error queue.
    pub(super) stamps: bool,
    /// No request after the one under way or the next.
    pub(super) retired: bool,
    /// Its port is gone: what is under way is finished, nothing new begins.
    pub(super) gone: bool,
    /// May be read from after our side was ended, by the location of its last request.
    pub(super) lingers: bool,
    /// Our side is ended and nothing is under way: what still comes is dropped for a moment.
    pub(super) ended: bool,
    /// What a proxy says before the first request.
    pub(super) preface: Preface,
    /// `debug_connection` names its peer.
    pub(super) debug: bool,
    /// Its place in the process's counters.
    pub(super) counted: Counted,
    /// The first bytes have to tell what is spoken besides HTTP/1.
    pub(super) undecided: Option<Choice>,
    /// Those bytes, where they were too few.
    pub(super) held: Box<[u8]>,
    /// A request in the clear came where TLS was expected.
    pub(super) plain_on_tls: bool,
    pub(super) tls: Option<Box<Tls>>,
    pub(super) mux: Option<Box<Mux>>,
    pub(super) active: Option<Box<Active>>,
    /// The response that is sampled.
    pub(super) sample: Option<Box<Sample>>,
}

/// The header of the PROXY protocol.
pub(super) enum Preface {
    /// None is expected, or it named nobody.
    Absent,
    /// It is expected; what has come of it.
    Awaited(Box<[u8]>),
    /// What it said.
    Read(Rc<proxy_protocol::Header>),
}

/// Protocols that a plain connection may begin besides HTTP/1.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// HTTP/2, by its preface.
    pub http2: bool,
    /// SPDY, by its first byte.
    pub spdy: bool,
}

/// What a connection has only while something happens on it.
pub struct Active {
    pub(super) engine: h1::Conn,
    pub(super) out: Gather,
    /// Bytes put into `out` and taken from it since the connection became active.
    pub(super) queued: u64,
    pub(super) sent: u64,
    pub(super) exchange: Option<Box<Exchange>>,
    /// Value of `queued` when the exchange began.
    pub(super) start: u64,
    /// Exchanges whose responses are queued whole.
    pub(super) tail: VecDeque<Queued>,
    /// When bytes were last read, monotonic microseconds, where moments are noted.
    pub(super) read_us: u64,
    /// What to do when the queue is empty.
    pub(super) next: Next,
    pub(super) closing: Closing,
    pub(super) mode: Mode,
}

/// An exchange whose response is queued whole.
pub(super) struct Queued {
    pub(super) exchange: Box<Exchange>,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes of the response, where they do not lie between start and end alone.
    pub(super) bytes: u64,
}

/// How a connection is closed, from the location of its last request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) rule: Lingering,
    pub(super) time_ms: u64,
    pub(super) timeout_ms: u64,
}

/// What the connection is in besides an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Requests and responses.
    Serve,
    /// The response is sent, the rest of the request body is dropped: until when.
    AwaitBody { until_ms: u64 },
    /// Our side is ended, what the peer still sends is dropped: until when.
    Linger { until_ms: u64 },
}

/// Why a connection takes its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// There may be something to read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// The peer has ended its side, or the connection is broken.
    pub hung_up: bool,
    /// The deadline has passed.
    pub expired: bool,
    /// Reading found the connection at its end.
    pub broken: bool,
}

/// What is to be done with the connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Keep it; take a turn at this time at the latest.
    Keep {
        /// Monotonic milliseconds.
        deadline_ms: u64,
    },
    /// Close it.
    Close,
}

/// The connection ends here and now.
pub(super) struct Closed;

impl Active {
    pub(in crate::worker) fn new(settings: Rc<h1::Settings>) -> Self {
        Self {
            engine: h1::Conn::new(settings),
            out: Gather::default(),
            queued: 0,
            sent: 0,
            exchange: None,
            start: 0,
            tail: VecDeque::new(),
            read_us: 0,
            next: Next::KeepAlive,
            closing: Closing {
                rule: Lingering::On,
                time_ms: 30_000,
                timeout_ms: 5_000,
            },
            mode: Mode::Serve,
        }
    }

    pub(in crate::worker) fn reset(&mut self, settings: Rc<h1::Settings>) {
        self.engine.reset(settings);
        self.out.clear();
        self.queued = 0;
        self.sent = 0;
        self.next = Next::KeepAlive;
        self.mode = Mode::Serve;
    }

    /// The exchanges under way, with the places of their first bytes in the queue.
    pub(super) fn under_way(&mut self) -> impl Iterator<Item = (u64, &mut Exchange)> {
        let queued = self.tail.iter_mut().map(|q| (q.start, &mut *q.exchange));
        let current = self.exchange.iter_mut().map(|x| (self.start, &mut **x));
        queued.chain(current)
    }

    /// Whether nothing is under way.
    pub(super) fn is_settled(&self) -> bool {
        self.exchange.is_none() && self.tail.is_empty() && self.out.is_empty()
    }
}

/// What the exchange knows of the connection.
pub(super) fn client<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    hostless: bool,
) -> Client {
    let port = &sh.generation.http.ports[c.port as usize];
    let wanted = port.needs_local_addr || (hostless && port.listen.addr.is_wildcard());
    if wanted && c.local.is_none() {
        c.local = sh.net.local_addr(&mut c.socket).map(Box::new);
    }
    Client {
        peer: c.peer,
        local: c.local.as_deref().copied(),
        connection: c.serial,
        requests: u64::from(c.requests),
        since_ms: c.since_ms,
        pipelined: c.active.as_ref().is_some_and(|a| a.queued > 0),
        may_push: false,
        offers: None,
        debug: c.debug,
        socket: sh.net.number(&c.socket),
        wake: WakeKey {
            owner: sh.owner,
            stream: 0,
        },
    }
}

impl<S> Conn<S> {
    /// A connection that has just been accepted on a port.
    pub fn new(socket: S, peer: Peer, port: usize, serial: u64, now_ms: u64) -> Self {
        Self {
            socket,
            peer,
            local: None,
            port: port as u32,
            requests: 0,
            serial,
            since_ms: now_ms,
            mark_ms: now_ms,
            idle_ms: 0,
            min_idle_ms: 0,
            readable: false,
            writable: true,
            hung_up: false,
            nodelay: true,
            stamps: false,
            retired: false,
            gone: false,
            lingers: true,
            ended: false,
            preface: Preface::Absent,
            debug: false,
            counted: Counted::accepted(),
            undecided: None,
            plain_on_tls: false,
            held: Box::default(),
            tls: None,
            mux: None,
            active: None,
            sample: None,
        }
    }

    /// What the connection does, for the counters.
    pub(super) fn activity(&self) -> Activity {
        if let Some(mux) = &self.mux {
            return if mux.is_busy() {
                Activity::Writing
            } else {
                Activity::Waiting
            };
        }
        match &self.active {
            None => Activity::Waiting,
            Some(a) if !a.is_settled() || a.mode != Mode::Serve => Activity::Writing,
            Some(_) => Activity::Reading,
        }
    }

    /// A header of the PROXY protocol comes before the first request.
    pub fn expect_preface(&mut self) {
        self.preface = Preface::Awaited(Box::default());
    }

    /// Whether more bytes can be taken.
    #[inline]
    pub(super) fn wants_input(&self) -> bool {
        if self.tls.as_ref().is_some_and(|tls| tls.holds()) {
            // The handshake must go on, whatever is under way that came as early data.
            return true;
        }
        if let Some(mux) = &self.mux {
            return mux.wants_input();
        }
        match &self.active {
            Some(a) => {
                let room = a.exchange.as_ref().is_none_or(|x| x.has_body_room());
                matches!(a.mode, Mode::Linger { .. }) || (room && a.engine.wants_input())
            }
            None => true,
        }
    }

    /// A handshake of TLS comes first.
    pub fn expect_tls(&mut self) {
        self.tls = Some(Box::new(Tls::new()));
    }

    /// The first bytes may be the preface of HTTP/2, or a frame of SPDY.
    pub fn expect(&mut self, choice: Choice) {
        self.undecided = Some(choice);
    }

    /// The peer's address.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether the connection is logged at level debug whatever the levels are, requests under way included.
    pub fn set_debug(&mut self, on: bool) {
        self.debug = on;
        if let Some(active) = &mut self.active {
            let queued = active.tail.iter_mut().map(|q| &mut q.exchange);
            for x in queued.chain(&mut active.exchange) {
                x.client.debug = on;
            }
        }
        if let Some(mux) = &mut self.mux {
            mux.set_debug(on);
        }
    }

    /// What nginx's log calls the wait for the bytes that have come.
    pub(super) fn waiting(&self) -> &'static str {
        match self.requests {
            0 => "http wait request handler",
            _ => "http keepalive handler",
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, for the simulator.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The port on which it was accepted.
    pub fn port(&self) -> usize {
        self.port as usize
    }

    /// Gives the connection the index that its port has in a new configuration.
    pub fn set_port(&mut self, port: usize) {
        self.port = port as u32;
    }

    /// Has had a request and waits for the next.
    pub fn is_kept_alive(&self) -> bool {
        self.is_idle() && self.requests > 0
    }

    /// Whether an idle connection is still spared from being closed (`keepalive_min_timeout`).
    pub fn is_spared(&self, now_ms: u64) -> bool {
        self.is_kept_alive() && now_ms < self.mark_ms.saturating_add(self.min_idle_ms)
    }

    /// Between requests, or before the first one.
    pub fn is_idle(&self) -> bool {
        self.active.is_none() && self.mux.as_ref().is_none_or(|mux| !mux.is_busy())
    }

    /// Whether it has been retired, or has a request under way that began before this configuration.
    pub fn is_older_than(&self, number: u64) -> bool {
        if self
            .mux
            .as_ref()
            .is_some_and(|mux| mux.is_older_than(number))
        {
            return true;
        }
        let Some(active) = &self.active else {
            return self.retired;
        };
        let queued = active.tail.iter().map(|q| &q.exchange);
        self.retired
            || queued
                .chain(&active.exchange)
                .any(|x| x.http.number < number)
    }

    /// Whether it must be told of its end before it is closed.
    pub fn says_goodbye(&self) -> bool {
        self.mux.is_some()
    }

    /// Its port is gone from the configuration: what is under way is finished, nothing new begins.
    pub fn lose_port(&mut self) {
        self.gone = true;
        self.make_last();
    }

    /// Makes the response under way, or else the next one, the last. With HTTP/2 no request after those that are here is
    /// served, as in nginx, unless the connection is spared.
    pub(super) fn make_last(&mut self) {
        self.retired = true;
        if let Some(mux) = &mut self.mux
            && (mux.is_busy() || self.min_idle_ms == 0)
        {
            mux.engine.end();
        }
        if let Some(active) = &mut self.active {
            active.engine.close_after();
        }
    }

    /// The same, but a client of HTTP/2 is told ahead, so that no request of it is lost on the way.
    pub fn drain(&mut self) {
        match &mut self.mux {
            Some(mux) if mux.is_busy() => {
                self.retired = true;
                mux.engine.drain();
            }
            _ => self.make_last(),
        }
    }
}
