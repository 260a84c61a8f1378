//! A waterfall for a terminal: ASCII alone, as wide as a report at most.

use crate::page::{AnalysedVisit, FIGURES, Runs, Views};
use crate::report::columns::columns;
use crate::report::escape::{ascii, shortened};
use crate::report::table::{push_entry, push_wrapped};

use super::figures::{self, bytes, ms};
use super::rows::{Drawing, Phase, Row, left_out, stall_words};
use super::scale::{Scale, sane_ms, tick_label};
use super::summary::of_runs;

/// The waterfall of each view with its summary, and the figures in which runs differ.
#[must_use]
pub fn text(views: &Views<'_>) -> String {
    let mut out = String::new();
    let Some(warm) = &views.warm else {
        view(&views.first, &mut out);
        return out;
    };
    out.push_str("Cold view\n");
    view(&views.first, &mut out);
    out.push_str("\nWarm view\n");
    view(warm, &mut out);
    out
}

fn view(runs: &Runs<'_>, out: &mut String) {
    visit(runs.shown(), out);
    let all = runs.all().len();
    if all < 2 {
        return;
    }
    let words = format!(
        "Run {} of {all} is shown, the one with the median load time. Figures of all runs, with 95 % intervals:",
        runs.shown_place() + 1
    );
    out.push('\n');
    push_wrapped("", "", &words, out);
    for figure in &FIGURES {
        if let Some(found) = of_runs(figure, runs) {
            let start = format!("  {:<FIGURE_COLUMNS$}", figure.title);
            push_wrapped(
                &start,
                &" ".repeat(FIGURE_COLUMNS + 2),
                &found.to_string(),
                out,
            );
        }
    }
}

fn visit(run: &AnalysedVisit<'_>, out: &mut String) {
    let drawing = Drawing::of(run);
    table(&drawing, out);
    out.push('\n');
    summary(&drawing, out);
}

