//! Builds a [`tls::Config`] for each server from its directives.

use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_http::assemble::ConfigBuilder;
use tls::{
    Authorities, CipherFault, Ciphers, ClientAuth, ClientMode, Groups, Identity, KeyLog, KeyRing,
    Policy, Settings, Versions,
};

use super::dynamic::{self, CertificateTemplates};
use super::fault::error;
use super::files;
use super::policy_dedup::{has_same_policy, is_shareable};
use super::read::{Pair, Read};
use super::sessions::Cache;
use super::tickets::Ring;
use super::values::{BUILTIN_SESSIONS, CacheKind};
use super::{ClientSettings, SslSrv, commands, stapling};

/// Sets the TLS settings of the servers.
pub(super) fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut read = Read::new();
    // A configuration that is only checked has no identities in its settings.
    let serves = !b.loader().source().only_checks();
    // The last server with a shareable policy, and that policy.
    let mut shared: Option<(usize, Arc<Policy>)> = None;
    for server in 0..b.servers() {
        let policy = shared.as_ref().filter(|(last, _)| {
            let conf: &SslSrv = b.server_conf(server);
            has_plain_certificates(conf) && has_same_policy(b.server_conf(*last), conf)
        });
        if let Some((_, policy)) = policy {
            let policy = Arc::clone(policy);
            let identities = identities(b, server, &mut read)?;
            b.set_tls(server, read.config_of(policy, identities));
            continue;
        }
        let Some(settings) = settings(b, server, &mut read)? else {
            continue;
        };
        let config = read.config(settings)?;
        let conf: &SslSrv = b.server_conf(server);
        if serves && has_plain_certificates(conf) && is_shareable(conf) {
            shared = Some((server, Arc::clone(config.policy())));
        }
        b.set_tls(server, config);
    }
    read.remember();
    Ok(())
}

/// Whether a server has certificates with keys, none of them named by variables.
fn has_plain_certificates(conf: &SslSrv) -> bool {
    let (certificates, keys) = (&conf.certificates, &conf.keys);
    !certificates.is_empty()
        && certificates.len() <= keys.len()
        && !dynamic::is_dynamic(certificates, keys)
}

/// Returns the certificates of a server with plain ones alone and without stapling.
fn identities(
    b: &mut ConfigBuilder,
    server: usize,
    read: &mut Read,
) -> Result<Vec<Identity>, ConfError> {
    let conf: &SslSrv = b.server_conf(server);
    let (passwords, number) = (
        Option::clone(&conf.policy.password_file),
        conf.certificates.len(),
    );
    let mut identities = Vec::with_capacity(number);
    for n in 0..number {
        let conf: &SslSrv = b.server_conf(server);
        let (certificate, key) = (Arc::clone(&conf.certificates[n]), Arc::clone(&conf.keys[n]));
        let pair = Pair {
            certificate: &certificate,
            key: &key,
            passwords: passwords.as_deref(),
            ocsp: None,
            needed: true,
        };
        identities.extend(read.identity(b, &pair)?);
    }
    Ok(identities)
}

