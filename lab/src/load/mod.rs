//! Load generator: requests at a rate or in a closed loop, from threads, with their counts and times.

mod begin;
mod cpu;
mod filter;
mod job;
mod plan;
mod result;
mod run;
mod schedule;
mod statuses;
mod thread;
mod turn;
mod window;
pub mod workload;

pub use cpu::exists;
pub use filter::SampleFilter;
pub use job::{Job, Measured, Server, Step, bench, tell_apart};
pub use plan::{Connect, Plan};
pub use result::{BIN_NS, LoadResult};
pub use run::{Progress, run};
pub use statuses::Statuses;
