//! Finds which end of a flow is the server.

use super::captured::Collected;
use super::tcp::Header;

/// Whether the lower end is the server: by the SYN, else by the first payload, else by the ports.
pub(super) fn is_lower_server(flow: &Collected) -> bool {
    by_syn(flow)
        .or_else(|| by_content(flow))
        .unwrap_or_else(|| by_ports(flow))
}

fn by_syn(flow: &Collected) -> Option<bool> {
    let syn = flow
        .segments
        .iter()
        .find(|one| one.header.has(Header::SYN))?;
    // A server answers the SYN with SYN and ACK.
    Some(syn.is_from_lower == syn.header.has(Header::ACK))
}

fn by_content(flow: &Collected) -> Option<bool> {
    flow.segments.iter().take(LOOKED_AT_MAX).find_map(|one| {
        let (begin, length) = (one.kept.0 as usize, one.kept.1 as usize);
        let bytes = flow.bytes.get(begin..begin + length)?;
        if is_request(bytes) {
            return Some(!one.is_from_lower);
        }
        is_response(bytes).then_some(one.is_from_lower)
    })
}

fn is_request(bytes: &[u8]) -> bool {
    const BEGINS: [&[u8]; 8] = [
        b"GET ",
        b"POST ",
        b"HEAD ",
        b"PUT ",
        b"DELETE ",
        b"OPTIONS ",
        b"PRI * HTTP/2",
        b"CONNECT ",
    ];
    BEGINS.iter().any(|begin| bytes.starts_with(begin)) || is_hello(bytes, CLIENT_HELLO)
}

fn is_response(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.") || is_hello(bytes, SERVER_HELLO)
}

/// Whether these bytes begin a handshake of TLS with this message.
fn is_hello(bytes: &[u8], message: u8) -> bool {
    matches!(bytes, [22, 3, _, _, _, first, ..] if *first == message)
}

fn by_ports(flow: &Collected) -> bool {
    let [lower, upper] = flow.ends.map(|end| end.port());
    let known = |port: u16| PORTS.contains(&port);
    match (known(lower), known(upper)) {
        (true, false) => true,
        (false, true) => false,
        // Systems give clients high ports.
        _ => lower <= upper,
    }
}

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Ports of servers of the web.
const PORTS: [u16; 8] = [80, 443, 8000, 8008, 8080, 8081, 8443, 9443];
/// Limit of segments that are searched for a request.
const LOOKED_AT_MAX: usize = 10_000;
