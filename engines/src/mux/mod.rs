//! What multiplexed protocols share: windows, a table of streams, the two halves of each and who sends next, the budget
//! for what an attack repeats, what a connection tells its driver, and most of both roles.
//!
//! Absent: frames, and anything that differs between HTTP/2 and SPDY.

pub(crate) mod budget;
pub mod client;
mod event;
mod incoming;
mod outgoing;
mod repeated;
mod scheduler;
pub mod server;
mod table;
mod window;

pub use event::{Broken, Event, Plan, Want};
pub(crate) use incoming::{Allowance, Incoming};
pub(crate) use outgoing::{Outgoing, Sender, Step};
pub(crate) use repeated::Repeated;
pub use scheduler::{Priority, Scheduler};
pub use table::StreamTable;
pub(crate) use window::MAX_WINDOW;
pub use window::{Overflow, Window};
