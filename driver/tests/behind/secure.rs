//! TLS of a simulated server, between its application and the wire.
//!
//! Certificates use Ed25519, so that all messages have the same length in each run.

#![allow(dead_code, reason = "each test uses its own part")]

use std::sync::Arc;

use server_upstream::route::ServerTls;
use tls::{
    Chain, Ciphers, ClientConfig, ClientSettings, Config, Conn, Identity, Key, Scratch, ServerName,
    ServerTrust, Settings, Versions,
};

/// TLS settings of both ends, made once.
pub(crate) struct Pair {
    server: Arc<Config>,
    /// The clients' settings, for HTTP/1 and for HTTP/2.
    clients: [Arc<ServerTls>; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("it is built");
        let params = rcgen::CertificateParams::new(["b".to_owned()]).expect("a host name");
        let certificate = params.self_signed(&key).expect("it can be signed");
        let chain = Chain::from_pem(certificate.pem().as_bytes()).expect("it is a certificate");
        let key = Key::from_pem(key.serialize_pem().as_bytes(), &[]).expect("it is a key");
        let settings = Settings {
            identities: vec![Identity::new(chain, &key, None).expect("they belong together")],
            ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            ..Settings::default()
        };
        let client = |digest, alpn: &[u8]| {
            let config = ClientConfig::new(ServerTrust::Any, vec![alpn.to_vec()], 0);
            let config = config.expect("it can be set up").into();
            let name = ServerName::try_from("b").expect("a host name");
            Arc::new(ServerTls::new(config, [digest; 32], name))
        };
        Self {
            server: Arc::new(Config::build(settings).expect("the settings go together")),
            clients: [client(1, b"http/1.1"), client(2, b"h2")],
        }
    }

    /// Returns the client's settings, for HTTP/2 (`streams`) or HTTP/1.
    pub(crate) fn client(&self, streams: bool) -> Arc<ServerTls> {
        Arc::clone(&self.clients[usize::from(streams)])
    }

    /// Returns a client's settings for TLS 1.2 and HTTP/1.
    pub(crate) fn client_of_tls12(&self) -> Arc<ServerTls> {
        let settings = ClientSettings {
            versions: Versions::Tls12,
            ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
            ..ClientSettings::default()
        };
        let (config, digest) = settings.build().expect("the settings go together");
        let name = ServerName::try_from("b").expect("a host name");
        Arc::new(ServerTls::new(config.into(), digest, name))
    }

    /// Makes the server's end of a connection.
    pub(crate) fn accept(&self) -> Secure {
        Secure {
            conn: Conn::new(),
            config: Arc::clone(&self.server),
            read: 0,
            came: Vec::new(),
            held: Vec::new(),
        }
    }
}

/// The server's end of a TLS connection.
pub(crate) struct Secure {
    conn: Conn,
    config: Arc<Config>,
    /// Number of decrypted bytes of the wire.
    read: usize,
    /// All received plaintext.
    pub(crate) came: Vec<u8>,
    /// Plaintext that waits for the end of the handshake.
    held: Vec<u8>,
}

impl Secure {
    /// Decrypts new bytes of the wire. Returns bytes to send.
    ///
    /// # Errors
    /// The client violates TLS.
    pub(crate) fn receive(&mut self, sent: &[u8]) -> Result<Vec<u8>, String> {
        let mut input = sent[self.read..].to_vec();
        self.read = sent.len();
        let came = &mut self.came;
        let mut sink = |plain: &[u8]| came.extend_from_slice(plain);
        let mut taken = self.conn.receive(&mut input, &mut sink);
        if taken.is_ok() && self.conn.hello().is_some() {
            taken = self.conn.start(&self.config, &[], &mut sink);
        }
        taken.map_err(|fault| format!("TLS is broken: {fault}"))?;
        Ok(self.seal(&[]))
    }

    /// Encrypts plaintext.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(plain);
        let mut out = Scratch::default();
        out.extend(&self.conn.take_output());
        if self.conn.is_open() && !self.held.is_empty() {
            let sealed = self.conn.encrypt(&self.held, RECORD_BYTES, &mut out);
            sealed.expect("the connection is open");
            self.held.clear();
        }
        out.filled().to_vec()
    }

    /// Returns the close_notify alert.
    pub(crate) fn close(&mut self) -> Vec<u8> {
        self.conn.close();
        self.conn.take_output()
    }
}

const RECORD_BYTES: usize = 16 << 10;
