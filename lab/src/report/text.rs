//! The report for people at a terminal, as wide as a report at most.

use std::fmt::Write as _;

use super::compare::differences;
use super::comparison::ComparisonReport;
use super::conditions::Conditions;
use super::format::{Report, Settings};
use super::server::{Figure, ServerReport};
use super::table::{list_counts, push_entry, push_rows, push_wrapped};

/// The whole report.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    if report.interrupted {
        out.push_str("Interrupted; these are the results so far.\n");
    }
    warnings(&mut out, report);
    paragraph(&mut out, &settings(&report.settings));
    for server in &report.servers {
        out.push('\n');
        one(&mut out, server, &report.conditions);
    }
    if !report.comparison.is_empty() {
        out.push('\n');
        for figure in &report.comparison {
            paragraph(&mut out, &figure.sentence());
        }
        paragraph(&mut out, COMPARED);
    }
    out.push('\n');
    paragraph(&mut out, &conditions(&report.conditions));
    out
}

fn warnings(out: &mut String, report: &Report) {
    for warning in &report.warnings {
        paragraph(out, &format!("WARNING: {warning}"));
    }
}

fn paragraph(out: &mut String, text: &str) {
    push_wrapped("", "  ", text, out);
}

/// How it was loaded, in a sentence.
#[must_use]
pub fn settings(settings: &Settings) -> String {
    let number = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let connections = format!("{} connection", settings.connect);
    let mut text = number(settings.connections, &connections);
    if settings.streams > 1 {
        let _ = write!(text, ", {} streams on each", settings.streams);
    }
    let _ = write!(text, ", {}", number(settings.threads, "thread"));
    match settings.rate {
        Some(rate) => _ = write!(text, ", {rate} requests a second"),
        None => text.push_str(", closed loop"),
    }
    if let Some(requests) = settings.requests {
        let _ = write!(text, ", {requests} requests");
    }
    if let Some(seconds) = settings.duration_s {
        let _ = write!(text, ", {seconds} s");
    }
    if settings.blocks > 1 {
        let _ = write!(
            text,
            ", {} blocks in random turns (seed {})",
            settings.blocks, settings.seed
        );
    }
    if settings.mix > 1 {
        let _ = write!(text, ", a mix of {} requests", settings.mix);
    }
    if let Some(lines) = settings.passed_over {
        let _ = write!(text, ", {lines} other lines of the access log passed over");
    }
    if settings.insecure {
        text.push_str("; certificates are NOT verified");
    }
    text
}

/// Under which conditions, in a sentence.
#[must_use]
pub fn conditions(conditions: &Conditions) -> String {
    let mut text = format!(
        "Conditions: {} processors, busy {:.0} %, steal {:.1} %",
        conditions.processors,
        conditions.busy * 100.0,
        conditions.steal * 100.0,
    );
    if let Some(load) = conditions.load_average {
        let _ = write!(text, ", load average {load}");
    }
    if let Some(us) = conditions.round_trip_us {
        let _ = write!(text, "; round trip {us} µs");
    }
    if let Some(control) = &conditions.congestion_control {
        let _ = write!(text, "; congestion control {control}");
    }
    let device = conditions.device.as_deref().unwrap_or("unknown");
    let _ = write!(text, "; device {device}");
    if let Some(mtu) = conditions.mtu_bytes {
        let _ = write!(text, ", MTU {mtu}");
    }
    let _ = write!(text, ", offloads {}", conditions.offloads.sentence());
    let _ = write!(text, "; {}; Linux {}", conditions.link, conditions.kernel);
    text
}

fn one(out: &mut String, server: &ServerReport, conditions: &Conditions) {
    paragraph(out, &format!("{}  {}", server.name, server.protocol()));
    let rate = server.rate.map(|rate| figure(rate, 0));
    push_entry("responses/s", &rate.unwrap_or_else(|| "-".to_owned()), out);
    let responses = format!("{} in {:.3} s", server.done, server.elapsed_s);
    push_entry("responses", &responses, out);
    if !server.statuses.is_empty() {
        push_entry("statuses", &list_counts(&server.statuses), out);
    }
    if !server.errors.is_empty() {
        let failed = format!("{} ({})", server.failed(), list_counts(&server.errors));
        push_entry("FAILED", &failed, out);
    }
    push_rows(&times(server, conditions), "  ", out);
    if let Some(text) = about_intervals(server) {
        push_wrapped("  ", "    ", &text, out);
    }
    costs(out, server);
}

