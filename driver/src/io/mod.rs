//! What a worker thread keeps between system calls: timers, open files, names.
//!
//! Safe code over `sys`. Each structure belongs to one thread and takes the time as an argument.

pub mod files;
mod lru;
mod open_cache;
mod open_path;
pub mod resolver;
pub mod sim;
pub mod timer;
