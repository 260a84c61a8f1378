//! The policy and the name of a connection to a server.
//!
//! Source: nginx documentation, `proxy_ssl_name`, `proxy_ssl_server_name`; RFC 6066 section 3.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use server_base::errlog::{Level, Printable};
use server_http::exchange::{Ctx, Exchange};
use server_upstream::route::{HandshakeConfig, ServerTls};
use tls::{PolicyDigest, ServerName};

use super::ServerPolicy;
use super::build::SharedPolicy;

/// Returns the settings of a connection to a server with this host, which may have a port.
///
/// # Errors
/// The status that answers the request; the reason is logged.
pub(crate) fn connect(
    policy: &ServerPolicy,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    host: &[u8],
) -> Result<Arc<ServerTls>, u16> {
    let shared = &*policy.shared;
    let computed;
    let name = match &shared.name {
        // Nothing reads the name.
        _ if !shared.sends_name && !shared.verifies => &b""[..],
        None => host,
        Some(name) => {
            computed = name.to_vec(x, cx);
            &computed
        }
    };
    let name = without_port(name);
    if let Some(certificate) = &shared.certificate
        && let Some((config, digest)) = certificate.of_request(x, cx)
    {
        return settings(shared, x, name, (config, digest));
    }
    if let Some((first, tls)) = policy.first.get()
        && **first == *name
    {
        return Ok(Arc::clone(tls));
    }
    let config = (shared.config.clone().into(), shared.digest);
    let tls = settings(shared, x, name, config)?;
    // Another thread may have been first; both are right.
    let _ = policy.first.set((name.into(), Arc::clone(&tls)));
    Ok(tls)
}

fn settings(
    policy: &SharedPolicy,
    x: &Exchange,
    name: &[u8],
    (config, digest): (HandshakeConfig, PolicyDigest),
) -> Result<Arc<ServerTls>, u16> {
    let refuse = |status: u16, text: std::fmt::Arguments<'_>| {
        x.log_while(Level::Error, ACTION, text);
        Err(status)
    };
    let shown = Printable(name);
    let name = match server_name(name) {
        Some(name) => name,
        None if policy.verifies => {
            let text = format_args!("upstream SSL certificate does not match \"{shown}\"");
            return refuse(502, text);
        }
        None if policy.sends_name && !name.is_empty() => {
            let text = format_args!("SSL_set_tlsext_host_name(\"{shown}\") failed");
            return refuse(500, text);
        }
        None => unnamed(),
    };
    Ok(Arc::new(ServerTls::new(config, digest, name)))
}

/// Removes a port, such as that of `$proxy_host` or `$http_host`.
fn without_port(name: &[u8]) -> &[u8] {
    let from = match name.first() {
        Some(b'[') => memchr::memchr(b']', name).unwrap_or(name.len()),
        _ => 0,
    };
    match memchr::memchr(b':', &name[from..]) {
        Some(at) => &name[..from + at],
        None => name,
    }
}

/// Reads a host name, or an IP address with or without brackets.
fn server_name(name: &[u8]) -> Option<ServerName<'static>> {
    let name = str::from_utf8(name).ok()?;
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    let name = ServerName::try_from(bare.unwrap_or(name)).ok()?;
    Some(name.to_owned())
}

/// A name if none is needed: addresses are not sent by SNI.
fn unnamed() -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED).into())
}

/// The action on a server, as the log names it behind "while".
const ACTION: &str = "SSL handshaking to upstream";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_no_part_of_a_name() {
        for (written, name) in [
            ("a.test", "a.test"),
            ("a.test:8443", "a.test"),
            ("[::1]:8443", "[::1]"),
            ("[::1]", "[::1]"),
            ("[::1", "[::1"),
            (":80", ""),
            ("", ""),
        ] {
            let shown = without_port(written.as_bytes());
            assert_eq!(shown.escape_ascii().to_string(), name, "{written}");
        }
    }

    #[test]
    fn names_are_hosts_or_addresses() {
        for good in ["a.test", "localhost", "a_b.test", "127.0.0.1", "[::1]"] {
            assert!(server_name(good.as_bytes()).is_some(), "{good}");
        }
        for bad in ["", "a..b", "*.test", "a b", "\u{fc}.test"] {
            assert!(server_name(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
