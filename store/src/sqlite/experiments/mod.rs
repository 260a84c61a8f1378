//! Tables of experiments: page views, figures of arms, settings.

mod insert;
mod read;
mod retain;
mod steps;

pub(super) use insert::{insert, restore_settings};
pub(super) use read::{experiment, newest_s, summaries, totals, users};
pub(super) use retain::{delete_arms, delete_later_arms, delete_later_visits, delete_visits};
pub(super) use steps::steps;
