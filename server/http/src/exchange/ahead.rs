//! What leaves ahead of a response: an interim head, and promises of what the client will ask for next.
//!
//! Modules put it here, the driver takes it when it can leave: the interim head with the first wait or with the response,
//! the promises with the response.
//!
//! Source: RFC 8297; RFC 9113 section 8.4.

use engines::http::ResponseHead;

/// What leaves ahead of a response.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The fields of a 103 that has not left yet.
    pub hints: Option<ResponseHead>,
    /// Paths, with their queries, that are to be pushed.
    pub pushes: Vec<Vec<u8>>,
}
