//! What a SPDY connection tells its driver.

use super::error::Misdeed;
use crate::mux;

pub use crate::mux::{Plan, Want};

/// Something the peer sent, in order. Trailers are never told: a client cannot send any.
pub type Event = mux::Event<Misdeed>;
