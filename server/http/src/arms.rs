//! Hosts of arms: the protocols that their handshakes offer, and requests that must not share their connections.
//!
//! A browser may send requests for several hosts on one connection if their names have one address and one
//! certificate (RFC 9113 section 9.1.1). That would mix the arms of an experiment. So a request is refused with 421
//! if it is for the host of an arm on a connection of another host, or for another host on a connection of an arm.
//! The client repeats it on a connection of its own (RFC 9110 section 15.5.20). Absent: connections without TLS or
//! without a server name, on which a proxy may send requests for all hosts.

use engines::http::{Protocol, Version};
use server_base::errlog::Level;

use crate::client_cert;
use crate::exchange::{Exchange, Tls};
use crate::http::LocalHttp;

/// Whether a request over TLS must come on another connection, because of arms or of certificates of clients.
pub(crate) fn is_misdirected(x: &Exchange, http: &LocalHttp, server: usize) -> bool {
    client_cert::is_misdirected(x, http, server)
        || (http.arms.any_host && mixes_arms(x, http, server))
}

/// Whether a request must not be answered on its connection; logs the reason.
fn mixes_arms(x: &Exchange, http: &LocalHttp, server: usize) -> bool {
    let tls = x.tls.as_ref();
    let reason = tls.and_then(|tls| misdirection(x, tls, http, server));
    if let Some(reason) = reason {
        let action = "reading client request headers";
        x.log_while(Level::Info, action, format_args!("{reason}"));
    }
    reason.is_some()
}

/// Returns the reason for which a request must not be answered on its connection.
fn misdirection(x: &Exchange, tls: &Tls, http: &LocalHttp, server: usize) -> Option<&'static str> {
    let own = http.tls[server].own;
    if !own.is_empty() && !own.has(protocol(x.head.version)) {
        return Some(
            "client requested the host of an arm over a protocol that the arm does not offer",
        );
    }
    tls.info.server_name.as_ref()?;
    // If the names cannot be compared, the server of the request was not found either.
    let named = tls.named_server(http, x.route.port, x.client.local);
    let addr = http.ports[x.route.port].addr(x.client.local);
    let named = named.ok().flatten().unwrap_or(addr.default_server);
    let has_arm = |server: usize| http.servers[server].arm.is_some();
    let is_mixed = named != server && (has_arm(server) || has_arm(named));
    is_mixed.then_some("client requested the host of an arm on a connection of another host")
}

/// Returns the protocol of a version.
fn protocol(version: Version) -> Protocol {
    let newest_first = Protocol::ALL.into_iter().rev();
    let mut older = newest_first.filter(|protocol| protocol.newest_version() <= version);
    older.next().unwrap_or(Protocol::Http1)
}
