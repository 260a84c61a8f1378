//! One connection in the server role: its handshake, then its records.

use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};

use super::config::Config;
use super::fault::Fault;
use super::handshaking::handshaking;
use super::hello::{Hello, Offered, Parsed, Reader};
use super::records::{Progress, Records};
use super::scratch::Scratch;

/// One TLS connection in the server role.
///
/// [`Conn::receive`] takes bytes; once [`Conn::hello`] returns a ClientHello, [`Conn::start`] sets the
/// configuration. Output leaves by [`Conn::transmit`]; plaintext enters by [`Conn::encrypt`] while
/// [`Conn::is_open`].
pub struct Conn {
    state: State,
    /// The requested name.
    server_name: Option<Vec<u8>>,
    /// Capabilities of the client.
    offered: Arc<Offered>,
    records: Records,
    /// Early data has come.
    early: bool,
}

enum State {
    /// Waits for a ClientHello.
    Fresh(Reader),
    /// Has one, and waits for a configuration.
    Greeted(Box<Hello>),
    /// rustls has taken over.
    Running(Box<UnbufferedServerConnection>, Arc<Config>),
    /// The application data phase: the same, and the handshake is over.
    Open(Box<UnbufferedServerConnection>),
    /// Nothing more can be done.
    Dead,
}

/// Negotiated parameters of a handshake.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// Protocol version.
    pub version: Option<ProtocolVersion>,
    /// Cipher suite.
    pub cipher: Option<CipherSuite>,
    /// Group of the key exchange.
    pub group: Option<NamedGroup>,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// The requested name.
    pub server_name: Option<Vec<u8>>,
    /// The client's certificates, its own first, DER.
    pub certificates: Vec<Vec<u8>>,
    /// Capabilities of the client.
    pub offered: Arc<Offered>,
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn").finish_non_exhaustive()
    }
}

impl Default for Conn {
    fn default() -> Self {
        Self::new()
    }
}

