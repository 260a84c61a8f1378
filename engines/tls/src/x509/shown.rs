//! A certificate as shown by variables, in OpenSSL's forms.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`, "Embedded Variables".

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::dn::{self, hex};
use super::{Certificate, pem};

impl Certificate<'_> {
    /// Its name as RFC 2253 writes it.
    #[must_use]
    pub fn subject(&self) -> String {
        dn::rfc2253(self.subject)
    }

    /// Its issuer's name in the form of RFC 2253.
    #[must_use]
    pub fn issuer(&self) -> String {
        dn::rfc2253(self.issuer)
    }

    /// Its name in the older form, with slashes.
    #[must_use]
    pub fn subject_oneline(&self) -> String {
        dn::oneline(self.subject)
    }

    /// Its issuer's name in the older form, with slashes.
    #[must_use]
    pub fn issuer_oneline(&self) -> String {
        dn::oneline(self.issuer)
    }

    /// The serial number, hexadecimal.
    #[must_use]
    pub fn serial(&self) -> String {
        let mut text = String::new();
        let mut magnitude = self.serial.to_vec();
        if self.serial[0] & 0x80 != 0 {
            text.push('-');
            // Two's complement: invert all bits and add one.
            let mut carry = true;
            for byte in magnitude.iter_mut().rev() {
                (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
            }
        }
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        hex(&magnitude[zeros.min(magnitude.len() - 1)..], &mut text);
        text
    }

    /// The SHA-1 digest of the whole certificate, hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut text = String::new();
        hex(
            digest(&SHA1_FOR_LEGACY_USE_ONLY, self.der).as_ref(),
            &mut text,
        );
        text.make_ascii_lowercase();
        text
    }

    /// Start of its validity: `Nov 21 12:00:00 2026 GMT`.
    #[must_use]
    pub fn valid_from(&self) -> String {
        self.not_before.to_string()
    }

    /// Until when it is valid.
    #[must_use]
    pub fn valid_until(&self) -> String {
        self.not_after.to_string()
    }

    /// Whole days of remaining validity, from a time in seconds since 1970; 0 if there are none.
    #[must_use]
    pub fn days_left(&self, now_s: i64) -> i64 {
        let left_s = self.not_after.unix_s().saturating_sub(now_s);
        (left_s / 86_400).max(0)
    }

    /// It as PEM.
    #[must_use]
    pub fn pem(&self) -> Vec<u8> {
        pem::encode("CERTIFICATE", self.der)
    }
}
