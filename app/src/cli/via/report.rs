//! Report about the link: as text at the end, and as JSON with a version.

use std::ffi::OsString;
use std::time::Duration;

use link::via::Inside;
use link::via::run::Outcome;
use link::{DirectionCounters, LATE_THRESHOLD};
use serde::Serialize;

/// A few lines.
pub(super) fn text(inside: &Inside, outcome: &Outcome) -> String {
    let Outcome {
        counters, lateness, ..
    } = outcome;
    let mut text = format!("link: {}\n", inside.spec);
    for (name, way) in [
        ("to the server", &counters.to_server),
        ("to the client", &counters.to_client),
    ] {
        text.push_str(&way_text(name, way));
    }
    for (number, what) in [
        (
            outcome.unread,
            "arrived faster than the link could read them",
        ),
        (counters.ignored, "not IPv4, which the link does not carry"),
        (
            counters.uncaptured,
            "missing in the pcap file: it could not be written fast enough",
        ),
    ] {
        if number > 0 {
            text.push_str(&format!("{number} packets: {what}\n"));
        }
    }
    text.push_str(&format!(
        "late: median {}, 99% within {}, worst {}; {} packets by more than {}{}\n",
        duration_text(lateness.median),
        duration_text(lateness.p99),
        duration_text(lateness.worst),
        lateness.late,
        duration_text(LATE_THRESHOLD),
        lateness.remarks()
    ));
    text
}

fn way_text(name: &str, way: &DirectionCounters) -> String {
    let mut text = format!("{name}: {} packets, {} bytes", way.packets, way.bytes);
    for (number, what) in [
        (way.lost, "lost"),
        (way.overflowed, "dropped by the queue"),
        (way.refused, "refused by the device"),
        (way.superseded, "acknowledgements superseded"),
    ] {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    text.push('\n');
    text
}

/// Milliseconds.
fn duration_text(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    link: String,
    seed: Option<u64>,
    command: Vec<String>,
    servers: Vec<String>,
    status: u8,
    seconds: f64,
    to_server: DirectionReport,
    to_client: DirectionReport,
    unread: u64,
    ignored: u64,
    uncaptured: u64,
    late: LatenessReport,
    notes: &'a [String],
}

#[derive(Serialize)]
struct DirectionReport {
    packets: u64,
    bytes: u64,
    lost: u64,
    overflowed: u64,
    refused: u64,
    superseded: u64,
}

#[derive(Serialize)]
struct LatenessReport {
    median_us: u128,
    p99_us: u128,
    worst_us: u128,
    limit_us: u128,
    beyond_limit: u64,
    waits_known: bool,
    cpus_awake: bool,
}

/// All of it, for programs.
pub(super) fn json(
    inside: &Inside,
    (command, servers): (&[OsString], &[OsString]),
    outcome: &Outcome,
) -> String {
    let words = |words: &[OsString]| -> Vec<String> {
        let words = words.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    };
    let Outcome {
        counters, lateness, ..
    } = outcome;
    let report = Report {
        format: FORMAT,
        link: inside.spec.to_string(),
        seed: inside.spec.seed,
        command: words(command),
        servers: words(servers),
        status: outcome.status,
        seconds: outcome.elapsed.as_secs_f64(),
        to_server: way(&counters.to_server),
        to_client: way(&counters.to_client),
        unread: outcome.unread,
        ignored: counters.ignored,
        uncaptured: counters.uncaptured,
        late: LatenessReport {
            median_us: lateness.median.as_micros(),
            p99_us: lateness.p99.as_micros(),
            worst_us: lateness.worst.as_micros(),
            limit_us: LATE_THRESHOLD.as_micros(),
            beyond_limit: lateness.late,
            waits_known: lateness.waits_known,
            cpus_awake: lateness.cpus_awake,
        },
        notes: &outcome.notes,
    };
    let text = serde_json::to_string_pretty(&report).expect("numbers and strings can be written");
    text + "\n"
}

fn way(way: &DirectionCounters) -> DirectionReport {
    DirectionReport {
        packets: way.packets,
        bytes: way.bytes,
        lost: way.lost,
        overflowed: way.overflowed,
        refused: way.refused,
        superseded: way.superseded,
    }
}

/// The form of the JSON.
const FORMAT: &str = "firstbyte-via/1";
