//! `ntlm` in an `upstream` block: connections to servers that are bound to connections of clients.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ntlm`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;

use super::set;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Binds a connection to a server to the client's connection, once the client authenticates by NTLM or Negotiate.
    directive "ntlm": Contexts::UPSTREAM, NOARGS, "", "" => |b, d| set(b, d, |block| &mut block.ntlm, parse);
}

fn parse(_: &Directive) -> Result<(), ConfError> {
    Ok(())
}
