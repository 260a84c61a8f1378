//! `experiment`: A/B experiments with the visitors of a site.
//!
//! Statistics and reports are those of the crate `lab`; here are the command lines. A task is a file with its options and a variant
//! of [`Task`].
//!
//! Source: of our own; docs/experiments.md, docs/statistics.md.

mod power;
mod report;

use std::process::ExitCode;

/// plan an A/B experiment, and report what it found
///
/// Experiments are configured by the directive "experiment"; their visits are in the store of lab_store.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    task: Task,
}

/// All tasks.
#[derive(Debug, clap::Subcommand)]
enum Task {
    Power(Box<power::Options>),
    Report(report::Options),
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    match &options.task {
        Task::Power(options) => power::run(options),
        Task::Report(options) => report::run(options),
    }
}
