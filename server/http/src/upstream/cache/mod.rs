//! The cache in a pass to servers: looks for a stored response first, and stores new ones.
//!
//! ```text
//! begin      conditions and the key of a request              (nginx: proxy_cache_key, proxy_cache_bypass, ...)
//! look       the step: a stored response, a fill to read, or the server
//! open       the entry of the index and its file
//! conditions If-None-Match and its kin, of the client
//! decide     fresh, stale but usable, or to be validated
//! serve      a stored response as the response of the request
//! reader     the body of a response that another request receives
//! validate   conditions for the server, and its 304
//! stale      a stale response after a failure
//! rules      storing by nginx's rules or by RFC 9111
//! store      the begin of a file for a response
//! filling    that file, while the body is received
//! report     `Cache-Status`
//! invalidate removal after unsafe methods
//! explained  steps in the report of `firstbyte explain`
//! update     a request in the background, and a fill whose client has left
//! purge      requests that purge
//! ```
//!
//! `state` has what the steps share. Files, index and rules are in `server_cache`; settings and zones in
//! [`crate::cache`].
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; RFC 9111.

mod begin;
mod conditions;
mod decide;
pub(super) mod explained;
pub(crate) mod filling;
mod invalidate;
pub(super) mod look;
mod open;
mod purge;
mod reader;
pub(super) mod report;
mod rules;
pub(super) mod serve;
pub(super) mod stale;
pub(crate) mod state;
pub(super) mod store;
pub(super) mod update;
pub(super) mod validate;