/// Costs of a server's responses: excluded samples, bytes, CPU and memory.
fn costs(out: &mut String, server: &ServerReport) {
    if let Some(sentence) = server.excluded_sentence() {
        push_entry("link", &sentence, out);
    }
    if server.resumed > 0 {
        push_entry("resumed", &format!("{} handshakes", server.resumed), out);
    }
    if server.traffic.head_text_bytes > 0 {
        let heads = format!(
            "{} bytes on the wire, {} as text: {:.2} % saved",
            server.traffic.head_wire_bytes,
            server.traffic.head_text_bytes,
            server.traffic.head_saved * 100.0
        );
        push_entry("heads", &heads, out);
    }
    let bytes = format!(
        "{} of bodies; {} received, {} sent",
        server.traffic.body_bytes, server.traffic.received_bytes, server.traffic.sent_bytes
    );
    push_entry("bytes", &bytes, out);
    let cpu = |found: Figure| format!("{} µs a response", figure(found, 3));
    if let Some(found) = server.server_cpu_us {
        let memory = server.server_memory_bytes.unwrap_or(0) as f64 / 1e6;
        let text = format!("{}; {memory:.1} MB resident", cpu(found));
        push_entry("server's CPU", &text, out);
    }
    if let Some(found) = server.client_cpu_us {
        push_entry("client's CPU", &cpu(found), out);
    }
}

/// `12.3 (11.9 to 12.7, n=20)`.
#[must_use]
pub fn figure(figure: Figure, digits: usize) -> String {
    let value = figure.value;
    match (figure.low, figure.high) {
        (Some(low), Some(high)) => {
            let n = figure.n;
            format!("{value:.digits$} ({low:.digits$} to {high:.digits$}, n={n})")
        }
        _ => format!(
            "{value:.digits$} (n={}, n too small for an interval)",
            figure.n
        ),
    }
}

/// Rows for each kind of times: values in milliseconds, in round trips from [`ROUND_TRIP_LEAST_US`] on, and intervals of the
/// percentiles.
fn times(server: &ServerReport, conditions: &Conditions) -> Vec<Vec<String>> {
    let trip_us = conditions
        .round_trip_us
        .filter(|us| *us >= ROUND_TRIP_LEAST_US);
    let mut rows = Vec::new();
    for (name, title) in TIMES {
        let Some(times) = server.times.get(name) else {
            continue;
        };
        if rows.is_empty() {
            let columns = ["mean"].iter().chain(&PERCENTILES).chain(&["max", "n"]);
            rows.push(cells(
                "milliseconds",
                columns.map(|name| (*name).to_owned()),
            ));
        }
        let percentiles = PERCENTILES.map(|name| times.percentiles.get(name).copied());
        let values = || {
            let found = percentiles
                .iter()
                .map(|found| found.map(|figure| figure.value));
            [Some(times.mean_ms)]
                .into_iter()
                .chain(found)
                .chain([Some(times.max_ms)])
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let row = values().map(|value| or_dash(value.map(milliseconds)));
        rows.push(cells(title, row.chain([times.n.to_string()])));
        if let Some(us) = trip_us {
            let trips = |ms: f64| format!("{:.2}", ms * 1000.0 / f64::from(us));
            let row = values().map(|value| or_dash(value.map(trips)));
            rows.push(cells("  round trips", row));
        }
        let intervals = percentiles.map(|found| found.map(interval).unwrap_or_default());
        rows.push(cells(
            "  95 %",
            [String::new()].into_iter().chain(intervals),
        ));
    }
    rows
}

/// `1.20-1.30`; an end that no sample supports is missing.
fn interval(figure: Figure) -> String {
    match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{}-{}", milliseconds(low), milliseconds(high)),
        (Some(low), None) => format!(">{}*", milliseconds(low)),
        (None, Some(high)) => format!("<{}*", milliseconds(high)),
        (None, None) => "*".to_owned(),
    }
}

/// A sentence about the intervals of a server's times.
fn about_intervals(server: &ServerReport) -> Option<String> {
    let shown = || {
        let times = TIMES.iter().filter_map(|(name, _)| server.times.get(*name));
        times.flat_map(|times| {
            PERCENTILES
                .iter()
                .filter_map(|name| times.percentiles.get(*name))
        })
    };
    shown().next()?;
    let mut text = match server.blocks.len() {
        0 | 1 => "95 %: of this run alone; --blocks 10 shows how runs differ".to_owned(),
        runs => format!("95 %: from the differences between {runs} runs"),
    };
    if shown().any(|figure| figure.low.is_none() || figure.high.is_none()) {
        text.push_str("; *: n too small for this end");
    }
    Some(text)
}

