//! The finding of a sweep: sizes that stall and sizes that do not, by how much, and fixes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::verdict::{Sample, Verdict};
use crate::client::Url;
use crate::doctor::code::{UPGRADE_SPDY, delayed_ack_stall};
use crate::doctor::figures::estimate;
use crate::doctor::{Finding, Severity};
use crate::stats::Estimate;

/// All samples of a sweep.
pub(crate) struct Sweep {
    pub(crate) subjects: Vec<Subject>,
    /// Holds, the longest first.
    pub(crate) holds: Vec<Duration>,
    /// Samples without a hold.
    pub(crate) free: Vec<Sample>,
    /// Samples of each hold.
    pub(crate) held: Vec<Vec<Sample>>,
    /// Least delay of a late response at each hold, ms.
    pub(crate) late_after_ms: Vec<f64>,
}

/// A body with the coding of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) url: Url,
    /// Bytes of the body without a content coding.
    pub(crate) bytes: u64,
    /// Whether gzip is accepted.
    pub(crate) gzip: bool,
}

/// The last size that stalls, and the first that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Whether it is of compressed bodies.
    pub(crate) gzip: bool,
    /// The first place of a connection at which the largest body stalls.
    pub(crate) place: usize,
    /// The largest body that stalls, bytes before compression, and as it was transferred.
    pub(crate) stalls: (u64, u64),
    /// The smallest one above that does not.
    pub(crate) free: (u64, u64),
}

/// Facts of a sweep.
pub(crate) struct SweepFacts<'s> {
    pub(crate) sweep: &'s Sweep,
    /// Edges of the sizes that stall, if searched.
    pub(crate) edges: &'s [Edge],
    pub(crate) round_trip_ms: f64,
    /// The `Server` field of a response.
    pub(crate) server: &'s str,
}

impl Sweep {
    pub(crate) fn verdict(&self) -> Verdict<'_> {
        Verdict {
            subjects: self.subjects.len(),
            free: &self.free,
            held: &self.held,
            late_after_ms: &self.late_after_ms,
        }
    }

    /// Bytes of a subject's body as they were transferred; 0 when it never came.
    pub(crate) fn sent_bytes(&self, subject: usize) -> u64 {
        let all = self.free.iter().chain(self.held.iter().flatten());
        let mut own = all.filter(|one| one.subject == subject);
        own.next().map_or(0, |one| one.sent_bytes)
    }
}

/// The finding of a sweep; `None` if nothing stalls.
pub(super) fn judge(facts: &SweepFacts<'_>) -> Option<Finding> {
    let sweep = facts.sweep;
    let verdict = sweep.verdict();
    let (stalled, late) = (verdict.stalled(), verdict.late_ms(0)?);
    if stalled.is_empty() {
        return None;
    }
    let sizes: Vec<u64> = stalled.iter().map(|n| sweep.subjects[*n].bytes).collect();
    let (least, most) = (sizes.iter().min()?, sizes.iter().max()?);
    let of_each = stalled
        .iter()
        .filter_map(|n| Some((*n, verdict.late_ms_of(0, *n)?)));
    let of_each: Vec<(usize, f64)> = of_each.collect();
    let worst_ms = of_each.iter().map(|(_, ms)| *ms).fold(late.value, f64::max);
    let hold_ms = sweep.holds[0].as_millis();
    let text = delayed_ack_stall::server(least, most, worst_ms, hold_ms);
    // Without a hold the same response waits for the acknowledgement as well: a round trip that is not in `late`.
    let mut finding = Finding::of(text, Severity::Bad).costs(worst_ms + facts.round_trip_ms, 1.0);
    for (name, value) in sizes_of(sweep, &stalled) {
        finding = finding.proof(&name, value);
    }
    // The others are sent by the kernel's probe for a lost tail, after two round trips.
    let whole_ms = sweep.holds[0].as_secs_f64() * 1000.0 * WHOLE_SHARE;
    let whole = of_each.iter().filter(|(_, ms)| *ms >= whole_ms);
    let whole: BTreeSet<u64> = whole.map(|(n, _)| sweep.subjects[*n].bytes).collect();
    finding = finding.proof("bytes_that_wait_the_whole_hold", json!(whole));
    let places: BTreeSet<usize> = verdict.cells().iter().map(|(_, place)| place + 1).collect();
    finding = finding.proof("requests_that_stall", json!(places));
    for (number, hold) in sweep.holds.iter().enumerate() {
        let late = verdict.late_ms(number);
        finding = proof_of_hold(finding, *hold, late, verdict.late_of(number));
    }
    for edge in facts.edges {
        let name = format!("edge_{}", coding(edge.gzip));
        let ends = json!({
            "last_that_stalls": edge.stalls.0, "first_that_does_not": edge.free.0,
            "last_that_stalls_sent": edge.stalls.1, "first_that_does_not_sent": edge.free.1,
        });
        finding = finding.proof(&name, ends);
    }
    if nginx_before_1_7_8(facts.server) {
        finding = finding.fix_first([UPGRADE_SPDY.to_owned()]);
    }
    Some(finding.proof("cells", cells(sweep)))
}

