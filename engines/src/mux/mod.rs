//! What multiplexed protocols share: windows, a table of streams, who sends next, the budget for what an attack repeats,
//! and what a connection tells its driver.
//!
//! Absent: frames, and anything that differs between HTTP/2 and SPDY.

pub(crate) mod budget;
pub(crate) mod client;
mod event;
mod scheduler;
mod table;
mod window;

pub use event::{Event, Plan, Want};
pub use scheduler::{Priority, Scheduler};
pub use table::StreamTable;
pub use window::{Overflow, Window};
