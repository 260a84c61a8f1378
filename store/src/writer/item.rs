//! Elements of the queue.

use crate::connection::Connection;
use crate::query::OpenSample;

/// An element of the queue. Rows are boxed: samples are short.
pub(super) enum Item {
    Row(Box<Connection>),
    Open(OpenSample),
}

impl Item {
    /// Returns whether it is a row of a connection.
    pub(super) fn is_row(&self) -> bool {
        matches!(self, Self::Row(_))
    }
}
