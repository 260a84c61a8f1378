//! Protocol engines of firstbyte: bytes to meaning and back.
//!
//! An engine takes received bytes and returns events; it takes responses and returns bytes to send. Nothing here
//! reads a clock, opens a socket or a file, starts a thread or keeps a global: the driver does all of that, which
//! is why every engine can be fuzzed and run under a virtual clock. `clippy.toml` of this crate forbids functions
//! that would break the rule.
//!
//! Time is an argument, `now_ms`, of the calls that need it: milliseconds of a clock that does not go back. If no
//! such call is due, `tick(now_ms)` advances time. An engine with timers returns the time of the next one; the
//! timeouts of a configuration belong to the driver.
//!
//! - [`http`]: the vocabulary all engines and the server share.
//! - [`client`]: the common part of all engines in the client role.
//! - [`beacon`]: measurements of page views.
//! - [`cgi`]: responses as CGI has them.
//! - [`scgi`], [`uwsgi`]: requests of these protocols, client role.
//! - [`dns`]: names to addresses, client role.
//! - [`fcgi`]: FastCGI, client role.
//! - [`h1`]: HTTP/1.1, HTTP/1.0 and HTTP/0.9, server role; HTTP/1.1 and HTTP/1.0, client role.
//! - [`h2`]: HTTP/2, both roles.
//! - [`memcached`]: the text protocol of memcached, client role.
//! - [`mux`]: the common part of multiplexed protocols.
//! - [`hpack`]: header compression of HTTP/2.
//! - [`spdy`]: SPDY/3.1, both roles.
//! - [`proxy_protocol`]: the header that a proxy sends before a connection's first byte.
#![forbid(unsafe_code)]

#[macro_use]
mod errors;

pub mod beacon;
pub mod cgi;
pub mod client;
pub mod dns;
pub mod fcgi;
pub mod h1;
pub mod h2;
pub mod hpack;
pub mod http;
pub mod memcached;
pub mod mux;
pub mod proxy_protocol;
mod reassembly;
pub mod scgi;
pub mod spdy;
#[cfg(test)]
mod tests;
pub mod uwsgi;
