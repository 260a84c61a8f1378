//! A connection and the states it goes through.
//!
//! ```text
//! ProxyHeader -> Sniffing -> Idle <-> Serving -> Lingering -> Closed
//!                                       Serving -> Outlived -> Closed
//! ```
//!
//! A listener decides the first state: with or without a header of the PROXY protocol, several protocols or HTTP/1
//! alone. `Idle` is a connection of HTTP/1 without a request: it holds no buffer. A connection with streams stays in
//! `Serving`. Any state can become `Closed`. Events of the socket do not change the state here, but in the layers above
//! (`sniff`, `h1`, `mux`, `lifecycle`).

use std::net::SocketAddr;
use std::rc::Rc;

use engines::http::Protocols;
use engines::proxy_protocol;
use server_http::exchange::Peer;
use server_http::stats::{Activity, Counted};

use super::probe::ProbeState;
use super::tls::Tls;
use crate::worker::net::Net;
use crate::worker::readiness::SocketFlags;
use crate::worker::state::outliving::Outliving;
use crate::worker::state::serving::{Exchanges, H1State, MuxState, Protocol};

/// One connection.
pub struct Conn<S> {
    pub(super) socket: S,
    pub(super) peer: Peer,
    pub(super) local: Option<Box<SocketAddr>>,
    pub(super) port: u32,
    pub(super) requests: u32,
    pub(super) serial: u64,
    pub(super) since_ms: u64,
    /// When the peer last made progress; the deadline of the current state counts from then.
    pub(super) last_progress_ms: u64,
    /// Time for which an idle connection is kept when the server ends, from the location of its last request.
    pub(super) min_idle_ms: u64,
    /// Idle time limit, from the location of the last request.
    pub(super) idle_ms: u64,
    pub(super) flags: SocketFlags,
    pub(super) nodelay: bool,
    /// The kernel may put timestamps into the socket's error queue.
    pub(super) timestamping: bool,
    /// `lingering_close` of the location of the last request is not `off`.
    pub(super) lingering_allowed: bool,
    /// `debug_connection` names the peer.
    pub(super) debug: bool,
    pub(super) drain: Drain,
    /// The connection's place in the process's counters.
    pub(super) counted: Counted,
    pub(super) transport: Transport,
    pub(super) state: State,
    /// The header of the PROXY protocol.
    pub(super) proxied: Option<Rc<proxy_protocol::Header>>,
    /// State of the probe.
    pub(super) probe: ProbeState,
}

/// Transport of the protocol's bytes.
pub(super) enum Transport {
    /// The socket alone.
    Plain,
    /// TLS.
    Tls(Box<Tls>),
    /// The socket alone: a request in the clear came instead of TLS, and is answered with 497.
    PlainOnTlsPort,
}

/// State of a connection.
pub(super) enum State {
    /// The header of the PROXY protocol is expected first, and one of these protocols or HTTP/1 after it.
    ProxyHeader(Protocols, Option<Box<FirstBytes>>),
    /// The first bytes decide among these protocols and HTTP/1.
    Sniffing(Protocols, Option<Box<FirstBytes>>),
    /// HTTP/1 between requests, or before the first one; also during a TLS handshake.
    Idle,
    /// Requests are read and answered.
    Serving(Protocol),
    /// Our side is ended. Input is read and dropped, since a reset could destroy sent bytes.
    Lingering(Box<Lingering>),
    /// The client has left; exchanges that outlive it continue.
    Outlived(Box<Outliving>),
    /// Over.
    Closed,
}

/// The first bytes of a connection, while too few to identify the protocol.
pub(super) struct FirstBytes(pub(super) Vec<u8>);

/// The times of a connection that drops its input.
pub(super) struct Lingering {
    /// When our side was ended.
    pub(super) since_ms: u64,
    /// When the connection is closed at the latest.
    pub(super) until_ms: u64,
    /// Time limit of the peer's silence.
    pub(super) silence_ms: u64,
}

/// Whether a connection is to end, while the server or its configuration changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// No.
    No,
    /// After the response in progress, or else after the next one.
    Draining,
    /// Its listener is gone: requests in progress finish, nothing new begins.
    ListenerRemoved,
}

