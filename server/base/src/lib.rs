//! The protocol-independent base of every server.
//!
//! Logs and their targets, addresses, files, shared zones, regular expressions, types of directive values, the clock, and work
//! of other threads. Absent: exchanges, variables and anything else about requests, which differ by kind of server. Of the
//! engines only the common vocabulary ([`engines::http`]) is used.
#![forbid(unsafe_code)]

pub mod address;
pub mod affinity;
pub mod background_fetch;
pub mod clock;
pub mod code_counts;
pub mod config;
pub mod context;
pub mod crc32;
pub mod errlog;
pub mod experiment;
pub mod files;
pub mod from_args;
pub mod handshakes;
pub mod hash;
pub mod lab_store;
pub mod listen;
pub mod log_paths;
pub mod logging;
pub mod logs;
mod lru;
pub mod main_conf;
pub mod memory;
pub mod mime;
pub mod name_servers;
pub mod networks;
pub mod offload;
pub mod opened;
pub mod peer;
pub mod per_thread;
pub mod periodic_task;
pub mod regex;
pub mod resolver_status;
pub mod s3_fifo;
pub mod samples;
pub mod shared_list;
pub mod syslog;
pub mod thread_pool;
pub mod transport;
pub mod waker;
pub mod watch;
pub mod zone;
