//! Handshake settings of a server, certificates aside.
//!
//! Servers with equal settings, by [`Settings::key`], share a [`Policy`] and the configuration of rustls in it.
//! That requests certificates and the context of sessions during a handshake. Absent: the source of certificates.

use std::sync::Arc;

use aws_lc_rs::digest::{self, SHA256};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::server::NoServerSessionStorage;
use rustls::{DistinguishedName, ServerConfig, SupportedCipherSuite};

use super::ciphers::TLS13;
use super::client::AnyClient;
use super::compress;
use super::config::{ClientAuth, Rustls, Settings};
use super::handshaking::Context;
use super::keys::{Identities, OfServer};
use super::resume::{Sessions, Tickets};
use super::verify::Verifier;
use super::x509::Certificate;

/// The settings of servers, certificates aside.
#[derive(Debug)]
pub struct Policy {
    /// Reads the data of one server during a handshake (`handshaking`).
    pub(crate) rustls: ServerConfig,
    pub(crate) shared: Rustls,
    pub(crate) client: Option<Client>,
    pub(crate) late: bool,
    pub(crate) rejects: bool,
    pub(crate) record_bytes: usize,
}

/// Verification of client certificates.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) auth: Arc<ClientAuth>,
    pub(crate) verifier: Verifier,
    /// A digest of all settings that decide about trust in clients.
    pub(crate) digest: Context,
}

impl Settings {
    /// Writes everything but the certificates into `key`, replacing its content: settings with equal keys share one
    /// [`Policy`]. Caches of sessions, keys for tickets, client verification and logs of secrets are compared by address, so a
    /// key is invalid once the policy made from these settings is dropped.
    pub fn key(&self, key: &mut Vec<u8>) {
        key.clear();
        let flags = [
            self.late,
            self.ciphers13.is_some(),
            self.prefer_server_ciphers,
            self.compress,
            self.reject,
        ];
        key.extend(flags.map(u8::from));
        key.push(self.versions as u8);
        let mut number = |number: u64| key.extend(number.to_be_bytes());
        number(self.session_timeout_s);
        number(self.early_data_bytes.into());
        number(self.record_bytes as u64);
        number(address(self.tickets.as_ref()));
        number(address(self.sessions.as_ref()));
        number(address(self.client.as_ref()));
        number(address(self.key_log.as_ref()));
        // Each list begins with its length, so that different lists never have equal bytes.
        let tls13 = self.ciphers13.as_ref();
        for suites in [Some(&self.ciphers), tls13].into_iter().flatten() {
            key.extend((suites.suites.len() as u64).to_be_bytes());
            for suite in &suites.suites {
                key.extend(u16::from(suite.suite()).to_be_bytes());
            }
        }
        key.extend((self.groups.list.len() as u64).to_be_bytes());
        for group in &self.groups.list {
            key.extend(u16::from(group.name()).to_be_bytes());
        }
        for name in &self.alpn {
            key.extend((name.len() as u64).to_be_bytes());
            key.extend(name);
        }
    }
}

/// The address of a value; 0 for none.
fn address<T: ?Sized>(thing: Option<&Arc<T>>) -> u64 {
    thing.map_or(0, |thing| Arc::as_ptr(thing).addr() as u64)
}

impl Policy {
    /// Prepares the settings, without their certificates.
    ///
    /// # Errors
    /// Errors of rustls about incompatible settings.
    pub fn build(settings: Settings) -> Result<Self, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(crypto(&settings)))
            .with_protocol_versions(settings.versions.list())?;
        let builder = match &settings.client {
            Some(client) => {
                builder.with_client_cert_verifier(Arc::new(AnyClient::new(hints(client))))
            }
            None => builder.with_no_client_auth(),
        };
        let mut rustls = builder.with_cert_resolver(Arc::new(OfServer));
        let lifetime_s = settings.session_timeout_s;
        rustls.session_storage = match settings.sessions {
            Some(cache) => Arc::new(Sessions { cache, lifetime_s }),
            // Without this, rustls uses a cache of its own.
            None => Arc::new(NoServerSessionStorage {}),
        };
        if let Some(ring) = settings.tickets.filter(|_| settings.early_data_bytes == 0) {
            rustls.ticketer = Arc::new(Tickets { ring, lifetime_s });
        }
        if let Some(log) = settings.key_log {
            rustls.key_log = log;
        }
        rustls.ignore_client_order = settings.prefer_server_ciphers;
        rustls.alpn_protocols = settings.alpn;
        rustls.max_early_data_size = settings.early_data_bytes;
        rustls.cert_compressors = match settings.compress {
            true => compress::compressors(),
            false => Vec::new(),
        };
        // Decompressing client certificates costs us more than it saves.
        rustls.cert_decompressors = Vec::new();
        Ok(Self {
            rustls,
            shared: Rustls::default(),
            client: settings.client.map(Client::new),
            late: settings.late,
            rejects: settings.reject,
            record_bytes: settings.record_bytes,
        })
    }

    /// Whether certificates are compressed.
    pub(crate) fn compresses(&self) -> bool {
        !self.rustls.cert_compressors.is_empty()
    }

    /// Returns the configuration of rustls with memory for the compressed forms of some certificates.
    pub(crate) fn with_chains(&self, chains: usize) -> ServerConfig {
        let mut rustls = self.rustls.clone();
        rustls.cert_compression_cache = Arc::new(compress::cache(chains));
        rustls
    }

    /// A digest of the session binding.
    pub(crate) fn context(&self, identities: &Identities) -> Context {
        let mut parts = Parts::new();
        for identity in identities.iter() {
            parts.add(b"chain");
            identity.chain().for_each(|der| parts.add(der));
        }
        if let Some(client) = &self.client {
            parts.add(b"client");
            parts.add(&client.digest);
        }
        parts.finished()
    }
}

