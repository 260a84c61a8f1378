//! Settings of connections to servers as a configuration writes them, made into a [`ClientConfig`].
//!
//! Equal settings have one digest, and one [`ClientConfig`] while any of its users exists. So a reload that changes
//! nothing keeps the sessions.
//!
//! Source: nginx documentation, `proxy_ssl_*`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aws_lc_rs::digest::{self, SHA256};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as provider;
use rustls::sign::CertifiedKey;
use rustls::{Error, KeyLog, NoKeyLog, SignatureScheme, SupportedCipherSuite};

use super::ciphers::{Ciphers, TLS13};
use super::client_config::ClientConfig;
use super::groups::Groups;
use super::keys::Identity;
use super::server_sessions::ServerSessions;
use super::server_trust::{ServerAuth, UpstreamServer};
use super::versions::Versions;

/// Settings of connections to servers.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Versions that are spoken.
    pub versions: Versions,
    /// Cipher suites of TLS 1.2.
    pub ciphers: Ciphers,
    /// Cipher suites of TLS 1.3, if restricted.
    pub ciphers13: Option<Ciphers>,
    /// Groups of key exchange.
    pub groups: Groups,
    /// Protocols by ALPN, the most wanted first.
    pub alpn: Vec<Vec<u8>>,
    /// Whether the server's name is sent (SNI).
    pub sends_name: bool,
    /// Verification of the server; `None`: any certificate is accepted.
    pub auth: Option<ServerAuth>,
    /// Our certificate.
    pub identity: Option<Identity>,
    /// Whether sessions are resumed.
    pub resumes: bool,
    /// Receives the secrets.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            versions: Versions::default(),
            ciphers: Ciphers::default(),
            ciphers13: None,
            groups: Groups::default(),
            alpn: Vec::new(),
            sends_name: false,
            auth: None,
            identity: None,
            resumes: true,
            key_log: None,
        }
    }
}

/// A digest of settings: connections and sessions are exchangeable if it is equal.
pub type PolicyDigest = [u8; 32];

impl ClientSettings {
    /// The digest of everything but the log of secrets.
    #[must_use]
    pub fn digest(&self) -> PolicyDigest {
        let mut parts = Parts(digest::Context::new(&SHA256));
        parts.add(&[
            self.versions as u8,
            u8::from(self.sends_name),
            u8::from(self.resumes),
            u8::from(self.auth.is_some()),
            u8::from(self.ciphers13.is_some()),
        ]);
        for suites in std::iter::once(&self.ciphers).chain(&self.ciphers13) {
            let numbers = suites.suites.iter().map(|suite| u16::from(suite.suite()));
            parts.list(numbers.map(u16::to_be_bytes));
        }
        let groups = self.groups.list.iter().map(|group| u16::from(group.name()));
        parts.list(groups.map(u16::to_be_bytes));
        parts.list(self.alpn.iter());
        if let Some(auth) = &self.auth {
            parts.add(&(auth.depth as u64).to_be_bytes());
            parts.list(auth.trusted.iter());
            parts.list(auth.crls.iter().map(|crl| &crl.signed));
        }
        parts.identity(self.identity.as_ref());
        parts.finish()
    }

    /// Makes the configuration, or returns the one in use with equal settings.
    ///
    /// # Errors
    /// Errors of rustls about incompatible settings.
    pub fn build(self) -> Result<(ClientConfig, PolicyDigest), Error> {
        let digest = self.digest();
        let key_log = self.key_log.clone();
        let config = shared(digest, || self.make())?;
        Ok(match key_log {
            Some(log) => (config.logging(log), digest),
            None => (config, digest),
        })
    }

    fn make(self) -> Result<rustls::ClientConfig, Error> {
        let tls13 = self.ciphers13.as_ref();
        let tls13 = tls13.map_or(&TLS13[..], |ciphers| &ciphers.suites);
        let suites = tls13.iter().chain(&self.ciphers.suites).copied();
        let crypto = CryptoProvider {
            cipher_suites: suites.collect::<Vec<SupportedCipherSuite>>(),
            kx_groups: self.groups.list.clone(),
            ..provider::default_provider()
        };
        let verifier = Arc::new(UpstreamServer::new(self.auth));
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(crypto))
            .with_protocol_versions(self.versions.list())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match self.identity {
            Some(identity) => {
                builder.with_client_cert_resolver(Arc::new(Own(identity.certified())))
            }
            None => builder.with_no_client_auth(),
        };
        config.resumption = resumption(self.resumes);
        config.alpn_protocols = self.alpn;
        config.enable_sni = self.sends_name;
        // Few servers compress certificates, and offering it makes each first message longer.
        config.cert_decompressors = Vec::new();
        Ok(config)
    }
}

