//! One connection: its handshake, then its records.

use std::sync::Arc;

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};

use super::config::{Config, Offer};
use super::fault::Fault;
use super::hello::{Hello, Offered, Parsed, Reader};
use super::scratch::Scratch;

/// One TLS connection in the server role.
///
/// [`Conn::receive`] takes bytes; once [`Conn::hello`] has something, [`Conn::start`] chooses the configuration. What is
/// to be sent leaves by [`Conn::transmit`]; plaintext goes in by [`Conn::encrypt`] while [`Conn::is_open`].
pub struct Conn {
    state: State,
    /// The name that was asked for.
    server_name: Option<Vec<u8>>,
    /// What the client can do.
    offered: Arc<Offered>,
    /// Received bytes of a record that is not whole.
    held: Vec<u8>,
    /// Bytes to be sent.
    out: Vec<u8>,
    peer_closed: bool,
    closing: bool,
    /// Early data has come.
    early: bool,
}

enum State {
    /// Waits for a ClientHello.
    Fresh(Reader),
    /// Has one, and waits for a configuration.
    Greeted(Box<Hello>),
    /// rustls has taken over.
    Running(Box<UnbufferedServerConnection>),
    /// The application data phase: the same, and the handshake is over.
    Open(Box<UnbufferedServerConnection>),
    /// Nothing more can be done.
    Dead,
}

