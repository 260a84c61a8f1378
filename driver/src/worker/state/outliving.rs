//! The exchanges of a connection that have outlived their streams, or the connection.
//!
//! An exchange outlives its client if `*_ignore_client_abort on` or `*_store` applies and its request is complete.
//! [`conn::outliving`](crate::worker::conn) continues it.
//!
//! Source: nginx documentation, `proxy_ignore_client_abort`.

use server_http::exchange::Exchange;

use super::mux_engine::Pool;

/// Exchanges without a client any more.
#[derive(Default)]
pub(crate) struct Outliving(pub(crate) Pool<Exchange>);

impl Outliving {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this connection may have no further outliving exchange.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= OUTLIVING_MAX
    }

    /// When the first of them continues without a wake, monotonic milliseconds.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.0.iter().filter_map(|x| x.due_ms()).min()
    }

    /// Whether one of the exchanges began before this configuration.
    pub(crate) fn is_older_than(&self, number: u64) -> bool {
        self.0.iter().any(|x| x.route.http.number < number)
    }

    /// Adds an exchange, with the number of response bytes sent.
    pub(crate) fn add(&mut self, mut x: Box<Exchange>, sent_bytes: u64) {
        x.response.bytes_sent = sent_bytes;
        x.body.unsent_bytes = 0;
        self.0.push(x);
    }
}

/// Whether an exchange continues without its client.
pub(crate) fn outlives_client(x: &Exchange) -> bool {
    let in_progress = x.is_waiting() || x.body.on_arrival.is_some();
    x.progress.ignore_abort && in_progress && !x.lacks_body()
}

/// Exchanges that may outlive their streams on one connection; at this number new streams are refused. As many as streams
/// are open by default (`http2_max_concurrent_streams`), which bounds them in nginx.
const OUTLIVING_MAX: usize = 128;
