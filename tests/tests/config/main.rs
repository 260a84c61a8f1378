//! Tests of the configuration and the command line: errors, warnings, explanations.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod command_line;
mod config_errors;
mod explain;
mod explain_agrees;
mod explain_cache;
mod explain_passed;
mod explain_usage;
mod lint;
mod lint_verb;
mod load_files;
mod readme;
mod stock_configurations;