fn cells(title: &str, others: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(title.to_owned()).chain(others).collect()
}

/// Formats milliseconds with at least four digits, at most three of them decimals.
fn milliseconds(ms: f64) -> String {
    let digits = match ms {
        ..9.9995 => 3,
        ..99.995 => 2,
        ..999.95 => 1,
        _ => 0,
    };
    format!("{ms:.digits$}")
}

/// A compact table: a row for each protocol, with the servers side by side.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    warnings(&mut out, report);
    let header = [
        "server and protocol",
        "responses/s",
        "mean ms",
        "p99 ms",
        "saved %",
        "server µs",
        "client µs",
        "failed",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for server in &report.servers {
        let times = server.main_times();
        let p99 = times.and_then(|times| times.percentile("p99"));
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        rows.push(vec![
            server.name.clone(),
            or_dash(server.rate.map(|rate| short(rate, 0))),
            or_dash(times.map(|times| milliseconds(times.mean_ms))),
            or_dash(p99.map(milliseconds)),
            format!("{:.2}", server.traffic.head_saved * 100.0),
            or_dash(server.server_cpu_us.map(|cpu| short(cpu, 2))),
            or_dash(server.client_cpu_us.map(|cpu| short(cpu, 2))),
            server.failed().to_string(),
        ]);
    }
    push_rows(&rows, "", &mut out);
    out.push('\n');
    paragraph(&mut out, TABLE);
    paragraph(&mut out, &settings(&report.settings));
    paragraph(&mut out, &conditions(&report.conditions));
    out
}

/// The comparison of two reports.
#[must_use]
pub fn compared(figures: &[ComparisonReport], first: &Report, second: &Report) -> String {
    let mut out = String::new();
    for figure in figures {
        paragraph(
            &mut out,
            &format!("{}: {}", figure.first, figure.sentence()),
        );
    }
    warnings(&mut out, first);
    warnings(&mut out, second);
    let differing = differences(first, second).join("; ");
    if !differing.is_empty() {
        paragraph(&mut out, &format!("Conditions differ: {differing}"));
    }
    out
}

/// `1.78 ±0.14`; a figure without an interval comes from a single run.
fn short(found: Figure, digits: usize) -> String {
    let value = found.value;
    match (found.low, found.high) {
        (Some(low), Some(high)) => format!("{value:.digits$} ±{:.digits$}", (high - low) / 2.0),
        _ => format!("{value:.digits$}"),
    }
}

/// Times in the order of reports.
const TIMES: [(&str, &str); 5] = [
    ("response", "response time"),
    ("service", "service time"),
    ("first_byte", "first byte"),
    ("connect", "connect"),
    ("handshake", "handshake"),
];

const PERCENTILES: [&str; 4] = ["p50", "p90", "p99", "p99.9"];

/// Below a millisecond a round trip is the machine's own, and its multiples say nothing of a link.
const ROUND_TRIP_LEAST_US: u32 = 1000;

