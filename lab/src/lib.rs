//! The lab: loads servers and reports the measured figures.
//!
//! It uses the engines in the client role and system calls; no part of a server is here. [`load::bench`] runs a
//! [`load::Job`] and returns measurements. A [`report::Report`] of them has for each figure the number of measurements,
//! its interval, and the conditions of the run.
//!
//! Source: docs/lab.md.
#![forbid(unsafe_code)]

pub mod browser;
pub mod capture;
pub mod client;
pub mod doctor;
pub mod experiment;
pub mod fetch;
pub mod host;
pub mod load;
pub mod map;
pub mod page;
pub mod report;
pub mod stats;
mod time;
pub mod web;
pub mod wire;
