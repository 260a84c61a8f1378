//! Servers behind this one, for every kind of server that passes its clients on.
//!
//! A [`connector`] begins an attempt with a server and returns its mailbox ([`request`]). Absent: requests of clients, their
//! settings and their responses, which each kind of server has of its own; sockets, which are the driver's.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.
#![forbid(unsafe_code)]

pub mod connector;
pub mod error;
pub mod request;
pub mod route;
