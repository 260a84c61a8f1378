//! Facts about a certificate for variables, in the forms of OpenSSL.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`, "Embedded Variables".

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::x509::Certificate;
use super::{dn, pem};

impl Certificate<'_> {
    /// Its name as RFC 2253 writes it.
    #[must_use]
    pub fn subject(&self) -> String {
        dn::rfc2253(self.subject)
    }

    /// Its issuer's name as RFC 2253 writes it.
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

    /// The number its issuer gave it, hexadecimal.
    #[must_use]
    pub fn serial(&self) -> String {
        let negative = self.serial[0] & 0x80 != 0;
        let mut magnitude = self.serial.to_vec();
        if negative {
            // Two's complement: all bits the other way round, and one more.
            let mut carry = true;
            for byte in magnitude.iter_mut().rev() {
                (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
            }
        }
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        let digits = &magnitude[zeros.min(magnitude.len() - 1)..];
        let sign = if negative { "-" } else { "" };
        digits.iter().fold(sign.to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        })
    }

    /// The SHA-1 digest of all of it, hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, self.der);
        digest
            .as_ref()
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    /// From when it is valid: `Nov 21 12:00:00 2026 GMT`.
    #[must_use]
    pub fn valid_from(&self) -> String {
        date(self.not_before)
    }

    /// Until when it is valid.
    #[must_use]
    pub fn valid_until(&self) -> String {
        date(self.not_after)
    }

    /// Whole days for which it is still valid, from a time in seconds since 1970; 0 if there are none.
    #[must_use]
    pub fn days_left(&self, now_s: i64) -> i64 {
        (self.not_after.saturating_sub(now_s) / DAY_S).max(0)
    }

    /// It as PEM.
    #[must_use]
    pub fn pem(&self) -> Vec<u8> {
        let mut out = Vec::new();
        pem::encode("CERTIFICATE", self.der, &mut out);
        out
    }
}

/// A time as OpenSSL prints it.
fn date(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    // Years begin in March here, so that the day that comes and goes is their last.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 {
        (year_of_era + era * 400, month + 3)
    } else {
        (year_of_era + era * 400 + 1, month - 9)
    };
    let name = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{name} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT")
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAY_S: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_openssl() {
        assert_eq!(date(0), "Jan  1 00:00:00 1970 GMT");
        assert_eq!(date(951_782_400), "Feb 29 00:00:00 2000 GMT");
        assert_eq!(date(1_709_208_000), "Feb 29 12:00:00 2024 GMT");
        assert_eq!(date(2_524_607_999), "Dec 31 23:59:59 2049 GMT");
        assert_eq!(date(-1), "Dec 31 23:59:59 1969 GMT");
    }
}
