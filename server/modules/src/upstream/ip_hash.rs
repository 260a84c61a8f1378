//! `ip_hash`: the server by the client's network.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ip_hash`.

use conf::Contexts;
use server_http::assemble::ConfigBuilder;
use server_http::upstream::group::KeySource;
use server_upstream::balance::ip_hash::IpHash;

use super::method::set_method;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Clients of one network use one server: the first three bytes of an IPv4 address, or a whole IPv6 address.
    directive "ip_hash": Contexts::UPSTREAM, NOARGS, "", "" => |b, d| {
        set_method(b, d, IpHash, Some(KeySource::ClientNetwork));
        Ok(())
    };
}