impl Conn {
    /// A connection on which nothing has been received.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Fresh(Reader::default()),
            server_name: None,
            offered: Arc::default(),
            records: Records::default(),
            early: false,
        }
    }

    /// Takes bytes from the peer and passes plaintext to `sink`, in order.
    ///
    /// # Errors
    /// The connection cannot continue; an alert may wait to be transmitted.
    pub fn receive(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        match &mut self.state {
            State::Fresh(reader) => match reader.read(input) {
                (Parsed::More, _) => Ok(()),
                (parsed, rest) => {
                    self.records.partial = std::mem::take(reader).unread(rest);
                    self.handle_first_bytes(parsed)
                }
            },
            State::Greeted(_) => {
                self.records.partial.extend_from_slice(input);
                Ok(())
            }
            State::Running(conn, server) => {
                let records = &mut self.records;
                let result = handshaking(Arc::<Config>::clone(server), || {
                    records.receive(&mut **conn, input, sink)
                });
                self.advance(result)
            }
            State::Open(conn) => {
                let result = self.records.receive(&mut **conn, input, sink);
                self.advance(result)
            }
            State::Dead => Ok(()),
        }
    }

    /// Records the result of processing.
    fn advance(&mut self, result: Result<Progress, rustls::Error>) -> Result<(), Fault> {
        let progress = match result {
            Ok(progress) => progress,
            Err(error) => {
                self.state = State::Dead;
                return Err(error.into());
            }
        };
        self.early |= progress.early;
        if progress.open && matches!(self.state, State::Running(..)) {
            let state = std::mem::replace(&mut self.state, State::Dead);
            if let State::Running(conn, _) = state {
                self.state = State::Open(conn);
            }
        }
        Ok(())
    }

    /// Handles the parsed first bytes.
    fn handle_first_bytes(&mut self, parsed: Parsed) -> Result<(), Fault> {
        match parsed {
            Parsed::More => Ok(()),
            Parsed::Hello(hello) => {
                self.server_name.clone_from(&hello.server_name);
                self.offered = Arc::clone(&hello.offered);
                self.state = State::Greeted(Box::new(hello));
                Ok(())
            }
            Parsed::Odd if looks_like_http(&self.records.partial) => {
                self.state = State::Dead;
                Err(Fault::PlainHttp)
            }
            Parsed::Odd if self.records.partial.first() == Some(&22) => {
                // rustls detects and reports the fault.
                self.state = State::Greeted(Box::default());
                Ok(())
            }
            Parsed::Odd => {
                self.state = State::Dead;
                self.records.out.extend_from_slice(&PROTOCOL_VERSION_ALERT);
                Err(Fault::NotTls)
            }
        }
    }

    /// Returns the ClientHello, while a configuration is to be chosen.
    #[must_use]
    pub fn hello(&self) -> Option<&Hello> {
        match &self.state {
            State::Greeted(hello) => Some(hello),
            _ => None,
        }
    }

    /// The received bytes of a connection that does not use TLS.
    pub fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records.partial)
    }

    /// Begins the handshake with a configuration, and offers these protocols before its own, the most wanted first.
    ///
    /// # Errors
    /// The handshake fails at once.
    pub fn start(
        &mut self,
        config: &Arc<Config>,
        offer: &[&[u8]],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Fault> {
        let running = UnbufferedServerConnection::new(config.rustls(offer))?;
        self.state = State::Running(Box::new(running), Arc::clone(config));
        self.receive(&mut [], sink)
    }

    /// Facts about a handshake before it begins: the client's request and capabilities.
    #[must_use]
    pub fn asked(&self) -> Info {
        Info {
            server_name: self.server_name.clone(),
            offered: Arc::clone(&self.offered),
            ..Info::default()
        }
    }

    /// Ends a handshake without a certificate for it.
    pub fn abandon(&mut self) -> Fault {
        self.state = State::Dead;
        self.records.out.extend_from_slice(&INTERNAL_ERROR_ALERT);
        Fault::NoCertificate
    }

    /// Refuses the requested name.
    pub fn reject(&mut self) -> Fault {
        self.state = State::Dead;
        self.records.out.extend_from_slice(&UNRECOGNIZED_NAME_ALERT);
        Fault::Rejected
    }

    /// Approximate memory of the connection, bytes: its state and buffers, and only the structure of the library's
    /// part.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let state = match &self.state {
            State::Running(..) | State::Open(_) => size_of::<UnbufferedServerConnection>(),
            _ => 0,
        };
        state + self.records.partial.capacity() + self.records.out.capacity()
    }

    /// Whether application data can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_)) && !self.records.closing
    }

    /// Whether the handshake is still to be finished.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        !matches!(self.state, State::Open(_) | State::Dead)
    }

    /// Whether the peer has announced the end of its data (close_notify).
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.records.peer_closed
    }

    /// Whether there is something to transmit.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.records.out.is_empty()
    }

    /// Takes pending bytes of the handshake, and alerts, for sending.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records.out)
    }

    /// Whether early data was received before the end of the handshake: the data may be a replay.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.early && matches!(self.state, State::Running(..))
    }

    /// Returns the negotiated parameters; `None` before the end of the handshake, or before early data.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        let conn = match &self.state {
            State::Open(conn) => conn,
            State::Running(conn, _) if self.early => conn,
            _ => return None,
        };
        let certificates = conn.peer_certificates().unwrap_or_default();
        Some(Info {
            version: conn.protocol_version(),
            cipher: conn.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: conn
                .negotiated_key_exchange_group()
                .map(|group| group.name()),
            resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: conn.alpn_protocol().map(<[u8]>::to_vec),
            server_name: self.server_name.clone(),
            certificates: certificates.iter().map(|der| der.to_vec()).collect(),
            offered: Arc::clone(&self.offered),
        })
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.state {
            State::Open(conn) | State::Running(conn, _) => conn.alpn_protocol(),
            _ => None,
        }
    }

    /// Encrypts plaintext into records with at most `record_bytes` of it each, at the end of `out`.
    ///
    /// # Errors
    /// The connection is not open, or its keys are used up.
    pub fn encrypt(
        &mut self,
        plain: &[u8],
        record_bytes: usize,
        out: &mut Scratch,
    ) -> Result<(), Fault> {
        let State::Open(conn) = &mut self.state else {
            return Err(rustls::Error::HandshakeNotComplete.into());
        };
        let records = &mut self.records;
        Ok(records.encrypt(&mut **conn, plain, record_bytes, out)?)
    }

    /// Announces that we send nothing more.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.records.closing, true) {
            return;
        }
        if let State::Open(conn) = &mut self.state {
            self.records.close(&mut **conn);
        }
    }
}

/// Whether bytes are the beginning of an HTTP/1 request.
fn looks_like_http(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_uppercase)
}

/// A fatal alert outside of any session.
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];
/// Alert for an error of the server.
const INTERNAL_ERROR_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
/// Alert for an unknown server name (RFC 6066 section 3).
const UNRECOGNIZED_NAME_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