/// What a handshake agreed on.
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
    /// The name that was asked for.
    pub server_name: Option<Vec<u8>>,
    /// The client's certificates, its own first, DER.
    pub certificates: Vec<Vec<u8>>,
    /// What the client can do.
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
            held: Vec::new(),
            out: Vec::new(),
            peer_closed: false,
            closing: false,
            early: false,
        }
    }

    /// Takes bytes from the peer; plaintext goes to `sink`, in order.
    ///
    /// # Errors
    /// The connection cannot go on; an alert may wait to be transmitted.
    pub fn receive(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        match &mut self.state {
            State::Fresh(reader) => match reader.read(input) {
                (Parsed::More, _) => Ok(()),
                (parsed, rest) => {
                    self.held = std::mem::take(reader).unread(rest);
                    self.greet(parsed)
                }
            },
            State::Greeted(_) => {
                self.held.extend_from_slice(input);
                Ok(())
            }
            State::Running(_) | State::Open(_) if self.held.is_empty() => {
                let used = self.process(input, sink)?;
                self.held.extend_from_slice(&input[used..]);
                Ok(())
            }
            State::Running(_) | State::Open(_) => {
                let mut held = std::mem::take(&mut self.held);
                held.extend_from_slice(input);
                let used = self.process(&mut held, sink)?;
                held.drain(..used);
                if !held.is_empty() {
                    self.held = held;
                }
                Ok(())
            }
            State::Dead => Ok(()),
        }
    }

    /// Takes what the first bytes are found to be.
    fn greet(&mut self, parsed: Parsed) -> Result<(), Fault> {
        match parsed {
            Parsed::More => Ok(()),
            Parsed::Hello(hello) => {
                self.server_name.clone_from(&hello.server_name);
                self.offered = Arc::clone(&hello.offered);
                self.state = State::Greeted(Box::new(hello));
                Ok(())
            }
            Parsed::Odd if looks_like_http(&self.held) => {
                self.state = State::Dead;
                Err(Fault::PlainHttp)
            }
            Parsed::Odd if self.held.first() == Some(&22) => {
                // rustls finds out what is wrong and says so.
                self.state = State::Greeted(Box::default());
                Ok(())
            }
            Parsed::Odd => {
                self.state = State::Dead;
                self.out.extend_from_slice(&PROTOCOL_VERSION_ALERT);
                Err(Fault::NotTls)
            }
        }
    }

    /// What the client asks for, while a configuration is to be chosen.
    #[must_use]
    pub fn hello(&self) -> Option<&Hello> {
        match &self.state {
            State::Greeted(hello) => Some(hello),
            _ => None,
        }
    }

    /// The received bytes of a connection that turned out to be none of TLS.
    pub fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Begins the handshake with a configuration, and offers these protocols.
    ///
    /// # Errors
    /// The handshake fails at once.
    pub fn start(
        &mut self,
        config: &Config,
        offer: Offer,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Fault> {
        let running = UnbufferedServerConnection::new(config.rustls(offer))?;
        self.state = State::Running(Box::new(running));
        self.receive(&mut [], sink)
    }

    /// What is known of a handshake before it begins: what the client asks for and can do.
    #[must_use]
    pub fn asked(&self) -> Info {
        Info {
            server_name: self.server_name.clone(),
            offered: Arc::clone(&self.offered),
            ..Info::default()
        }
    }

    /// Ends a handshake for which there is no certificate.
    pub fn abandon(&mut self) -> Fault {
        self.state = State::Dead;
        self.out.extend_from_slice(&INTERNAL_ERROR_ALERT);
        Fault::NoCertificate
    }

    /// Refuses the name that was asked for.
    pub fn reject(&mut self) -> Fault {
        self.state = State::Dead;
        self.out.extend_from_slice(&UNRECOGNIZED_NAME_ALERT);
        Fault::Rejected
    }

    /// Whether application data can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_)) && !self.closing
    }

    /// Whether the handshake is still to be finished.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        !matches!(self.state, State::Open(_) | State::Dead)
    }

    /// Whether the peer has said that it sends nothing more.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Whether there is something to transmit.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes bytes of the handshake, and alerts, that are to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Whether early data has come and the handshake is not over: whoever sends it may be repeating what another has sent.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.early && matches!(self.state, State::Running(_))
    }

    /// What the handshake agreed on; `None` before its end, or before early data.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        let conn = match &self.state {
            State::Open(conn) => conn,
            State::Running(conn) if self.early => conn,
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

    /// The application protocol that was agreed on.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.state {
            State::Open(conn) | State::Running(conn) => conn.alpn_protocol(),
            _ => None,
        }
    }

    /// Encrypts plaintext into records of at most `record_bytes` of it, at the end of `out`.
    ///
    /// # Errors
    /// The connection is not open, or its keys are used up.
    pub fn encrypt(
        &mut self,
        plain: &[u8],
        record_bytes: usize,
        out: &mut Scratch,
    ) -> Result<(), Fault> {
        let record_bytes = record_bytes.clamp(1, RECORD_BYTES);
        for piece in plain.chunks(record_bytes) {
            self.encrypt_record(piece, out)?;
        }
        Ok(())
    }

    fn encrypt_record(&mut self, plain: &[u8], out: &mut Scratch) -> Result<(), Fault> {
        let start = out.len();
        let written = self.with_traffic(|traffic| {
            let room = out.room(plain.len() + RECORD_OVERHEAD_BYTES);
            match traffic.encrypt(plain, room) {
                Err(EncryptError::InsufficientSize(needed)) => {
                    traffic.encrypt(plain, out.room(needed.required_size))
                }
                other => other,
            }
        })?;
        let written = written.map_err(|_| Fault::Protocol(rustls::Error::EncryptError))?;
        out.fill(written);
        if !self.out.is_empty() {
            // What came before the record, such as a change of keys, must leave before it.
            out.insert(start, &std::mem::take(&mut self.out));
        }
        Ok(())
    }

    /// Says that we send nothing more.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        let mut alert = [0; ALERT_BYTES];
        if let Ok(Ok(written)) = self.with_traffic(|traffic| traffic.queue_close_notify(&mut alert))
        {
            self.out.extend_from_slice(&alert[..written]);
        }
    }

    /// Comes to where application data can be written; what has to leave before that is put out. rustls remembers how far
    /// it has read what is held, so that has to be shown to it each time.
    fn with_traffic<R>(
        &mut self,
        write: impl FnOnce(&mut WriteTraffic<'_, ServerConnectionData>) -> R,
    ) -> Result<R, Fault> {
        let Self {
            state,
            held,
            out,
            peer_closed,
            ..
        } = self;
        let State::Open(conn) = state else {
            return Err(Fault::Protocol(rustls::Error::HandshakeNotComplete));
        };
        for _ in 0..STATES_BEFORE_TRAFFIC {
            let UnbufferedStatus { discard, state, .. } = conn.process_tls_records(held);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let written = write(&mut traffic);
                    held.drain(..discard);
                    return Ok(written);
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(out, |space| data.encode(space));
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => *peer_closed = true,
                _ => break,
            }
            held.drain(..discard);
        }
        Err(Fault::Protocol(rustls::Error::EncryptError))
    }

    /// Lets rustls process received bytes; returns how many of them are used up.
    // Long: one arm for each state of rustls, which borrows the input while it is handled.
    fn process(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, Fault> {
        let (State::Running(conn) | State::Open(conn)) = &mut self.state else {
            return Ok(input.len());
        };
        let mut used = 0;
        let mut open = false;
        let failed = loop {
            // rustls returns one state a call and borrows the input while it is handled, so that the loop decides after the match.
            let UnbufferedStatus { mut discard, state } =
                conn.process_tls_records(&mut input[used..]);
            let more = match state {
                Err(error) => {
                    used += discard;
                    break Some(error);
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        sink(record.payload);
                    }
                    true
                }
                Ok(ConnectionState::ReadEarlyData(mut early)) => {
                    while let Some(record) = early.next_record() {
                        let record = record?;
                        discard += record.discard;
                        self.early = true;
                        sink(record.payload);
                    }
                    true
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    encode(&mut self.out, |space| data.encode(space));
                    true
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.peer_closed = true;
                    true
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    open = true;
                    false
                }
                Ok(ConnectionState::Closed) => {
                    self.peer_closed = true;
                    false
                }
                Ok(_) => false,
            };
            used += discard;
            if !more {
                break None;
            }
        };
        if let Some(error) = failed {
            self.last_words(&mut input[used..]);
            return Err(error.into());
        }
        // Only now is the borrow of the connection over.
        if open && matches!(self.state, State::Running(_)) {
            let state = std::mem::replace(&mut self.state, State::Dead);
            if let State::Running(conn) = state {
                self.state = State::Open(conn);
            }
        }
        Ok(used)
    }

    /// Takes the alert that rustls has for the peer after an error; `rest` is what it has not used of the input. It must not
    /// be asked again after that: it would read the broken bytes anew and panic over a second alert.
    fn last_words(&mut self, mut rest: &mut [u8]) {
        let state = std::mem::replace(&mut self.state, State::Dead);
        let (State::Running(mut conn) | State::Open(mut conn)) = state else {
            return;
        };
        for _ in 0..LAST_WORDS {
            let UnbufferedStatus { discard, state, .. } = conn.process_tls_records(rest);
            match state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let start = self.out.len();
                    encode(&mut self.out, |space| data.encode(space));
                    if matches!(self.out.get(start), Some(&(ALERT | ENCRYPTED))) {
                        return;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return,
            }
            rest = &mut rest[discard..];
        }
    }
}

/// Appends what `write` puts into a space that is made large enough.
fn encode(out: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let start = out.len();
    let needed = match write(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        _ => return,
    };
    out.resize(start + needed, 0);
    let written = write(&mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Whether bytes are the beginning of an HTTP/1 request.
fn looks_like_http(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_uppercase)
}

/// Most plaintext of a record (RFC 8446 section 5.1), bytes.
const RECORD_BYTES: usize = 1 << 14;
/// What a record adds: its head, an explicit nonce of TLS 1.2, the content type of TLS 1.3, the tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
/// An encrypted alert.
const ALERT_BYTES: usize = 64;
/// States that may come before application data can be written.
const STATES_BEFORE_TRAFFIC: usize = 16;
/// Messages that are taken after an error.
const LAST_WORDS: usize = 8;
/// Types of records (RFC 8446 section 5.1): an alert, and anything that is encrypted.
const ALERT: u8 = 21;
const ENCRYPTED: u8 = 23;
/// A fatal alert outside of any session.
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];
/// The same for what is no fault of the client.
const INTERNAL_ERROR_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
/// The same for a name (RFC 6066 section 3).
const UNRECOGNIZED_NAME_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
