//! The report for people at a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Conditions, Figure, Report, ServerReport, Settings, TimesReport};

/// The whole report.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    if report.interrupted {
        out.push_str("Ended before its end; this is what was measured until then.\n");
    }
    warnings(&mut out, report);
    line(&mut out, &settings(&report.settings));
    for server in &report.servers {
        out.push('\n');
        one(&mut out, server, &report.conditions);
    }
    if !report.comparison.is_empty() {
        out.push('\n');
        for figure in &report.comparison {
            line(&mut out, &figure.sentence());
        }
        line(&mut out, COMPARED);
    }
    out.push('\n');
    line(&mut out, &conditions(&report.conditions));
    out
}

fn warnings(out: &mut String, report: &Report) {
    for warning in &report.warnings {
        line(out, &format!("WARNING: {warning}"));
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// How it was loaded, in a sentence.
#[must_use]
pub fn settings(settings: &Settings) -> String {
    let mut text = format!("{} {} connections", settings.connections, settings.connect);
    if settings.streams > 1 {
        let _ = write!(text, ", {} streams on each", settings.streams);
    }
    let _ = write!(text, ", {} threads", settings.threads);
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
    let (name, protocol) = (&server.name, server.protocol());
    line(out, &format!("{name}  {protocol}"));
    let rate = server
        .rate
        .map_or_else(|| "-".to_owned(), |rate| figure(rate, 0));
    line(out, &format!("  responses/s      {rate}"));
    line(
        out,
        &format!(
            "  responses        {} in {:.3} s",
            server.done, server.elapsed_s
        ),
    );
    if !server.statuses.is_empty() {
        line(
            out,
            &format!("  statuses         {}", counted(&server.statuses)),
        );
    }
    if !server.errors.is_empty() {
        line(
            out,
            &format!(
                "  FAILED           {} ({})",
                server.failed(),
                counted(&server.errors)
            ),
        );
    }
    for (name, title) in TIMES {
        if let Some(times) = server.times.get(name) {
            line(
                out,
                &format!("  {title:<16} {}", self::times(times, conditions)),
            );
        }
    }
    costs(out, server);
}

/// What a server's responses cost: on the link, in heads and bytes, of CPU and memory.
fn costs(out: &mut String, server: &ServerReport) {
    if let Some(sentence) = server.voided_sentence() {
        line(out, &format!("  link             {sentence}"));
    }
    if server.resumed > 0 {
        line(
            out,
            &format!("  resumed          {} handshakes", server.resumed),
        );
    }
    if server.head_text_bytes > 0 {
        line(
            out,
            &format!(
                "  heads            {} bytes on the wire, {} as text: {:.2} % saved",
                server.head_wire_bytes,
                server.head_text_bytes,
                server.head_saved * 100.0
            ),
        );
    }
    line(
        out,
        &format!(
            "  bytes            {} of bodies; {} received, {} sent",
            server.body_bytes, server.received_bytes, server.sent_bytes
        ),
    );
    if let Some(cpu) = server.server_cpu_us {
        let memory = server.server_memory_bytes.unwrap_or(0) as f64 / 1e6;
        line(
            out,
            &format!(
                "  server's CPU     {} µs a response; {memory:.1} MB resident",
                figure(cpu, 3)
            ),
        );
    }
    if let Some(cpu) = server.client_cpu_us {
        line(
            out,
            &format!("  client's CPU     {} µs a response", figure(cpu, 3)),
        );
    }
}

/// `2xx: 12, 4xx: 3`.
pub(super) fn counted(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(|(what, n)| format!("{what}: {n}"))
        .collect();
    parts.join(", ")
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
        _ => format!("{value:.digits$} (n={}, no interval)", figure.n),
    }
}

/// Times in milliseconds, and round trips beside them.
fn times(times: &TimesReport, conditions: &Conditions) -> String {
    let trips = |ms: f64| match conditions.round_trip_us {
        Some(us) if us > 0 => format!(" = {:.1} RTT", ms * 1000.0 / f64::from(us)),
        _ => String::new(),
    };
    let mut text = format!("mean {:.3} ms{}", times.mean_ms, trips(times.mean_ms));
    for name in ["p50", "p90", "p99", "p99.9"] {
        if let Some(found) = times.percentiles.get(name) {
            let _ = write!(text, ", {name} {:.3}", found.value);
            if let (Some(low), Some(high)) = (found.low, found.high) {
                let _ = write!(text, " ({low:.3}-{high:.3})");
            }
        }
    }
    let _ = write!(
        text,
        ", max {:.3}{}, n={}",
        times.max_ms,
        trips(times.max_ms),
        times.n
    );
    text
}

/// The table of a talk: a row for each protocol, and servers beside each other.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    warnings(&mut out, report);
    let header = [
        "server and protocol",
        "responses/s (95 %)",
        "mean ms",
        "p99 ms",
        "heads saved",
        "server µs/resp.",
        "client µs/resp.",
        "failed",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    for server in &report.servers {
        let times = server.main_times();
        // A figure without an interval comes from a single run.
        let short = |found: Option<Figure>| match found {
            None => "-".to_owned(),
            Some(found) => match (found.low, found.high) {
                (Some(low), Some(high)) => format!("{:.2} ±{:.2}", found.value, (high - low) / 2.0),
                _ => format!("{:.2}", found.value),
            },
        };
        let rate = match server.rate {
            Some(Figure {
                value,
                low: Some(low),
                high: Some(high),
                ..
            }) => {
                format!("{value:.0} ({low:.0} to {high:.0})")
            }
            Some(rate) => format!("{:.0}", rate.value),
            None => "-".to_owned(),
        };
        rows.push([
            server.name.clone(),
            rate,
            times.map_or_else(String::new, |times| format!("{:.3}", times.mean_ms)),
            times
                .and_then(|times| times.percentile("p99"))
                .map_or_else(String::new, |ms| format!("{ms:.3}")),
            format!("{:.2} %", server.head_saved * 100.0),
            short(server.server_cpu_us),
            short(server.client_cpu_us),
            server.failed().to_string(),
        ]);
    }
    // Widths count characters, not bytes: the header has a micro sign.
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..header.len()).map(|n| width(n).unwrap_or(0)).collect();
    for row in &rows {
        for (n, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[n] - cell.chars().count());
            match n {
                0 => _ = write!(out, "{cell}{pad}"),
                _ => _ = write!(out, "  {pad}{cell}"),
            }
        }
        out.push('\n');
    }
    let _ = write!(
        out,
        "\n{}\n{}\n",
        settings(&report.settings),
        conditions(&report.conditions)
    );
    out
}

/// Times in the order in which they are told.
const TIMES: [(&str, &str); 5] = [
    ("response", "response time"),
    ("service", "service time"),
    ("first_byte", "first byte"),
    ("connect", "connect"),
    ("handshake", "handshake"),
];

const COMPARED: &str = "Second against first, within blocks; intervals at 99 %, and a winner is called where they leave out 0.";
