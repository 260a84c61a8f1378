//! Lists of cipher suites as OpenSSL writes them: `HIGH:!aNULL:!MD5`, `ECDHE-RSA-AES128-GCM-SHA256:...`.
//!
//! They choose among the suites of TLS 1.2; those of TLS 1.3 have a list of their own. Most words of the language
//! refer to suites that rustls omits on purpose (no forward secrecy, CBC, finite-field groups) and so choose
//! nothing. Absent: `SUITEB128`, `PROFILE=SYSTEM`.
//!
//! Source: openssl-ciphers(1).

use std::fmt;

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};

use super::names;

/// Cipher suites in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ciphers {
    pub(crate) suites: Vec<SupportedCipherSuite>,
    /// Words that select no available suite.
    pub ignored: Vec<String>,
}

/// Reason why a list is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CipherFault {
    /// The list selects no available suite; with the words for unavailable ones.
    NoMatch(Vec<String>),
    /// It requests something unsupported.
    Unsupported(String),
}

impl fmt::Display for CipherFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch(_) => f.write_str("SSL: error:0A0000B9:SSL routines::no cipher match"),
            Self::Unsupported(word) => write!(f, "\"{word}\" is not supported"),
        }
    }
}

impl std::error::Error for CipherFault {}

/// A suite of TLS 1.2 while a list is read.
struct Entry {
    suite: SupportedCipherSuite,
    name: &'static str,
    authentication: &'static str,
    encryption: Encryption,
    /// It is in the list so far.
    chosen: bool,
    /// It may not come back.
    killed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Aes256,
    ChaCha20,
    Aes128,
}

impl Entry {
    /// Whether a word of the language selects the suite; `None` if it is no such word.
    fn has(&self, word: &str) -> Option<bool> {
        Some(match word {
            "ALL" | "HIGH" | "DEFAULT" | "COMPLEMENTOFALL" | "COMPLEMENTOFDEFAULT" => {
                !word.starts_with('C')
            }
            "ECDH" | "ECDHE" | "EECDH" | "kECDHE" | "kEECDH" | "TLSv1.2" => true,
            "aRSA" | "aECDSA" => word == self.authentication,
            "ECDSA" => self.authentication == "aECDSA",
            "AES" | "AESGCM" | "FIPS" => self.encryption != Encryption::ChaCha20,
            "AES128" => self.encryption == Encryption::Aes128,
            "AES256" => self.encryption == Encryption::Aes256,
            "CHACHA20" => self.encryption == Encryption::ChaCha20,
            _ if WITHOUT_SUITE.contains(&word) => false,
            _ if names::is_cipher(word) => word == self.name,
            _ => return None,
        })
    }

    fn bits(&self) -> u32 {
        if self.encryption == Encryption::Aes128 {
            128
        } else {
            256
        }
    }
}

impl Ciphers {
    /// No suites, for a server without TLS 1.2, with the words for unavailable ones.
    #[must_use]
    pub fn none(ignored: Vec<String>) -> Self {
        Self {
            suites: Vec::new(),
            ignored,
        }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// It selects no available suite, or requests something unsupported.
    pub fn parse(list: &str) -> Result<Self, CipherFault> {
        let mut entries = entries();
        let mut ignored = Vec::new();
        let words = list.split([':', ',', ' ', ';']);
        for word in words.filter(|word| !word.is_empty()) {
            // A command may stand behind a word: `DEFAULT@SECLEVEL=1`.
            let (word, command) = match word.split_once('@') {
                Some((word, command)) => (word, Some(command)),
                None => (word, None),
            };
            if !word.is_empty() {
                apply(&mut entries, word, &mut ignored);
            }
            match command {
                None | Some("SECLEVEL=2") => {}
                Some("STRENGTH") => entries.sort_by_key(|entry| std::cmp::Reverse(entry.bits())),
                Some("SECLEVEL=0" | "SECLEVEL=1") => {
                    ignored.push(format!("@{}", command.unwrap_or_default()));
                }
                Some(other) => return Err(CipherFault::Unsupported(format!("@{other}"))),
            }
        }
        let chosen = entries.iter().filter(|entry| entry.chosen);
        let suites: Vec<_> = chosen.map(|entry| entry.suite).collect();
        if suites.is_empty() {
            return Err(CipherFault::NoMatch(ignored));
        }
        Ok(Self { suites, ignored })
    }

    /// Reads a list of suites of TLS 1.3, which consists of names only.
    ///
    /// # Errors
    /// A name is none of them.
    pub fn parse_tls13(list: &str) -> Result<Self, CipherFault> {
        let mut suites = Vec::new();
        for name in list.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
            let suite = match name {
                "TLS_AES_256_GCM_SHA384" => TLS13_AES_256_GCM_SHA384,
                "TLS_AES_128_GCM_SHA256" => TLS13_AES_128_GCM_SHA256,
                "TLS_CHACHA20_POLY1305_SHA256" => TLS13_CHACHA20_POLY1305_SHA256,
                _ => return Err(CipherFault::Unsupported(name.to_owned())),
            };
            if !suites.contains(&suite) {
                suites.push(suite);
            }
        }
        if suites.is_empty() {
            return Err(CipherFault::NoMatch(Vec::new()));
        }
        Ok(Self {
            suites,
            ignored: Vec::new(),
        })
    }
}

