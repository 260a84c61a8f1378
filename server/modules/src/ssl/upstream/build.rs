//! From directives to policies. Errors come in nginx's order.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use conf::{ConfError, Directive, Setting};
use server_http::assemble::ConfigBuilder;
use server_http::value::Value;
use server_upstream::route::ServerTls;
use tls::{
    ClientConfig, ClientSettings, Identity, KeyRing, PolicyDigest, ServerAuth, Settings, Versions,
};

use super::super::build::{ciphers, key_log};
use super::super::dynamic::{self, CertificateTemplates};
use super::super::fault::error;
use super::super::read::{Pair, Read};
use super::super::tickets::Ring;
use super::super::values::Protocols;
use super::super::{commands, files};
use super::certificate::NamedCertificate;
use super::{CertificateCache, Commands, SecuresServers, ServerTlsDirectives};

/// Settings of connections to servers of one location.
pub(crate) struct ServerPolicy {
    pub(super) shared: Arc<SharedPolicy>,
    /// The name of the location's first connection with its settings: most locations have one name.
    pub(super) first: OnceLock<(Box<[u8]>, Arc<ServerTls>)>,
}

/// Settings of connections to servers, of all locations with the same directives.
pub(super) struct SharedPolicy {
    pub(super) config: ClientConfig,
    pub(super) digest: PolicyDigest,
    /// Whether the server's name is sent.
    pub(super) sends_name: bool,
    /// Whether the server is verified.
    pub(super) verifies: bool,
    /// `*_ssl_name`; `None`: the host of the server.
    pub(super) name: Option<Value>,
    /// A certificate named by variables.
    pub(super) certificate: Option<NamedCertificate>,
}

/// Makes the policies of a module's locations, one for all that share their directives; for the module's `finish`.
///
/// # Errors
/// Errors in files, and directives that do not go together.
pub(crate) fn finish<C: SecuresServers>(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut used: Vec<Arc<ServerTlsDirectives>> = Vec::new();
    for conf in b.location_confs_mut::<C>().skip(1) {
        if conf.may_use_tls()
            && let Some(merged) = &conf.server_tls().merged
            && !used.iter().any(|known| Arc::ptr_eq(known, merged))
        {
            used.push(Arc::clone(merged));
        }
    }
    if used.is_empty() {
        return Ok(());
    }
    let mut read = Read::default();
    let mut policies: HashMap<*const ServerTlsDirectives, Arc<SharedPolicy>> = HashMap::new();
    for directives in &used {
        let policy = policy(b, &mut read, C::DEFAULTS.prefix, directives)?;
        policies.insert(Arc::as_ptr(directives), Arc::new(policy));
    }
    for conf in b.location_confs_mut::<C>().skip(1) {
        let settings = conf.server_tls();
        let merged = settings.merged.as_ref().map(Arc::as_ptr);
        let policy = merged.and_then(|merged| policies.get(&merged));
        settings.policy = policy.map(|shared| {
            Box::new(ServerPolicy {
                shared: Arc::clone(shared),
                first: OnceLock::new(),
            })
        });
    }
    Ok(())
}

