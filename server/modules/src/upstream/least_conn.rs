//! `least_conn`: the server with the fewest attempts in progress.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `least_conn`.

use conf::Contexts;
use server_http::assemble::ConfigBuilder;
use server_upstream::balance::least_conn::LeastConn;

use super::method::set_method;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Each request is passed to the server with the fewest active connections for its weight; equal servers take turns.
    directive "least_conn": Contexts::UPSTREAM, NOARGS, "", "" => |b, d| {
        set_method(b, d, LeastConn, None);
        Ok(())
    };
}
