//! Responses in CGI's format, sent by servers of SCGI, uwsgi and FastCGI, and connections of the first two.
//!
//! A head consists of fields only; its status is in the field `Status`. Without one it is 302 if there is a
//! `Location`, else 200. Servers of SCGI and uwsgi may send a status line of HTTP instead. `Content-Length` defines
//! the length of a body; without one it ends with the connection.
//!
//! [`Client`] is one connection in the client role with one exchange; [`crate::scgi::request`] and
//! [`crate::uwsgi::request`] begin it. FastCGI has records of its own and uses [`HeadParser`] alone.
//!
//! Absent: interim responses, trailers, local redirects (RFC 3875 section 6.2.2; nginx answers them with 302, too).
//!
//! Source: RFC 3875 section 6; nginx's `ngx_http_scgi_module`, `ngx_http_uwsgi_module`.

mod client;
mod head;
mod protocol_error;
#[cfg(test)]
mod tests;

pub use client::{Client, Event, RequestOptions};
pub use head::{HeadParser, Parsed, StatusLine, is_head};
pub use protocol_error::ProtocolError;

pub(crate) use crate::h1::{Ends, ends};

/// Maximum of the parameters of a request, bytes in encoded form.
pub const PARAMETER_BYTES: usize = 64 << 10;
