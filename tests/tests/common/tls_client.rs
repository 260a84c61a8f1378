//! A client over TLS, and certificates made on the spot.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, SignatureAlgorithm,
};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, StreamOwned,
    SupportedProtocolVersion,
};
use tls::AnyServer;

/// An authority.
pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key, PEM.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a host name");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A server's certificate.
pub(crate) fn server(name: &str, algorithm: &'static SignatureAlgorithm) -> Leaf {
    let key = KeyPair::generate_for(algorithm).expect("the algorithm is built");
    let certificate = named(name).self_signed(&key).expect("it can be signed");
    Leaf {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

/// A server's certificate for elliptic curves.
pub(crate) fn site(name: &str) -> Leaf {
    server(name, &rcgen::PKCS_ECDSA_P256_SHA256)
}

/// Another certificate for a key.
pub(crate) fn with_key_of(leaf: &Leaf, name: &str) -> Leaf {
    let key = KeyPair::from_pem(&leaf.key).expect("it is a key");
    let certificate = named(name).self_signed(&key).expect("it can be signed");
    Leaf {
        certificate: certificate.pem(),
        key: leaf.key.clone(),
    }
}

/// An authority.
pub(crate) fn authority(name: &str) -> Authority {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::self_signed(params, key).expect("it can be signed")
}

/// A client's certificate.
pub(crate) fn client(name: &str, authority: &Authority) -> Leaf {
    let key = KeyPair::generate().expect("there is randomness");
    let certificate = named(name).signed_by(&key, authority);
    Leaf {
        certificate: certificate.expect("it can be signed").pem(),
        key: key.serialize_pem(),
    }
}

/// A client, which remembers sessions from one connection to the next.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

/// Response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The name in the server's certificate.
    pub(crate) certificate: Vec<u8>,
    pub(crate) resumed: bool,
    pub(crate) alpn: Option<Vec<u8>>,
}

impl Tls {
    /// Any version, no certificate.
    pub(crate) fn new() -> Self {
        Self::with(rustls::ALL_VERSIONS, None, &[])
    }

    /// A client of one version.
    pub(crate) fn of(version: &'static SupportedProtocolVersion) -> Self {
        let versions: &[&SupportedProtocolVersion] = if *version == rustls::version::TLS12 {
            &[&rustls::version::TLS12]
        } else {
            &[&rustls::version::TLS13]
        };
        Self::with(versions, None, &[])
    }

    /// With a certificate.
    pub(crate) fn known_as(leaf: &Leaf) -> Self {
        Self::with(rustls::ALL_VERSIONS, Some(leaf), &[])
    }

    /// With a certificate, over TLS 1.2 alone.
    pub(crate) fn known_over_tls12(leaf: &Leaf) -> Self {
        Self::with(&[&rustls::version::TLS12], Some(leaf), &[])
    }

    /// A client that offers these protocols by ALPN.
    pub(crate) fn speaking(alpn: &[&[u8]]) -> Self {
        Self::with(rustls::ALL_VERSIONS, None, alpn)
    }

    /// A client that sends early data if possible, and reuses a session of any name for every other name.
    pub(crate) fn early() -> Self {
        let mut config = (*Self::of(&rustls::version::TLS13).0).clone();
        config.enable_early_data = true;
        config.resumption = Resumption::store(Arc::new(OneDrawer::default()));
        Self(Arc::new(config))
    }

    /// Without early data, but taking a session of any name for that of any other.
    pub(crate) fn careless(version: &'static SupportedProtocolVersion) -> Self {
        let mut config = (*Self::of(version).0).clone();
        config.resumption = Resumption::store(Arc::new(OneDrawer::default()));
        Self(Arc::new(config))
    }

    /// A connection that has sent nothing.
    pub(crate) fn connect(
        &self,
        port: u16,
        name: &str,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
        socket
            .set_read_timeout(Some(LIMIT))
            .expect("a limit that is not zero is valid");
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        StreamOwned::new(connection, socket)
    }

    fn with(
        versions: &[&'static SupportedProtocolVersion],
        leaf: Option<&Leaf>,
        alpn: &[&[u8]],
    ) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("the versions are built")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
        let mut config = match leaf {
            None => builder.with_no_client_auth(),
            Some(leaf) => {
                let chain = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes());
                let chain = chain
                    .map(|part| part.expect("it is a certificate"))
                    .collect();
                let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes());
                let config = builder.with_client_auth_cert(chain, key.expect("it is a key"));
                config.expect("they belong together")
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Self(Arc::new(config))
    }

    /// Sends the first flight of a handshake, and no more.
    pub(crate) fn begin(&self, port: u16, name: &str) -> TcpStream {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        while connection.wants_write() {
            connection.write_tls(&mut socket).expect("the server reads");
        }
        socket
    }

    /// A request of its own connection, named in the handshake as in the request.
    pub(crate) fn get(&self, port: u16, host: &str, path: &str) -> Answer {
        self.ask(port, host, host, path)
            .expect("the server answers")
    }

    /// The protocol that a handshake chooses.
    pub(crate) fn agreed(&self, port: u16, name: &str) -> Option<String> {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        let limit = socket.set_read_timeout(Some(LIMIT));
        limit.expect("a limit that is not zero is valid");
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        let mut stream = StreamOwned::new(connection, socket);
        let done = stream.conn.complete_io(&mut stream.sock);
        done.expect("the handshake succeeds");
        let protocol = stream.conn.alpn_protocol();
        protocol.map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Connects with a name of its own in the handshake.
    pub(crate) fn ask(
        &self,
        port: u16,
        name: &str,
        host: &str,
        path: &str,
    ) -> std::io::Result<Answer> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(LIMIT))?;
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        let mut stream = StreamOwned::new(connection, socket);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let certificates = stream.conn.peer_certificates().unwrap_or_default();
        Ok(Answer {
            status: status.expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
            certificate: certificates
                .first()
                .map_or_else(Vec::new, |der| der.to_vec()),
            resumed: stream.conn.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: stream.conn.alpn_protocol().map(<[u8]>::to_vec),
        })
    }
}

