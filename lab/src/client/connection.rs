//! One connection: its transport, its engine, and the requests in progress on it.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustls::pki_types::ServerName;
use sys::os_error;
use sys::poll::Ready;
use sys::socket;
use tls::{ClientConfig, ClientConn};

use super::clock::now_ns;
use super::engine::{Engine, Event, Protocol};
use super::in_flight::{Exchange, InFlight};
use super::request::Request;
use super::scheme;
use super::transport::{Broken, Transport};
use super::trust::error_name;

/// Server of a connection, and options for opening it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// TLS, and the required name in the certificate.
    pub(crate) tls: Option<(ClientConfig, ServerName<'static>)>,
    /// The protocol without TLS; with TLS, ALPN selects it.
    pub(crate) plain: Protocol,
    pub(crate) keep_alive: bool,
    pub(crate) spdy_level: u8,
}

/// A connection, or the place of one.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) stage: Stage,
    transport: Transport,
    engine: Option<Engine>,
    pub(crate) in_flight: InFlight,
    /// When it was begun, and when TCP was connected, nanoseconds.
    pub(crate) begun_ns: u64,
    connected_ns: u64,
    /// Whether nothing was received yet on a connection without TLS.
    is_unanswered: bool,
    /// Plaintext received with the end of the handshake.
    early: Vec<u8>,
    /// Events below the engine.
    events: VecDeque<Event>,
    /// Bytes that were received, those of TLS included, also on earlier connections of this place.
    pub(crate) received_bytes: u64,
    /// The first response used HTTP/1.0.
    is_http10: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Closed,
    Connecting,
    Handshake,
    Open,
}

impl Connection {
    /// Begins a connection; returns its socket, for a poller.
    pub(crate) fn dial(&mut self, target: &Target, now_ns: u64) -> io::Result<&OwnedFd> {
        self.close();
        self.begun_ns = now_ns;
        let fd = self.transport.dial(target.address)?;
        self.stage = Stage::Connecting;
        Ok(fd)
    }

    /// Handles readiness reported by the poller, and receives through `buffer`. Returns whether the server has closed.
    pub(crate) fn ready(
        &mut self,
        ready: Ready,
        target: &Target,
        buffer: &mut [u8],
    ) -> Result<bool, String> {
        match self.stage {
            Stage::Connecting if ready.writable || ready.closed => {
                self.connected(target).map(|()| false)
            }
            Stage::Handshake | Stage::Open if ready.readable => {
                self.receive(buffer, ready.closed, target)
            }
            _ => Ok(false),
        }
    }

    /// The socket has become ready while it was connecting: it is open, or has failed.
    fn connected(&mut self, target: &Target) -> Result<(), String> {
        let connected = self.transport.connected();
        connected.map_err(|error| failed("connect", &error))?;
        self.connected_ns = now_ns();
        self.events.push_back(Event::Connected {
            from_ns: self.begun_ns,
            to_ns: self.connected_ns,
        });
        match &target.tls {
            None => {
                self.is_unanswered = true;
                self.open(target, target.plain);
            }
            Some((config, name)) => {
                let tls = ClientConn::new(config, name.clone());
                self.transport.tls = Some(tls.map_err(|error| error_name(&error))?);
                self.stage = Stage::Handshake;
            }
        }
        Ok(())
    }

    /// Whether the connection turns out now to be one of HTTP/1.0; true once for each.
    #[inline]
    pub(crate) fn turns_out_http10(&mut self) -> bool {
        let is_first = !self.is_http10 && self.engine.as_ref().is_some_and(Engine::is_http10);
        self.is_http10 |= is_first;
        is_first
    }

    fn open(&mut self, target: &Target, protocol: Protocol) {
        self.stage = Stage::Open;
        self.is_http10 = false;
        let engine = Engine::new(protocol, target.keep_alive, target.spdy_level);
        self.in_flight = InFlight::new(if protocol.has_streams() { 2 } else { 1 });
        self.events.push_back(Event::Open(protocol));
        self.engine = Some(engine);
    }

