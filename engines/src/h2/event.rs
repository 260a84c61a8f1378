//! Events of an HTTP/2 connection.

use super::error::ProtocolError;
use crate::mux;

pub use crate::mux::{SendAction, SendOptions};

/// Something the peer sent, in order.
pub type Event = mux::Event<ProtocolError>;
