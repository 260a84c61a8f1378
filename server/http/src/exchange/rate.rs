//! The limit of the rate of a response, as an exchange keeps it. `response_body` obeys it.

/// How fast a response may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Bytes per second, 0 for no limit; `None` until it is known.
    pub(crate) limit: Option<u64>,
    /// Bytes that the limit does not apply to.
    pub(crate) after: Option<u64>,
    /// Nothing of the body leaves before this time, monotonic milliseconds; 0 while nothing is held back.
    pub(crate) until_ms: u64,
}

impl Rate {
    /// Sets the limit, bytes per second; 0 for none.
    pub fn set(&mut self, limit: u64) {
        self.limit = Some(limit);
    }
}
