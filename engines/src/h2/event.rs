//! What an HTTP/2 connection tells its driver.

use super::error::Misdeed;
use crate::mux;

pub use crate::mux::{Plan, Want};

/// Something the peer sent, in order.
pub type Event = mux::Event<Misdeed>;