/// Sizes that stall and sizes that do not, for each requested coding.
fn sizes_of(sweep: &Sweep, stalled: &[usize]) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let codings = [false, true].into_iter();
    let asked = codings.filter(|gzip| sweep.subjects.iter().any(|one| one.gzip == *gzip));
    for gzip in asked {
        for stalls in [true, false] {
            let own = sweep.subjects.iter().enumerate();
            let own = own.filter(|(n, one)| one.gzip == gzip && stalled.contains(n) == stalls);
            let sizes: BTreeSet<u64> = own.map(|(_, one)| one.bytes).collect();
            let verb = if stalls { "stall" } else { "do_not" };
            all.push((format!("bytes_that_{verb}_{}", coding(gzip)), json!(sizes)));
        }
    }
    all
}

fn proof_of_hold(
    finding: Finding,
    hold: Duration,
    late: Option<Estimate>,
    (late_count, of): (usize, usize),
) -> Finding {
    let name = format!("held_{}_ms", hold.as_millis());
    let mut value = late.map_or(Value::Null, |late| estimate(&late));
    if let Value::Object(figures) = &mut value {
        figures.insert("late".to_owned(), json!(late_count));
        figures.insert("of".to_owned(), json!(of));
    }
    finding.proof(&name, value)
}

/// Each body at each place, with its times at the longest hold.
fn cells(sweep: &Sweep) -> Value {
    let cells = sweep.verdict().cells();
    let one = |(n, place): &(usize, usize)| {
        let subject = &sweep.subjects[*n];
        let own = sweep.held[0]
            .iter()
            .filter(|one| (one.subject, one.place) == (*n, *place));
        let times: Vec<[f64; 2]> = own
            .map(|one| [one.first_ms, one.end_ms].map(rounded))
            .collect();
        json!({
            "bytes": subject.bytes, "sent_bytes": sweep.sent_bytes(*n), "coding": coding(subject.gzip),
            "request": place + 1, "first_and_end_ms": times,
        })
    };
    Value::Array(cells.iter().map(one).collect())
}

/// Whether a `Server` field names an nginx that waits over SPDY.
fn nginx_before_1_7_8(server: &str) -> bool {
    let Some(version) = server.strip_prefix("nginx/") else {
        return false;
    };
    let version = version.split(' ').next().unwrap_or_default();
    let numbers: Option<Vec<u32>> = version.split('.').map(|n| n.parse().ok()).collect();
    numbers.is_some_and(|numbers| numbers < vec![1, 7, 8])
}

/// The share of a hold from which on a response has waited for all of it.
const WHOLE_SHARE: f64 = 0.75;

fn coding(gzip: bool) -> &'static str {
    if gzip { "gzip" } else { "identity" }
}

fn rounded(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_nginx_are_compared_by_number() {
        for (server, is_old) in [
            ("nginx/1.7.7", true),
            ("nginx/1.7.7 (Ubuntu)", true),
            ("nginx/1.7.8", false),
            ("nginx/1.10.0", false),
            ("nginx", false),
            ("nginx/x", false),
            ("Apache/1.3", false),
        ] {
            assert_eq!(nginx_before_1_7_8(server), is_old, "{server}");
        }
    }
}
