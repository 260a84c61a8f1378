//! One connection in the client role.
//!
//! The handshake begins with [`ClientConn::new`]: its first bytes wait in [`ClientConn::take_output`]. Received
//! bytes enter by [`ClientConn::receive`]; plaintext can be encrypted once [`ClientConn::is_open`].
//!
//! Source: RFC 8446, RFC 5246.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, HandshakeKind, ProtocolVersion, SignatureScheme};

use super::client_config::ClientConfig;
use super::early::{self, EarlyData};
use super::fault::Fault;
use super::records::Records;
use super::scratch::Scratch;
use super::server_sessions::with_peer;

/// One TLS connection in the client role.
pub struct ClientConn {
    state: State,
    records: Records,
    early: EarlyData,
    /// A digest of the server's address, for sessions.
    peer: u64,
}

enum State {
    Handshaking(Box<UnbufferedClientConnection>),
    /// Application data can be sent.
    Open(Box<UnbufferedClientConnection>),
    /// Nothing more can be done.
    Dead,
}

impl std::fmt::Debug for ClientConn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConn").finish_non_exhaustive()
    }
}

impl ClientConn {
    /// Begins a handshake with the server of this name.
    ///
    /// # Errors
    /// The settings and the name do not go together.
    pub fn new(config: &ClientConfig, name: ServerName<'static>) -> Result<Self, Fault> {
        Self::with_early_data(config, name, &[])
    }

    /// Begins a handshake with the server of this name at an address, as a digest: sessions are of that server.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn to_peer(
        config: &ClientConfig,
        name: ServerName<'static>,
        peer: u64,
    ) -> Result<Self, Fault> {
        with_peer(peer, || {
            let mut conn = Self::with_early_data(config, name, &[])?;
            conn.peer = peer;
            Ok(conn)
        })
    }

    /// Begins a handshake, and sends as much of `early` with it as a session allows that is kept for this server; see
    /// [`Self::early_data`].
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn with_early_data(
        config: &ClientConfig,
        name: ServerName<'static>,
        early: &[u8],
    ) -> Result<Self, Fault> {
        let mut conn = UnbufferedClientConnection::new(config.rustls(), name)?;
        let mut records = Records::default();
        let early = early::begin(&mut conn, early, &mut records.out)?;
        Ok(Self {
            state: State::Handshaking(Box::new(conn)),
            records,
            early,
            peer: 0,
        })
    }

    /// Takes bytes from the server and passes plaintext to `sink`, in order.
    ///
    /// # Errors
    /// The connection cannot continue; an alert may wait in [`Self::take_output`].
    pub fn receive(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        with_peer(self.peer, || self.process(input, sink))
    }

    fn process(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        // An error leaves the connection dead.
        match std::mem::replace(&mut self.state, State::Dead) {
            State::Handshaking(mut conn) => {
                let before = self.records.out.len();
                let progress = self.records.receive(&mut *conn, input, sink)?;
                if progress.open {
                    self.early.settle(&self.records.out[before..]);
                }
                self.state = match progress.open {
                    true => State::Open(conn),
                    false => State::Handshaking(conn),
                };
            }
            State::Open(mut conn) => {
                self.records.receive_open(&mut *conn, input, sink)?;
                self.state = State::Open(conn);
            }
            State::Dead => {}
        }
        Ok(())
    }

    /// Encrypts plaintext at the end of `out` in records of at most `record_bytes`, behind pending handshake bytes.
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
            return Err(Error::HandshakeNotComplete.into());
        };
        Ok(self
            .records
            .encrypt(&mut **conn, plain, record_bytes, out)?)
    }

    /// Takes bytes of the handshake, and alerts, that are to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records.out)
    }

    /// Whether bytes wait in [`Self::take_output`].
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.records.out.is_empty()
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

    /// Approximate memory of the connection, bytes: its state and buffers, and the structure of the library.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let state = self
            .conn()
            .map_or(0, |_| size_of::<UnbufferedClientConnection>());
        state + self.records.partial.capacity() + self.records.out.capacity()
    }

    /// Whether application data can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether the server has announced the end of its data (close_notify).
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.records.peer_closed
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.conn()?.alpn_protocol()
    }

    /// Whether an earlier session was resumed.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        let kind = self.conn().and_then(|conn| conn.handshake_kind());
        kind == Some(HandshakeKind::Resumed)
    }

    /// Whether the server requested another first message, which costs a round trip (RFC 8446 section 4.1.4).
    #[must_use]
    pub fn is_retried(&self) -> bool {
        let kind = self.conn().and_then(|conn| conn.handshake_kind());
        kind == Some(HandshakeKind::FullWithHelloRetryRequest)
    }

    /// State of the data sent with the first message.
    #[must_use]
    pub fn early_data(&self) -> EarlyData {
        self.early
    }

    /// The version of TLS, once it is negotiated.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.conn()?.protocol_version()
    }

    /// The server's certificates, its own first; those of the original session if it was resumed.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        let sent = self.conn().and_then(|conn| conn.peer_certificates());
        sent.unwrap_or_default()
    }

    /// Number of received TLS 1.3 tickets.
    #[must_use]
    pub fn tickets(&self) -> u32 {
        self.conn()
            .map_or(0, UnbufferedClientConnection::tls13_tickets_received)
    }

    fn conn(&self) -> Option<&UnbufferedClientConnection> {
        match &self.state {
            State::Handshaking(conn) | State::Open(conn) => Some(conn),
            State::Dead => None,
        }
    }
}

/// Accepts any certificate if the server has its key, with the signatures of this provider: the server's identity
/// is not checked. For [`ServerTrust::Any`] and tests.
#[doc(hidden)]
#[derive(Debug)]
pub struct AnyServer(pub Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
