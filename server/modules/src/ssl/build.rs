//! From directives to a [`tls::Config`] for each server.

use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_http::assemble::ConfigBuilder;
use tls::{
    Authorities, CipherFault, Ciphers, ClientAuth, ClientMode, Groups, Identity, KeyRing, Policy,
    Settings, Versions,
};

use super::alike::{is_alike, is_shareable};
use super::dynamic::{self, CertificateTemplates};
use super::fault::error;
use super::files;
use super::read::{Pair, Read};
use super::sessions::Cache;
use super::tickets::Ring;
use super::values::{BUILTIN_SESSIONS, CacheKind, VerifyClient};
use super::{SslSrv, commands, stapling};

/// Sets the TLS settings of the servers.
pub(super) fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut read = Read::new();
    // Who only checks has no identities, which settings tell.
    let serves = !b.loader().source().only_checks();
    // The last server whose policy may be that of the next, and the policy.
    let mut shared: Option<(usize, Arc<Policy>)> = None;
    for server in 0..b.servers() {
        let policy = shared.as_ref().filter(|(last, _)| {
            let conf: &SslSrv = b.server_conf(server);
            has_plain_certificates(conf) && is_alike(b.server_conf(*last), conf)
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

/// Whether a server has certificates, each with its key, all of files that the directives name.
fn has_plain_certificates(conf: &SslSrv) -> bool {
    let (certificates, keys) = (&conf.certificates, &conf.keys);
    !certificates.is_empty()
        && certificates.len() <= keys.len()
        && !dynamic::is_dynamic(certificates, keys)
}

/// The certificates of a server that has plain ones alone, and staples nothing.
fn identities(
    b: &mut ConfigBuilder,
    server: usize,
    read: &mut Read,
) -> Result<Vec<Identity>, ConfError> {
    let conf: &SslSrv = b.server_conf(server);
    let (passwords, number) = (conf.password_file.0.said(), conf.certificates.len());
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

/// The settings of a server; `None` if no directive of it is about TLS. Errors are found in nginx's order.
// Long: one line for each directive, in that order.
fn settings(
    b: &mut ConfigBuilder,
    server: usize,
    read: &mut Read,
) -> Result<Option<Settings>, ConfError> {
    let said = SslDirectives::of(b.server_conf(server));
    if said.certificates.is_empty() && !said.reject {
        return policy_alone(b, &said, read);
    }
    if let Some(last) = said.certificates.last()
        && said.keys.len() < said.certificates.len()
    {
        let text = format!(
            "no \"ssl_certificate_key\" is defined for certificate \"{}\"",
            last.arg_str(0)
        );
        return Err(error(last, text));
    }
    let conf: &SslSrv = b.server_conf(server);
    let mut settings = Settings {
        versions: conf.protocols.0,
        prefer_server_ciphers: *conf.prefer_server_ciphers,
        session_timeout_s: conf.session_timeout.0,
        compress: *conf.certificate_compression,
        record_bytes: (conf.buffer_size.0 as usize).max(1),
        reject: said.reject,
        ..Settings::default()
    };
    let (early_data, tickets) = (*conf.early_data, *conf.session_tickets);
    let cache = conf.cache.clone().unwrap_or_default();
    let has_tls12 = settings.versions != Versions::Tls13;
    settings.ciphers = ciphers(b, said.ciphers.as_deref(), has_tls12, read)?;
    let is_dynamic = dynamic::is_dynamic(&said.certificates, &said.keys);
    settings.late = is_dynamic;
    let ocsp = stapled(b, &said, is_dynamic, read)?;
    if !is_dynamic {
        let needed = stapling::is_fetched(b.server_conf(server));
        for (certificate, key) in said.certificates.iter().zip(&said.keys) {
            let pair = said.pair(certificate, key, ocsp.as_deref(), needed);
            match read.identity(b, &pair)? {
                Some(identity) => {
                    let identity = stapling::attach(b, read, server, certificate, identity)?;
                    settings.identities.push(identity);
                }
                // Nobody is served, but that there is a certificate counts.
                None => settings.late = true,
            }
        }
    }
    settings.client = client(b, &said, read)?;
    if let Some(d) = &said.dhparam {
        read.parameters(b, d)?;
        let text = "\"ssl_dhparam\" ignored: cipher suites with finite-field key exchange are not supported";
        read.warn(b, d, text);
    }
    settings.groups = groups(b, said.curves.as_deref(), read)?;
    let (sessions, ring) = sessions(cache, early_data);
    settings.sessions = sessions.map(|cache| cache as Arc<dyn tls::SessionCache>);
    ring.last(settings.session_timeout_s);
    let ring: Arc<dyn KeyRing> = ring;
    let ring = match said.ticket_keys.is_empty() {
        true => ring,
        false => read.ring(b, &said.ticket_keys)?,
    };
    settings.tickets = tickets.then(|| Arc::clone(&ring));
    settings.early_data_bytes = if early_data { EARLY_DATA_BYTES } else { 0 };
    settings.alpn = HTTP1.iter().map(|name| name.to_vec()).collect();
    // `ssl_conf_command` is applied last, as in nginx: it overrides the directives.
    for command in &said.commands {
        commands::apply(command, &mut settings, &ring)?;
    }
    if let Some((certificate, key)) = commands::certificate(&said.commands) {
        let pair = said.pair(&certificate, &key, ocsp.as_deref(), false);
        settings.identities.extend(read.identity(b, &pair)?);
    }
    if is_dynamic {
        let conf: &SslSrv = b.server_conf(server);
        let cache = conf.certificate_cache.clone().flatten();
        let fixed = settings.identities.clone();
        let pairs = said.certificates.iter().zip(&said.keys);
        let late = CertificateTemplates::new(b, pairs, said.passwords.as_deref(), fixed, cache)?;
        b.set_dynamic_certificates(server, Arc::new(late));
    }
    Ok(Some(settings))
}

/// The cache of sessions, and the keys of their tickets, which servers with one cache share.
fn sessions(cache: CacheKind, early_data: bool) -> (Option<Arc<Cache>>, Arc<Ring>) {
    let sessions = match cache {
        CacheKind::Shared(name, bytes) => {
            let cache = Cache::shared(&name, bytes);
            let ring = Arc::clone(cache.tickets());
            return (Some(cache), ring);
        }
        CacheKind::Builtin(sessions) => Some(sessions),
        // What came early once must not be taken twice, which takes a memory.
        CacheKind::None if early_data => Some(BUILTIN_SESSIONS),
        CacheKind::None => None,
    };
    let cache = sessions.map(|sessions| Arc::new(Cache::builtin(sessions)));
    (cache, Ring::own())
}

/// A server without a certificate that shows another one's may still ask for clients'; without authorities it trusts none.
fn policy_alone(
    b: &mut ConfigBuilder,
    said: &SslDirectives,
    read: &mut Read,
) -> Result<Option<Settings>, ConfError> {
    let Some(mode) = said.verify.mode() else {
        return Ok(None);
    };
    let has_authorities = said.client_certificate.is_some() || said.trusted_certificate.is_some();
    let client = match has_authorities {
        true => client(b, said, read)?,
        false => read.client((Some(mode), said.depth, [None, None, None]), |_| {
            Ok(Some(ClientAuth {
                mode,
                told: Authorities::default(),
                trusted: Authorities::default(),
                crls: Vec::new(),
                depth: said.depth,
            }))
        })?,
    };
    Ok(Some(Settings {
        client,
        ciphers: ciphers(b, None, true, read)?,
        ..Settings::default()
    }))
}

/// The directives of a server that are read here.
struct SslDirectives {
    certificates: Vec<Arc<Directive>>,
    keys: Vec<Arc<Directive>>,
    commands: Vec<Arc<Directive>>,
    ticket_keys: Vec<Arc<Directive>>,
    passwords: Option<Arc<Directive>>,
    ciphers: Option<Arc<Directive>>,
    curves: Option<Arc<Directive>>,
    dhparam: Option<Arc<Directive>>,
    client_certificate: Option<Arc<Directive>>,
    trusted_certificate: Option<Arc<Directive>>,
    crl: Option<Arc<Directive>>,
    stapling_file: Option<Arc<Directive>>,
    stapling: bool,
    verify: VerifyClient,
    depth: usize,
    reject: bool,
}

impl SslDirectives {
    fn of(conf: &SslSrv) -> Self {
        Self {
            certificates: conf.certificates.clone(),
            keys: conf.keys.clone(),
            commands: conf.commands.clone(),
            ticket_keys: conf.ticket_keys.clone(),
            passwords: conf.password_file.0.said(),
            ciphers: conf.ciphers.said(),
            curves: conf.ecdh_curve.said(),
            dhparam: conf.dhparam.0.said(),
            client_certificate: conf.clients.client_certificate.0.said(),
            trusted_certificate: conf.clients.trusted_certificate.0.said(),
            crl: conf.clients.crl.0.said(),
            stapling_file: conf.staples.stapling_file.0.said(),
            stapling: *conf.staples.stapling,
            verify: *conf.clients.verify_client,
            depth: conf.clients.verify_depth.0 as usize,
            reject: *conf.reject_handshake,
        }
    }

    /// The sources of an identity of the server.
    fn pair<'d>(
        &'d self,
        certificate: &'d Directive,
        key: &'d Directive,
        ocsp: Option<&'d [u8]>,
        needed: bool,
    ) -> Pair<'d> {
        Pair {
            certificate,
            key,
            passwords: self.passwords.as_deref(),
            ocsp,
            needed,
        }
    }
}

fn ciphers(
    b: &mut ConfigBuilder,
    said: Option<&Directive>,
    needed: bool,
    read: &mut Read,
) -> Result<Ciphers, ConfError> {
    let list = said.map_or(DEFAULT_CIPHERS, |d| d.arg_str(0));
    let ciphers = match (read.ciphers(list), said) {
        (Ok(ciphers), _) => ciphers,
        // The list is about TLS 1.2 alone.
        (Err(CipherFault::NoMatch(ignored)), Some(_)) if !needed => Ciphers::none(ignored),
        (Err(fault), d) => {
            let text = format!("SSL_CTX_set_cipher_list(\"{list}\") failed ({fault})");
            let error = d.map_or_else(|| ConfError::new(&*text), |d| error(d, text.clone()));
            return Err(error.with_hint(
                "cipher suites of TLS 1.2 are ECDHE with AES-GCM or ChaCha20-Poly1305; \
                 leave \"ssl_ciphers\" out to have them all",
            ));
        }
    };
    if let (false, Some(d)) = (ciphers.ignored.is_empty(), said) {
        let text = format!(
            "cipher suites that are not supported are ignored: {}",
            ciphers.ignored.join(", ")
        );
        read.warn(b, d, text);
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
    if !groups.ignored.is_empty() {
        let text = format!(
            "groups that are not supported are ignored: {}",
            groups.ignored.join(", ")
        );
        read.warn(b, d, text);
    }
    Ok(groups)
}

/// The OCSP response of a file that is sent with certificates.
fn stapled(
    b: &mut ConfigBuilder,
    said: &SslDirectives,
    late: bool,
    read: &mut Read,
) -> Result<Option<Vec<u8>>, ConfError> {
    if !said.stapling {
        return Ok(None);
    }
    if let (true, Some(d)) = (late, said.certificates.first()) {
        let text = "\"ssl_stapling\" ignored: the certificate is named by variables";
        read.warn(b, d, text);
        return Ok(None);
    }
    if let Some(d) = &said.stapling_file {
        return read.response(b, d).map(Some);
    }
    Ok(None)
}

/// The certificates that clients are asked for, and the files about them, which must be valid even if no client is
/// asked.
fn client(
    b: &mut ConfigBuilder,
    said: &SslDirectives,
    read: &mut Read,
) -> Result<Option<Arc<ClientAuth>>, ConfError> {
    let mode = said.verify.mode();
    let has_authorities = said.client_certificate.is_some() || said.trusted_certificate.is_some();
    if mode.is_some_and(|mode| mode != ClientMode::OptionalNoCa) && !has_authorities {
        let text = "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
        return Err(ConfError::new(text));
    }
    let files = [
        &said.client_certificate,
        &said.trusted_certificate,
        &said.crl,
    ];
    let words = files.map(|d| d.as_ref().map(|d| d.arg(0).to_vec()));
    read.client((mode, said.depth, words), |read| {
        let mut authorities = |d: &Option<Arc<Directive>>, wanted: bool| match d {
            Some(d) if wanted => read.authorities(b, d),
            _ => Ok(Authorities::default()),
        };
        let told = authorities(&said.client_certificate, mode.is_some())?;
        let trusted = authorities(&said.trusted_certificate, true)?;
        let crls = match &said.crl {
            Some(d) => files::crls(b, d)?,
            None => Vec::new(),
        };
        Ok(mode.map(|mode| ClientAuth {
            mode,
            told,
            trusted,
            crls,
            depth: said.depth,
        }))
    })
}

const DEFAULT_CIPHERS: &str = "HIGH:!aNULL:!MD5";
/// Maximum size of early data, bytes, as in nginx.
const EARLY_DATA_BYTES: u32 = 16 << 10;
/// The protocols offered by ALPN besides HTTP/2, in nginx's order.
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];
