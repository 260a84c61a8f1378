//! Figures of the server by arm: connections, processor time, times, truncations.

use super::super::view::{Head, View};
use crate::experiment::{Arm, Report, ServerStep};
use crate::web::chart::{Chart, Lines, SERIES_MAX, Scale, Series};
use crate::web::table::{Cell, Format, Table};

/// Adds sums by arm, and open connections and processor time over time.
pub(super) fn sections(report: &Report, view: &mut View) {
    if report.arms.iter().all(|arm| arm.server.is_none()) {
        view.notes.push(NONE.to_owned());
        return;
    }
    view.section("Arms: figures of the server", None, sums(report))
        .note = NOTE.to_owned();
    let open = chart(report, "", &|step| Some(step.open_mean));
    view.section("Open connections by arm", Some(open), open_table(report));
    let cpu = chart(report, "\u{b5}s", &|step| step.cpu_us_per_connection);
    let title = "Processor time of a connection by arm, \u{b5}s";
    view.section(title, Some(cpu), cpu_table(report));
}

/// Returns the sums of the period by arm.
fn sums(report: &Report) -> Table {
    let mut table = Table::new("server", &COLUMNS);
    for arm in &report.arms {
        let Some(server) = &arm.server else { continue };
        let counts = [
            server.connections,
            server.requests,
            server.bytes_promised,
            server.bytes_sent,
            server.truncated,
            server.aborted,
        ];
        let mut row = vec![Cell::Text(arm.arm.clone())];
        row.extend(counts.map(Cell::Count));
        row.extend([
            Cell::real(Some(server.open_mean)),
            Cell::Count(server.open_max),
            Cell::real(server.cpu_us_per_connection),
            Cell::real(server.cpu_us_per_request),
            Cell::Count(server.memory_max_bytes),
        ]);
        for times in [server.first_byte_ms, server.handshake_ms] {
            let [median, _, p95] = times.map_or([None; 3], |times| times.map(Some));
            row.extend([Cell::real(median), Cell::real(p95)]);
        }
        table.push(row);
    }
    table
}

/// Returns lines of one figure, a line for each arm.
fn chart(report: &Report, unit: &'static str, of: &dyn Fn(&ServerStep) -> Option<f64>) -> Chart {
    let times = times(&report.steps);
    let arms = report.arms.iter().filter(|arm| arm.server.is_some());
    let line = |arm: &Arm| Series {
        name: arm.arm.clone(),
        values: values(&report.steps, &times, &arm.arm, of),
    };
    let begin = times.first().copied().unwrap_or(report.since_s);
    Chart::Lines(Lines {
        period: (begin, report.at_s),
        series: arms.take(SERIES_MAX).map(line).collect(),
        times,
        scale: Scale::Number,
        unit,
    })
}

fn open_table(report: &Report) -> Table {
    let mut table = Table::new("open", &OPEN_COLUMNS);
    for step in &report.steps {
        table.push(vec![
            Cell::Time(step.at_s),
            Cell::Text(step.arm.clone()),
            Cell::real(Some(step.open_mean)),
            Cell::Count(step.open_max),
            Cell::Count(step.connections),
            Cell::Count(step.truncated),
            Cell::Count(step.aborted),
        ]);
    }
    table
}

fn cpu_table(report: &Report) -> Table {
    let mut table = Table::new("cpu", &CPU_COLUMNS);
    for step in &report.steps {
        table.push(vec![
            Cell::Time(step.at_s),
            Cell::Text(step.arm.clone()),
            Cell::real(step.cpu_us_per_connection),
        ]);
    }
    table
}

/// Returns the begins of all steps, once each.
fn times(steps: &[ServerStep]) -> Vec<u64> {
    let mut all: Vec<u64> = steps.iter().map(|step| step.at_s).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the values of an arm, one for each time.
fn values(
    steps: &[ServerStep],
    times: &[u64],
    arm: &str,
    of: &dyn Fn(&ServerStep) -> Option<f64>,
) -> Vec<Option<f64>> {
    let mut all = vec![None; times.len()];
    for step in steps.iter().filter(|step| step.arm == arm) {
        if let Ok(at) = times.binary_search(&step.at_s) {
            all[at] = of(step);
        }
    }
    all
}

const NOTE: &str = "A connection belongs to the arm of its host or, without hosts, of its first user. Processor time is measured for some connections.";
const NONE: &str = "No connection of an arm has been recorded yet.";

const COLUMNS: [Head; 16] = [
    ("arm", "Arm", Format::Text),
    ("connections", "Connections", Format::Count),
    ("requests", "Requests", Format::Count),
    ("bytes_promised", "Promised", Format::Bytes),
    ("bytes_sent", "Sent", Format::Bytes),
    ("truncated", "Truncated", Format::Count),
    ("aborted", "Aborted", Format::Count),
    ("open_mean", "Open, mean", Format::Real),
    ("open_max", "max", Format::Count),
    ("cpu_us_per_connection", "CPU \u{b5}s/conn.", Format::Real),
    ("cpu_us_per_request", "\u{b5}s/request", Format::Real),
    ("memory_max_bytes", "Memory, max", Format::Bytes),
    ("first_byte_median_ms", "First byte ms", Format::Ms),
    ("first_byte_p95_ms", "p95", Format::Ms),
    ("handshake_median_ms", "Handshake ms", Format::Ms),
    ("handshake_p95_ms", "p95", Format::Ms),
];
const OPEN_COLUMNS: [Head; 7] = [
    ("start", "Start", Format::Time),
    ("arm", "Arm", Format::Text),
    ("open_mean", "Open, mean", Format::Real),
    ("open_max", "max", Format::Count),
    ("connections", "Closed", Format::Count),
    ("truncated", "Truncated", Format::Count),
    ("aborted", "Aborted", Format::Count),
];
const CPU_COLUMNS: [Head; 3] = [
    ("start", "Start", Format::Time),
    ("arm", "Arm", Format::Text),
    ("cpu_us_per_connection", "CPU \u{b5}s", Format::Real),
];
