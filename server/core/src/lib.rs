//! The HTTP core of firstbyte: meaning to response.
//!
//! A request head comes in as an [`exchange::Exchange`], runs through the phases and leaves as a response head and
//! pulled body chunks. The core knows neither sockets nor protocols: bytes are the engines' business,
//! descriptors and clocks the driver's.
#![forbid(unsafe_code)]

pub mod address;
pub mod affinity;
pub mod agent;
pub mod build;
pub mod builtin;
mod cells;
pub mod certificates;
mod client_cert;
pub mod clock;
pub mod conf_core;
pub mod config;
pub mod confs;
pub mod context;
pub mod errand;
pub mod errlog;
pub mod exchange;
mod files;
pub mod http;
pub mod intake;
mod known_host;
mod listen;
pub mod location;
pub mod log_paths;
pub mod logging;
pub mod logs;
pub mod main_conf;
pub mod memory;
pub mod meters;
pub mod mime;
pub mod module;
pub mod name_servers;
pub mod names;
pub mod networks;
pub mod offload;
mod opened;
pub mod paths;
pub mod peer;
pub mod phases;
pub mod regex;
pub mod reply;
mod shared_list;
pub mod stats;
mod status_page;
pub mod syslog;
#[cfg(test)]
#[path = "testing_tests.rs"]
mod testing;
pub mod timing;
pub mod trace;
pub mod transport;
pub mod typed;
pub mod upkeep;
pub mod value;
pub mod vars;
pub mod watch;
pub mod zone;

pub use build::{
    Cycle, ErrorLogConf, LoadError, LoadOptions, LogTarget, MainConf, Written, load, load_written,
};
pub use files::*;
pub use listen::*;
pub use opened::OpenedLogs;
pub use shared_list::SharedList;
