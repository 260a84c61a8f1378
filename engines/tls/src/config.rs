//! The TLS settings of one server, ready for use.
//!
//! [`Settings`] are plain data that was checked when it was read; [`Config::build`] assembles them for rustls.
//! Parts that do not depend on the certificates are a [`Policy`], which ten thousand servers may share.

use std::sync::{Arc, OnceLock};

use rustls::KeyLog;
use rustls::ServerConfig;
use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;

use super::ciphers::Ciphers;
use super::groups::Groups;
use super::handshaking::{Context, Server};
use super::keys::{Identities, Identity};
use super::policy::Policy;
use super::reason::Reason;
use super::resume::{KeyRing, SessionCache, now_s};
use super::verify::{Authorities, Verified};
use super::versions::Versions;
use super::x509::Crl;

/// The TLS settings of one server.
#[derive(Clone, Debug)]
pub struct Config {
    policy: Arc<Policy>,
    identities: Identities,
    /// A digest of the session binding, made for the first session.
    context: OnceLock<Context>,
    /// Configurations of rustls with compressed certificates of their own; without them those of the policy are
    /// used.
    own: Option<Arc<Rustls>>,
}

/// Settings of a [`Config`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's certificates.
    pub identities: Vec<Identity>,
    /// The certificates are chosen for each handshake ([`Config::with`]).
    pub late: bool,
    /// Versions that are spoken.
    pub versions: Versions,
    /// Cipher suites of TLS 1.2.
    pub ciphers: Ciphers,
    /// Cipher suites of TLS 1.3, if restricted.
    pub ciphers13: Option<Ciphers>,
    /// The server's order of suites counts, not the client's.
    pub prefer_server_ciphers: bool,
    /// Groups of key exchange.
    pub groups: Groups,
    /// Application protocols besides HTTP/2, the most wanted first.
    pub alpn: Vec<Vec<u8>>,
    /// The keys for tickets, if tickets are on.
    pub tickets: Option<Arc<dyn KeyRing>>,
    /// The session cache, if there is one.
    pub sessions: Option<Arc<dyn SessionCache>>,
    /// Lifetime of a session, in seconds.
    pub session_timeout_s: u64,
    /// Verification of client certificates.
    pub client: Option<Arc<ClientAuth>>,
    /// Most bytes of early data; 0 for none. Sessions are kept then, since tickets cannot be kept from being used twice.
    pub early_data_bytes: u32,
    /// Whether certificates are compressed.
    pub compress: bool,
    /// Most plaintext of a record, bytes.
    pub record_bytes: usize,
    /// Every handshake is refused.
    pub reject: bool,
    /// Receives the secrets.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identities: Vec::new(),
            late: false,
            versions: Versions::default(),
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
            key_log: None,
        }
    }
}

/// Treatment of clients with and without certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientMode {
    /// A trusted certificate is required.
    Required,
    /// A certificate is optional, but must be trusted.
    Optional,
    /// Optional; a certificate must be valid except for its issuer.
    OptionalNoCa,
}

/// Verification of client certificates.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// Treatment of clients.
    pub mode: ClientMode,
    /// Trusted certificates with names that are sent to clients.
    pub told: Authorities,
    /// Others.
    pub trusted: Authorities,
    /// Lists of revoked certificates.
    pub crls: Vec<Crl>,
    /// Most certificates between the client's and the root.
    pub depth: usize,
}

/// Error of a client's certificate; the client gets an error page for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertError {
    /// It sent no certificate.
    NoCertificate,
    /// The one it sent is not to be trusted.
    BadCertificate(Reason),
}

impl Config {
    /// Makes a configuration.
    ///
    /// # Errors
    /// Errors of rustls about incompatible settings.
    pub fn build(settings: Settings) -> Result<Self, rustls::Error> {
        let identities = settings.identities.clone();
        Ok(Self::of(Arc::new(Policy::build(settings)?), identities))
    }

    /// Makes a configuration of shared settings and these certificates.
    #[must_use]
    pub fn of(policy: Arc<Policy>, identities: Vec<Identity>) -> Self {
        Self {
            own: policy.compresses().then(Arc::default),
            policy,
            identities: Identities::new(identities),
            context: OnceLock::new(),
        }
    }

