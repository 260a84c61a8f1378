//! Changes against the first arm: intervals now, and their course.

use store::VisitMetric;

use super::super::view::{Head, View};
use crate::experiment::{Change, Comparison, Metric, Report, Statistic, label};
use crate::web::chart::{Band, Bands, Chart, Interval, Intervals};
use crate::web::table::{Cell, Format, Table};

/// Adds intervals of all metrics, and courses of one or all.
pub(super) fn sections(report: &Report, chosen: Option<VisitMetric>, view: &mut View) {
    let mut table = Table::new("changes", &COLUMNS);
    for metric in &report.metrics {
        rows(metric, &mut table);
    }
    let drawn: Vec<&Metric> = match chosen.and_then(|chosen| find(report, chosen)) {
        Some(metric) => vec![metric],
        None => report.metrics.iter().collect(),
    };
    let chart = Chart::Intervals(Intervals {
        rows: intervals(report, &drawn),
    });
    let control = report.arms.first().map_or("", |arm| arm.arm.as_str());
    let section = view.section(&format!("Change against {control}"), Some(chart), table);
    section.is_wide = true;
    section.is_open = true;
    section.note = format!(
        "Below 0: the value is lower than in the first arm. All intervals of all metrics hold together with a confidence of {} %, at every look.",
        (1.0 - report.alpha) * 100.0
    );
    // Courses of several metrics need ids of their own.
    for (n, metric) in drawn.into_iter().enumerate() {
        for (statistic, ids) in Statistic::ALL.into_iter().zip(COURSES) {
            let Some(id) = ids.get(n) else { continue };
            course(report, metric, statistic, id, view);
        }
    }
}

fn find(report: &Report, metric: VisitMetric) -> Option<&Metric> {
    report.metrics.iter().find(|one| one.metric == metric)
}

fn ends(change: &Change) -> [f64; 3] {
    [change.low, change.estimate, change.high]
}

fn intervals(report: &Report, metrics: &[&Metric]) -> Vec<Interval> {
    let has_arms = report.arms.len() > 2;
    let mut rows = Vec::new();
    for metric in metrics {
        for one in &metric.comparisons {
            let Some(change) = one.change.filter(|change| !change.estimate.is_nan()) else {
                continue;
            };
            let mut name = one.statistic.name().to_owned();
            if metrics.len() > 1 {
                name = format!("{} {name}", metric.metric.name());
            }
            if has_arms {
                name = format!("{name}, {}", one.arm);
            }
            rows.push(Interval {
                name,
                values: ends(&change),
                differs: one.differs,
            });
        }
    }
    rows
}

fn rows(metric: &Metric, table: &mut Table) {
    let Some(control) = metric.values.first() else {
        return;
    };
    for one in &metric.comparisons {
        let own = metric.values.iter().find(|values| values.arm == one.arm);
        let [low, estimate, high] = match &one.change {
            Some(change) => ends(change).map(|value| Cell::real(Some(value))),
            None => [Cell::Empty, Cell::Empty, Cell::Empty],
        };
        let verdict = match &one.change {
            Some(_) if one.differs => "differs",
            Some(change) if !change.is_open() => "no difference yet",
            _ => "too few users",
        };
        table.push(vec![
            Cell::Text(metric.metric.name().to_owned()),
            Cell::Text(one.arm.clone()),
            Cell::Text(one.statistic.name().to_owned()),
            Cell::real(control.of(one.statistic)),
            Cell::real(own.and_then(|own| own.of(one.statistic))),
            Cell::Text(metric.unit.to_owned()),
            estimate,
            low,
            high,
            Cell::real(Some(one.level * 100.0)),
            Cell::Text(verdict.to_owned()),
        ]);
    }
}

/// Adds the course of one statistic.
fn course(
    report: &Report,
    metric: &Metric,
    statistic: Statistic,
    id: &'static str,
    view: &mut View,
) {
    let of = metric
        .comparisons
        .iter()
        .filter(|one| one.statistic == statistic);
    let all: Vec<_> = of.filter(|one| !one.course.is_empty()).collect();
    let Some(first) = all.first() else { return };
    let times: Vec<u64> = first.course.iter().map(|look| look.at_s).collect();
    let band = |one: &&&Comparison| Band {
        name: one.arm.clone(),
        values: one
            .course
            .iter()
            .map(|look| {
                look.change
                    .filter(|change| !change.is_open())
                    .map(|change| ends(&change))
            })
            .collect(),
    };
    let end = times.last().copied().unwrap_or(report.at_s);
    let bands = Bands {
        period: (report.since_s.min(end), end),
        bands: all.iter().map(|one| band(&one)).collect(),
        times,
    };
    let table = course_table(id, &all);
    let mut name = label(metric.metric).to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let title = format!("{name}, {}: change over time", statistic.label());
    view.section(&title, Some(Chart::Bands(bands)), table);
}

fn course_table(id: &'static str, all: &[&Comparison]) -> Table {
    let mut table = Table::new(id, &COURSE_COLUMNS);
    for one in all {
        for look in &one.course {
            let [low, estimate, high] = match &look.change {
                Some(change) => ends(change).map(|value| Cell::real(Some(value))),
                None => [Cell::Empty, Cell::Empty, Cell::Empty],
            };
            table.push(vec![
                Cell::Time(look.at_s),
                Cell::Text(one.arm.clone()),
                Cell::Count(look.users[0]),
                Cell::Count(look.users[1]),
                estimate,
                low,
                high,
            ]);
        }
    }
    table
}

const COLUMNS: [Head; 11] = [
    ("metric", "Metric", Format::Text),
    ("arm", "Arm", Format::Text),
    ("statistic", "Statistic", Format::Text),
    ("control", "First arm", Format::Real),
    ("value", "Arm", Format::Real),
    ("unit", "in", Format::Text),
    ("change_percent", "Change %", Format::Percent),
    ("low_percent", "from", Format::Percent),
    ("high_percent", "to", Format::Percent),
    ("level_percent", "Level %", Format::Percent),
    ("verdict", "Verdict", Format::Text),
];
const COURSE_COLUMNS: [Head; 7] = [
    ("at", "Until", Format::Time),
    ("arm", "Arm", Format::Text),
    ("users_control", "Users, first arm", Format::Count),
    ("users", "Users", Format::Count),
    ("change_percent", "Change %", Format::Percent),
    ("low_percent", "from", Format::Percent),
    ("high_percent", "to", Format::Percent),
];
/// Names of the tables of courses, by statistic and metric; the page of one metric has the first ones.
const COURSES: [[&str; 4]; 4] = [
    [
        "course_mean",
        "course_mean_2",
        "course_mean_3",
        "course_mean_4",
    ],
    ["course_p50", "course_p50_2", "course_p50_3", "course_p50_4"],
    ["course_p80", "course_p80_2", "course_p80_3", "course_p80_4"],
    ["course_p95", "course_p95_2", "course_p95_3", "course_p95_4"],
];
