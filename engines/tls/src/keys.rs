//! A server's certificate with its key, from PEM.
//!
//! Source: RFC 5958 (PKCS #8), RFC 8017 appendix A.1.2 (PKCS #1), RFC 5915 (SEC1).

use std::sync::{Arc, Weak};

use rustls::crypto::aws_lc_rs::sign;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};

use super::handshaking::ask;
use super::secret;
use super::staple::Staple;
use super::x509::der::{self, Reader};
use super::x509::{self, Certificate, FileFault, certificates, pem};

/// A chain of certificates, its own first, DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Vec<CertificateDer<'static>>);

/// A secret key.
#[derive(Clone, Debug)]
pub struct Key(Arc<dyn SigningKey>);

impl Chain {
    /// Reads certificates from PEM.
    ///
    /// # Errors
    /// There is no certificate, or it is damaged.
    pub fn from_pem(text: &[u8]) -> Result<Self, FileFault> {
        certificates(text).map(Self)
    }

    /// The certificates, DER.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl Key {
    /// Reads the first key of a PEM text.
    ///
    /// # Errors
    /// There is none, or it is damaged or of an unsupported kind.
    pub fn from_pem(text: &[u8], passwords: &[Vec<u8>]) -> Result<Self, FileFault> {
        let parts = pem::parts(text).map_err(|_| FileFault::Damaged(ANY_KEY))?;
        let part = parts
            .into_iter()
            .find(|part| part.label == "PRIVATE KEY" || part.label.ends_with(" PRIVATE KEY"))
            .ok_or(FileFault::NoStart(ANY_KEY))?;
        let info = part.headers.iter().find(|(name, _)| name == "DEK-Info");
        let bytes = match info {
            Some((_, info)) => secret::older(info, &part.der, passwords)?,
            None => part.der,
        };
        let der = match part.label.as_str() {
            "PRIVATE KEY" => PrivateKeyDer::Pkcs8(bytes.into()),
            "ENCRYPTED PRIVATE KEY" => {
                PrivateKeyDer::Pkcs8(secret::pkcs8(&bytes, passwords)?.into())
            }
            "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(bytes.into()),
            "EC PRIVATE KEY" => PrivateKeyDer::Sec1(bytes.into()),
            other => {
                return Err(FileFault::Unsupported(format!(
                    "\"{other}\" is not supported"
                )));
            }
        };
        // Each attempt reads and checks the whole key, and the first attempt would be RSA.
        let key = match is_elliptic(&der) {
            true => sign::any_ecdsa_type(&der),
            false => sign::any_supported_type(&der),
        };
        match key {
            Ok(key) => Ok(Self(key)),
            Err(error) => Err(FileFault::Unsupported(error.to_string())),
        }
    }
}

