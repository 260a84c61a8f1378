//! Stored responses of upstream servers.
//!
//! Absent: requests, their settings and the steps of a request, which are in server/http.
//!
//! Source: RFC 9111; nginx documentation, `ngx_http_proxy_module`.
#![forbid(unsafe_code)]

pub mod rfc9111;
