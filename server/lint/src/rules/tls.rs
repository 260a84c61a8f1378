//! FB801 and FB802: protocols and ciphers that are no longer secure.
//!
//! Source: RFC 8996 for TLS 1.0 and 1.1, RFC 7568 for SSL 3, RFC 7465 for RC4; OpenSSL's "ciphers" for the language of
//! lists.

use crate::Warn;
use crate::tree::{Id, Tree, is_one_of};

/// `ssl_x`, and the same for connections to other servers.
fn of_tls(tree: &Tree, setting: &str) -> Vec<Id> {
    let prefixes = ["", "proxy_", "grpc_", "uwsgi_"];
    let mut ids: Vec<Id> = prefixes
        .iter()
        .flat_map(|prefix| tree.everywhere(&format!("{prefix}{setting}")))
        .copied()
        .collect();
    ids.sort_unstable();
    ids
}

/// FB801
pub(super) fn protocols(tree: &Tree, warn: &mut Warn<'_>) {
    for id in of_tls(tree, "ssl_protocols") {
        let obsolete = |word: &&conf::Word| is_one_of(word.as_str(), &OBSOLETE);
        let Some(index) = tree.args(id).iter().position(|word| obsolete(&word)) else {
            continue;
        };
        let all: Vec<&str> = tree
            .args(id)
            .iter()
            .filter(obsolete)
            .map(|word| word.as_str())
            .collect();
        let message = format!(
            "{} {} obsolete and can be broken",
            all.join(", "),
            if all.len() > 1 { "are" } else { "is" }
        );
        warn.word(
            id,
            index,
            message,
            format!("write \"{} TLSv1.2 TLSv1.3;\"", tree.name(id)),
        );
    }
}

/// Parts of names of insecure ciphers.
const BROKEN: [&str; 14] = [
    "NULL", "ENULL", "ANULL", "EXP", "EXPORT", "EXPORT40", "EXPORT56", "LOW", "RC4", "RC2", "DES",
    "3DES", "MD5", "ADH",
];

/// FB802
pub(super) fn ciphers(tree: &Tree, warn: &mut Warn<'_>) {
    for id in of_tls(tree, "ssl_ciphers") {
        let list = tree.arg(id, 0).to_ascii_uppercase();
        let words: Vec<&str> = list
            .split([':', ',', ' '])
            .filter(|word| !word.is_empty())
            .collect();
        let excluded = |name: &str| {
            words
                .iter()
                .any(|word| word.strip_prefix('!') == Some(name))
        };
        let broken = words.iter().find(|word| {
            // `!` and `-` remove ciphers, a leading `+` only moves them.
            if word.starts_with(['!', '-', '+', '@']) {
                return false;
            }
            let part = word.split(['+', '-']).find(|part| BROKEN.contains(part));
            let everything = **word == "ALL" && !excluded("ANULL") && !excluded("ADH");
            everything || part.is_some_and(|part| !excluded(part))
        });
        if let Some(word) = broken {
            let message = format!("\"{word}\" enables ciphers that can be broken");
            warn.word(
                id,
                0,
                message,
                format!("\"{} HIGH:!aNULL:!MD5;\" is the default", tree.name(id)),
            );
        }
    }
}

const OBSOLETE: [&str; 4] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1"];

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn obsolete_protocols_are_found() {
        assert_eq!(in_server("ssl_protocols TLSv1 TLSv1.1 TLSv1.2;"), ["FB801"]);
        assert_eq!(in_server("proxy_ssl_protocols SSLv3;"), ["FB801"]);
        assert_eq!(in_server("ssl_protocols tlsv1 TLSv1.2;"), ["FB801"]);
        assert_eq!(in_server("ssl_protocols TLSv1.2 TLSv1.3;"), [""; 0]);
    }

    #[test]
    fn broken_ciphers_are_found() {
        for list in [
            "ALL",
            "HIGH:RC4+RSA",
            "ECDHE-RSA-DES-CBC3-SHA:HIGH",
            "HIGH:aNULL",
            "kEDH+EXPORT",
        ] {
            assert_eq!(
                in_server(&format!("ssl_ciphers {list};")),
                ["FB802"],
                "{list}"
            );
        }
        for list in [
            "HIGH:!aNULL:!MD5",
            "ALL:!ADH:!RC4",
            "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-CHACHA20-POLY1305",
            "HIGH:-DES:+MD5",
            "'EECDH+AESGCM:EDH+AESGCM'",
        ] {
            assert_eq!(
                in_server(&format!("ssl_ciphers {list};")),
                [""; 0],
                "{list}"
            );
        }
    }
}
