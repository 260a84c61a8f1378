//! TLS, both roles: received bytes in, plaintext out; plaintext in, bytes to send out.
//!
//! rustls implements the protocol. This crate adapts it to the interface of the other engines and exposes the
//! ClientHello (name, protocols) as data, so that the server can choose a configuration before the handshake
//! begins. [`Conn`] is the server's end of a connection, [`ClientConn`] the client's.
//!
//! It is a crate of its own because it is not pure like the engines: rustls itself draws random numbers and reads
//! the time (validity of certificates, age of tickets). It also reads the server of the current handshake from its
//! thread (`handshaking`). It opens no socket or file and starts no thread.
//!
//! Absent: everything that rustls omits (TLS before 1.2, renegotiation, compression, DHE).
//!
//! Source: RFC 8446, RFC 5246, RFC 6066, RFC 7301.
#![forbid(unsafe_code)]

mod ciphers;
mod client;
mod client_config;
mod client_conn;
mod client_policy;
mod compress;
mod config;
mod conn;
mod early;
mod fault;
mod groups;
mod handshaking;
mod hello;
mod host_names;
mod keys;
pub mod names;
pub mod ocsp;
mod policy;
mod random;
mod reason;
mod records;
mod resume;
mod scratch;
mod secret;
mod server_sessions;
mod server_trust;
mod signatures;
mod staple;
mod verify;
mod versions;
mod x509;

pub use ciphers::{CipherFault, Ciphers};
pub use client_config::{ClientConfig, ClientOptions, ServerTrust};
pub use client_conn::{AnyServer, ClientConn};
pub use client_policy::{ClientSettings, PolicyDigest};
pub use config::{ClientAuth, ClientCertError, ClientMode, Config, Settings};
pub use conn::{Conn, Info};
pub use early::EarlyData;
pub use fault::Fault;
pub use groups::Groups;
pub use hello::{Hello, Offered, Parsed, Reader, parse};
pub use keys::{Chain, Identity, Key, Mismatch, WeakIdentity};
pub use policy::Policy;
pub use random::warm_up;
pub use reason::Reason;
pub use resume::{KeyRing, SessionCache, TicketKey};
pub use rustls::KeyLog;
pub use rustls::pki_types::ServerName;
pub use scratch::Scratch;
pub use server_trust::{ServerAuth, ServerFault};
pub use staple::Staple;
pub use verify::{Authorities, Verified};
pub use versions::Versions;
pub use x509::{Certificate, Crl, FileFault};
