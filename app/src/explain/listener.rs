//! Chooses the listening socket of a connection as the kernel does: an exact address before the wildcard.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use server_base::listen::ListenAddr;
use server_http::http::{Http, Port};

use super::url::Endpoint;

/// The socket for the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its index in [`Http::ports`].
    pub(super) port: usize,
    /// Destination address of the connection, if known.
    pub(super) local: Option<SocketAddr>,
    /// Other addresses with the same port.
    pub(super) others: Vec<String>,
}

/// Finds the socket.
///
/// # Errors
/// There is none; the text lists the existing ones.
pub(super) fn choose(
    http: &Http,
    destination: &Endpoint,
    to: Option<(IpAddr, Option<u16>)>,
) -> Result<Taken, String> {
    let (ip, number) = match destination {
        Endpoint::Inet(ip, port) => match to {
            Some((ip, number)) => (Some(ip), number.unwrap_or(*port)),
            None => (*ip, *port),
        },
        Endpoint::Unix(_) if to.is_some() => {
            return Err("--to needs a URL with a host, not a socket".to_owned());
        }
        Endpoint::Unix(path) => {
            let same = |port: &Port| port.listen.addr == ListenAddr::Unix(path.clone());
            let port = http.ports.iter().position(same);
            let shown = format!("unix:{}", path.display());
            let port = port.ok_or_else(|| nobody(&shown, http))?;
            return Ok(Taken {
                port,
                local: None,
                others: Vec::new(),
            });
        }
    };
    let Some(ip) = ip else {
        return by_port(http, number);
    };
    let best = |port: &&(usize, &Port)| specific(port.1, ip, number);
    let ports: Vec<(usize, &Port)> = http.ports.iter().enumerate().collect();
    let found = ports.iter().filter(|port| best(port) > 0).max_by_key(best);
    let addr = SocketAddr::new(ip, number);
    let (port, _) = found.ok_or_else(|| nobody(&addr.to_string(), http))?;
    Ok(Taken {
        port: *port,
        local: Some(addr),
        others: Vec::new(),
    })
}

/// Rates how specifically a socket matches an address, 0 for not at all.
fn specific(port: &Port, ip: IpAddr, number: u16) -> u8 {
    let ListenAddr::Inet(addr) = port.listen.addr else {
        return 0;
    };
    let both = !port.listen.options.ipv6only;
    match addr.ip() {
        _ if addr.port() != number => 0,
        own if own == ip => 3,
        own if own.is_unspecified() && own.is_ipv4() == ip.is_ipv4() => 2,
        IpAddr::V6(own) if own.is_unspecified() && both => 1,
        _ => 0,
    }
}

/// Chooses by the port alone, since names are not resolved: the wildcard if there is one, else the first address.
fn by_port(http: &Http, number: u16) -> Result<Taken, String> {
    let on_port = |(_, port): &(usize, &Port)| matches!(port.listen.addr, ListenAddr::Inet(addr) if addr.port() == number);
    let ports: Vec<(usize, &Port)> = http.ports.iter().enumerate().filter(on_port).collect();
    let wildcard = ports
        .iter()
        .find(|(_, port)| port.listen.addr.is_wildcard());
    let (index, port) = wildcard
        .or(ports.first())
        .ok_or_else(|| nobody(&format!("port {number}"), http))?;
    let local = match port.listen.addr {
        ListenAddr::Inet(addr) if !port.listen.addr.is_wildcard() => Some(addr),
        _ => loopback_of(port, number),
    };
    let rest = ports.iter().filter(|(other, _)| other != index);
    let mut others: Vec<String> = rest.map(|(_, port)| port.listen.addr.to_string()).collect();
    let shared = port.addrs.iter().filter_map(|entry| entry.addr);
    others.extend(shared.map(|addr| addr.to_string()));
    Ok(Taken {
        port: *index,
        local,
        others,
    })
}

/// Returns a likely address of a wildcard for variables; `None` if it would affect the choice of the server.
fn loopback_of(port: &Port, number: u16) -> Option<SocketAddr> {
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let is_v4 = matches!(port.listen.addr, ListenAddr::Inet(addr) if addr.is_ipv4());
    (is_v4 && port.addrs.len() == 1).then(|| SocketAddr::new(ip, number))
}

fn nobody(wanted: &str, http: &Http) -> String {
    let mut all: Vec<String> = Vec::new();
    for port in &http.ports {
        all.push(port.listen.addr.to_string());
        let shared = port.addrs.iter().filter_map(|entry| entry.addr);
        all.extend(shared.map(|addr| addr.to_string()));
    }
    match all.as_slice() {
        [] => format!("no server listens on {wanted}: there are no listeners"),
        _ => format!("no server listens on {wanted}; there is {}", all.join(", ")),
    }
}
