//! Common parts of multiplexed protocols: windows, a table of streams, the two halves of each, the scheduler, the
//! budget against floods, events of a connection, and most of both roles.
//!
//! Absent: frames, and all differences between HTTP/2 and SPDY.

pub(crate) mod budget;
pub mod client;
mod event;
mod frames;
mod head;
mod header_cache;
mod incoming;
mod outgoing;
mod scheduler;
pub mod server;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod window;

pub(crate) use event::protocol_error;
pub use event::{Broken, Event, SendAction, SendOptions};
pub use frames::{Codes, Frames};
pub(crate) use head::HeadBuilder;
pub(crate) use header_cache::HeaderCache;
pub(crate) use incoming::{Incoming, RecvWindow};
pub(crate) use outgoing::{Outgoing, Sender, Step};
pub use scheduler::{Priority, Scheduler};
pub use table::StreamTable;
pub(crate) use window::MAX_WINDOW;
pub use window::{Overflow, Window};
