//! The ClickHouse engine.

mod transport;

pub use transport::{HttpRequest, HttpResponse, Transport, TransportError};
