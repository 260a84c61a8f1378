//! The servers of `http`, with their `listen`s and names.
//!
//! Source: nginx documentation, directives `listen` and `ssl` (obsolete since nginx 1.15.0).

use crate::tree::{Id, Tree};

/// Transport of the requests of a `listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TCP alone.
    Plain,
    /// TLS over TCP.
    Tls,
    /// QUIC.
    Quic,
}

/// The blocks of servers of `http`; a server of an upstream has none.
pub(crate) fn servers_of_http(tree: &Tree) -> impl Iterator<Item = Id> {
    tree.http("server").filter(|id| {
        let parent = tree.parent(*id);
        let is_block = tree.directive(*id).block.is_some();
        is_block && parent.is_some_and(|parent| tree.name(parent) == "http")
    })
}

/// Returns the transport of a `listen`; `ssl on` of its server makes it TLS, too.
pub(crate) fn transport(tree: &Tree, listen: Id) -> Transport {
    let has = |name: &str| tree.args(listen).iter().any(|word| word.as_str() == name);
    let is_on = || {
        let server = tree.parent(listen)?;
        tree.inherited(server, "ssl")
            .filter(|ssl| tree.is_value(*ssl, &["on"]))
    };
    if has("quic") {
        Transport::Quic
    } else if has("ssl") || is_on().is_some() {
        Transport::Tls
    } else {
        Transport::Plain
    }
}

/// `80`, `*:80` and `0.0.0.0:80` are one, so are `[::]` and `[::]:80`.
pub(crate) fn address(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    if text.starts_with("unix:") {
        return text;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("*:{text}");
    }
    let host_end = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[host_end..].find(':') {
        Some(at) => (&text[..host_end + at], &text[host_end + at + 1..]),
        None => (text.as_str(), "80"),
    };
    let host = if host == "0.0.0.0" { "*" } else { host };
    format!("{host}:{port}")
}

/// Returns whether people use this name for a catch-all server.
pub(crate) fn is_catch_all_name(name: &str) -> bool {
    name.is_empty() || name.bytes().all(|byte| byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn addresses_are_compared_as_they_are_meant() {
        for (text, expected) in [
            ("80", "*:80"),
            ("*", "*:80"),
            ("0.0.0.0:8080", "*:8080"),
            ("[::]", "[::]:80"),
            ("[::1]:81", "[::1]:81"),
            ("localhost", "localhost:80"),
            ("unix:/a:b", "unix:/a:b"),
        ] {
            assert_eq!(address(text), expected, "{text}");
        }
    }

    #[test]
    fn transports_are_told_apart() {
        for (text, expected) in [
            ("listen 443;", Transport::Plain),
            ("listen 443 ssl;", Transport::Tls),
            ("listen 443 quic reuseport;", Transport::Quic),
            ("listen 443; ssl on;", Transport::Tls),
            ("listen 443; ssl ON;", Transport::Tls),
            ("listen 443; ssl off;", Transport::Plain),
        ] {
            let tree = tree(&format!(
                "http {{ server {{ {text} }} upstream u {{ server a; }} }}"
            ));
            let listen = tree.http("listen").next().expect("there is one");
            assert_eq!(transport(&tree, listen), expected, "{text}");
            assert_eq!(servers_of_http(&tree).count(), 1);
        }
    }
}
