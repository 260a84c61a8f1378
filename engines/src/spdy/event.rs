//! Events of a SPDY connection.

use super::error::ProtocolError;
use crate::mux;

pub use crate::mux::{SendAction, SendOptions};

/// Something the peer sent, in order. There are no trailers: a client cannot send any.
pub type Event = mux::Event<ProtocolError>;
