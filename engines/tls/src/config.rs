//! The TLS settings of one server, ready for use.
//!
//! [`Settings`] are plain data that was checked when it was read; [`Config::build`] puts them together for rustls, binds
//! resumption to them, and keeps what is decided after a handshake: whether the client's certificate is one to trust.

use std::sync::Arc;

use aws_lc_rs::digest::{self, SHA256};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::server::NoServerSessionStorage;
use rustls::{
    DistinguishedName, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version,
};

use super::ciphers::{Ciphers, TLS13};
use super::client::AnyClient;
use super::compress;
use super::crl::Crl;
use super::groups::Groups;
use super::keys::{Identities, Identity};
use super::resume::{Context, KeyRing, SessionCache, Sessions, Tickets, now_s};
use super::verify::{Authorities, Reason, Verified, Verifier};
use super::x509::Certificate;

/// The TLS settings of one server.
#[derive(Clone, Debug)]
pub struct Config {
    rustls: Arc<ServerConfig>,
    /// The same, which offers HTTP/2 before everything else.
    http2: Arc<ServerConfig>,
    client: Option<Arc<Client>>,
    resumption: Arc<Resumption>,
    has_certificates: bool,
    rejects: bool,
    record_bytes: usize,
}

/// What a handshake offers besides HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// HTTP/2, before everything else.
    pub http2: bool,
    /// SPDY/3.1.
    pub spdy: bool,
}

/// How sessions are resumed, before it is known with which certificates.
#[derive(Debug, Default)]
struct Resumption {
    sessions: Option<Arc<dyn SessionCache>>,
    tickets: Option<Arc<dyn KeyRing>>,
    lifetime_s: u64,
    /// The policy towards clients.
    policy: Option<Context>,
}

/// What a [`Config`] is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's certificates.
    pub identities: Vec<Identity>,
    /// The certificates come with each handshake ([`Config::with`]).
    pub late: bool,
    /// Whether TLS 1.2 is spoken.
    pub tls12: bool,
    /// Whether TLS 1.3 is spoken.
    pub tls13: bool,
    /// Cipher suites of TLS 1.2.
    pub ciphers: Ciphers,
    /// Cipher suites of TLS 1.3, where not all.
    pub ciphers13: Option<Ciphers>,
    /// The server's order of suites counts, not the client's.
    pub prefer_server_ciphers: bool,
    /// Groups of key exchange.
    pub groups: Groups,
    /// Application protocols besides HTTP/2, those it likes most first.
    pub alpn: Vec<Vec<u8>>,
    /// The keys for tickets, where there are tickets.
    pub tickets: Option<Arc<dyn KeyRing>>,
    /// Where sessions are kept, if they are.
    pub sessions: Option<Arc<dyn SessionCache>>,
    /// How long a session may be resumed, seconds.
    pub session_timeout_s: u64,
    /// What clients' certificates are asked for and compared with.
    pub client: Option<ClientAuth>,
    /// Most bytes of early data; 0 for none. Sessions are kept then, since tickets cannot be kept from being used twice.
    pub early_data_bytes: u32,
    /// Whether certificates are compressed.
    pub compress: bool,
    /// Most plaintext of a record, bytes.
    pub record_bytes: usize,
    /// Every handshake is refused.
    pub reject: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identities: Vec::new(),
            late: false,
            tls12: true,
            tls13: true,
            ciphers: Ciphers::default(),
            ciphers13: None,
            prefer_server_ciphers: false,
            groups: Groups::default(),
            alpn: Vec::new(),
            tickets: None,
            sessions: None,
            session_timeout_s: 300,
            client: None,
            early_data_bytes: 0,
            compress: false,
            record_bytes: 1 << 14,
            reject: false,
        }
    }
}

/// What becomes of clients with and without certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMode {
    /// There must be one, and it must be one to trust.
    Required,
    /// If there is one, it must be one to trust.
    Optional,
    /// If there is one, it must be sound but for who issued it.
    OptionalNoCa,
}

/// What clients' certificates are asked for and compared with.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// What becomes of clients.
    pub mode: ClientMode,
    /// Trusted certificates whose names clients are told.
    pub told: Authorities,
    /// Others.
    pub trusted: Authorities,
    /// Lists of revoked certificates.
    pub crls: Vec<Crl>,
    /// Most certificates between the client's and the root.
    pub depth: usize,
}

