//! Variables of the PROXY protocol.
//!
//! Source: nginx documentation, `ngx_http_core_module`, "Embedded Variables".

use std::net::SocketAddr;

use engines::proxy_protocol::{Header, TlvError};
use server_base::errlog::{Level, Printable};

use super::out::{Out, put, put_number};
use crate::exchange::Exchange;
use crate::variables;
use crate::vars::Variable;

/// The variables.
pub(super) const VARIABLES: &[Variable] = variables! {
    "proxy_protocol_addr": "client address of the PROXY protocol header"
        => |x, _, _, o| address(x, |header| header.source, o);
    "proxy_protocol_port": "client port of the PROXY protocol header"
        => |x, _, _, o| port(x, |header| header.source, o);
    "proxy_protocol_server_addr": "server address of the PROXY protocol header"
        => |x, _, _, o| address(x, |header| header.destination, o);
    "proxy_protocol_server_port": "server port of the PROXY protocol header"
        => |x, _, _, o| port(x, |header| header.destination, o);
    "proxy_protocol_tlv_": "field of this name or number of the PROXY protocol header"
        => |x, _, name, o| tlv(x, name, o);
};

fn address(x: &Exchange, end: fn(&Header) -> SocketAddr, out: &mut Out) -> bool {
    x.proxied
        .as_ref()
        .is_some_and(|header| put(out, end(header).ip().to_string().as_bytes()))
}

/// Port 0 is shown as nothing, as in nginx.
fn port(x: &Exchange, end: fn(&Header) -> SocketAddr, out: &mut Out) -> bool {
    let port = x.proxied.as_ref().map(|header| end(header).port());
    match port {
        Some(0) => put(out, b""),
        Some(port) => put_number(out, u64::from(port)),
        None => false,
    }
}

fn tlv(x: &Exchange, name: &[u8], out: &mut Out) -> bool {
    let Some(header) = &x.proxied else {
        return false;
    };
    let text = match header.tlv(name) {
        Ok(value) => return put(out, &value),
        Err(TlvError::Absent) => return false,
        Err(TlvError::Broken) => "broken PROXY protocol TLV".to_owned(),
        Err(TlvError::UnknownName) => {
            let name = Printable(name);
            format!("unknown PROXY protocol TLV \"{name}\"")
        }
    };
    x.log(Level::Error, format_args!("{text}"));
    false
}