/// Whether a key is declared as one of an elliptic curve for ECDSA (RFC 5480 section 2.1.1).
fn is_elliptic(key: &PrivateKeyDer<'_>) -> bool {
    let named = |der: &[u8]| {
        let mut fields = Reader::new(der).sequence()?;
        fields.expect(der::INTEGER)?;
        Some(fields.sequence()?.body(der::OID)? == EC_PUBLIC_KEY)
    };
    match key {
        PrivateKeyDer::Sec1(_) => true,
        PrivateKeyDer::Pkcs8(key) => named(key.secret_pkcs8_der()).unwrap_or(false),
        _ => false,
    }
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Identity(Arc<CertifiedKey>, Option<Arc<Staple>>);

/// An identity that others keep, or not.
#[derive(Clone, Debug)]
pub struct WeakIdentity(Weak<CertifiedKey>);

impl WeakIdentity {
    /// The identity, if it is still in use.
    #[must_use]
    pub fn upgrade(&self) -> Option<Identity> {
        self.0.upgrade().map(|certified| Identity(certified, None))
    }
}

/// The key is not that of the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

impl Identity {
    /// Joins a chain and a key; `ocsp` is the issuer's last OCSP response for the certificate, DER.
    ///
    /// # Errors
    /// The key does not match the first certificate.
    pub fn new(chain: Chain, key: &Key, ocsp: Option<Vec<u8>>) -> Result<Self, Mismatch> {
        let leaf = chain.0.first().ok_or(Mismatch)?;
        let theirs = Certificate::parse(leaf).ok_or(Mismatch)?;
        if let Some(own) = key.0.public_key() {
            let info = Reader::new(&own).body(der::SEQUENCE).ok_or(Mismatch)?;
            let (_, own) = x509::public_key(info).ok_or(Mismatch)?;
            if own != theirs.key {
                return Err(Mismatch);
            }
        }
        let mut certified = CertifiedKey::new(chain.0, Arc::clone(&key.0));
        certified.ocsp = ocsp;
        Ok(Self(Arc::new(certified), None))
    }

    /// Makes an identity without an OCSP response yet, and the handle that receives one.
    #[must_use]
    pub fn stapled(&self) -> (Self, Arc<Staple>) {
        let staple = Arc::new(Staple::new(Arc::clone(&self.0)));
        (Self(Arc::clone(&self.0), Some(Arc::clone(&staple))), staple)
    }

    /// A weak reference; it does not include a later response.
    #[must_use]
    pub fn downgrade(&self) -> WeakIdentity {
        WeakIdentity(Arc::downgrade(&self.0))
    }

    /// Addresses of the identity and of its staple: servers with the same identity can share results made from it.
    #[must_use]
    pub fn place(&self) -> (usize, usize) {
        let staple = self.1.as_ref();
        (
            Arc::as_ptr(&self.0).addr(),
            staple.map_or(0, |staple| Arc::as_ptr(staple).addr()),
        )
    }

    /// Its memory, for a prefetch ahead of a handshake; [`Self::parts`] reads it.
    #[must_use]
    pub fn memory(&self) -> &impl Sized {
        &*self.0
    }

    /// The memory that it points to: of the key, and of the chain.
    #[must_use]
    pub fn parts(&self) -> (&(impl ?Sized + use<>), &(impl ?Sized + use<>)) {
        (&*self.0.key, &*self.0.cert)
    }

    /// The certificates that are shown.
    #[must_use]
    pub fn shown(&self) -> Chain {
        Chain(self.0.cert.clone())
    }

    /// Returns the certificate for a handshake that begins now.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        match &self.1 {
            Some(staple) => staple.certified(),
            None => Arc::clone(&self.0),
        }
    }

    /// The certificates, DER.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.0.cert.iter().map(AsRef::as_ref)
    }
}

/// The certificates of a server.
#[derive(Clone, Debug)]
pub(crate) enum Identities {
    /// One certificate, as most servers have; stored inline.
    One(Identity),
    /// None, or several for keys of different kinds.
    List(Box<[Identity]>),
}

impl Identities {
    /// The certificates of a list: of two with the same kind of key the later one counts, as with OpenSSL.
    pub(crate) fn new(list: Vec<Identity>) -> Self {
        // A single certificate needs no look at its key. That would read memory that a reload does not otherwise
        // touch.
        let list = match <[Identity; 1]>::try_from(list) {
            Ok([only]) => return Self::One(only),
            Err(list) => list,
        };
        let mut kept: Vec<Identity> = Vec::with_capacity(list.len());
        for identity in list {
            let kind = identity.0.key.algorithm();
            match kept
                .iter_mut()
                .find(|other| other.0.key.algorithm() == kind)
            {
                Some(other) => *other = identity,
                None => kept.push(identity),
            }
        }
        match <[Identity; 1]>::try_from(kept) {
            Ok([only]) => Self::One(only),
            Err(list) => Self::List(list.into()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Identity> {
        self.as_slice().iter()
    }

    fn as_slice(&self) -> &[Identity] {
        match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::List(list) => list,
        }
    }

    /// Returns the certificate for a handshake: the client's order of signature schemes decides, as with OpenSSL.
    pub(crate) fn certified(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let Self::One(only) = self {
            return Some(only.certified());
        }
        let fits = |scheme| {
            let fits = |identity: &&Identity| identity.0.key.choose_scheme(&[scheme]).is_some();
            self.iter().find(fits)
        };
        let found = hello.signature_schemes().iter().copied().find_map(fits)?;
        Some(found.certified())
    }
}

/// The certificates of the server in the current handshake.
#[derive(Debug)]
pub(crate) struct OfServer;

impl ResolvesServerCert for OfServer {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        ask(|server| server.certified(&hello))?
    }
}

/// `id-ecPublicKey`.
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ANY_KEY: &str = "ANY PRIVATE KEY";
