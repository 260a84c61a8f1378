//! `*_ssl_certificate` with variables: a request computes the names, and a handshake loads the files.
//!
//! As in nginx, an idle connection serves requests with the names that it was made with, whatever their files contain
//! meanwhile. In a new configuration the names count as others, so a reload makes new connections with the files of now.
//!
//! Source: nginx documentation, `proxy_ssl_certificate`, `proxy_ssl_certificate_cache`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use server_base::files::Files;
use server_http::exchange::{Ctx, Exchange};
use server_upstream::route::{HandshakeConfig, LoadConfig};
use tls::{ClientConfig, PolicyDigest};

use super::super::cache::Id;
use super::super::dynamic::{CertificateLoader, CertificateTemplates};
use super::super::identity_cache;

/// A certificate of a policy that is named by variables.
pub(super) struct NamedCertificate {
    templates: CertificateTemplates,
    loaded: Arc<Loaded>,
}

/// The policy for all certificates, without variables: connections keep it.
struct Loaded {
    loader: Arc<CertificateLoader>,
    /// The settings without a certificate.
    config: ClientConfig,
    digest: PolicyDigest,
    /// Whether sessions are resumed.
    resumes: bool,
    /// A number that no other policy of the process has.
    number: u64,
    /// Configurations with the certificates used last, which keep the sessions.
    recent: Mutex<VecDeque<(PolicyDigest, ClientConfig)>>,
}

/// The settings of a connection with these names of files.
struct PairConfig {
    loaded: Arc<Loaded>,
    pair: [Id; 2],
}

impl NamedCertificate {
    /// A certificate for a policy; `config` and `digest` are those of the policy without it.
    pub(super) fn new(
        templates: CertificateTemplates,
        config: &ClientConfig,
        digest: PolicyDigest,
        resumes: bool,
    ) -> Self {
        let loaded = Loaded {
            loader: Arc::clone(templates.loader()),
            config: config.clone(),
            digest,
            resumes,
            number: POLICIES.fetch_add(1, Ordering::Relaxed),
            recent: Mutex::default(),
        };
        Self {
            templates,
            loaded: Arc::new(loaded),
        }
    }

    /// Returns the settings and their digest for a request; `None` if it names no certificate. No file is read.
    pub(super) fn of_request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
    ) -> Option<(HandshakeConfig, PolicyDigest)> {
        let pair = self.templates.client_pair(x, cx)?;
        let number = self.loaded.number.to_be_bytes();
        let [certificate, key] = &pair;
        let parts: [&[u8]; 4] = [&self.loaded.digest, &number, &certificate.name, &key.name];
        let digest = identity_cache::digest(parts);
        let loaded = Arc::clone(&self.loaded);
        let config = HandshakeConfig::Loaded(Box::new(PairConfig { loaded, pair }));
        Some((config, digest))
    }
}

impl LoadConfig for PairConfig {
    fn load(&self, files: &mut dyn Files, now_ms: u64) -> Result<ClientConfig, String> {
        let own = &*self.loaded;
        let identity = own.loader.identity(files, now_ms, &self.pair)?;
        let (config, digest) = (own.config).with_identity(&own.digest, &identity, own.resumes);
        let mut recent = own.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.iter().all(|(known, _)| *known != digest) {
            if recent.len() >= RECENT_MAX {
                recent.pop_front();
            }
            recent.push_back((digest, config.clone()));
        }
        Ok(config)
    }
}

impl fmt::Debug for PairConfig {
    /// Without the names: they may be the text of a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairConfig").finish_non_exhaustive()
    }
}

/// Certificates of a policy that keep their sessions without a connection, at most.
const RECENT_MAX: usize = 32;
/// Number of policies so far.
static POLICIES: AtomicU64 = AtomicU64::new(0);