/// Returns the settings of a server; `None` without TLS. Errors are reported in nginx's order.
// Long: one line for each directive, in that order.
fn settings(
    b: &mut ConfigBuilder,
    server: usize,
    read: &mut Read,
) -> Result<Option<Settings>, ConfError> {
    let conf = b.server_conf::<SslSrv>(server).clone();
    let (certificates, keys, policy) = (&conf.certificates, &conf.keys, &conf.policy);
    if certificates.is_empty() && !*policy.reject_handshake {
        return policy_alone(b, &conf.clients, read);
    }
    if let Some(last) = certificates.last()
        && keys.len() < certificates.len()
    {
        let text = format!(
            "no \"ssl_certificate_key\" is defined for certificate \"{}\"",
            last.arg_str(0)
        );
        return Err(error(last, text));
    }
    let mut settings = Settings {
        versions: policy.protocols.0,
        prefer_server_ciphers: *policy.prefer_server_ciphers,
        session_timeout_s: policy.session_timeout.0,
        compress: *policy.certificate_compression,
        record_bytes: (policy.buffer_size.0 as usize).max(1),
        reject: *policy.reject_handshake,
        ..Settings::default()
    };
    let (early_data, tickets) = (*policy.early_data, *policy.session_tickets);
    let cache = conf.cache.clone().unwrap_or_default();
    let has_tls12 = settings.versions != Versions::Tls13;
    settings.ciphers = ciphers(b, policy.ciphers.as_deref(), has_tls12, read)?;
    let is_dynamic = dynamic::is_dynamic(certificates, keys);
    settings.late = is_dynamic;
    let ocsp = stapled(b, &conf, is_dynamic, read)?;
    let passwords = policy.password_file.as_deref();
    let pair = |certificate, key, needed| Pair {
        certificate,
        key,
        passwords,
        ocsp: ocsp.as_deref(),
        needed,
    };
    if !is_dynamic {
        let needed = stapling::is_fetched(&conf);
        for (certificate, key) in certificates.iter().zip(keys) {
            match read.identity(b, &pair(certificate, key, needed))? {
                Some(identity) => {
                    let identity =
                        stapling::attach(b, read, (server, &conf), certificate, identity)?;
                    settings.identities.push(identity);
                }
                // No request is served here, but the server does have a certificate.
                None => settings.late = true,
            }
        }
    }
    settings.client = client(b, &conf.clients, read)?;
    if let Some(d) = policy.dhparam.as_deref() {
        read.parameters(b, d)?;
        let text = "\"ssl_dhparam\" ignored: cipher suites with finite-field key exchange are not supported";
        read.warn(b, d, text);
    }
    settings.groups = groups(b, policy.ecdh_curve.as_deref(), read)?;
    let (sessions, ring) = sessions(cache, early_data);
    settings.sessions = sessions.map(|cache| cache as Arc<dyn tls::SessionCache>);
    ring.last(settings.session_timeout_s);
    let ring: Arc<dyn KeyRing> = ring;
    let ring = match conf.ticket_keys.is_empty() {
        true => ring,
        false => read.ring(b, &conf.ticket_keys)?,
    };
    settings.tickets = tickets.then(|| Arc::clone(&ring));
    settings.early_data_bytes = if early_data { EARLY_DATA_BYTES } else { 0 };
    settings.key_log = policy.key_log.as_deref().map(|d| key_log(b, d));
    settings.alpn = HTTP1.iter().map(|name| name.to_vec()).collect();
    // `ssl_conf_command` is applied last, as in nginx: it overrides the directives.
    for command in &conf.commands {
        commands::apply(command, &mut settings, &ring)?;
    }
    if let Some((certificate, key)) = commands::certificate(&conf.commands) {
        let pair = pair(&certificate, &key, false);
        settings.identities.extend(read.identity(b, &pair)?);
    }
    if is_dynamic {
        let cache = conf.certificate_cache.clone().flatten();
        let fixed = settings.identities.clone();
        let pairs = certificates.iter().zip(keys);
        let late = CertificateTemplates::new(b, pairs, passwords, fixed, cache)?;
        b.set_dynamic_certificates(server, Arc::new(late));
    }
    Ok(Some(settings))
}

/// Returns the file for secrets that a directive names.
pub(super) fn key_log(b: &mut ConfigBuilder, d: &Directive) -> Arc<dyn KeyLog> {
    b.key_log(d.arg(0))
}

/// Returns the session cache and the ticket keys; servers with one cache share both.
fn sessions(cache: CacheKind, early_data: bool) -> (Option<Arc<Cache>>, Arc<Ring>) {
    let sessions = match cache {
        CacheKind::Shared(name, bytes) => {
            let cache = Cache::shared(&name, bytes);
            let ring = Arc::clone(cache.tickets());
            return (Some(cache), ring);
        }
        CacheKind::Builtin(sessions) => Some(sessions),
        // Early data must not be accepted twice, so sessions have to be stored.
        CacheKind::None if early_data => Some(BUILTIN_SESSIONS),
        CacheKind::None => None,
    };
    let cache = sessions.map(|sessions| Arc::new(Cache::builtin(sessions)));
    (cache, Ring::own())
}

/// Settings of a server that uses the certificate of another one but verifies clients itself. Without authorities it
/// trusts none.
fn policy_alone(
    b: &mut ConfigBuilder,
    clients: &ClientSettings,
    read: &mut Read,
) -> Result<Option<Settings>, ConfError> {
    let Some(mode) = clients.verify_client.mode() else {
        return Ok(None);
    };
    let depth = clients.verify_depth.0 as usize;
    let client = match has_authorities(clients) {
        true => client(b, clients, read)?,
        false => read.client((Some(mode), depth, [None, None, None]), |_| {
            Ok(Some(ClientAuth {
                mode,
                told: Authorities::default(),
                trusted: Authorities::default(),
                crls: Vec::new(),
                depth,
            }))
        })?,
    };
    Ok(Some(Settings {
        client,
        ciphers: ciphers(b, None, true, read)?,
        ..Settings::default()
    }))
}

/// Returns whether a server has certificates of authorities to verify clients with.
fn has_authorities(clients: &ClientSettings) -> bool {
    clients.client_certificate.is_some() || clients.trusted_certificate.is_some()
}

