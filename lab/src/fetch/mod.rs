//! Requests with a record of every event: for the doctor, and for visits of pages by the clients of this crate.
//!
//! [`Connection`] blocks: it opens one connection, sends requests on it and returns responses with the time of their parts,
//! and [`ConnectionRecord`] has the time of each read and of each TLS record below them. [`Core`] does the same without
//! blocking, for many connections in one loop of a poller. All times are nanoseconds of the monotonic clock.
//!
//! [`HttpClient`] sends requests of the store on a kept connection.
//!
//! A server may be hostile: heads, bodies, reads and waits are limited, and every fault becomes a [`Failure`].
//!
//! Absent: load, see [`crate::load`], which keeps totals alone; redirects, cookies and caches, which are the caller's.

mod connection;
mod core;
mod decode;
mod dial;
mod event;
mod exchanges;
mod failure;
mod http_client;
mod key_log;
mod record;
mod resolve;
mod response;
mod sessions;

pub use self::core::{Core, MAX_READS, MAX_RECEIVED_BYTES};
pub use connection::Connection;
pub(crate) use decode::Decoder;
pub use dial::{Acks, Dial, TlsOptions};
pub use event::Event;
pub use failure::{Failure, FailureCause};
pub use http_client::{HttpClient, HttpClientSettings};
pub use key_log::KeyLog;
pub use record::{ConnectionRecord, Handshake, Read, TlsRecord};
pub use resolve::{Lookup, resolve};
pub use response::{MAX_BODY_BYTES, Piece, Response};
pub use sessions::Sessions;
pub use tls::Versions;

#[cfg(test)]
pub(crate) mod tests;