impl Client {
    fn new(auth: Arc<ClientAuth>) -> Self {
        let mut trusted = auth.told.clone();
        trusted.extend(&auth.trusted);
        Self {
            verifier: Verifier::new(trusted, auth.crls.clone(), auth.depth),
            digest: policy(&auth),
            auth,
        }
    }
}

/// Cryptography for rustls: suites, groups, and algorithms.
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

/// Names of authorities for clients.
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

/// A digest of all settings that decide about trust in clients.
fn policy(client: &ClientAuth) -> Context {
    let mut parts = Parts::new();
    parts.add(&[client.mode as u8]);
    parts.number(client.depth);
    for list in [&client.told, &client.trusted] {
        parts.add(b"list");
        list.iter().for_each(|der| parts.add(der));
    }
    parts.add(b"crls");
    for crl in &client.crls {
        parts.add(&crl.signed);
    }
    parts.finished()
}

/// A digest of parts, including the end of each.
struct Parts(digest::Context);

impl Parts {
    fn new() -> Self {
        Self(digest::Context::new(&SHA256))
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn number(&mut self, number: usize) {
        self.add(&(number as u64).to_be_bytes());
    }

    fn finished(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Authorities, Ciphers, ClientMode, Groups, KeyRing, SessionCache, TicketKey, Versions,
    };

    #[derive(Debug)]
    struct Ring;

    impl KeyRing for Ring {
        fn current(&self) -> Option<Arc<TicketKey>> {
            None
        }

        fn named(&self, _: &[u8]) -> Option<Arc<TicketKey>> {
            None
        }
    }

    #[derive(Debug)]
    struct Cache;

    impl SessionCache for Cache {
        fn put(&self, _: Vec<u8>, _: Vec<u8>, _: u64, _: u64) {}

        fn get(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
            None
        }

        fn take(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
            None
        }
    }

    fn client() -> Arc<ClientAuth> {
        Arc::new(ClientAuth {
            mode: ClientMode::Required,
            told: Authorities::default(),
            trusted: Authorities::default(),
            crls: Vec::new(),
            depth: 1,
        })
    }

    #[test]
    fn each_setting_makes_another_policy() {
        let changes: [fn(&mut Settings); 16] = [
            |s| s.late = true,
            |s| s.versions = Versions::Tls12,
            |s| s.versions = Versions::Tls13,
            |s| s.ciphers = Ciphers::parse("ECDHE-RSA-AES128-GCM-SHA256").expect("it is built"),
            |s| s.ciphers13 = Ciphers::parse_tls13("TLS_AES_128_GCM_SHA256").ok(),
            |s| s.prefer_server_ciphers = true,
            |s| s.groups = Groups::parse("X25519").expect("it is built"),
            |s| s.alpn = vec![b"http/1.1".to_vec()],
            // A list with one concatenated name differs from a list of several names.
            |s| s.alpn = vec![b"http/1".to_vec(), b".1".to_vec()],
            |s| s.session_timeout_s = 301,
            |s| s.client = Some(client()),
            |s| s.early_data_bytes = 1,
            |s| s.compress = true,
            |s| s.record_bytes = 4096,
            |s| s.reject = true,
            |s| s.key_log = Some(Arc::new(rustls::KeyLogFile::new())),
        ];
        let mut all = vec![Settings::default()];
        for change in changes {
            let mut settings = Settings::default();
            change(&mut settings);
            all.push(settings);
        }
        let rings: [Arc<dyn KeyRing>; 2] = [Arc::new(Ring), Arc::new(Ring)];
        for ring in rings {
            all.push(Settings {
                tickets: Some(ring),
                ..Settings::default()
            });
        }
        let caches: [Arc<dyn SessionCache>; 2] = [Arc::new(Cache), Arc::new(Cache)];
        for cache in caches {
            all.push(Settings {
                sessions: Some(cache),
                ..Settings::default()
            });
        }
        let key = |settings: &Settings| {
            let mut key = b"of others".to_vec();
            settings.key(&mut key);
            key
        };
        for (n, one) in all.iter().enumerate() {
            assert_eq!(key(one), key(&one.clone()), "settings {n}");
            for (m, other) in all[..n].iter().enumerate() {
                assert_ne!(key(one), key(other), "settings {n} and {m}");
            }
        }
    }
}