impl Tls {
    /// Stops sending the server name (SNI).
    pub(crate) fn send_no_name(&mut self) {
        let mut config = ClientConfig::clone(&self.0);
        config.enable_sni = false;
        self.0 = Arc::new(config);
    }

    /// A connection with a finished handshake.
    pub(crate) fn open(&self, port: u16, name: &str) -> std::io::Result<Open> {
        let mut socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(LIMIT))?;
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Open(StreamOwned::new(connection, socket)))
    }

    /// The protocol that a server chooses for a name.
    pub(crate) fn chosen(&self, port: u16, name: &str) -> std::io::Result<Option<Vec<u8>>> {
        let open = self.open(port, name)?;
        Ok(open.0.conn.alpn_protocol().map(<[u8]>::to_vec))
    }
}

/// A connection that stays open.
pub(crate) struct Open(StreamOwned<ClientConnection, TcpStream>);

impl Open {
    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Whether the server neither sends nor closes within this time.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        let limit = self.0.sock.set_read_timeout(Some(time));
        limit.expect("a limit that is not zero is valid");
        let outcome = self.0.read(&mut [0]);
        matches!(outcome, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// The body of the response to a request; it ends with a line end.
    pub(crate) fn get(&mut self, host: &str, path: &str) -> std::io::Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.0.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        let mut byte = [0];
        let body = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let (_, body) = text.split_once("\r\n\r\n")?;
            body.ends_with('\n').then(|| body.to_owned())
        };
        loop {
            if let Some(body) = body(&bytes) {
                return Ok(body);
            }
            self.0.read_exact(&mut byte)?;
            bytes.push(byte[0]);
        }
    }
}

impl Answer {
    /// Whether the server's certificate is this one.
    pub(crate) fn is_from(&self, leaf: &Leaf) -> bool {
        let mut certificates = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes());
        let first = certificates.next().expect("there is one");
        first.expect("it is a certificate").as_ref() == self.certificate
    }
}

/// Keeps the sessions of all names together.
#[derive(Debug)]
struct OneDrawer(ClientSessionMemoryCache);

impl Default for OneDrawer {
    fn default() -> Self {
        Self(ClientSessionMemoryCache::new(SESSIONS))
    }
}

/// The key of all sessions.
fn drawer() -> ServerName<'static> {
    ServerName::try_from("drawer").expect("a host name")
}

impl ClientSessionStore for OneDrawer {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(drawer(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&drawer())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(drawer(), value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&drawer())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&drawer());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(drawer(), value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&drawer())
    }
}

/// Sessions that a client keeps.
const SESSIONS: usize = 32;
/// Timeout of a response.
const LIMIT: Duration = Duration::from_secs(10);