    /// The settings without the certificates.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Returns the settings with other certificates; sessions are bound to the new ones.
    #[must_use]
    pub fn with(&self, identities: Vec<Identity>) -> Self {
        Self::of(Arc::clone(&self.policy), identities)
    }

    /// Returns the configuration of rustls. The protocols are chosen at each handshake, since a server without a
    /// certificate uses another one's but keeps its own protocols. `offer`, most wanted first, precedes those of
    /// the settings.
    pub(crate) fn rustls(&self, offer: &[&[u8]]) -> Arc<ServerConfig> {
        let (http2, others) = match offer {
            [HTTP2, others @ ..] => (true, others),
            others => (false, others),
        };
        let config = match &self.own {
            Some(own) => own.get(http2, || self.policy.with_chains(self.identities.len())),
            None => self.policy.shared.get(http2, || self.policy.rustls.clone()),
        };
        if others.is_empty() {
            return Arc::clone(config);
        }
        // Few servers have other protocols, so a configuration for them is not cached.
        let mut config = ServerConfig::clone(config);
        let at = offer.len() - others.len();
        let names = others.iter().map(|name| name.to_vec());
        config.alpn_protocols.splice(at..at, names);
        Arc::new(config)
    }

    /// Whether it has a certificate to show.
    #[must_use]
    pub fn has_certificates(&self) -> bool {
        self.is_late() || !self.identities.is_empty()
    }

    /// Whether its certificates are chosen for each handshake ([`Settings::late`]).
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.policy.late
    }

    /// Returns the settings for a connection to keep. The digest for the session binding is computed once for all
    /// of them.
    #[must_use]
    pub fn shared(&self) -> Arc<Self> {
        self.context();
        Arc::new(self.clone())
    }

    /// The certificate that most clients get; `None` if each handshake brings its own.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identities.iter().next()
    }

    /// Whether every handshake is refused (`ssl_reject_handshake`).
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.policy.rejects
    }

    /// Most plaintext of a record, bytes (`ssl_buffer_size`).
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.policy.record_bytes
    }

    /// Whether the server requests certificates from clients.
    #[must_use]
    pub fn asks_for_certificates(&self) -> bool {
        self.policy.client.is_some()
    }

    /// Whether another configuration requests the same from clients and has the same trust.
    #[must_use]
    pub fn has_policy_of(&self, other: &Self) -> bool {
        let digest = |config: &Self| config.policy.client.as_ref().map(|client| client.digest);
        digest(self) == digest(other)
    }

    /// Verifies a client's certificates, DER, its own first.
    #[must_use]
    pub fn verify(&self, certificates: &[Vec<u8>]) -> Verified {
        match &self.policy.client {
            Some(client) => client.verifier.verify(certificates, now_s()),
            None => Verified::None,
        }
    }

    /// Whether a client with this verification result is refused.
    #[must_use]
    pub fn refuses(&self, verified: Verified) -> Option<ClientCertError> {
        let mode = self.policy.client.as_ref()?.auth.mode;
        match verified {
            Verified::Success => None,
            Verified::None if mode == ClientMode::Required => Some(ClientCertError::NoCertificate),
            Verified::None => None,
            Verified::Failed(reason)
                if mode == ClientMode::OptionalNoCa && reason.is_unknown_issuer() =>
            {
                None
            }
            Verified::Failed(reason) => Some(ClientCertError::BadCertificate(reason)),
        }
    }
}

impl Server for Config {
    fn certified(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.identities.certified(hello)
    }

    /// Certificates, and the policy towards clients.
    fn context(&self) -> Context {
        let make = || self.policy.context(&self.identities);
        *self.context.get_or_init(make)
    }
}

/// Configurations of rustls, without HTTP/2 and with it. Each is made for the first handshake that needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rustls([OnceLock<Arc<ServerConfig>>; 2]);

impl Rustls {
    fn get(&self, http2: bool, make: impl FnOnce() -> ServerConfig) -> &Arc<ServerConfig> {
        self.0[usize::from(http2)].get_or_init(|| {
            let mut config = make();
            if http2 {
                config.alpn_protocols.insert(0, HTTP2.to_vec());
            }
            Arc::new(config)
        })
    }
}

/// The name of HTTP/2 in ALPN (RFC 9113 section 3.1).
const HTTP2: &[u8] = b"h2";
