//! What multiplexed protocols share: windows, a table of streams, the sending half of each and who sends next, the budget
//! for what an attack repeats, and what a connection tells its driver.
//!
//! Absent: frames, and anything that differs between HTTP/2 and SPDY.

pub(crate) mod budget;
pub(crate) mod client;
mod event;
mod outgoing;
mod repeated;
mod scheduler;
mod table;
mod window;

pub use event::{Event, Plan, Want};
pub(crate) use outgoing::{Outgoing, Sender, Step};
pub(crate) use repeated::Repeated;
pub use scheduler::{Priority, Scheduler};
pub use table::StreamTable;
pub use window::{Overflow, Window};
