//! `ssl_stapling`: the latest status of the server's certificates, fetched from responders by OCSP.
//!
//! Each certificate has a [background fetch](server_base::background_fetch) in the worker, shared by servers with equal
//! settings. A response is stored as long as a configuration has this certificate and this trust, so it survives a
//! reload. A certificate without a possible response causes nginx's warning when the configuration is read. Absent:
//! responders over TLS or UNIX-domain sockets.
//!
//! Source: nginx documentation, `ssl_stapling`, `ssl_stapling_responder`, `ssl_stapling_verify`.

mod fetch;
mod memory;
mod url;

use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_base::background_fetch::Endpoint;
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::ResolverLoc;
use sha2::{Digest, Sha256};
use tls::ocsp::Question;
use tls::{Authorities, Identity};

use super::read::{Fetched, Read};
use super::values::VerifyClient;
use super::{SslSrv, StapleSettings};
use fetch::StatusFetch;
use memory::Memory;
use url::Url;

/// Identifies certificates with interchangeable responses: a digest of certificates, responder and trust.
type Key = [u8; 32];

/// Whether the responses about a server's certificates are fetched.
pub(super) fn is_fetched(conf: &SslSrv) -> bool {
    *conf.staples.stapling && conf.staples.stapling_file.is_none()
}

/// Attaches a fetched OCSP response to a certificate of a server, if configured and possible.
// Long: the parts of one fetch are looked up, each with its own way to be ignored, before it is put together.
pub(super) fn attach(
    b: &mut ConfigBuilder,
    read: &mut Read,
    (server, conf): (usize, &SslSrv),
    certificate: &Directive,
    identity: Identity,
) -> Result<Identity, ConfError> {
    if !is_fetched(conf) {
        return Ok(identity);
    }
    let (clients, staples) = (&conf.clients, &conf.staples);
    // They may contain the issuer of the certificate or of the responder.
    let client = clients.client_certificate.as_deref();
    let client = client.filter(|_| *clients.verify_client != VerifyClient::Off);
    let mut authorities = Authorities::default();
    for d in client
        .into_iter()
        .chain(clients.trusted_certificate.as_deref())
    {
        authorities.extend(&read.authorities(b, d)?);
    }
    let name = match certificate.arg(0).starts_with(b"data:") {
        true => "data:...".to_owned(),
        false => b
            .loader()
            .conf_path(certificate.arg(0))
            .display()
            .to_string(),
    };
    let resolver: &ResolverLoc = b.server_location_conf(server);
    let (servers, timeout_ms) = (resolver.servers.clone(), resolver.timeout.0);
    let asked = StatusRequest::of(b, staples, &identity, &authorities, servers.is_some());
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => {
            let text = format!("\"ssl_stapling\" ignored, {why} \"{name}\"");
            read.warn(b, certificate, text);
            return Ok(identity);
        }
    };
    let trusted = staples.stapling_verify.then_some(authorities);
    // Servers with one certificate share its fetch.
    let key = key(&identity, &asked, trusted.as_ref());
    let same_key = read.fetched.entry(key).or_default();
    let known = same_key
        .iter()
        .find(|known| known.servers == servers && known.timeout_ms == timeout_ms);
    if let Some(known) = known {
        return Ok(known.identity.clone());
    }
    let host = asked.place.host_field();
    let request = fetch::request(host, &asked.place.path, &asked.question.request());
    let action = format!(
        "requesting certificate status, responder: {}",
        asked.place.host
    );
    let endpoint = Endpoint {
        host: asked.place.host,
        port: asked.place.port,
        servers: servers.clone().filter(|_| asked.place.addresses.is_empty()),
        addresses: asked.place.addresses,
        resolver_timeout_ms: timeout_ms,
        timeout_ms: RESPONDER_TIMEOUT_MS,
        peer: "OCSP responder",
        action,
        purpose: format!(", certificate: \"{name}\""),
    };
    let (identity, staple) = identity.stapled();
    let fetch = StatusFetch {
        endpoint,
        request,
        question: asked.question,
        chain: identity.shown(),
        trusted,
        staple,
        memory: Memory::of(key),
    };
    b.background_fetches.push(Arc::new(fetch.remembering()));
    same_key.push(Fetched {
        servers,
        timeout_ms,
        identity: identity.clone(),
    });
    Ok(identity)
}

/// A request for a status, and its destination.
struct StatusRequest {
    question: Question,
    url: String,
    place: Url,
}

impl StatusRequest {
    /// Prepares the request for a status. An error is the reason in nginx's words, up to the name of the certificate.
    fn of(
        b: &mut ConfigBuilder,
        staples: &StapleSettings,
        identity: &Identity,
        authorities: &Authorities,
        resolved_later: bool,
    ) -> Result<Self, String> {
        let question = Question::about(&identity.shown(), authorities);
        let question = question.ok_or("issuer certificate not found for certificate")?;
        let named = staples
            .stapling_responder
            .as_ref()
            .map(|d| d.arg_str(0).to_owned());
        let url = named.or_else(|| question.responder().map(str::to_owned));
        let url = url.ok_or("no OCSP responder URL in the certificate")?;
        let place = Url::parse(&url, resolved_later, &mut |host| b.look_up(host));
        let place = place.map_err(|why| {
            let url = url.escape_debug();
            format!("{why} in OCSP responder \"{url}\" in the certificate")
        })?;
        Ok(Self {
            question,
            url,
            place,
        })
    }
}

/// Certificates, responder and trust.
fn key(identity: &Identity, asked: &StatusRequest, trusted: Option<&Authorities>) -> Key {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    asked.question.certificates().into_iter().for_each(&mut add);
    add(asked.url.as_bytes());
    identity.shown().certificates().for_each(&mut add);
    if let Some(trusted) = trusted {
        add(b"verified");
        trusted.iter().for_each(&mut add);
    }
    digest.finalize().into()
}

/// Time limit of a responder, milliseconds; as in nginx.
const RESPONDER_TIMEOUT_MS: u64 = 60_000;
