//! One connection: socket, TLS, engine, and what is under way on it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustls::pki_types::ServerName;
use sys::{connect, socket, tcp_info};
use tls::{ClientConfig, ClientConn, Scratch};

use crate::engine::{Engine, Protocol};
use crate::flights::Flights;
use crate::outcome::{Kind, Outcome};
use crate::trust::error_name;

/// How connections of a run are made.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<(ClientConfig, ServerName<'static>)>,
    /// The protocol on a plain connection.
    pub(crate) plain: Protocol,
    pub(crate) keep_alive: bool,
    pub(crate) spdy_level: u8,
}

/// A connection, or the place of one.
pub(crate) struct Link {
    pub(crate) stage: Stage,
    fd: Option<OwnedFd>,
    tls: Option<ClientConn>,
    pub(crate) engine: Option<Engine>,
    pub(crate) flights: Flights,
    /// What the engine sends; with TLS on its way to `sealed`, else to the socket.
    plain: Vec<u8>,
    /// Records on their way to the socket.
    sealed: Scratch,
    /// How much of what goes to the socket has been sent.
    sent: usize,
    /// When the connection was begun, and when it was open for TLS.
    pub(crate) begun_ns: u64,
    connected_ns: u64,
    /// Plaintext that came with the end of the handshake.
    early: Vec<u8>,
    /// When it may be tried again.
    pub(crate) retry_ns: u64,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Closed,
    Connecting,
    Handshake,
    Open,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Closed,
            fd: None,
            tls: None,
            engine: None,
            flights: Flights::new(1),
            plain: Vec::new(),
            sealed: Scratch::default(),
            sent: 0,
            begun_ns: 0,
            connected_ns: 0,
            early: Vec::new(),
            retry_ns: 0,
        }
    }

    /// Begins a connection; gives its socket.
    pub(crate) fn dial(&mut self, dial: &Dial, now_ns: u64) -> io::Result<&OwnedFd> {
        self.close();
        self.begun_ns = now_ns;
        let fd = connect::stream(dial.address)?;
        socket::set_nodelay(&fd, true)?;
        self.stage = Stage::Connecting;
        Ok(self.fd.insert(fd))
    }

    /// The socket has become ready while it was connecting: it is open, or has failed.
    pub(crate) fn connected(
        &mut self,
        dial: &Dial,
        now_ns: u64,
        tally: &mut Outcome,
    ) -> Result<(), String> {
        let Some(fd) = &self.fd else { return Ok(()) };
        match socket::so_error(fd) {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(failed("connect", &error)),
        }
        tally.sample(Kind::Connect, self.begun_ns, now_ns);
        self.connected_ns = now_ns;
        match &dial.tls {
            None => self.open(dial, dial.plain, tally),
            Some((config, name)) => {
                let tls = ClientConn::new(config, name.clone());
                self.tls = Some(tls.map_err(|error| error_name(&error))?);
                self.stage = Stage::Handshake;
            }
        }
        Ok(())
    }

    fn open(&mut self, dial: &Dial, protocol: Protocol, tally: &mut Outcome) {
        self.stage = Stage::Open;
        let engine = Engine::new(protocol, dial.keep_alive, dial.spdy_level);
        self.flights = Flights::new(if protocol.has_streams() { 2 } else { 1 });
        *tally.protocols.entry(protocol.name()).or_default() += 1;
        self.engine = Some(engine);
    }

    /// Receives what there is, in pieces of the buffer; gives whether the server has closed. With `all`, until nothing is
    /// left; else until a piece does not fill the buffer, after which the poller will tell of more.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        all: bool,
        dial: &Dial,
        clock: impl Fn() -> u64,
        tally: &mut Outcome,
    ) -> Result<bool, String> {
        loop {
            let Some(fd) = &self.fd else {
                return Ok(false);
            };
            match socket::receive(fd, buffer) {
                Ok(0) => {
                    let whole = self.tls.as_ref().is_none_or(ClientConn::peer_closed);
                    if let Some(engine) = &mut self.engine {
                        engine.receive_eof(whole);
                    }
                    return Ok(true);
                }
                Ok(len) => {
                    tally.received_bytes += len as u64;
                    self.take(&mut buffer[..len], dial, &clock, tally)?;
                    if len < buffer.len() && !all {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(failed("read", &error)),
            }
        }
    }

    fn take(
        &mut self,
        bytes: &mut [u8],
        dial: &Dial,
        clock: &impl Fn() -> u64,
        tally: &mut Outcome,
    ) -> Result<(), String> {
        let Some(tls) = &mut self.tls else {
            if let Some(engine) = &mut self.engine {
                engine.receive(bytes);
            }
            return Ok(());
        };
        let (engine, early) = (&mut self.engine, &mut self.early);
        let result = tls.receive(bytes, &mut |plain| match engine {
            Some(engine) => engine.receive(plain),
            None => early.extend_from_slice(plain),
        });
        if self.stage == Stage::Handshake && tls.is_open() {
            let protocol = Protocol::of_alpn(tls.alpn())
                .ok_or_else(|| "tls: server chose a protocol that was not offered".to_owned())?;
            let resumed = tls.is_resumed();
            tally.resumed += u64::from(resumed);
            tally.sample(Kind::Handshake, self.connected_ns, clock());
            self.open(dial, protocol, tally);
            if let Some(engine) = &mut self.engine {
                engine.receive(&self.early);
                self.early.clear();
            }
        }
        result.map_err(|error| error_name(&error))
    }

    /// Sends what the engine has, and what is left from before.
    pub(crate) fn flush(&mut self, tally: &mut Outcome) -> Result<(), String> {
        let Some(fd) = &self.fd else { return Ok(()) };
        if let Some(engine) = &mut self.engine {
            engine.transmit(&mut self.plain);
        }
        let out = match &mut self.tls {
            None => self.plain.as_slice(),
            Some(tls) => {
                if !self.plain.is_empty() {
                    let result = tls.encrypt(&self.plain, &mut self.sealed);
                    self.plain.clear();
                    result.map_err(|error| error_name(&error))?;
                }
                self.sealed.extend(&tls.take_output());
                self.sealed.filled()
            }
        };
        while self.sent < out.len() {
            match socket::send(fd, &out[self.sent..], false) {
                Ok(sent) if sent.bytes == 0 => return Ok(()),
                Ok(sent) => {
                    self.sent += sent.bytes as usize;
                    tally.sent_bytes += sent.bytes;
                }
                Err(error) => return Err(failed("write", &error)),
            }
        }
        self.discard_output();
        Ok(())
    }

    /// Whether bytes wait for room in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        let out = match &self.tls {
            None => self.plain.len(),
            Some(_) => self.sealed.len(),
        };
        self.sent < out
    }

    /// Asks the kernel what it knows of the round trip, then closes.
    pub(crate) fn finish(&mut self, tally: &mut Outcome) {
        if let Some(fd) = &self.fd
            && self.stage == Stage::Open
            && let Some(us) = tcp_info::tcp_info(fd.as_raw_fd()).and_then(|info| info.min_rtt_us)
        {
            tally.min_rtt_us = Some(tally.min_rtt_us.map_or(us, |least| least.min(us)));
        }
        self.close();
    }

    pub(crate) fn close(&mut self) {
        self.fd = None;
        self.tls = None;
        self.engine = None;
        self.stage = Stage::Closed;
        self.early.clear();
        self.discard_output();
    }

    fn discard_output(&mut self) {
        self.plain.clear();
        self.sealed.clear(SEALED_BYTES_KEPT);
        self.sent = 0;
    }
}

/// Memory for records that a connection keeps between flushes, bytes.
const SEALED_BYTES_KEPT: usize = 64 << 10;

/// A failed call by what went wrong, for counting.
pub(crate) fn failed(call: &str, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset => "reset",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::BrokenPipe => "closed by the server",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => return format!("{call}: {error}"),
    };
    format!("{call}: {what}")
}