pub(super) fn ciphers(
    b: &mut ConfigBuilder,
    said: Option<&Directive>,
    needed: bool,
    read: &mut Read,
) -> Result<Ciphers, ConfError> {
    let list = said.map_or(DEFAULT_CIPHERS, |d| d.arg_str(0));
    let ciphers = match (read.ciphers(list), said) {
        (Ok(ciphers), _) => ciphers,
        // The list concerns TLS 1.2 only, which is off.
        (Err(CipherFault::NoMatch(ignored)), Some(_)) if !needed => Ciphers::none(ignored),
        (Err(fault), d) => {
            let text = format!("SSL_CTX_set_cipher_list(\"{list}\") failed ({fault})");
            let error = d.map_or_else(|| ConfError::new(&*text), |d| error(d, text.clone()));
            let name = d.map_or("ssl_ciphers", |d| d.name());
            return Err(error.with_hint(format!(
                "cipher suites of TLS 1.2 are ECDHE with AES-GCM or ChaCha20-Poly1305; remove \"{name}\" to enable \
                 all of them"
            )));
        }
    };
    if let Some(d) = said {
        warn_of_ignored(b, d, "cipher suites", &ciphers.ignored, read);
    }
    Ok(ciphers)
}

fn groups(
    b: &mut ConfigBuilder,
    said: Option<&Directive>,
    read: &mut Read,
) -> Result<Groups, ConfError> {
    let Some(d) = said else {
        return Ok(Groups::default());
    };
    let list = d.arg_str(0);
    let groups = Groups::parse(list).ok_or_else(|| {
        error(d, format!("SSL_CTX_set1_curves_list(\"{list}\") failed"))
            .with_hint("X25519MLKEM768, X25519, prime256v1, secp384r1 and secp521r1 are supported")
    })?;
    warn_of_ignored(b, d, "groups", &groups.ignored, read);
    Ok(groups)
}

fn warn_of_ignored(
    b: &mut ConfigBuilder,
    d: &Directive,
    what: &str,
    ignored: &[String],
    read: &mut Read,
) {
    if !ignored.is_empty() {
        let names = ignored.join(", ");
        let text = format!("{what} that are not supported are ignored: {names}");
        read.warn(b, d, text);
    }
}

/// Returns the OCSP response of `ssl_stapling_file`, if stapling is on.
fn stapled(
    b: &mut ConfigBuilder,
    conf: &SslSrv,
    late: bool,
    read: &mut Read,
) -> Result<Option<Vec<u8>>, ConfError> {
    if !*conf.staples.stapling {
        return Ok(None);
    }
    if let (true, Some(d)) = (late, conf.certificates.first()) {
        let text = "\"ssl_stapling\" ignored: the certificate is named by variables";
        read.warn(b, d, text);
        return Ok(None);
    }
    let file = conf.staples.stapling_file.as_deref();
    file.map(|d| read.response(b, d)).transpose()
}

/// Reads the files for client certificates. They must be valid even if no client is verified.
fn client(
    b: &mut ConfigBuilder,
    clients: &ClientSettings,
    read: &mut Read,
) -> Result<Option<Arc<ClientAuth>>, ConfError> {
    let mode = clients.verify_client.mode();
    let depth = clients.verify_depth.0 as usize;
    if mode.is_some_and(|mode| mode != ClientMode::OptionalNoCa) && !has_authorities(clients) {
        let text = "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
        return Err(ConfError::new(text));
    }
    let files = [
        &clients.client_certificate,
        &clients.trusted_certificate,
        &clients.crl,
    ];
    let files = files.map(|file| file.as_deref());
    let words = files.map(|d| d.map(|d| d.arg(0).to_vec()));
    read.client((mode, depth, words), |read| {
        let [told, trusted, crls] = files;
        let mut authorities = |d: Option<&Directive>| match d {
            Some(d) => read.authorities(b, d),
            None => Ok(Authorities::default()),
        };
        let told = authorities(told.filter(|_| mode.is_some()))?;
        let trusted = authorities(trusted)?;
        let crls = match crls {
            Some(d) => files::crls(b, d)?,
            None => Vec::new(),
        };
        Ok(mode.map(|mode| ClientAuth {
            mode,
            told,
            trusted,
            crls,
            depth,
        }))
    })
}

const DEFAULT_CIPHERS: &str = "HIGH:!aNULL:!MD5";
/// Maximum size of early data, bytes, as in nginx.
const EARLY_DATA_BYTES: u32 = 16 << 10;
/// The protocols offered by ALPN besides HTTP/2, in nginx's order.
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];
