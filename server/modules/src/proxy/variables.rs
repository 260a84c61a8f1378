//! Variables: the target of a request, and values for `X-Forwarded-For` and `Via`.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`, "Embedded Variables"; RFC 9110 section 7.6.3.
//! `$proxy_add_via` is not nginx's.

use engines::http::{FieldId, Version};
use server_base::peer::Peer;
use server_http::conf_core::CoreSrv;
use server_http::exchange::Exchange;
use server_http::variables;
use server_http::vars::Variable;

use super::pass::{self, UrlParts};

/// Variables that the configuration may redefine.
pub(super) const DEFAULTS: &[Variable] = variables! {
    "proxy_host": "host and port of the server of proxy_pass" => |x, _, _, out| of_url(x, out, |parts| &parts.host);
    "proxy_port": "port of the server of proxy_pass" => |x, _, _, out| of_url(x, out, |parts| &parts.port);
};

/// The others.
pub(super) const VARIABLES: &[Variable] = variables! {
    "proxy_add_x_forwarded_for": "X-Forwarded-For of the request with the client's address appended"
        => |x, _, _, out| {
            append_list(x, FieldId::XForwardedFor, out);
            match x.client.peer {
                Peer::Inet(addr) => out.extend_from_slice(addr.ip().to_string().as_bytes()),
                Peer::Unix => out.extend_from_slice(b"unix:"),
            }
            true
        };
    "proxy_add_via": "Via of the request with its protocol version and the name of this server appended"
        => |x, cx, _, out| {
            append_list(x, FieldId::Via, out);
            out.extend_from_slice(version(x.head.version));
            out.push(b' ');
            match x.route.srv::<CoreSrv>().name.as_slice() {
                b"" => out.extend_from_slice(&cx.env.hostname),
                name => out.extend_from_slice(name),
            }
            true
        };
};

fn of_url(x: &Exchange, out: &mut Vec<u8>, part: fn(&UrlParts) -> &[u8]) -> bool {
    let Some(parts) = pass::parts(x, &x.route.http) else {
        return false;
    };
    out.extend_from_slice(part(parts));
    true
}

/// Appends all values of a field, each with a final comma.
fn append_list(x: &Exchange, id: FieldId, out: &mut Vec<u8>) {
    for value in x.head.fields_by_id(id) {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
}

/// Returns the version for `Via`, in which the protocol name "HTTP" may be omitted.
fn version(version: Version) -> &'static [u8] {
    let text = version.as_str();
    text.strip_prefix("HTTP/").unwrap_or(text).as_bytes()
}