/// Applies one word of the list.
fn apply(entries: &mut Vec<Entry>, word: &str, ignored: &mut Vec<String>) {
    let (operator, name) = match word.as_bytes()[0] {
        operator @ (b'!' | b'-' | b'+') => (operator, &word[1..]),
        _ => (b' ', word),
    };
    // `aRSA+AES`: all that have both.
    let meant = |entry: &Entry| {
        let mut parts = name.split('+').map(|part| entry.has(part));
        parts.try_fold(true, |all, part| Some(all && part?))
    };
    let known = entries.first().is_some_and(|entry| meant(entry).is_some());
    let is_meant = |entry: &Entry| meant(entry) == Some(true);
    match operator {
        b'!' => {
            for entry in entries.iter_mut().filter(|entry| is_meant(entry)) {
                (entry.chosen, entry.killed) = (false, true);
            }
        }
        b'-' => {
            for entry in entries.iter_mut().filter(|entry| is_meant(entry)) {
                entry.chosen = false;
            }
        }
        b'+' => {
            let (moved, kept): (Vec<_>, Vec<_>) = std::mem::take(entries)
                .into_iter()
                .partition(|entry| entry.chosen && is_meant(entry));
            entries.extend(kept);
            entries.extend(moved);
        }
        _ => {
            let (added, kept): (Vec<_>, Vec<_>) = std::mem::take(entries)
                .into_iter()
                .partition(|entry| !entry.chosen && !entry.killed && is_meant(entry));
            entries.extend(kept);
            entries.extend(added.into_iter().map(|entry| Entry {
                chosen: true,
                ..entry
            }));
            let single = names::is_cipher(name) && !name.starts_with("TLS_");
            let built = entries.iter().any(is_meant);
            if !known || (single && !built) {
                ignored.push(name.to_owned());
            }
        }
    }
}