    /// Receives in pieces of `buffer`; returns whether the server has closed. With `all`, reads until the socket is
    /// empty. Otherwise it reads until a piece does not fill the buffer; the poller reports further data.
    fn receive(&mut self, buffer: &mut [u8], all: bool, target: &Target) -> Result<bool, String> {
        loop {
            let Some(fd) = self.transport.socket() else {
                return Ok(false);
            };
            match socket::receive(fd, buffer) {
                Ok(0) => {
                    let tls = self.transport.tls.as_ref();
                    let whole = tls.is_none_or(ClientConn::peer_closed);
                    if let Some(engine) = &mut self.engine {
                        engine.receive_eof(whole);
                    }
                    return Ok(true);
                }
                Ok(len) => {
                    self.received_bytes += len as u64;
                    self.decrypt(&mut buffer[..len], target)?;
                    if len < buffer.len() && !all {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(failed("read", &error)),
            }
        }
    }

    fn decrypt(&mut self, bytes: &mut [u8], target: &Target) -> Result<(), String> {
        let Some(tls) = &mut self.transport.tls else {
            if std::mem::take(&mut self.is_unanswered)
                && let Some(why) = scheme::instead_of_plain(bytes)
            {
                return Err(why.to_owned());
            }
            if let Some(engine) = &mut self.engine {
                engine.receive(bytes);
            }
            return Ok(());
        };
        let is_handshake = self.stage == Stage::Handshake;
        let no_tls = scheme::instead_of_tls(bytes).filter(|_| is_handshake);
        let (engine, early) = (&mut self.engine, &mut self.early);
        let result = tls.receive(bytes, &mut |plain| match engine {
            Some(engine) => engine.receive(plain),
            None => early.extend_from_slice(plain),
        });
        if self.stage == Stage::Handshake && tls.is_open() {
            let protocol = Protocol::of_alpn(tls.alpn())
                .ok_or_else(|| "tls: server chose a protocol that was not offered".to_owned())?;
            self.events.push_back(Event::Handshake {
                from_ns: self.connected_ns,
                to_ns: now_ns(),
                resumed: tls.is_resumed(),
            });
            self.open(target, protocol);
            if let Some(engine) = &mut self.engine {
                engine.receive(&self.early);
                self.early.clear();
            }
        }
        result.map_err(|error| no_tls.map_or_else(|| error_name(&error), str::to_owned))
    }

    /// Returns the next event; `now_ns` is the time of the last read.
    #[inline]
    pub(crate) fn event(&mut self, now_ns: u64) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let event = self.engine.as_mut()?.event()?;
        if let Event::Head { stream, status, .. } = event
            && let Some(exchange) = self.in_flight.get(stream)
        {
            (exchange.first_byte_ns, exchange.status) = (now_ns, status);
        }
        Some(event)
    }

    /// Returns whether one more request can be sent, with at most `streams` in progress.
    pub(crate) fn has_room(&self, streams: usize) -> bool {
        let Some(engine) = &self.engine else {
            return false;
        };
        let most = match engine.protocol().has_streams() {
            true => streams,
            false => 1,
        };
        self.in_flight.len() < most && engine.room() > 0
    }

    /// Hands a request to the engine; [`Connection::flush`] sends it.
    #[inline]
    pub(crate) fn request(
        &mut self,
        request: &Request,
        intended_ns: u64,
        sent_ns: u64,
    ) -> Result<(), String> {
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        let stream = engine
            .request(&request.fields, &request.body)
            .map_err(|refusal| format!("request not sent: {refusal:?}"))?;
        let exchange = Exchange {
            intended_ns,
            sent_ns,
            first_byte_ns: 0,
            status: 0,
        };
        self.in_flight.push(stream, exchange);
        Ok(())
    }

    /// Sends the bytes of the engine, after unsent bytes of earlier calls.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        if let Some(engine) = &mut self.engine {
            engine.transmit(&mut self.transport.plain);
        }
        match self.transport.flush() {
            Ok(_) => Ok(()),
            Err(Broken::Tls(fault)) => Err(error_name(&fault)),
            Err(Broken::Write(error)) => Err(failed("write", &error)),
        }
    }

    /// Bytes that were sent, those of TLS included, also on earlier connections of this place.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.transport.sent_bytes
    }

    /// Returns whether its engine accepts no more requests.
    pub(crate) fn is_ended(&self) -> bool {
        self.engine.as_ref().is_some_and(Engine::is_closed)
    }

    /// The least round trip that the kernel has seen on it, microseconds.
    pub(crate) fn min_rtt_us(&self) -> Option<u32> {
        let is_open = self.stage == Stage::Open;
        is_open.then(|| self.transport.info())??.min_rtt_us()
    }

    /// Closes it; returns how many requests were in progress.
    pub(crate) fn close(&mut self) -> usize {
        self.transport.close();
        self.engine = None;
        self.stage = Stage::Closed;
        self.early.clear();
        self.events.clear();
        self.in_flight.clear()
    }
}

/// Returns a failed call and its reason as a text for counting.
pub(crate) fn failed(call: &str, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset => "reset",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::BrokenPipe => "closed by the server",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => return format!("{call}: {}", os_error(error)),
    };
    format!("{call}: {what}")
}
