//! Judges: functions from the facts of a check to a finding.
//!
//! Facts come from requests to a server (`checks`), from packets (`crate::capture`) or from a page (`from_har`). A judge sends
//! nothing and reads no clock. The judges of a code are in one file, with its thresholds, severities and costs. A code with
//! packets as a source has one judge for all [`Facts`]; others have `judge_page` for pages. Texts are in the code's row of `code`.
//! If only requests show a code, its judge is beside its check.

pub(crate) mod caching;
pub(crate) mod compression;
pub(crate) mod connect;
pub(crate) mod first_flight;
pub(crate) mod handshake;
pub(crate) mod header_bloat;
pub(crate) mod http2;
pub(crate) mod keepalive;
pub(crate) mod redirects;
pub(crate) mod sample;
pub(crate) mod slow_server;
pub(crate) mod stall;
pub(crate) mod tls_record_size;
pub(crate) mod write_size;

use std::fmt::{self, Display};

use serde_json::Value;

use super::code::Text;
use super::finding::{Finding, Severity};
use crate::stats::Estimate;

/// Facts about a code by their source. A code without a rule for a source has no finding there.
pub(crate) enum Facts<'f, F, P: ?Sized> {
    /// Figures of requests to a server.
    Server(&'f F),
    /// Cases of a capture.
    Packets(&'f P),
    /// Cases of a page.
    Page(Vec<Case>),
}

/// One case of a fault in a page or in a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    /// Time that it cost, ms.
    pub(crate) lost_ms: f64,
    /// The figure of a threshold: bytes, a number of requests, or a round trip in ms; 0 if the cost is that figure.
    pub(crate) size: f64,
    /// Figures that prove it.
    pub(crate) figures: Value,
}

/// Packets of a capture, from the first to the last of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packets {
    /// The connection by its ends.
    pub(crate) connection: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Packets {
    /// Figures of a case with its connection and packets.
    fn with(&self, mut figures: Value) -> Value {
        figures["connection"] = self.connection.as_str().into();
        figures["first_packet"] = self.first.into();
        figures["last_packet"] = self.last.into();
        figures
    }
}

impl Display for Packets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connection,
            first,
            last,
        } = self;
        write!(out, "{connection}: {first} to {last}")
    }
}

/// The finding of cases of a page; `None` without a case. `text` takes their number and the largest cost, ms. That cost is the
/// page's, since costs of resources overlap.
fn of_page(
    cases: Vec<Case>,
    is_case: impl Fn(&Case) -> bool,
    severity: Severity,
    text: impl FnOnce(usize, f64) -> Text,
) -> Option<Finding> {
    let mut cases: Vec<Case> = cases.into_iter().filter(is_case).collect();
    cases.sort_by(|a, b| b.lost_ms.total_cmp(&a.lost_ms));
    let lost_ms = rounded(cases.first()?.lost_ms);
    let found = Finding::of(text(cases.len(), lost_ms), severity).costs(lost_ms, 0.0);
    let found = found.proof("resources", cases.len());
    Some(found.examples(cases.into_iter().map(|one| one.figures)))
}

/// The cost in the middle, ms; 0 without any.
fn middle_ms(costs: impl Iterator<Item = f64>) -> f64 {
    let mut costs: Vec<f64> = costs.collect();
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

impl Finding {
    /// Adds the figures of the first cases, which are the worst.
    fn examples(self, all: impl Iterator<Item = Value>) -> Self {
        self.proof("examples", all.take(EXAMPLES_MAX).collect::<Vec<_>>())
    }
}

/// Milliseconds with three decimals.
pub(crate) fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// A number of things in words, `2 connections`.
fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// The interval of a figure in words, with its number of samples.
pub(crate) fn interval(of: &Estimate, decimals: usize) -> String {
    let Estimate { low, high, n, .. } = of;
    format!("{low:.decimals$} to {high:.decimals$}, n = {n}")
}

/// The cases that a finding shows.
pub(crate) const EXAMPLES_MAX: usize = 20;