/// The same, ready for use.
#[derive(Debug)]
struct Client {
    mode: ClientMode,
    verifier: Verifier,
    policy: Context,
}

/// Why a client gets an error page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It sent no certificate.
    NoCertificate,
    /// The one it sent is not to be trusted.
    BadCertificate(Reason),
}

impl Config {
    /// Wraps what rustls needs; protocols are those that it names.
    #[must_use]
    pub fn new(rustls: Arc<ServerConfig>) -> Self {
        Self {
            http2: Arc::clone(&rustls),
            rustls,
            client: None,
            resumption: Arc::default(),
            has_certificates: true,
            rejects: false,
            record_bytes: 1 << 14,
        }
    }

    /// Makes a configuration.
    ///
    /// # Errors
    /// What rustls says of settings that do not go together.
    pub fn build(settings: Settings) -> Result<Self, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(crypto(&settings)))
            .with_protocol_versions(&versions(&settings))?;
        let builder = match &settings.client {
            Some(client) => {
                builder.with_client_cert_verifier(Arc::new(AnyClient::new(hints(client))))
            }
            None => builder.with_no_client_auth(),
        };
        let has_certificates = settings.late || !settings.identities.is_empty();
        let no_identities = Identities::new(Vec::new());
        let mut rustls = builder.with_cert_resolver(Arc::new(no_identities));
        rustls.ignore_client_order = settings.prefer_server_ciphers;
        rustls.alpn_protocols = settings.alpn;
        rustls.max_early_data_size = settings.early_data_bytes;
        rustls.cert_compressors = match settings.compress {
            true => compress::compressors(),
            false => Vec::new(),
        };
        // What a client compresses costs us more than it saves.
        rustls.cert_decompressors = Vec::new();
        let client = settings.client.map(|client| {
            let mut trusted = client.told.clone();
            trusted.extend(&client.trusted);
            Arc::new(Client {
                mode: client.mode,
                policy: policy(&client),
                verifier: Verifier::new(trusted, client.crls, client.depth),
            })
        });
        let resumption = Resumption {
            sessions: settings.sessions,
            tickets: settings.tickets.filter(|_| settings.early_data_bytes == 0),
            lifetime_s: settings.session_timeout_s,
            policy: client.as_ref().map(|client| client.policy),
        };
        resumption.bind(&mut rustls, settings.identities);
        Ok(Self {
            resumption: Arc::new(resumption),
            http2: Arc::new(with_http2(&rustls)),
            rustls: Arc::new(rustls),
            client,
            has_certificates,
            rejects: settings.reject,
            record_bytes: settings.record_bytes,
        })
    }

    /// The same settings with other certificates; sessions are bound to those.
    #[must_use]
    pub fn with(&self, identities: Vec<Identity>) -> Self {
        let mut rustls = ServerConfig::clone(&self.rustls);
        self.resumption.bind(&mut rustls, identities);
        Self {
            http2: Arc::new(with_http2(&rustls)),
            rustls: Arc::new(rustls),
            ..self.clone()
        }
    }

    /// What rustls is given. Which protocols are offered is asked at each handshake, since a server without a certificate
    /// shows another one's and still speaks the protocols that it says itself.
    pub(crate) fn rustls(&self, offer: Offer) -> Arc<ServerConfig> {
        let config = if offer.http2 {
            &self.http2
        } else {
            &self.rustls
        };
        if !offer.spdy {
            return Arc::clone(config);
        }
        // So few servers have it that none keeps a configuration for it.
        let mut config = ServerConfig::clone(config);
        let at = usize::from(offer.http2);
        config.alpn_protocols.insert(at, b"spdy/3.1".to_vec());
        Arc::new(config)
    }

    /// Whether it has a certificate to show.
    #[must_use]
    pub fn has_certificates(&self) -> bool {
        self.has_certificates
    }

    /// Whether every handshake is refused (`ssl_reject_handshake`).
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.rejects
    }

    /// Most plaintext of a record, bytes (`ssl_buffer_size`).
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Whether clients are asked for certificates.
    #[must_use]
    pub fn asks_for_certificates(&self) -> bool {
        self.client.is_some()
    }

    /// Whether another one asks clients for the same and trusts the same.
    #[must_use]
    pub fn has_policy_of(&self, other: &Self) -> bool {
        let policy = |config: &Self| config.client.as_ref().map(|client| client.policy);
        policy(self) == policy(other)
    }

    /// What to think of a client's certificates, DER, its own first.
    #[must_use]
    pub fn verify(&self, certificates: &[Vec<u8>]) -> Verified {
        match &self.client {
            Some(client) => client.verifier.verify(certificates, now_s()),
            None => Verified::None,
        }
    }

    /// Whether a client whose certificates were found so is refused.
    #[must_use]
    pub fn refuses(&self, verified: Verified) -> Option<Refusal> {
        let mode = self.client.as_ref()?.mode;
        match verified {
            Verified::Success => None,
            Verified::None if mode == ClientMode::Required => Some(Refusal::NoCertificate),
            Verified::None => None,
            Verified::Failed(reason)
                if mode == ClientMode::OptionalNoCa && reason.is_unknown_issuer() =>
            {
                None
            }
            Verified::Failed(reason) => Some(Refusal::BadCertificate(reason)),
        }
    }
}

