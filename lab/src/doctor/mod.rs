//! The doctor finds causes of a late first byte, with evidence and the directive that fixes each.
//!
//! A [`Finding`] has a stable [`Code`], a cost, and evidence. A [`Diagnosis`] has all findings of a target and the conditions of
//! the measurement. Facts come from requests to a server ([`examine`], by crate::fetch), from packets (crate::capture) or from a
//! page ([`from_har`]). Functions of `judge` turn facts into findings. Titles and fixes are in the row of each code (`code`).
//!
//! Source: docs/doctor.md.

mod chain;
mod chain_file;
mod checks;
mod code;
mod codings;
mod command;
mod diagnosis;
mod docroot;
mod examine;
mod failure;
mod figures;
mod finding;
mod from_har;
pub(crate) mod judge;
mod network;
mod plan;
mod runner;
mod site;
mod slow_start;
#[cfg(test)]
mod sources_tests;
mod tunable;
mod visitor;

pub use chain_file::chain_file;
pub use code::Code;
pub use diagnosis::{Coverage, Diagnosis, FORMAT};
pub use examine::{Body, Examination, FirstLook};
pub use failure::Failure;
pub(crate) use figures::milliseconds;
pub use finding::{Finding, Severity};
pub use from_har::from_har;
pub use network::{KERNEL_HOLD, Network, NetworkPath, SampleFilter, Unchanged};
pub use plan::{CONNECTIONS_MAX, Plan, REQUESTS, REQUESTS_MAX, TIMEOUT, TRIAL_REQUESTS};
pub use runner::examine;
pub use tunable::{Tunable, Tuner};
pub use visitor::{Session, Visitor, Watch};
