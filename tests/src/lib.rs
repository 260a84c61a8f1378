//! Common parts of the black-box tests: a server in a directory of its own, a raw client, polling.
//!
//! A test writes a configuration with placeholders, starts the binary under test with it, sends bytes to its sockets,
//! and checks responses, logs and exit codes. Nothing here depends on the server's code: the same tests run against
//! nginx (`FIRSTBYTE_BIN=/usr/sbin/nginx`), which has confirmed their expectations. [`peer`] guards the lines in which
//! firstbyte differs on purpose, so that only those are left out of such a run.
//!
//! Deliberately absent: an HTTP library. A client that refuses to send bad input, or repairs responses, would hide
//! faults.

pub mod answers;
pub mod backend;
pub mod busy;
pub mod cache;
pub mod cases;
pub mod change;
pub mod chdb;
pub mod circles;
pub mod clickhouse;
pub mod client;
pub mod closing;
pub mod command;
pub mod dir;
pub mod docs;
pub mod experiment;
pub mod explain;
pub mod fastcgi;
pub mod files;
pub mod flushed;
pub mod h2;
pub mod hpack;
pub mod judge;
mod killed;
pub mod limited;
pub mod load;
pub mod mux;
pub mod node;
pub mod packaged;
pub mod peer;
pub mod php;
pub mod port;
pub mod process;
pub mod programs;
pub mod received;
pub mod response;
pub mod server;
pub mod shop;
pub mod skip;
pub mod small_disk;
pub mod source;
pub mod spdy;
pub mod syslog;
mod template;
pub mod tls_pipe;
pub mod tokens;
pub mod via;
pub mod wait;

pub use backend::Backend;
pub use client::Client;
pub use command::{Outcome, report, run, verbs};
pub use dir::TempDir;
pub use h2::{H2Client, Reply};
pub use response::Response;
pub use rustix::process::Signal;
pub use server::{Builder, Server};
pub use spdy::SpdyClient;
pub use wait::wait_until;
