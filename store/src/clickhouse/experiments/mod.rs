//! Experiments in ClickHouse: rows of batches, tables, statements, and answers.

mod encode;
mod read;
mod sql;
mod steps;

pub(super) use encode::{arms, settings, visits};
pub(super) use read::{experiment, summaries, totals, users};
pub(super) use sql::{TABLES, incoming, insert, schema};
pub(super) use steps::steps;
