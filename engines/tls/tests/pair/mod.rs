//! A client of rustls and a server connection that hand each other bytes, and certificates made on the spot.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod v1;

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SignatureAlgorithm,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, SignatureScheme, SupportedProtocolVersion};
use tls::{
    AnyServer, Chain, Ciphers, Config, Conn, Fault, Identity, Key, KeyRing, Scratch, Settings,
    TicketKey,
};

/// An authority.
pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a host name");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// An authority that trusts in itself.
pub(crate) fn root(name: &str) -> Authority {
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::self_signed(authority_params(name), key).expect("it can be signed")
}

/// An authority below another one.
pub(crate) fn intermediate(name: &str, issuer: &Authority) -> Authority {
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::signed_by(authority_params(name), key, issuer).expect("it can be signed")
}

/// A certificate and its key, PEM.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

/// A client's certificate with changeable parameters.
pub(crate) fn client_with(
    name: &str,
    issuer: &Authority,
    change: impl FnOnce(&mut CertificateParams),
) -> Leaf {
    let key = KeyPair::generate().expect("there is randomness");
    let mut params = named(name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    let certificate = params.signed_by(&key, issuer).expect("it can be signed");
    Leaf {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        der: certificate.der().to_vec(),
    }
}

/// A client's certificate.
pub(crate) fn client(name: &str, issuer: &Authority) -> Leaf {
    client_with(name, issuer, |_| {})
}

/// A certificate signed by its own key.
pub(crate) fn self_signed(name: &str, algorithm: &'static SignatureAlgorithm) -> Leaf {
    let key = KeyPair::generate_for(algorithm).expect("the algorithm is built");
    let certificate = named(name).self_signed(&key).expect("it can be signed");
    Leaf {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        der: certificate.der().to_vec(),
    }
}

/// The settings of a server.
pub(crate) fn identity(leaf: &Leaf) -> Identity {
    let chain = Chain::from_pem(leaf.certificate.as_bytes()).expect("it is a certificate");
    let key = Key::from_pem(leaf.key.as_bytes(), &[]).expect("it is a key");
    Identity::new(chain, &key, None).expect("they belong together")
}

/// One key for tickets.
#[derive(Debug)]
pub(crate) struct OneKey(Arc<TicketKey>);

impl OneKey {
    pub(crate) fn ring() -> Arc<dyn KeyRing> {
        Arc::new(Self(Arc::new(
            TicketKey::random().expect("there is randomness"),
        )))
    }
}

impl KeyRing for OneKey {
    fn current(&self) -> Option<Arc<TicketKey>> {
        Some(Arc::clone(&self.0))
    }

    fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        (name == self.0.name()).then(|| Arc::clone(&self.0))
    }
}

/// Settings with one certificate of a name.
pub(crate) fn settings(name: &str) -> Settings {
    Settings {
        identities: vec![identity(&self_signed(name, &rcgen::PKCS_ECDSA_P256_SHA256))],
        ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
        ..Settings::default()
    }
}

/// The configuration that settings make.
pub(crate) fn build(settings: Settings) -> Arc<Config> {
    Arc::new(Config::build(settings).expect("the settings go together"))
}

/// Settings of a client.
pub(crate) struct Wishes {
    pub(crate) versions: &'static [&'static SupportedProtocolVersion],
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) certificate: Option<Leaf>,
    pub(crate) schemes: Option<Vec<SignatureScheme>>,
    pub(crate) early_data: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            versions: rustls::ALL_VERSIONS,
            alpn: Vec::new(),
            certificate: None,
            schemes: None,
            early_data: false,
        }
    }
}

