//! TLS, client role: received bytes in, plaintext out; plaintext in, bytes to send out.
//!
//! rustls does the protocol. Records are decrypted where they lie, and encrypted to where they are sent from.
//!
//! Source: RFC 8446.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnectionData, Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, HandshakeKind, RootCertStore,
    SignatureScheme,
};

use crate::engine::Protocol;

/// Whose certificates are trusted.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The authorities that browsers trust.
    #[default]
    Browsers,
    /// Those of a file, PEM.
    File(Vec<CertificateDer<'static>>),
    /// Anybody's: nothing is verified but that the server has the key of its certificate.
    Nobody,
}

impl Trust {
    /// The authorities of a file.
    ///
    /// # Errors
    /// The file cannot be read or has no certificate.
    pub fn file(path: &Path) -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
        let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
        let found: Result<Vec<_>, _> = found.collect();
        let found = found.map_err(|error| failed(&error))?;
        if found.is_empty() {
            return Err(failed(&"it has no certificate"));
        }
        Ok(Self::File(found))
    }
}

/// What connections to a server are made with.
///
/// # Errors
/// An authority is no certificate, or TLS cannot be set up.
pub fn config(
    trust: &Trust,
    protocols: &[Protocol],
    resumption: bool,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    let builder = match trust {
        Trust::Nobody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider))),
        Trust::Browsers => {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            builder.with_root_certificates(roots)
        }
        Trust::File(certificates) => {
            for certificate in certificates {
                roots
                    .add(certificate.clone())
                    .map_err(|error| error.to_string())?;
            }
            builder.with_root_certificates(roots)
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|one| one.alpn().to_vec()).collect();
    config.resumption = match resumption {
        true => Resumption::in_memory_sessions(SESSIONS),
        false => Resumption::disabled(),
    };
    Ok(Arc::new(config))
}

/// The name of a server as certificates have it.
///
/// # Errors
/// It can be in no certificate.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|_| format!("\"{host}\" is no name of a server"))
}

/// Takes any certificate whose key the server has.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
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

/// One connection of TLS.
pub(crate) struct Tls {
    conn: Box<UnbufferedClientConnection>,
    /// Received bytes of a record that is not whole.
    held: Vec<u8>,
    open: bool,
    /// The server has said that it sends nothing more.
    peer_closed: bool,
}

impl Tls {
    /// A connection; its first bytes are in `out`.
    pub(crate) fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let mut tls = Self {
            conn: Box::new(UnbufferedClientConnection::new(config, name)?),
            held: Vec::new(),
            open: false,
            peer_closed: false,
        };
        tls.receive(&mut [], out, &mut |_| {})?;
        Ok(tls)
    }

    /// Whether the handshake is over.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the server has said that it sends nothing more.
    pub(crate) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// The protocol that was agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// Whether an earlier session was resumed.
    pub(crate) fn is_resumed(&self) -> bool {
        self.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Takes bytes from the server; plaintext goes to `sink`, what has to be sent to `out`.
    pub(crate) fn receive(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        if self.held.is_empty() {
            let used = self.process(input, out, sink)?;
            self.held.extend_from_slice(&input[used..]);
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(input);
        let used = self.process(&mut held, out, sink)?;
        held.drain(..used);
        self.held = held;
        Ok(())
    }

    fn process(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.conn.process_tls_records(&mut input[used..]);
            let more = match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        sink(record.payload);
                    }
                    true
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(out, |space| data.encode(space));
                    true
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    true
                }
                ConnectionState::PeerClosed => {
                    self.peer_closed = true;
                    true
                }
                ConnectionState::WriteTraffic(_) => {
                    self.open = true;
                    false
                }
                ConnectionState::Closed => {
                    self.peer_closed = true;
                    false
                }
                _ => false,
            };
            used += discard;
            if !more {
                return Ok(used);
            }
        }
    }

    /// Encrypts plaintext at the end of `out`.
    pub(crate) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        for piece in plain.chunks(RECORD_BYTES) {
            let start = out.len();
            out.resize(start + piece.len() + RECORD_OVERHEAD_BYTES, 0);
            let written =
                self.with_traffic(|traffic| match traffic.encrypt(piece, &mut out[start..]) {
                    Err(EncryptError::InsufficientSize(needed)) => {
                        out.resize(start + needed.required_size, 0);
                        traffic.encrypt(piece, &mut out[start..])
                    }
                    other => other,
                })?;
            out.truncate(start + written.map_err(|_| Error::EncryptError)?);
        }
        Ok(())
    }

    /// Comes to where application data can be written.
    fn with_traffic<R>(
        &mut self,
        write: impl FnOnce(&mut WriteTraffic<'_, ClientConnectionData>) -> R,
    ) -> Result<R, Error> {
        for _ in 0..STATES_BEFORE_TRAFFIC {
            let UnbufferedStatus { discard, state, .. } =
                self.conn.process_tls_records(&mut self.held);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let written = write(&mut traffic);
                    self.held.drain(..discard);
                    return Ok(written);
                }
                ConnectionState::PeerClosed => self.peer_closed = true,
                // A change of keys is put out when the server's request for it is received.
                _ => break,
            }
            self.held.drain(..discard);
        }
        Err(Error::EncryptError)
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

/// An error of TLS by what it is, for counting.
pub(crate) fn kind(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => format!("tls: server sent alert {alert:?}"),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "tls: certificate of an unknown issuer".to_owned()
        }
        Error::InvalidCertificate(why) => format!("tls: bad certificate: {}", first_word(why)),
        Error::NoApplicationProtocol => "tls: no common protocol".to_owned(),
        other => format!("tls: {other}"),
    }
}

/// The name of an error's variant, without what it holds.
fn first_word(error: &CertificateError) -> String {
    let text = format!("{error:?}");
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    text[..end].to_owned()
}

/// Sessions that are kept for resumption.
const SESSIONS: usize = 1024;
/// Most plaintext of a record (RFC 8446 section 5.1), bytes.
const RECORD_BYTES: usize = 1 << 14;
/// What a record adds: its head, an explicit nonce of TLS 1.2, the content type of TLS 1.3, the tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
/// States that may come before application data can be written.
const STATES_BEFORE_TRAFFIC: usize = 16;
