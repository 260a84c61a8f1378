//! What a SPDY connection tells its driver.

use super::error::ProtocolError;
use crate::mux;

pub use crate::mux::{SendAction, SendOptions};

/// Something the peer sent, in order. Trailers are never told: a client cannot send any.
pub type Event = mux::Event<ProtocolError>;
