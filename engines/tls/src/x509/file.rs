//! Files of certificates, and the errors of files of certificates and keys.
//!
//! Source: PEM_read_bio_X509(3) and the texts of its errors.

use std::fmt;

use rustls::pki_types::CertificateDer;

use super::der::{self, Reader};
use super::{Certificate, pem};

/// Error in a file of certificates or keys, in OpenSSL's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// There is no part of the requested kind.
    NoStart(&'static str),
    /// A part is not whole, or no base64.
    Damaged(&'static str),
    /// A part does not match its label.
    NotDer(&'static str),
    /// The key is encrypted, and no password was right.
    BadPassword,
    /// The key has an unsupported kind or encryption; the second part is a hint for a remedy.
    Unsupported(String),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, error) = match self {
            Self::NoStart(what) => (*what, "0480006C:PEM routines::no start line:Expecting: "),
            Self::Damaged(what) => (*what, "04800064:PEM routines::bad base64 decode"),
            Self::NotDer(what) => (*what, "0480000D:PEM routines::ASN1 lib"),
            Self::BadPassword => ("", "04800065:PEM routines::bad decrypt"),
            Self::Unsupported(why) => return write!(f, "PEM_read_bio_PrivateKey() failed ({why})"),
        };
        let call = match what {
            TRUSTED => "X509_AUX()",
            CERTIFICATE => "X509()",
            CRL => "X509_CRL()",
            _ => "PrivateKey()",
        };
        let wanted = if matches!(self, Self::NoStart(_)) {
            what
        } else {
            ""
        };
        write!(f, "PEM_read_bio_{call} failed (SSL: error:{error}{wanted})")
    }
}

impl std::error::Error for FileFault {}

/// The certificates of a text, at least one.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, FileFault> {
    let parts = pem::parts(text).map_err(|_| FileFault::Damaged(CERTIFICATE))?;
    let mut found = Vec::new();
    for part in parts {
        if !matches!(
            part.label.as_str(),
            CERTIFICATE | "X509 CERTIFICATE" | TRUSTED
        ) {
            continue;
        }
        // After a trusted certificate its trust settings may follow.
        let der = Reader::new(&part.der).expect(der::SEQUENCE);
        let der = der.map(|value| value.whole);
        let der = der.filter(|der| Certificate::parse(der).is_some());
        let der = der.ok_or(FileFault::NotDer(CERTIFICATE))?;
        found.push(CertificateDer::from(der.to_vec()));
    }
    if found.is_empty() {
        return Err(FileFault::NoStart(TRUSTED));
    }
    Ok(found)
}

const TRUSTED: &str = "TRUSTED CERTIFICATE";
const CERTIFICATE: &str = "CERTIFICATE";
pub(crate) const CRL: &str = "X509 CRL";
