//! The lab: loads servers and reports what it measured.
//!
//! The engines in the client role and system calls; nothing here is part of a server. A [`load::Job`] is asked for and
//! [`load::bench`] returns what was measured; a [`report::Report`] of it says how many measurements a figure stands on, how
//! sure it is, and under which conditions it was taken.
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
