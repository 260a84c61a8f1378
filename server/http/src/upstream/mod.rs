//! Requests that other servers answer: what `proxy_pass` and its kin have in common.
//!
//! An exchange that is passed on keeps an [`Upstream`]: which server is tried, how far the attempt is, what has come of its
//! response. [`handle`] is the content handler; run again after each wait, it goes on with the step it is at. What a protocol
//! does differently is in its [`Gateway`]. Sockets are the business of a
//! [`Connector`](server_base::connector::Connector).
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ngx_http_proxy_module`.

pub mod conf;
pub mod gateway;
pub mod group;

use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
pub use conf::UpstreamConf;
pub use gateway::{Gateway, Outgoing, Target, Verdict};

/// How far a request is that another server answers; kept with its exchange until the log.
#[derive(Default)]
pub struct Upstream {}

/// Passes the request on, or goes on with that.
pub fn handle(_: &mut Exchange, _: &mut Ctx<'_>, _: &'static dyn Gateway) -> Content {
    Content::Status(500)
}