/// The same settings with HTTP/2 before the other protocols.
fn with_http2(rustls: &ServerConfig) -> ServerConfig {
    let mut config = rustls.clone();
    config.alpn_protocols.insert(0, b"h2".to_vec());
    config
}

/// What rustls is to use: suites, groups, and how to compute.
fn crypto(settings: &Settings) -> CryptoProvider {
    let tls13 = settings.ciphers13.as_ref();
    let tls13 = tls13.map_or(&TLS13[..], |ciphers| &ciphers.suites);
    let all: Vec<SupportedCipherSuite> = tls13
        .iter()
        .chain(&settings.ciphers.suites)
        .copied()
        .collect();
    CryptoProvider {
        cipher_suites: all,
        kx_groups: settings.groups.list.clone(),
        ..provider::default_provider()
    }
}

fn versions(settings: &Settings) -> Vec<&'static SupportedProtocolVersion> {
    let tls12 = settings.tls12.then_some(&version::TLS12);
    let tls13 = settings.tls13.then_some(&version::TLS13);
    tls12.into_iter().chain(tls13).collect()
}

/// The names of authorities that clients are told.
fn hints(client: &ClientAuth) -> Vec<DistinguishedName> {
    let mut names: Vec<&[u8]> = Vec::new();
    for certificate in client.told.iter().filter_map(Certificate::parse) {
        if !names.contains(&certificate.subject) {
            names.push(certificate.subject);
        }
    }
    names
        .into_iter()
        .map(|name| DistinguishedName::from(name.to_vec()))
        .collect()
}

/// A digest of everything that decides whom clients are taken for.
fn policy(client: &ClientAuth) -> Context {
    let mut digest = digest::Context::new(&SHA256);
    let mut add = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    add(&[client.mode as u8]);
    add(&(client.depth as u64).to_be_bytes());
    for list in [&client.told, &client.trusted] {
        add(b"list");
        list.iter().for_each(&mut add);
    }
    add(b"crls");
    for crl in &client.crls {
        add(&crl.signed);
    }
    finished(digest)
}

impl Resumption {
    /// Puts certificates into settings, and binds resumption to them and to the policy towards clients.
    fn bind(&self, rustls: &mut ServerConfig, identities: Vec<Identity>) {
        let context = self.context(&identities);
        rustls.cert_compression_cache = Arc::new(compress::cache(identities.len()));
        rustls.cert_resolver = Arc::new(Identities::new(identities));
        rustls.session_storage = match &self.sessions {
            Some(cache) => Arc::new(Sessions {
                cache: Arc::clone(cache),
                context,
                lifetime_s: self.lifetime_s,
            }),
            None => Arc::new(NoServerSessionStorage {}),
        };
        if let Some(ring) = &self.tickets {
            rustls.ticketer = Arc::new(Tickets {
                ring: Arc::clone(ring),
                context,
                lifetime_s: self.lifetime_s,
            });
        }
    }

    /// A digest of what sessions are bound to.
    fn context(&self, identities: &[Identity]) -> Context {
        let mut digest = digest::Context::new(&SHA256);
        let mut add = |bytes: &[u8]| {
            digest.update(&(bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        for identity in identities {
            add(b"chain");
            identity.chain().for_each(&mut add);
        }
        if let Some(policy) = &self.policy {
            add(b"client");
            add(policy);
        }
        finished(digest)
    }
}

fn finished(digest: digest::Context) -> Context {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.finish().as_ref());
    bytes
}