/// The side that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedBy {
    /// The client has ended or reset it, or nothing is in progress.
    Client,
    /// The server ends it, for a timeout or a shutdown: active exchanges end too.
    Server,
}

/// The connection ends here and now.
pub(super) struct Closed;

impl Transport {
    #[inline]
    pub(super) fn tls(&self) -> Option<&Tls> {
        match self {
            Self::Tls(tls) => Some(tls),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn tls_mut(&mut self) -> Option<&mut Tls> {
        match self {
            Self::Tls(tls) => Some(tls),
            _ => None,
        }
    }
}

impl State {
    /// The state in which a connection expects the first bytes of one of these protocols, or of HTTP/1.
    pub(super) fn of_first_bytes(protocols: Protocols) -> Self {
        match protocols.is_empty() {
            true => Self::Idle,
            false => Self::Sniffing(protocols, None),
        }
    }

    #[inline]
    pub(super) fn h1(&mut self) -> Option<&mut H1State> {
        match self {
            Self::Serving(Protocol::H1(h1)) => Some(h1),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn mux(&mut self) -> Option<&mut MuxState> {
        match self {
            Self::Serving(Protocol::Mux(mux)) => Some(mux),
            _ => None,
        }
    }

    /// The exchanges in progress and their output, while a protocol is served.
    #[inline]
    pub(super) fn exchanges(&self) -> Option<&Exchanges> {
        match self {
            Self::Serving(protocol) => Some(protocol.exchanges()),
            _ => None,
        }
    }

    /// Returns the exchanges of [`State::exchanges`], mutable.
    #[inline]
    pub(super) fn exchanges_mut(&mut self) -> Option<&mut Exchanges> {
        match self {
            Self::Serving(protocol) => Some(protocol.exchanges_mut()),
            _ => None,
        }
    }
}

impl Drain {
    /// Whether the connection is to end.
    #[inline]
    pub(super) fn is_on(self) -> bool {
        self != Self::No
    }

    /// Whether nothing new may begin.
    #[inline]
    pub(super) fn is_listener_removed(self) -> bool {
        self == Self::ListenerRemoved
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
            last_progress_ms: now_ms,
            idle_ms: 0,
            min_idle_ms: 0,
            flags: SocketFlags {
                writable: true,
                ..SocketFlags::default()
            },
            nodelay: true,
            timestamping: false,
            lingering_allowed: true,
            debug: false,
            drain: Drain::No,
            counted: Counted::accepted(),
            transport: Transport::Plain,
            state: State::Idle,
            proxied: None,
            probe: ProbeState::default(),
        }
    }

    /// A header of the PROXY protocol comes before the first request.
    pub fn expect_proxy_header(&mut self) {
        self.state = State::ProxyHeader(Protocols::default(), None);
    }

    /// A handshake of TLS comes first.
    pub fn expect_tls(&mut self) {
        self.transport = Transport::Tls(Box::new(Tls::new()));
    }

    /// The first bytes, after a header of the PROXY protocol, may be those of other protocols than HTTP/1.
    pub fn expect(&mut self, expected: Protocols) {
        match &mut self.state {
            State::ProxyHeader(protocols, _) => *protocols = expected,
            state => *state = State::of_first_bytes(expected),
        }
    }

    /// Activity of the connection for the counters; `None` while it ends, which changes nothing.
    #[inline]
    pub(super) fn activity(&self) -> Option<Activity> {
        match &self.state {
            State::ProxyHeader(..) | State::Sniffing(..) | State::Idle => Some(Activity::Waiting),
            State::Serving(protocol) => Some(protocol.activity()),
            State::Outlived(_) => Some(Activity::Writing),
            State::Lingering(_) | State::Closed => None,
        }
    }

    /// Whether more bytes can be taken.
    #[inline]
    pub(super) fn wants_input(&self) -> bool {
        if self.transport.tls().is_some_and(Tls::is_handshaking) {
            // The handshake must continue, even with exchanges from early data in progress.
            return true;
        }
        match &self.state {
            State::Serving(protocol) => protocol.wants_input(),
            State::Outlived(_) => false,
            _ => true,
        }
    }

    /// The peer's address.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Sets whether the connection is logged at level debug regardless of the levels, requests in progress included.
    pub fn set_debug(&mut self, on: bool) {
        self.debug = on;
        if let Some(exchanges) = self.state.exchanges_mut() {
            for (_, x) in exchanges.in_progress() {
                x.client.debug = on;
            }
        }
    }

    /// Name in nginx's log of the wait for the received bytes.
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

    /// Changes the port: its own is gone, and another one has its address.
    pub fn set_port(&mut self, port: usize) {
        self.port = port as u32;
    }

    /// The address on which it was accepted; a system call the first time.
    pub fn local_addr<N: Net<Socket = S>>(&mut self, net: &mut N) -> Option<SocketAddr> {
        if self.local.is_none() {
            self.local = net.local_addr(&mut self.socket).map(Box::new);
        }
        self.local.as_deref().copied()
    }

    /// The number of the connection, in the order in which connections are accepted.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Has had a request and waits for the next.
    pub fn is_kept_alive(&self) -> bool {
        self.is_idle() && self.requests > 0
    }

    /// Whether an idle connection is still kept although the server ends (`keepalive_min_timeout`).
    pub fn is_spared(&self, now_ms: u64) -> bool {
        self.is_kept_alive() && now_ms < self.last_progress_ms.saturating_add(self.min_idle_ms)
    }

    /// Between requests, or before the first one.
    pub fn is_idle(&self) -> bool {
        match &self.state {
            State::ProxyHeader(..) | State::Sniffing(..) | State::Idle => true,
            State::Serving(Protocol::H1(_)) => false,
            State::Serving(Protocol::Mux(mux)) => !mux.exchanges.is_busy(),
            State::Lingering(_) | State::Outlived(_) | State::Closed => false,
        }
    }

    /// Whether it is to end, or has a request in progress that began before this configuration.
    pub fn is_older_than(&self, number: u64) -> bool {
        let is_older = |exchanges: &Exchanges| exchanges.is_older_than(number);
        let outliving = match &self.state {
            State::Outlived(outliving) => outliving.is_older_than(number),
            State::Serving(Protocol::Mux(mux)) => mux.outliving.is_older_than(number),
            _ => false,
        };
        self.drain.is_on() || outliving || self.state.exchanges().is_some_and(is_older)
    }

    /// Whether the protocol announces the end of a connection (GOAWAY).
    pub fn sends_goaway(&self) -> bool {
        matches!(self.state, State::Serving(Protocol::Mux(_)))
    }

    /// The connection's listener is no longer in the configuration: requests in progress finish, nothing new begins.
    pub fn on_listener_removed(&mut self) {
        self.drain();
        self.drain = Drain::ListenerRemoved;
    }

    /// Makes the response in progress, or else the next one, the last. As in nginx, HTTP/2 serves no request after
    /// those received, unless the connection is spared.
    pub(super) fn drain(&mut self) {
        if self.drain == Drain::No {
            self.drain = Drain::Draining;
        }
        match &mut self.state {
            State::Serving(Protocol::H1(h1)) => h1.engine.close_after(),
            State::Serving(Protocol::Mux(mux))
                if mux.exchanges.is_busy() || self.min_idle_ms == 0 =>
            {
                mux.engine.end();
            }
            _ => {}
        }
    }

    /// Does the same as [`Conn::drain`], but announces the end to a client of HTTP/2 first, so that none of its
    /// requests is lost on the way.
    pub(super) fn announce_drain(&mut self) {
        match &mut self.state {
            State::Serving(Protocol::Mux(mux)) if mux.exchanges.is_busy() => {
                mux.engine.drain();
                if self.drain == Drain::No {
                    self.drain = Drain::Draining;
                }
            }
            _ => self.drain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    /// An idle connection is this and a slot in the timer wheel.
    #[test]
    fn a_connection_is_small() {
        assert!(size_of::<Conn<OwnedFd>>() <= 160);
    }
}
