//! The store in ClickHouse, as its users see it: answers, killed servers, full directories, wrong responses.

mod chdb;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/experiments.rs"]
mod common_experiments;
mod connected;
mod experiments;
mod fake;
mod faults;
mod http;
mod kept;
mod kills;
mod queries;
mod resent;
mod schemas;
