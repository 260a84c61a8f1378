//! `ntlm`: a connection to a server that is bound to the connection of a client, which NTLM authenticates as a whole.
//!
//! The first request with `Authorization: NTLM` or `Negotiate` binds them. Further requests of the client's connection to the
//! group are passed to the same server, over the connection of a pool that no other client uses. The connection to the server
//! is closed with the client's.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ntlm`. It is silent about the end of a bound connection.

use std::rc::Rc;

use engines::http::FieldId;
use server_base::transport::NO_SOCKET;
use server_upstream::connector::BoundClient;
use server_upstream::picker::Picker;

use crate::exchange::{Ctx, Exchange};

/// Returns the client's connection if the group has `ntlm`. Requests without a client are never bound.
fn client(picker: &Picker, x: &Exchange) -> Option<BoundClient> {
    let client = picker.bound_client(x.client.connection)?;
    (x.client.socket != NO_SOCKET).then_some(client)
}

/// Returns the identifier of the server to which the client's connection is bound.
pub(super) fn server(picker: &Picker, x: &Exchange, cx: &Ctx<'_>) -> Option<Rc<[u8]>> {
    cx.connector.bound_server(client(picker, x)?)
}

/// Returns the client's connection if the request needs a connection to the server that is bound to it.
pub(super) fn binds(picker: &Picker, x: &Exchange, cx: &Ctx<'_>) -> Option<BoundClient> {
    let client = client(picker, x)?;
    let mut credentials = x.head.fields_by_id(FieldId::Authorization);
    let binds =
        credentials.any(begins_authentication) || cx.connector.bound_server(client).is_some();
    binds.then_some(client)
}

/// Whether a value of `Authorization` has a scheme that authenticates connections.
fn begins_authentication(value: &[u8]) -> bool {
    let schemes: [&[u8]; 2] = [b"NTLM", b"Negotiate"];
    schemes.iter().any(|scheme| {
        (value.get(..scheme.len())).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    })
}