fn policy(
    b: &mut ConfigBuilder,
    read: &mut Read,
    prefix: &str,
    own: &ServerTlsDirectives,
) -> Result<SharedPolicy, ConfError> {
    let versions = own.protocols.or(Protocols(Versions::Both)).0;
    let mut settings = Settings {
        versions,
        ..Settings::default()
    };
    let written = directive(&own.ciphers).map(Arc::as_ref);
    settings.ciphers = ciphers(b, written, versions != Versions::Tls13, read)?;
    let (mut identity, certificate) = certificate(b, read, prefix, own)?;
    let auth = auth(b, read, prefix, own)?;
    let ring: Arc<dyn KeyRing> = Ring::own();
    settings.tickets = Some(Arc::clone(&ring));
    let all = own.conf_command.or(Commands::default()).0;
    for command in &all {
        commands::apply(command, &mut settings, &ring)?;
    }
    if let Some((certificate, key)) = commands::certificate(&all) {
        identity = read.identity(b, &pair(own, &certificate, &key))?;
    }
    // Without tickets there are no sessions of TLS 1.3.
    let resumes = own.session_reuse.or(true) && settings.tickets.is_some();
    let sends_name = own.server_name.or(false);
    let verifies = auth.is_some();
    let settings = ClientSettings {
        versions: settings.versions,
        ciphers: settings.ciphers,
        ciphers13: settings.ciphers13,
        groups: settings.groups,
        alpn: Vec::new(),
        sends_name,
        auth,
        identity,
        resumes,
        key_log: directive(&own.key_log).map(|d| key_log(b, d)),
    };
    let failed = |error| ConfError::new(format!("SSL_CTX_new() failed ({error})"));
    let (config, digest) = settings.build().map_err(failed)?;
    let certificate =
        certificate.map(|templates| NamedCertificate::new(templates, &config, digest, resumes));
    Ok(SharedPolicy {
        config,
        digest,
        sends_name,
        verifies,
        name: own.name.get().cloned(),
        certificate,
    })
}

/// Returns the certificate for servers; the second form if it is named by variables.
fn certificate(
    b: &mut ConfigBuilder,
    read: &mut Read,
    prefix: &str,
    own: &ServerTlsDirectives,
) -> Result<(Option<Identity>, Option<CertificateTemplates>), ConfError> {
    let Some(certificate) = directive(&own.certificate) else {
        return Ok((None, None));
    };
    let Some(key) = directive(&own.certificate_key) else {
        let text = format!(
            "no \"{prefix}ssl_certificate_key\" is defined for certificate \"{}\"",
            certificate.arg_str(0)
        );
        return Err(error(certificate, text));
    };
    let words = [Arc::clone(certificate), Arc::clone(key)];
    if !dynamic::is_dynamic(&words[..1], &words[1..]) {
        let identity = read.identity(b, &pair(own, certificate, key))?;
        return Ok((identity, None));
    }
    let cache = own.certificate_cache.or(CertificateCache::default()).0;
    let pairs = std::iter::once((certificate, key));
    let passwords = directive(&own.password_file).map(Arc::as_ref);
    let late = CertificateTemplates::new(b, pairs, passwords, Vec::new(), cache)?;
    Ok((None, Some(late)))
}

fn pair<'d>(
    own: &'d ServerTlsDirectives,
    certificate: &'d Directive,
    key: &'d Directive,
) -> Pair<'d> {
    Pair {
        certificate,
        key,
        passwords: directive(&own.password_file).map(Arc::as_ref),
        ocsp: None,
        needed: false,
    }
}

/// Returns the verification of servers, if it is on. Its files are read only then, as in nginx.
fn auth(
    b: &mut ConfigBuilder,
    read: &mut Read,
    prefix: &str,
    own: &ServerTlsDirectives,
) -> Result<Option<ServerAuth>, ConfError> {
    if !own.verify.or(false) {
        return Ok(None);
    }
    let Some(trusted) = directive(&own.trusted_certificate) else {
        let text = format!("no {prefix}ssl_trusted_certificate for {prefix}ssl_verify");
        return Err(ConfError::new(text));
    };
    let trusted = read.authorities(b, trusted)?;
    let crls = match directive(&own.crl) {
        Some(d) => files::crls(b, d)?,
        None => Vec::new(),
    };
    let depth = own
        .verify_depth
        .get()
        .map_or(DEPTH, |depth| depth.0 as usize);
    Ok(Some(ServerAuth {
        trusted,
        crls,
        depth,
    }))
}

/// The directive of a setting, unless its word is empty.
fn directive<T>(setting: &Setting<T>) -> Option<&Arc<Directive>>
where
    T: Deref<Target = Option<Arc<Directive>>>,
{
    setting.get().and_then(|value| value.deref().as_ref())
}

/// Default of `*_ssl_verify_depth`.
const DEPTH: usize = 1;
