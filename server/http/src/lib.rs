//! The HTTP core of firstbyte: meaning to response.
//!
//! A request head comes in as an [`exchange::Exchange`], runs through the phases and leaves as a response head and
//! pulled body chunks. The core knows no sockets. The protocol of an exchange matters only for variables and logs:
//! bytes belong to the engines, descriptors and clocks to the driver. Code that is not about requests is in
//! [`server_base`].
#![forbid(unsafe_code)]

pub mod arm_meters;
mod arms;
pub mod assemble;
pub mod builtin;
pub mod cache;
pub mod certificates;
mod client_cert;
pub mod conf_core;
mod cookie_date;
pub mod decision;
pub mod detached;
pub mod exchange;
pub mod experiments;
pub mod handler;
mod hash_table;
mod host_cache;
pub mod http;
pub mod key_log;
pub mod location;
pub mod meters;
mod name_map;
pub mod names;
pub mod next_upstream;
pub mod paths;
pub mod phases;
pub mod port_slots;
pub mod probe;
pub mod reply;
pub mod request_body;
pub mod resource_timing;
mod response_body;
mod route;
pub mod settings_set;
pub mod stats;
mod status_page;
pub mod status_zones;
pub mod string_pool;
#[cfg(test)]
#[path = "testing_tests.rs"]
mod testing;
pub mod timing;
pub mod trace;
pub mod upstream;
pub mod user_agent;
pub mod value;
pub mod vars;
pub mod wants;

pub use assemble::{
    Cycle, DirectiveLocations, ErrorLogConf, LoadError, LoadOptions, LogTarget, MainConf, check,
    load, load_with_locations, module,
};
pub use cookie_date::cookie_date;
