//! Upstream servers, for every kind of server that passes its clients on.
//!
//! A [`group`] has servers; a [`picker`] chooses among their addresses ([`peers`]) by a method of [`balance`] and by
//! their [`health`]. A [`connector`] begins an attempt over a [`route`], in a [`protocol`], and returns its mailbox
//! ([`request`]). Absent: requests of clients, their settings and their responses, which belong to each kind of server;
//! sockets, which belong to the driver.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.
#![forbid(unsafe_code)]

pub mod balance;
pub mod binding;
pub mod connector;
pub mod control;
pub mod error;
mod first_lookups;
pub mod found;
pub mod group;
pub mod health;
pub mod idle_counts;
pub mod listing;
pub mod local;
mod members;
pub mod peer;
pub mod peer_stats;
pub mod peers;
pub mod picker;
pub mod pool;
pub mod protocol;
pub mod queue;
pub mod queue_counts;
pub mod request;
mod resolved_hosts;
pub mod retry_budget;
pub mod route;
pub mod server;
pub mod server_id;
pub mod sessions;
pub mod shared;
pub mod slow_start;
pub mod state_file;
pub mod times;
pub mod weights;
pub mod zones;
