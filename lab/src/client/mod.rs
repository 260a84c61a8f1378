//! Connections to servers, with the time of each event on them.
//!
//! `Connection::dial` begins a connection to a `Target`. Readiness from the poller goes to `ready`, requests go to
//! `request`, and `flush` sends them. Then `event` returns events in order: TCP connected, TLS complete, the head of a
//! response, its end. After the end, `in_flight.remove` returns the request with its times. No call blocks, and
//! `now_ns` is the only clock.

mod clock;
mod connection;
mod engine;
mod in_flight;
mod request;
pub(crate) mod scheme;
mod transport;
pub mod trust;
mod url;

pub(crate) use clock::{Clocks, now_ns};
pub(crate) use connection::{Connection, Stage, Target, failed};
pub use engine::Protocol;
pub(crate) use engine::{Engine, Event};
pub(crate) use in_flight::Exchange;
pub use request::{Request, has_body};
pub(crate) use transport::{Broken, Transport};
pub use url::Url;