/// The rows with their bars, the axis above and the page's moments below.
fn table(drawing: &Drawing<'_>, out: &mut String) {
    let rows = drawing.drawn();
    let number_columns = rows.len().to_string().len().max(3);
    let starts: Vec<String> = rows.iter().map(start).collect();
    let start_columns = starts
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max("start ms".len());
    // In a narrow terminal names are cut before the chart.
    let others = number_columns + start_columns + OTHER_COLUMNS;
    let room = columns().saturating_sub(others + CHART_COLUMNS_MIN);
    let name_columns = room.clamp(NAME_COLUMNS_MIN, NAME_COLUMNS);
    let line = |cells: [&str; 7]| {
        let [number, name, kind, status, protocol, bytes, start] = cells;
        format!(
            "{number:>number_columns$} {name:<name_columns$} {kind:<4} {status:>3} {protocol:<4} {bytes:>8} {start:>start_columns$} |"
        )
    };
    let head = line(["#", "resource", "kind", "st", "prot", "bytes", "start ms"]);
    let columns = columns()
        .saturating_sub(head.len() + 1)
        .max(CHART_COLUMNS_MIN);
    let scale = Scale::new(drawing.end_ms, 0.0, columns as f64);
    push_line(out, &format!("{head}{}", axis(scale, columns)));
    let host = drawing.host();
    for (row, start) in rows.iter().zip(&starts) {
        let resource = row.resource;
        let known = resource
            .transferred_bytes()
            .map_or_else(|| "-".to_owned(), bytes);
        let cells = line([
            &row.number.to_string(),
            &figures::name(&resource.url, host, name_columns),
            figures::kind_short(resource.kind),
            &figures::status(resource),
            &figures::protocol(resource),
            &known,
            start,
        ]);
        push_line(out, &format!("{cells}{}|", bar(row, scale, columns)));
    }
    for moments in moments(drawing, scale, columns) {
        push_line(out, &format!("{}{moments}", " ".repeat(head.len())));
    }
    let phases = Phase::ALL.map(|phase| format!("{} {}", phase.character(), phase.name()));
    push_wrapped(
        "",
        "",
        &format!("{}  {STALL} stall", phases.join("  ")),
        out,
    );
    if let Some(words) = left_out(drawing.rows.len()) {
        push_wrapped("", "", &words, out);
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The time at which a row begins, in ms.
fn start(row: &Row<'_>) -> String {
    let ms = row.start_ms();
    let digits = usize::from(ms < 9.95);
    format!("{ms:.digits$}")
}

/// Labels of ticks, each from its tick on, as far as there is room.
fn axis(scale: Scale, columns: usize) -> String {
    let ticks = scale.ticks(columns / TICK_COLUMNS);
    let step = ticks.get(1).copied().unwrap_or(1.0);
    let mut line = String::new();
    for tick in ticks {
        let (at, label) = (scale.x(tick).round() as usize, tick_label(tick, step));
        let is_free = line.is_empty() || line.len() < at;
        if is_free && at + label.len() <= columns {
            line += &" ".repeat(at - line.len());
            line += &label;
        }
    }
    line
}

/// A row's phases, each column in the character of the phase that is drawn there.
fn bar(row: &Row<'_>, scale: Scale, columns: usize) -> String {
    let mut drawn = vec![' '; columns];
    let column = |ms: f64| (scale.x(ms).round() as usize).min(columns);
    let mut is_empty = true;
    for segment in &row.segments {
        let places = column(segment.from_ms)..column(segment.to_ms);
        is_empty &= places.is_empty();
        drawn[places].fill(segment.phase.character());
    }
    if is_empty {
        // A row shorter than a column is drawn as one column of its longest phase.
        let length = |phase: &&super::rows::Segment| phase.to_ms - phase.from_ms;
        let longest = row
            .segments
            .iter()
            .max_by(|a, b| length(a).total_cmp(&length(b)));
        let character = longest.map_or(INSTANT, |segment| segment.phase.character());
        drawn[column(row.start_ms()).min(columns - 1)] = character;
    }
    for stall in &row.stalls {
        let from = column(stall.from_ms).min(columns - 1);
        drawn[from..column(stall.to_ms).max(from + 1)].fill(STALL);
    }
    drawn.into_iter().collect()
}

/// Letters of the page's moments below the axis, in as many lines as are needed.
fn moments(drawing: &Drawing<'_>, scale: Scale, columns: usize) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = Vec::new();
    for timing in &drawing.timings {
        let at = (scale.x(timing.at_ms).round() as usize).min(columns - 1);
        let free = lines.iter().position(|line| line[at] == ' ');
        let n = free.unwrap_or_else(|| {
            lines.push(vec![' '; columns]);
            lines.len() - 1
        });
        lines[n][at] = timing.letter;
    }
    lines
        .into_iter()
        .map(|line| line.into_iter().collect())
        .collect()
}

/// The figures of the visit, a line for each.
fn summary(drawing: &Drawing<'_>, out: &mut String) {
    let visit = drawing.visit;
    push_entry("page", &shortened(&visit.url, ENTRY_COLUMNS), out);
    if let Some(title) = &visit.title {
        push_entry("title", &ascii(title, ENTRY_COLUMNS), out);
    }
    push_entry("visited by", &figures::agent(visit), out);
    push_entry("requests", &drawing.sums(), out);
    for sum in drawing.analysis.by_protocol.iter().take(PROTOCOLS_MOST) {
        let requests = figures::quantity(sum.requests, "request");
        let connections = figures::quantity(sum.connections, "connection");
        let name = if sum.name.is_empty() {
            "unknown"
        } else {
            &sum.name
        };
        push_entry(
            "",
            &format!(
                "{}: {requests}, {}, {connections}",
                shortened(name, 20),
                bytes(sum.bytes)
            ),
            out,
        );
    }
    for timing in &drawing.timings {
        push_entry(
            SHORT[timing.class],
            &format!("{} ({})", ms(timing.at_ms), timing.letter),
            out,
        );
    }
    if let Some(round_trip) = visit.round_trip_ms {
        push_entry("round trip", &format!("{:.2} ms", sane_ms(round_trip)), out);
    }
    if let Some(waits) = drawing.waits() {
        push_entry("waits", &waits, out);
    }
    if let Some(staircase) = drawing.staircase() {
        push_entry("staircase", &staircase, out);
    }
    stalls(drawing, out);
    for note in visit.notes.iter().take(NOTES_MOST) {
        push_entry("note", &ascii(note, NOTE_MOST), out);
    }
}

/// Sums of the stalls by cause, then each of the first ones.
fn stalls(drawing: &Drawing<'_>, out: &mut String) {
    let sums = drawing.stalls();
    if sums.is_empty() {
        return;
    }
    push_entry("stalls", &sums.join("; "), out);
    let all = drawing
        .rows
        .iter()
        .flat_map(|row| row.stalls.iter().map(move |stall| (row, stall)));
    for (row, stall) in all.take(STALLS_MOST) {
        let words = format!(
            "#{} at {}: {}",
            row.number,
            ms(stall.from_ms),
            stall_words(stall)
        );
        push_entry("", &words, out);
    }
}

/// Titles of the page's moments in the summary.
const SHORT: [&str; 6] = [
    "first byte",
    "first paint",
    "first content",
    "largest paint",
    "DOM loaded",
    "load",
];
/// Character of a stall.
const STALL: char = '!';
/// Character of a resource that took no time.
const INSTANT: char = '|';
/// Columns of a resource's name, and those that it keeps in a narrow terminal.
const NAME_COLUMNS: usize = 20;
const NAME_COLUMNS_MIN: usize = 8;
/// Columns of the other cells but number and start, with spaces and the lines around the chart.
const OTHER_COLUMNS: usize = 4 + 3 + 4 + 8 + 9;
/// Columns that the chart keeps in a narrow terminal.
const CHART_COLUMNS_MIN: usize = 12;
/// Columns of a figure's title.
const FIGURE_COLUMNS: usize = 25;
/// Columns from a tick to the next, at least.
const TICK_COLUMNS: usize = 10;
/// Columns of an entry's text.
const ENTRY_COLUMNS: usize = 80;
/// Stalls in the list.
const STALLS_MOST: usize = 20;
/// Protocols in the list: a hostile file has one for each of its resources.
const PROTOCOLS_MOST: usize = 10;
/// Notes, and characters of each.
pub(super) const NOTES_MOST: usize = 50;
pub(super) const NOTE_MOST: usize = 1_000;
