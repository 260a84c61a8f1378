//! `ssl_certificate_watch`: reloads certificates, keys and stapled responses when their files change.
//!
//! A certificate and its key are reloaded together, once both are new and match. An OCSP response is reloaded alone.
//! Absent: authorities, revocation lists and ticket keys, which a reload updates. Files named by variables are read at
//! each handshake.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_base::watch::Watch;
use server_http::assemble::ConfigBuilder;
use tls::{Chain, Identity, Key};

use super::SslSrv;
use super::dynamic;
use super::files::{self, DATA, MISMATCH};

/// A certificate and its key, and the file with passwords for it.
#[derive(Debug)]
struct Pair {
    paths: Vec<PathBuf>,
}

/// A response to be stapled.
#[derive(Debug)]
struct Response {
    path: [PathBuf; 1],
}

/// Registers the files of servers with `ssl_certificate_watch`.
pub(super) fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut watches: Vec<Arc<dyn Watch>> = Vec::new();
    let mut known = HashSet::new();
    let mut add = |watch: Arc<dyn Watch>| {
        if known.insert(watch.paths().to_vec()) {
            watches.push(watch);
        }
    };
    for server in 0..b.servers() {
        let conf: &SslSrv = b.server_conf(server);
        if !*conf.certificate_watch || dynamic::is_dynamic(&conf.certificates, &conf.keys) {
            continue;
        }
        let pairs = conf.certificates.iter().zip(&conf.keys);
        let pairs: Vec<_> = pairs.map(|(c, k)| (Arc::clone(c), Arc::clone(k))).collect();
        let passwords = Option::clone(&conf.policy.password_file);
        let response = Option::clone(&conf.staples.stapling_file);
        let response = response.filter(|_| *conf.staples.stapling);
        let mut path = |d: &Directive| b.loader().conf_path(d.arg(0));
        for (certificate, key) in pairs {
            if certificate.arg(0).starts_with(DATA) || key.arg(0).starts_with(DATA) {
                continue;
            }
            let mut paths = vec![path(&certificate), path(&key)];
            paths.extend(passwords.as_deref().map(&mut path));
            add(Arc::new(Pair { paths }));
        }
        if let Some(d) = response {
            add(Arc::new(Response { path: [path(&d)] }));
        }
    }
    b.watches.extend(watches);
    Ok(())
}

impl Watch for Pair {
    fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn check(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), String> {
        let [certificate, key, rest @ ..] = self.paths.as_slice() else {
            return Ok(());
        };
        let load = |path: &Path| {
            let name = path.display().to_string();
            read(path).map_err(|error| files::cannot_open(&error, &name))
        };
        let failed = |what: &str, path: &Path, why: &str| {
            format!("cannot load {what} \"{}\": {why}", path.display())
        };
        let of_certificate = |why: &str| failed("certificate", certificate, why);
        let of_key = |why: &str| failed("certificate key", key, why);
        let text = load(certificate).map_err(|why| of_certificate(&why))?;
        let chain = Chain::from_pem(&text).map_err(|fault| of_certificate(&fault.to_string()))?;
        let text = load(key).map_err(|why| of_key(&why))?;
        let passwords = match rest.first() {
            Some(path) => files::passwords(&load(path)?)
                .ok_or_else(|| format!("too long line in \"{}\"", path.display()))?,
            None => Vec::new(),
        };
        let secret = Key::from_pem(&text, &passwords);
        let secret = secret.map_err(|fault| of_key(&fault.to_string()))?;
        match Identity::new(chain, &secret, None) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "key \"{}\" is not that of certificate \"{}\" {MISMATCH}",
                key.display(),
                certificate.display()
            )),
        }
    }
}

impl Watch for Response {
    fn paths(&self) -> &[PathBuf] {
        &self.path
    }

    fn check(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), String> {
        let name = self.path[0].display().to_string();
        let bytes = read(&self.path[0]).map_err(|error| files::cannot_open(&error, &name))?;
        match files::is_ocsp(&bytes) {
            true => Ok(()),
            false => Err(format!("d2i_OCSP_RESPONSE_bio(\"{name}\") failed")),
        }
    }
}
