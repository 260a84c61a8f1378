//! Events of a connection.

use super::failure::Failure;
use super::response::Response;
use crate::client::Protocol;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
    /// The connection is open: TLS, if any, is complete.
    Open(Protocol),
    /// The response head for the request with this token.
    Head(usize),
    /// A part of its body.
    Data(usize),
    /// It has ended.
    Done(usize, Result<Box<Response>, Failure>),
    /// The connection is over; without a failure if the server closed it without requests in progress.
    Closed(Option<Failure>),
}