/// The suites of TLS 1.2, in OpenSSL's order.
#[rustfmt::skip] // One line a suite.
fn entries() -> Vec<Entry> {
    use Encryption::{Aes128, Aes256, ChaCha20};
    let entry = |suite, name, encryption| Entry {
        suite,
        name,
        authentication: if name.contains("ECDSA") {
            "aECDSA"
        } else {
            "aRSA"
        },
        encryption,
        chosen: false,
        killed: false,
    };
    vec![
        entry(TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", Aes256),
        entry(TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", Aes256),
        entry(TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", ChaCha20),
        entry(TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", ChaCha20),
        entry(TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", Aes128),
        entry(TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", Aes128),
    ]
}

/// The suites of TLS 1.3, in OpenSSL's order.
pub(crate) const TLS13: [SupportedCipherSuite; 3] = [
    TLS13_AES_256_GCM_SHA384,
    TLS13_CHACHA20_POLY1305_SHA256,
    TLS13_AES_128_GCM_SHA256,
];

/// Words of the language that select suites, none of which is built.
const WITHOUT_SUITE: &[&str] = &[
    "MEDIUM",
    "LOW",
    "EXP",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "NULL",
    "eNULL",
    "aNULL",
    "kRSA",
    "RSA",
    "kDHr",
    "kDHd",
    "kDH",
    "kDHE",
    "kEDH",
    "DHE",
    "EDH",
    "DH",
    "ADH",
    "AECDH",
    "kECDHr",
    "kECDHe",
    "kECDH",
    "aECDH",
    "aDSS",
    "DSS",
    "aDH",
    "SSLv2",
    "SSLv3",
    "TLSv1",
    "TLSv1.0",
    "TLSv1.1",
    "AESCCM",
    "AESCCM8",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "CBC",
    "3DES",
    "DES",
    "RC2",
    "RC4",
    "IDEA",
    "SEED",
    "MD5",
    "SHA",
    "SHA1",
    "SHA256",
    "SHA384",
    "aGOST",
    "aGOST01",
    "aGOST12",
    "kGOST",
    "kGOST18",
    "GOST94",
    "GOST89MAC",
    "GOST12",
    "PSK",
    "kPSK",
    "kECDHEPSK",
    "kDHEPSK",
    "kRSAPSK",
    "aPSK",
    "SRP",
    "kSRP",
    "aSRP",
    "KRB5",
    "kKRB5",
    "aKRB5",
    "FZA",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(list: &str) -> String {
        let numbers = |ciphers: Ciphers| {
            let suites = ciphers.suites.iter();
            let names = suites.filter_map(|suite| names::cipher(suite.suite().into()));
            names.collect::<Vec<_>>().join(":")
        };
        Ciphers::parse(list).map(numbers).unwrap_or_default()
    }

    fn ignored(list: &str) -> Vec<String> {
        Ciphers::parse(list)
            .map(|ciphers| ciphers.ignored)
            .unwrap_or_default()
    }

    #[test]
    fn words_choose_what_openssl_chooses() {
        let all = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
                   ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
                   ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
        for list in ["HIGH:!aNULL:!MD5", "DEFAULT", "ALL:!ADH:!LOW:!EXP", "EECDH"] {
            assert_eq!(chosen(list), all, "{list}");
        }
        assert_eq!(
            chosen("EECDH+aRSA+AESGCM:!AES128"),
            "ECDHE-RSA-AES256-GCM-SHA384"
        );
        assert_eq!(
            chosen("ECDHE+CHACHA20:ECDHE+AES128"),
            "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
             ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"
        );
        assert_eq!(
            chosen("aRSA:+CHACHA20:@STRENGTH"),
            "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256"
        );
        assert_eq!(
            chosen("aRSA:+AES256"),
            "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"
        );
    }

    #[test]
    fn what_is_killed_does_not_come_back_and_what_is_deleted_does() {
        assert_eq!(
            chosen("AES256:!aECDSA:ALL:-AES128:-CHACHA20"),
            "ECDHE-RSA-AES256-GCM-SHA384"
        );
        assert_eq!(
            chosen("AES256+aRSA:-AES256:AES128+aRSA:AES256+aRSA"),
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"
        );
    }

    #[test]
    fn suites_that_are_not_built_are_told() {
        let list = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                    DHE-RSA-AES128-GCM-SHA256:AES128-SHA:Misspelt:!DHE-RSA-CHACHA20-POLY1305";
        assert_eq!(
            ignored(list),
            ["DHE-RSA-AES128-GCM-SHA256", "AES128-SHA", "Misspelt"]
        );
        assert_eq!(ignored("HIGH:!aNULL:!MD5:!Misspelt"), [""; 0]);
        assert_eq!(ignored("DEFAULT@SECLEVEL=1"), ["@SECLEVEL=1"]);
    }

    #[test]
    fn an_empty_choice_is_refused() {
        for list in [
            "",
            "kRSA",
            "AES128-SHA",
            "ALL:!ALL",
            "ECDHE-RSA-AES128-SHA256",
            "RSA",
        ] {
            assert!(
                matches!(Ciphers::parse(list), Err(CipherFault::NoMatch(_))),
                "{list}"
            );
        }
        assert!(matches!(
            Ciphers::parse("ALL@SECLEVEL=3"),
            Err(CipherFault::Unsupported(_))
        ));
    }

    #[test]
    fn suites_of_tls_1_3_have_a_list_of_their_own() {
        let list = Ciphers::parse_tls13("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256");
        assert_eq!(list.map(|list| list.suites.len()), Ok(2));
        assert!(Ciphers::parse_tls13("TLS_AES_128_CCM_SHA256").is_err());
        assert!(Ciphers::parse_tls13("").is_err());
    }
}
