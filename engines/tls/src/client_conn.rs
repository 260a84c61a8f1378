//! One connection in the client role, and the settings that connections of that role share.
//!
//! The handshake begins with [`ClientConn::new`]: its first bytes wait in [`ClientConn::take_output`]. Received bytes go
//! in by [`ClientConn::receive`]; plaintext can be encrypted once [`ClientConn::is_open`].
//!
//! Absent: early data, and certificates of the client's own.
//!
//! Source: RFC 8446, RFC 5246.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, HandshakeKind, RootCertStore, SignatureScheme};

use super::fault::Fault;
use super::records::{RECORD_BYTES, Records};
use super::scratch::Scratch;

/// Settings of connections to a server; sessions to be resumed are kept with them.
#[derive(Clone, Debug)]
pub struct ClientConfig(Arc<rustls::ClientConfig>);

/// Which certificates of a server are accepted.
#[derive(Debug)]
pub enum ServerTrust {
    /// Those that lead to one of these authorities, are in force and have the server's name.
    Authorities(RootCertStore),
    /// Any whose key the server has.
    Any,
}

impl ClientConfig {
    /// Settings that offer these protocols by ALPN, the first the most wanted, and keep at most `sessions` sessions for
    /// resumption, 0 for none.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(trust: ServerTrust, alpn: Vec<Vec<u8>>, sessions: usize) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match trust {
            ServerTrust::Authorities(roots) => builder.with_root_certificates(roots),
            ServerTrust::Any => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyServer(provider))),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = alpn;
        config.resumption = match sessions {
            0 => Resumption::disabled(),
            sessions => Resumption::in_memory_sessions(sessions),
        };
        Ok(Self(Arc::new(config)))
    }
}

/// One TLS connection in the client role.
pub struct ClientConn {
    state: State,
    records: Records,
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
        let conn = UnbufferedClientConnection::new(Arc::clone(&config.0), name)?;
        let mut new = Self {
            state: State::Handshaking(Box::new(conn)),
            records: Records::default(),
        };
        new.receive(&mut [], &mut |_| {})?;
        Ok(new)
    }

    /// Takes bytes from the server; plaintext goes to `sink`, in order.
    ///
    /// # Errors
    /// The connection cannot go on; an alert may wait in [`Self::take_output`].
    pub fn receive(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        // An error leaves the connection dead.
        match std::mem::replace(&mut self.state, State::Dead) {
            State::Handshaking(mut conn) => {
                let progress = self.records.receive(&mut *conn, input, sink)?;
                self.state = match progress.open {
                    true => State::Open(conn),
                    false => State::Handshaking(conn),
                };
            }
            State::Open(mut conn) => {
                self.records.receive(&mut *conn, input, sink)?;
                self.state = State::Open(conn);
            }
            State::Dead => {}
        }
        Ok(())
    }

    /// Encrypts plaintext at the end of `out`, behind what the handshake has to send.
    ///
    /// # Errors
    /// The connection is not open, or its keys are used up.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Scratch) -> Result<(), Fault> {
        let State::Open(conn) = &mut self.state else {
            return Err(Error::HandshakeNotComplete.into());
        };
        Ok(self
            .records
            .encrypt(&mut **conn, plain, RECORD_BYTES, out)?)
    }

    /// Takes bytes of the handshake, and alerts, that are to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records.out)
    }

    /// Whether application data can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether the server has said that it sends nothing more.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.records.peer_closed
    }

    /// The application protocol that was agreed on.
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

    fn conn(&self) -> Option<&UnbufferedClientConnection> {
        match &self.state {
            State::Handshaking(conn) | State::Open(conn) => Some(conn),
            State::Dead => None,
        }
    }
}

/// Accepts any certificate whose key the server has, with the signatures of this provider: nothing is known of who the server
/// is. For [`ServerTrust::Any`] and tests.
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
