//! The store in SQLite, as its users see it: answers, damaged files, killed processes, full disks.

mod answers;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/experiments.rs"]
mod common_experiments;
mod documented;
mod experiments;
mod kept;
mod kills;
mod migrating;
mod model;
mod open_counts;
mod opening;
mod privacy;
mod processes;
mod queries;
mod rows;
mod writing;
