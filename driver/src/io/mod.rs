//! I/O state of a worker: timers, open files, names, sockets of syslog servers.
//!
//! Safe code over `sys`. Timers and files belong to one thread each and take the time as an argument.

mod base_dir;
mod cached_files;
mod dir_watch;
pub mod files;
pub mod hosts;
mod lru;
mod negative_lookups;
mod open_cache;
mod open_path;
pub mod page_cache_hints;
mod prefetch;
pub mod read_ahead;
pub mod read_pool;
pub mod resolv_conf;
pub mod resolver;
pub mod send;
pub mod syslog;
pub mod system_names;
pub mod tcp_info;
pub mod timer;
