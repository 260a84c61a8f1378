//! Rows of experiments as TabSeparated data.

use std::fmt::{Display, Write as _};

use crate::clickhouse::batch::Kind;
use crate::clickhouse::encode::{COUNT_MAX, Encoded, TIME_MAX_S, batches, minute, text_of};
use crate::experiment::{ArmFigures, ExperimentSettings, Visit, arms_text, metrics_text};
use crate::histogram::Histogram;

/// Makes batches of page views.
pub(crate) fn visits(visits: &[Visit]) -> Vec<Encoded> {
    let each = visits.iter().map(|visit| visit.at_ms / 1000);
    batches(Kind::Visits, each, |at, out| visit(&visits[at], out))
}

/// Makes batches of figures of arms.
pub(crate) fn arms(figures: &[ArmFigures]) -> Vec<Encoded> {
    let each = figures.iter().map(|figures| figures.at_s);
    batches(Kind::Arms, each, |at, out| arm(&figures[at], out))
}

/// Makes batches of settings.
pub(crate) fn settings(rows: &[(u64, ExperimentSettings)]) -> Vec<Encoded> {
    let each = rows.iter().map(|(since_s, _)| *since_s);
    batches(Kind::Settings, each, |at, out| setting(&rows[at], out))
}

fn text(text: &str, out: &mut String) {
    out.push('\t');
    text_of(text, out);
}

fn number(number: impl Display, out: &mut String) {
    let _ = write!(out, "\t{number}");
}

fn known(value: Option<impl Display>, out: &mut String) {
    match value {
        Some(value) => number(value, out),
        None => out.push_str("\t\\N"),
    }
}

/// Appends a row in the order of [`super::sql::visit_columns`].
fn visit(row: &Visit, out: &mut String) {
    let _ = write!(out, "{}", row.at_ms.min(TIME_MAX_S * 1000));
    text(&row.experiment, out);
    number(row.user, out);
    number(row.view, out);
    text(&row.arm, out);
    text(&row.server, out);
    number(u8::from(row.is_failed), out);
    for count in [row.files, row.files_failed, row.files_truncated] {
        number(count, out);
    }
    number(row.file_bytes.min(COUNT_MAX), out);
    for value in row.values {
        known(value, out);
    }
}

/// Appends a row in the order of [`super::sql::ARM_COLUMNS`].
fn arm(row: &ArmFigures, out: &mut String) {
    let _ = write!(out, "{}", minute(row.at_s.min(TIME_MAX_S)));
    for name in [&row.experiment, &row.arm, &row.server] {
        text(name, out);
    }
    for count in [
        row.connections,
        row.requests,
        row.promised,
        row.sent,
        row.truncated,
        row.aborted,
        row.duration_ms,
        row.cpu_us,
        row.cpu_connections,
        row.open_sum,
        row.open_samples,
        row.open_max,
        row.memory_max,
    ] {
        number(count.min(COUNT_MAX), out);
    }
    for histogram in [&row.first_byte, &row.handshake] {
        cells(histogram, out);
    }
}

/// Appends three arrays: buckets, counts, sums.
fn cells(histogram: &Histogram, out: &mut String) {
    let mut array = |numbers: &mut dyn Iterator<Item = u64>| {
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let _ = write!(out, "\t[{}]", numbers.join(","));
    };
    array(&mut histogram.cells().map(|(bucket, _)| bucket.into()));
    array(&mut histogram.cells().map(|(_, cell)| cell.count));
    array(&mut histogram.cells().map(|(_, cell)| cell.sum_us));
}

/// Appends a row in the order of [`super::sql::SETTING_COLUMNS`].
fn setting((since_s, settings): &(u64, ExperimentSettings), out: &mut String) {
    let _ = write!(out, "{}", since_s.min(&TIME_MAX_S));
    text(&settings.name, out);
    // Texts of arms have escapes of their own, and are not cut.
    let _ = write!(out, "\t{}", arms_text(&settings.arms));
    number(settings.share, out);
    known(settings.start_s.map(|at_s| at_s.min(COUNT_MAX)), out);
    known(settings.end_s.map(|at_s| at_s.min(COUNT_MAX)), out);
    number(settings.window_s.min(COUNT_MAX), out);
    number(settings.pre_period_s.min(COUNT_MAX), out);
    let _ = write!(out, "\t{}", metrics_text(&settings.metrics));
}