impl ClientConfig {
    /// Settings with another certificate of ours; `digest` is that of these settings. Sessions are apart, because a
    /// session has the rights of an identity.
    #[must_use]
    pub fn with_identity(
        &self,
        digest: &PolicyDigest,
        identity: &Identity,
        resumes: bool,
    ) -> (Self, PolicyDigest) {
        let mut parts = Parts(digest::Context::new(&SHA256));
        parts.add(digest);
        parts.identity(Some(identity));
        let digest = parts.finish();
        let derived = shared(digest, || {
            let mut config = rustls::ClientConfig::clone(&self.rustls());
            config.client_auth_cert_resolver = Arc::new(Own(identity.certified()));
            config.resumption = resumption(resumes);
            // Other policies share it, and have logs of their own.
            config.key_log = Arc::new(NoKeyLog {});
            Ok(config)
        });
        // Nothing in the closure fails.
        let derived = derived.unwrap_or_else(|_: Error| self.clone());
        let log = Arc::clone(&self.rustls().key_log);
        match log.will_log("") {
            true => (derived.logging(log), digest),
            false => (derived, digest),
        }
    }
}

fn resumption(resumes: bool) -> Resumption {
    match resumes {
        true => Resumption::store(Arc::new(ServerSessions::default())),
        false => Resumption::disabled(),
    }
}

/// Returns the configuration with this digest: the one in use, or a new one.
fn shared(
    digest: PolicyDigest,
    make: impl FnOnce() -> Result<rustls::ClientConfig, Error>,
) -> Result<ClientConfig, Error> {
    let mut all = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if let Some(config) = all.get(&digest).and_then(Weak::upgrade) {
        return Ok(ClientConfig::of(config));
    }
    let config = Arc::new(make()?);
    all.retain(|_, known| known.strong_count() > 0);
    all.insert(digest, Arc::downgrade(&config));
    Ok(ClientConfig::of(config))
}

/// Configurations in use, by their digests.
static IN_USE: Mutex<Option<HashMap<PolicyDigest, Weak<rustls::ClientConfig>>>> = Mutex::new(None);

/// Our certificate, sent to any server that requests one.
#[derive(Debug)]
struct Own(Arc<CertifiedKey>);

impl ResolvesClientCert for Own {
    /// OpenSSL ignores the names of authorities, too.
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let fits = self.0.key.choose_scheme(schemes).is_some();
        fits.then(|| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A digest of parts, including the length of each.
struct Parts(digest::Context);

impl Parts {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn list<T: AsRef<[u8]>>(&mut self, list: impl Iterator<Item = T>) {
        let list: Vec<T> = list.collect();
        self.0.update(&(list.len() as u64).to_be_bytes());
        list.iter().for_each(|bytes| self.add(bytes.as_ref()));
    }

    fn identity(&mut self, identity: Option<&Identity>) {
        self.list(identity.iter().flat_map(|identity| identity.chain()));
    }

    fn finish(self) -> PolicyDigest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authorities;

    fn auth(depth: usize) -> Option<ServerAuth> {
        Some(ServerAuth {
            trusted: Authorities::default(),
            crls: Vec::new(),
            depth,
        })
    }

    #[test]
    fn each_setting_makes_another_digest() {
        let changes: [fn(&mut ClientSettings); 11] = [
            |_| {},
            |s| s.versions = Versions::Tls13,
            |s| s.ciphers = Ciphers::parse("ECDHE-RSA-AES128-GCM-SHA256").expect("it is built"),
            |s| s.ciphers13 = Ciphers::parse_tls13("TLS_AES_128_GCM_SHA256").ok(),
            |s| s.groups = Groups::parse("X25519").expect("it is built"),
            |s| s.alpn = vec![b"h2".to_vec(), b"x".to_vec()],
            |s| s.alpn = vec![b"h2x".to_vec()],
            |s| s.sends_name = true,
            |s| s.resumes = false,
            |s| s.auth = auth(1),
            |s| s.auth = auth(2),
        ];
        let digests = changes.map(|change| {
            let mut settings = ClientSettings::default();
            change(&mut settings);
            assert_eq!(settings.digest(), settings.clone().digest());
            settings.digest()
        });
        for (n, one) in digests.iter().enumerate() {
            assert!(!digests[..n].contains(one), "settings {n}");
        }
    }

    #[test]
    fn equal_settings_in_use_are_one_configuration() {
        let settings = || ClientSettings {
            alpn: vec![b"of this test".to_vec()],
            ..ClientSettings::default()
        };
        let (first, digest) = settings().build().expect("they go together");
        let (second, again) = settings().build().expect("they go together");
        assert!(Arc::ptr_eq(&first.rustls(), &second.rustls()) && digest == again);
    }
}
