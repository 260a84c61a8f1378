//! Certificates accepted by a run, and names of TLS errors for counting.

use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, Error, RootCertStore};
use sys::os_error;
use tls::{ClientConfig, Fault, ServerTrust};

use super::engine::Protocol;

/// Authorities with trusted certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that browsers trust.
    #[default]
    Browsers,
    /// Those of a file, PEM.
    File(Vec<CertificateDer<'static>>),
    /// Anybody's: nothing is verified but that the server has the key of its certificate.
    Nobody,
}

impl Trust {
    /// The authorities of a file.
    ///
    /// # Errors
    /// The file cannot be read or has no certificate.
    pub fn file(path: &Path) -> Result<Self, String> {
        let failed = |why: &str| format!("cannot read {}: {why}", path.display());
        let unreadable = |error: pem::Error| match error {
            pem::Error::Io(error) => failed(&os_error(&error)),
            other => failed(&other.to_string()),
        };
        let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
        let found: Result<Vec<_>, _> = found.collect();
        let found = found.map_err(unreadable)?;
        if found.is_empty() {
            return Err(failed("it has no certificate"));
        }
        Ok(Self::File(found))
    }

    /// Returns the authorities in the system's file, which its other programs use; those of browsers without that file.
    #[must_use]
    pub fn system() -> Self {
        let found = SYSTEM_FILES.iter().find_map(|path| {
            let found = CertificateDer::pem_file_iter(path).ok()?;
            // A file of the system may have certificates that this library rejects.
            let found = found.map_while(Result::ok).filter(|certificate| {
                let added = RootCertStore::empty().add(certificate.clone());
                added.is_ok()
            });
            let found: Vec<_> = found.collect();
            (!found.is_empty()).then_some(found)
        });
        found.map_or(Self::Browsers, Self::File)
    }
}

/// The settings of connections to a server.
///
/// # Errors
/// An authority is no certificate, or TLS cannot be set up.
pub fn config(
    trust: &Trust,
    protocols: &[Protocol],
    resumption: bool,
) -> Result<ClientConfig, String> {
    let trust = server_trust(trust)?;
    let alpn = protocols.iter().map(|one| one.alpn().to_vec()).collect();
    let sessions = if resumption { SESSIONS } else { 0 };
    ClientConfig::new(trust, alpn, sessions).map_err(|error| error.to_string())
}

/// The trust in the form of crate `tls`.
///
/// # Errors
/// An authority is no certificate.
pub(crate) fn server_trust(trust: &Trust) -> Result<ServerTrust, String> {
    let mut roots = RootCertStore::empty();
    Ok(match trust {
        Trust::Nobody => ServerTrust::Any,
        Trust::Browsers => {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            ServerTrust::Authorities(roots)
        }
        Trust::File(certificates) => {
            for certificate in certificates {
                roots
                    .add(certificate.clone())
                    .map_err(|error| error.to_string())?;
            }
            ServerTrust::Authorities(roots)
        }
    })
}

/// Converts a host to a name for certificates.
///
/// # Errors
/// No certificate can contain it.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| format!("\"{host}\" is not a valid server name"))
}

/// Returns the name of a TLS error for counting.
pub(crate) fn error_name(fault: &Fault) -> String {
    match fault {
        Fault::Alert(alert) => format!("tls: server sent alert {alert:?}"),
        Fault::Protocol(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "tls: certificate of an unknown issuer".to_owned()
        }
        Fault::Protocol(Error::InvalidCertificate(why)) => {
            format!("tls: bad certificate: {}", certificate_error_name(why))
        }
        Fault::Protocol(Error::NoApplicationProtocol) => "tls: no common protocol".to_owned(),
        Fault::Protocol(other) => format!("tls: {other}"),
        other => format!("tls: {other}"),
    }
}

/// Returns whether an error is about the server's certificate, so that `--insecure` avoids it.
pub(crate) fn is_of_certificate(fault: &Fault) -> bool {
    matches!(fault, Fault::Protocol(Error::InvalidCertificate(_)))
}

/// Returns the name of an error's variant, without its data. Errors without a variant in rustls have the text of the
/// verifier, such as `CaUsedAsEndEntity` for most self-signed certificates.
fn certificate_error_name(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::Other(of_verifier) => of_verifier.to_string(),
        other => format!("{other:?}"),
    };
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    text[..end].to_owned()
}

/// Files of authorities: Debian, Fedora, openSUSE, Alpine and the BSDs.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Most sessions for resumption.
pub(crate) const SESSIONS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_of_the_system_are_the_browsers_without_a_file() {
        let has_file = SYSTEM_FILES.iter().any(|path| Path::new(path).exists());
        match Trust::system() {
            Trust::File(found) => assert!(has_file && !found.is_empty()),
            other => assert_eq!(other, Trust::Browsers),
        }
        assert!(server_trust(&Trust::system()).is_ok());
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_the_systems_error() {
        let found = Trust::file(Path::new("/none/at/all"));
        let shown = "cannot read /none/at/all: 2: No such file or directory";
        assert_eq!(found, Err(shown.to_owned()));
    }
}