const TABLE: &str = "±: half of an interval at 95 %. saved: of the bytes of response heads. µs: CPU time a response.";
const COMPARED: &str = "Second against first, within blocks; intervals at 99 %, and a winner is called where they leave out 0.";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::Block;
    use crate::report::columns::WIDTH;
    use crate::report::compare::of_reports;

    fn figure(value: f64) -> Value {
        json!({ "value": value, "low": value * 0.98, "high": value * 1.07, "n": 20 })
    }

    /// A report of one server with times that are multiples of `ms`.
    fn report(ms: f64, round_trip_us: u32) -> Report {
        let percentiles = json!({
            "p50": figure(ms), "p90": figure(2.0 * ms), "p99": figure(30.0 * ms), "p99.9": figure(99.0 * ms)
        });
        let times = json!({
            "n": 123_456_789, "mean_ms": 1.5 * ms, "min_ms": ms, "max_ms": 100.0 * ms, "percentiles": percentiles
        });
        let server = json!({
            "name": "https://localhost:8443/a", "url": "https://localhost:8443/a", "protocols": { "HTTP/2": 10 },
            "blocks": [], "rate": figure(568_344.0), "server_cpu_us": figure(1.78), "client_cpu_us": figure(1.18),
            "server_memory_bytes": 10_000_000, "elapsed_s": 10.0, "done": 123_456_789,
            "statuses": { "2xx": 123_456_780, "4xx": 9 }, "errors": { "connect: refused": 3, "read: reset": 12 },
            "times": { "service": times, "first_byte": times, "connect": times }, "resumed": 0,
            "head_saved": 0.9555, "head_wire_bytes": 1_234_567_890_u64, "head_text_bytes": 12_345_678_901_u64,
            "body_bytes": 12_345_678_900_u64, "received_bytes": 13_580_246_790_u64, "sent_bytes": 1_234_567_890,
            "rates": []
        });
        let report = json!({
            "format": "firstbyte-bench/1", "program": "firstbyte", "began_unix_s": 0, "interrupted": false,
            "warnings": ["the machine was busy ".repeat(10)],
            "settings": {
                "connections": 1, "streams": 10, "threads": 2, "requests": 50_000, "duration_s": null, "rate": null,
                "connect": "warm", "mix": 1, "blocks": 20, "warm_up_s": 0.0, "seed": 1_795_402_591, "insecure": true
            },
            "conditions": {
                "processors": 2, "kernel": "6.18.44", "congestion_control": "bbr", "round_trip_us": round_trip_us,
                "device": "lo", "mtu_bytes": 65_536, "load_average": 7.35, "busy": 1.0, "steal": 0.0,
                "link": "loopback, no emulated link"
            },
            "servers": [server], "comparison": []
        });
        serde_json::from_value(report).expect("a report")
    }

    #[test]
    fn lines_are_at_most_as_wide_as_a_terminal() {
        // Up to responses that take 30 s.
        for ms in [0.0001, 0.186, 9.9996, 123.4, 300.0] {
            let report = report(ms, 50_000);
            for text in [render(&report), table(&report)] {
                let wide = text.lines().find(|line| line.chars().count() > WIDTH);
                assert_eq!(wide, None, "{text}");
            }
        }
    }

    #[test]
    fn comparisons_are_as_narrow_and_tell_equal_names_apart() {
        let of = |ms: f64| {
            let mut report = report(ms, 50_000);
            let block = json!({
                "rate": 1000.0 / ms, "mean_ms": ms, "p99_ms": 30.0 * ms, "server_cpu_us": 1.78,
                "client_cpu_us": 1.18, "done": 10, "failed": 0
            });
            let block: Block = serde_json::from_value(block).expect("a block");
            report.servers[0].blocks = vec![block; 20];
            report.settings.seed = ms as u64;
            report.conditions.kernel = "6.18.44-".repeat(8);
            report
        };
        let (first, mut second) = (of(1.0), of(2.0));
        second.conditions.kernel = "7.0".to_owned();
        let figures = of_reports(&first, &second).expect("they can be compared");
        let text = compared(&figures, &first, &second);
        let wide = text.lines().find(|line| line.chars().count() > WIDTH);
        assert_eq!(wide, None, "{text}");
        let rate = "https://localhost:8443/a (A): responses a second: -50.00 % (-50.00 % to -50.00 %), n=20:";
        assert!(text.starts_with(rate), "{text}");
        assert!(text.contains("localhost:8443/a (A) is better"), "{text}");
        assert!(text.contains("Conditions differ: kernel:"), "{text}");
    }

    #[test]
    fn columns_of_times_are_aligned_and_intervals_below_their_percentiles() {
        let text = render(&report(0.2, 4));
        let lines: Vec<&str> = text.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.starts_with("  milliseconds"));
        let rows = &lines[at.expect("the times")..][..3];
        assert_eq!(
            rows,
            [
                "  milliseconds   mean          p50          p90          p99        p99.9    max          n",
                "  service time  0.300        0.200        0.400        6.000        19.80  20.00  123456789",
                "    95 %               0.196-0.214  0.392-0.428  5.880-6.420  19.40-21.19",
            ]
        );
        assert!(
            text.starts_with("WARNING: ")
                && text.contains("\n1 warm connection, 10 streams on each, 2 threads")
        );
    }

    #[test]
    fn round_trips_are_told_where_one_takes_a_millisecond() {
        for (round_trip_us, told) in [
            (ROUND_TRIP_LEAST_US - 1, false),
            (ROUND_TRIP_LEAST_US, true),
        ] {
            let text = render(&report(2.0, round_trip_us));
            assert_eq!(text.contains("round trips"), told, "{text}");
            assert_eq!(text.contains("  3.00 "), told, "{text}");
        }
    }
}
