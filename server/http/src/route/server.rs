//! The server of an exchange: by the host of the request, before that by the name of the handshake.
//!
//! Source: nginx documentation, "Server names".

use server_base::regex::MatchLimit;

use crate::exchange::Exchange;
use crate::http::{LocalHttp, PortAddr};
use crate::names::NameMatch;
use crate::trace::Event;

/// The server of an exchange until the host of its request is known.
fn first_server(x: &Exchange, http: &LocalHttp) -> usize {
    let named = match &x.tls {
        // After a match limit, the server of the request is searched by the same names.
        Some(tls) => tls
            .named_server(http, x.route.port, x.client.local)
            .ok()
            .flatten(),
        None => None,
    };
    named.unwrap_or_else(|| http.ports[x.route.port].addr(x.client.local).default_server)
}

/// Puts an exchange into the server that was named in the handshake, else the default server of its port.
pub fn place(x: &mut Exchange) {
    x.target.method = x.head.method;
    x.input.bytes = x.head.size_bytes;
    x.route.server = first_server(x, &x.route.http);
    x.route.location = x.route.own_server().location;
}

/// Chooses the server for the exchange's host; the default server when no name matches.
///
/// # Errors
/// A regular expression ran into its match limit.
pub(crate) fn find_server(x: &mut Exchange, addr: &PortAddr) -> Result<usize, MatchLimit> {
    let (server, how) = choose(x, addr)?;
    x.record_event(|| Event::Server(how));
    Ok(server)
}

fn choose(x: &mut Exchange, addr: &PortAddr) -> Result<(usize, NameMatch), MatchLimit> {
    if addr.names.is_empty() {
        return Ok((addr.default_server, NameMatch::Only));
    }
    if let Some(found) = addr.names.table.find_match(&x.target.host) {
        return Ok(found);
    }
    let default = (addr.default_server, NameMatch::Default);
    if x.target.host.is_empty() {
        return Ok(default);
    }
    let host = std::mem::take(&mut x.target.host);
    let found = first_regex(x, addr, &host);
    x.target.host = host;
    Ok(found?.unwrap_or(default))
}

fn first_regex(
    x: &mut Exchange,
    addr: &PortAddr,
    host: &[u8],
) -> Result<Option<(usize, NameMatch)>, MatchLimit> {
    for (regex, server, index) in &addr.names.regex {
        if regex.exec(x, host)? {
            return Ok(Some((*server, NameMatch::Regex(*index))));
        }
    }
    Ok(None)
}
