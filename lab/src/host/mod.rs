//! The machine's network: the device on the way to an address, its offloads, and own addresses.
//!
//! Source: proc(5), ethtool(8).

mod address;
mod offloads;
mod route;

pub(crate) use address::is_own;
pub use offloads::Offloads;
pub(crate) use route::device_to;
