//! The store in ClickHouse, as its users see it: answers, killed servers, full directories, wrong responses.

#[path = "../common/mod.rs"]
mod common;
mod connected;
mod http;
mod queries;
