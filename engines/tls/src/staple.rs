//! An OCSP response that changes while its certificate is in use.
//!
//! A handshake takes a lock for reading and a reference; a new response replaces them as a whole. Absent: the
//! source of responses.
//!
//! Source: RFC 6066 section 8; nginx documentation, `ssl_stapling`.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::sign::CertifiedKey;

use super::resume::now_s;

/// A certificate with its last OCSP response.
#[derive(Debug)]
pub struct Staple {
    /// The certificate without a valid response.
    plain: Arc<CertifiedKey>,
    stapled: RwLock<Option<Stapled>>,
}

#[derive(Debug)]
struct Stapled {
    certified: Arc<CertifiedKey>,
    /// The last second in which it is shown.
    until_s: i64,
}

impl Staple {
    pub(crate) fn new(plain: Arc<CertifiedKey>) -> Self {
        Self {
            plain,
            stapled: RwLock::new(None),
        }
    }

    /// Sends a response, DER, with the certificate from now on, until a time in seconds since 1970 or the next
    /// response.
    pub fn put(&self, response: &[u8], until_s: Option<i64>) {
        let mut certified = CertifiedKey::clone(&self.plain);
        certified.ocsp = Some(response.to_vec());
        let stapled = Stapled {
            certified: Arc::new(certified),
            until_s: until_s.unwrap_or(i64::MAX),
        };
        let mut place = self.stapled.write().unwrap_or_else(PoisonError::into_inner);
        *place = Some(stapled);
    }

    /// The certificate, with its OCSP response if that is still valid.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        let stapled = self.stapled.read().unwrap_or_else(PoisonError::into_inner);
        match &*stapled {
            Some(stapled) if i64::try_from(now_s()).is_ok_and(|now_s| now_s <= stapled.until_s) => {
                Arc::clone(&stapled.certified)
            }
            _ => Arc::clone(&self.plain),
        }
    }
}
