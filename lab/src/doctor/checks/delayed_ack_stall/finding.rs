//! The finding of a sweep: sizes that stall and sizes that do not, by how much, and what mends it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::edge::Edge;
use super::sweep::Sweep;
use crate::doctor::code::Code;
use crate::doctor::examine::Examination;
use crate::doctor::figures::estimate;
use crate::doctor::finding::{Finding, Severity};
use crate::stats::Estimate;

/// The finding of a sweep; `None` where nothing stalls.
pub(super) fn of(x: &Examination<'_>, sweep: &Sweep, edges: &[Edge]) -> Option<Finding> {
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
    let title = format!(
        "Responses of {least} to {most} bytes wait for an acknowledgement: up to {worst_ms:.0} ms later where it is held for {} ms",
        sweep.holds[0].as_millis()
    );
    // Without a hold the same response waits for the acknowledgement as well: a round trip that is not in `late`.
    let round_trip_ms = x.round_trip_ms();
    let mut finding = Finding::new(Code::DelayedAckStall, Severity::Bad, title)
        .costs(worst_ms + round_trip_ms, 1.0);
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
        finding = held(finding, *hold, late, verdict.late_of(number));
    }
    for edge in edges {
        let name = format!("edge_{}", coding(edge.gzip));
        let ends = json!({
            "last_that_stalls": edge.stalls.0, "first_that_does_not": edge.free.0,
            "last_that_stalls_sent": edge.stalls.1, "first_that_does_not_sent": edge.free.1,
        });
        finding = finding.proof(&name, ends);
    }
    Some(mends(finding.proof("cells", cells(sweep)), x))
}

/// Sizes that stall and sizes that do not, of each coding that was asked for.
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

fn held(
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

fn mends(finding: Finding, x: &Examination<'_>) -> Finding {
    let server = x.first.response.field("server").unwrap_or_default();
    let finding = match nginx_before_1_7_8(server) {
        true => finding.mend("nginx: upgrade to 1.7.8 or later, which sends the last frame of a SPDY response at once"),
        false => finding,
    };
    finding
        .mend("nginx: tcp_nodelay on; in http, server and location (it is the default: look for an off)")
        .mend("firstbyte: nothing to set, tcp_nodelay is on")
        .mend("other servers: TCP_NODELAY on accepted sockets, and the end of a body in the write of its last bytes")
        .mend(x.plan.command())
}

/// Whether a `Server` field names an nginx whose SPDY waits.
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
