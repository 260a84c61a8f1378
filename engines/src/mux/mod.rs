//! What multiplexed protocols share: windows, a table of streams, and who sends next.
//!
//! Absent: frames, and anything that differs between HTTP/2 and SPDY.

mod scheduler;
mod table;
mod window;

pub use scheduler::{Priority, Scheduler};
pub use table::StreamTable;
pub use window::{Overflow, Window};