/// A client's settings, which remember sessions.
pub(crate) fn client_config(wishes: Wishes) -> Arc<ClientConfig> {
    let mut provider = aws_lc_rs::default_provider();
    if let Some(schemes) = wishes.schemes {
        let known = &mut provider.signature_verification_algorithms;
        let kept = |scheme| known.mapping.iter().find(|(known, _)| *known == scheme);
        let kept: Vec<_> = schemes.into_iter().filter_map(kept).copied().collect();
        known.mapping = kept.leak();
    }
    let provider = Arc::new(provider);
    let verifier = Arc::new(AnyServer(Arc::clone(&provider)));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(wishes.versions)
        .expect("the versions are built")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match wishes.certificate {
        None => builder.with_no_client_auth(),
        Some(leaf) => {
            let chain = pem_certificates(&leaf.certificate);
            let key = rustls::pki_types::pem::PemObject::from_pem_slice(leaf.key.as_bytes());
            let key: PrivateKeyDer<'static> = key.expect("it is a key");
            builder
                .with_client_auth_cert(chain, key)
                .expect("they belong together")
        }
    };
    config.alpn_protocols = wishes.alpn;
    config.enable_early_data = wishes.early_data;
    Arc::new(config)
}

/// The certificates of a PEM text, DER.
pub(crate) fn pem_certificates(text: &str) -> Vec<CertificateDer<'static>> {
    <CertificateDer<'_> as rustls::pki_types::pem::PemObject>::pem_slice_iter(text.as_bytes())
        .map(|certificate| certificate.expect("it is a certificate"))
        .collect()
}

/// Both ends of a connection.
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) server: Conn,
    /// Plaintext received by the server.
    pub(crate) received: Vec<u8>,
    /// Bytes of the server's first flight.
    pub(crate) first_flight: usize,
}

impl Pair {
    /// Two ends that have not spoken.
    pub(crate) fn new(client: &Arc<ClientConfig>, name: &str) -> Self {
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        Self {
            client: ClientConnection::new(Arc::clone(client), name).expect("a client"),
            server: Conn::new(),
            received: Vec::new(),
            first_flight: 0,
        }
    }

    /// Shakes hands.
    pub(crate) fn shake(
        client: &Arc<ClientConfig>,
        server: &Arc<Config>,
        name: &str,
    ) -> Result<Self, Fault> {
        let mut pair = Self::new(client, name);
        pair.run(server)?;
        Ok(pair)
    }

    /// Exchanges bytes until neither side has any.
    pub(crate) fn run(&mut self, config: &Arc<Config>) -> Result<(), Fault> {
        while self.step(config)? {}
        Ok(())
    }

    /// Exchanges the pending bytes of both sides; returns false if neither has any.
    pub(crate) fn step(&mut self, config: &Arc<Config>) -> Result<bool, Fault> {
        let mut up = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut up).expect("memory takes all");
        }
        let received = &mut self.received;
        let mut sink = |plain: &[u8]| received.extend_from_slice(plain);
        self.server.receive(&mut up, &mut sink)?;
        if self.server.hello().is_some() {
            self.server.start(config, &[], &mut sink)?;
        }
        let mut down = Vec::new();
        down.extend(self.server.take_output());
        if self.first_flight == 0 {
            self.first_flight = down.len();
        }
        self.deliver(&down);
        Ok(!up.is_empty() || !down.is_empty())
    }

    /// Passes bytes to the client.
    pub(crate) fn deliver(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.client.read_tls(&mut bytes).expect("memory gives all");
            // The client's opinion of a server that breaks off does not matter.
            let _ = self.client.process_new_packets();
        }
    }

    /// Bytes that the client sends for a text, in one record of its own.
    pub(crate) fn client_says(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.client
            .writer()
            .write_all(text)
            .expect("memory takes all");
        while self.client.wants_write() {
            self.client.write_tls(&mut out).expect("memory takes all");
        }
        out
    }

    /// Data of the server that the client reads.
    pub(crate) fn server_says(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Scratch::default();
        self.server
            .encrypt(text, 1 << 14, &mut out)
            .expect("the connection is open");
        self.deliver(out.filled());
        let mut read = vec![0; text.len() + 1];
        let n = self.client.reader().read(&mut read).unwrap_or(0);
        read.truncate(n);
        read
    }
}
