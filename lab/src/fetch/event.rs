//! Events of a connection.

use super::failure::Failure;
use super::response::Response;
use crate::client::Protocol;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
    /// The connection is open: TLS, if any, is complete.
    Open(Protocol),
    /// The head of the response to the request with this token came.
    Head(usize),
    /// More of its body came.
    Data(usize),
    /// It has ended.
    Done(usize, Result<Box<Response>, Failure>),
    /// The connection is over; without a failure if the server closed it without requests in progress.
    Closed(Option<Failure>),
}
