//! From directives to a [`tls::Config`] for each server.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_core::build::Build;
use tls::{Chain, Identity, Key, Settings};

use super::{SslSrv, error};

/// What has been read, so that servers with the same certificates share them.
#[derive(Default)]
struct Read {
    identities: HashMap<(PathBuf, PathBuf), Identity>,
}

/// Gives the servers their settings.
pub(super) fn finish(b: &mut Build) -> Result<(), ConfError> {
    let mut read = Read::default();
    for server in 0..b.servers() {
        if let Some(settings) = settings(b, server, &mut read)? {
            let config = tls::Config::build(settings)
                .map_err(|error| ConfError::new(format!("SSL_CTX_new() failed ({error})")))?;
            b.set_tls(server, Arc::new(config));
        }
    }
    Ok(())
}

fn settings(b: &mut Build, server: usize, read: &mut Read) -> Result<Option<Settings>, ConfError> {
    let conf: &SslSrv = b.server_conf(server);
    let (certificates, keys) = (conf.certificates.clone(), conf.keys.clone());
    let reject = *conf.reject_handshake;
    let record_bytes = conf.buffer_size.0 as usize;
    if certificates.is_empty() && !reject {
        return Ok(None);
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
    let mut identities = Vec::new();
    for (certificate, key) in certificates.iter().zip(&keys) {
        identities.push(identity(b, certificate, key, read)?);
    }
    let alpn: &[&[u8]] = if b.server_speaks_http2(server) {
        &[b"h2", b"http/1.1", b"http/1.0", b"http/0.9"]
    } else {
        &[b"http/1.1", b"http/1.0", b"http/0.9"]
    };
    Ok(Some(Settings {
        identities,
        alpn: alpn.iter().map(|name| name.to_vec()).collect(),
        record_bytes,
        reject,
    }))
}

fn identity(
    b: &mut Build,
    certificate: &Directive,
    key: &Directive,
    read: &mut Read,
) -> Result<Identity, ConfError> {
    let path = |d: &Directive| b_path(d);
    let id = (path(certificate), path(key));
    if let Some(known) = read.identities.get(&id) {
        return Ok(known.clone());
    }
    let text = load(b, certificate, "certificate")?;
    let chain = Chain::from_pem(&text)
        .map_err(|fault| cannot_load(b, certificate, "certificate", &fault.to_string()))?;
    let text = load(b, key, "certificate key")?;
    let secret = Key::from_pem(&text, &[])
        .map_err(|fault| cannot_load(b, key, "certificate key", &fault.to_string()))?;
    let identity = Identity::new(chain, &secret, None).map_err(|_| {
        let text = format!(
            "SSL_CTX_use_PrivateKey(\"{}\") failed \
             (SSL: error:05800074:x509 certificate routines::key values mismatch)",
            shown(b, key)
        );
        error(key, text)
    })?;
    read.identities.insert(id, identity.clone());
    Ok(identity)
}

fn b_path(d: &Directive) -> PathBuf {
    PathBuf::from(d.arg_str(0))
}

/// The value of a directive as messages show it: a path in full.
fn shown(b: &mut Build, d: &Directive) -> String {
    if d.arg(0).starts_with(DATA) {
        return "data:...".to_owned();
    }
    b.loader().conf_path(d.arg(0)).display().to_string()
}

fn cannot_load(b: &mut Build, d: &Directive, what: &str, why: &str) -> ConfError {
    error(d, format!("cannot load {what} \"{}\": {why}", shown(b, d)))
}

/// The bytes that a directive names, or has.
fn load(b: &mut Build, d: &Directive, what: &str) -> Result<Vec<u8>, ConfError> {
    if d.arg(0).contains(&b'$') {
        let text = format!(
            "variables in \"{}\" are not built yet: name the file, or a server for each certificate",
            d.name()
        );
        return Err(error(d, text));
    }
    if let Some(data) = d.arg(0).strip_prefix(DATA) {
        return Ok(data.to_vec());
    }
    let path = b.loader().conf_path(d.arg(0));
    let bytes = b.loader().source().read(&path);
    bytes.map_err(|error| {
        cannot_load(
            b,
            d,
            what,
            &cannot_open(&error, &path.display().to_string()),
        )
    })
}

/// What OpenSSL says of a file that cannot be opened.
fn cannot_open(error: &io::Error, path: &str) -> String {
    let text = conf::os_error(error);
    let (code, text) = text.split_once(": ").unwrap_or(("0", &text));
    let code: u32 = code.parse().unwrap_or(0);
    let second = match code {
        2 => "10000080:BIO routines::no such file",
        _ => "10080002:BIO routines::system lib",
    };
    format!(
        "BIO_new_file() failed (SSL: error:{:08X}:system library::{text}:calling fopen({path}, r) error:{second})",
        0x8000_0000 | code
    )
}

/// Begins a value that is PEM itself.
const DATA: &[u8] = b"data:";
