//! The certificate of a handshake: that of the server with the name, or one that is chosen anew (`ssl_certificate`
//! with variables).
//!
//! A handshake has no request yet. An exchange without a head takes its place, so that variables of the connection,
//! its addresses and the ClientHello can be read. Absent: waiting. A file is read in the turn that needs it, as in
//! nginx.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`, `ssl_certificate`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Protocols, parse_host};
use server_base::regex::FailedMatch;
use tls::{Config, Info};

use crate::exchange::{Ctx, Exchange, Tls};
use crate::http::Http;
use crate::names::Unmatched;
use crate::route::server::place;

/// The servers that the name of a handshake selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The server with the name, else the default server.
    pub named: usize,
    /// The server that shows its certificate.
    pub certificate: usize,
    /// The protocols offered.
    pub offer: Protocols,
}

/// Selects the servers for the name of a handshake on a port's address. The server that has it shows its certificate,
/// else the default server; a text that is no host name selects the default server, too. A server which neither has a
/// certificate nor refuses handshakes shows that of the default server, but speaks its own protocols.
///
/// # Errors
/// A regular expression ran into its match limit.
pub fn handshake(
    http: &Http,
    port: usize,
    local: Option<SocketAddr>,
    name: Option<&[u8]>,
) -> Result<Handshake, Unmatched> {
    let addr = http.ports[port].addr(local);
    let named = addr.names.find(name)?.unwrap_or(addr.default_server);
    let tls = http.tls[named].config.as_ref();
    let shows = tls.is_some_and(|tls| tls.has_certificates() || tls.rejects());
    Ok(Handshake {
        named,
        certificate: if shows { named } else { addr.default_server },
        offer: http.offered_protocols(addr, named),
    })
}

/// Loads the certificates of a server, by its index, for a handshake; `x` is a begun exchange without a head.
pub fn load(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    server: usize,
    mut asked: Info,
) -> Option<Arc<Config>> {
    let http = Rc::clone(&x.route.http);
    let server_conf = http.servers.get(server)?;
    let settings = http.tls[server].config.as_ref()?;
    // The name may become part of a path.
    asked.server_name = asked.server_name.filter(|name| is_host_name(name));
    x.head.clear();
    x.tls = Some(Rc::new(Tls::new(settings.shared(), asked)));
    place(x);
    x.route.server = server;
    x.route.location = server_conf.location;
    let late = server_conf.certificates.as_ref()?;
    let loaded = late.load(x, cx, settings)?;
    // A name that hangs on an expression which could not be matched is no name.
    (x.vars.failed_match == FailedMatch::None).then(|| Arc::new(loaded))
}

/// Whether a name of a handshake is a host name and nothing else: no path, no address, no port.
fn is_host_name(name: &[u8]) -> bool {
    let mut host = Vec::with_capacity(name.len());
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    name.first() != Some(&b'.') && name.iter().all(is_plain) && parse_host(name, &mut host).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_come_into_paths() {
        for name in ["a", "a.example", "xn--a-b.example", "a_b", "A.Example."] {
            assert!(is_host_name(name.as_bytes()), "{name}");
        }
        for name in [
            "", ".", "..", "a/b", "../a", "a..b", ".hidden", "data:x", "[::1]", "a:1", "a\0b",
            "\u{e4}",
        ] {
            assert!(!is_host_name(name.as_bytes()), "{name}");
        }
    }
}
