//! The server of the pages: one thread for all connections, [`pool`]'s threads for queries and events.
//!
//! Bytes enter and leave in [`connection`]; [`server`] has the loop. Bounds: connections, event streams, output that waits,
//! queued requests, and the time of each step. TLS and access rules belong to the server in front.

mod cache;
mod connection;
mod pool;
mod response;
mod server;

#[cfg(test)]
mod tests;

pub(super) use pool::{Events, Handler, Route, Worker};
#[cfg(test)]
pub(super) use response::{Body, POLICY};
pub(super) use response::{CSS, CSV, HTML, JSON, Request, Response, SCRIPT, SVG};
pub(super) use server::run;
pub use server::{CONNECTIONS_MAX, STREAMS_MAX};
