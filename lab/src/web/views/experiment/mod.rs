//! One experiment: verdict, arms side by side, intervals and their course, figures of the server.

mod arms;
mod changes;
mod server;

use store::VisitMetric;

use super::lead::{Lead, minute};
use super::view::{Tile, View};
use crate::experiment::{Metric, Report, State, label};
use crate::time::{length, readable};
use crate::web::table::{grouped, real};

/// Returns the view of a report; with a metric its course alone is drawn, else that of all metrics.
pub(in crate::web) fn view(report: &Report, metric: Option<VisitMetric>) -> View {
    let mut view = View {
        lead: Some(Lead::of(report)),
        tiles: tiles(report),
        ..View::default()
    };
    if report.state == State::NotBegun {
        return view;
    }
    changes::sections(report, metric, &mut view);
    arms::section(report, &mut view);
    server::sections(report, &mut view);
    view
}

fn tiles(report: &Report) -> Vec<Tile> {
    let tile = |label, value: String, detail: &str| Tile {
        label,
        value,
        detail: detail.to_owned(),
    };
    let rate = report
        .users_per_day
        .map(|rate| format!("{} a day", grouped(rate.round().max(0.0) as u64)));
    let window = match report.window_s {
        0 => "the first page view counts".to_owned(),
        window => format!("window {}", length(window)),
    };
    let test = &report.sample_ratio;
    let verdict = match (test.is_mismatch, report.measured_ratio.is_mismatch) {
        (true, _) => "contradicts the weights",
        (false, true) => "fits the weights, but not for users with a value",
        (false, false) => "fits the weights",
    };
    let (users, mixed) = (grouped(report.users()), grouped(report.uncounted.mixed));
    let unfinished = grouped(report.uncounted.unfinished);
    let mut all = vec![
        tile("Users", users, &rate.unwrap_or_default()),
        tile("Unfinished users", unfinished, &window),
        tile("Users in several arms", mixed, "they do not count"),
        tile("Shares of arms, p", probability(test.p_value), verdict),
    ];
    all.extend(report.primary().map(cuped));
    all.extend(report.last_s.map(|last| {
        let state = report.state.label();
        tile("Last visit", readable(minute(last)), state)
    }));
    all
}

/// The adjustment of means.
fn cuped(metric: &Metric) -> Tile {
    let (value, detail) = match metric.cuped {
        None => (
            "\u{2013}".to_owned(),
            "too few users from before".to_owned(),
        ),
        Some(cuped) => (
            format!("{} %", real(cuped.reduction * 100.0)),
            format!(
                "{} % of users have a value before",
                real(cuped.share * 100.0)
            ),
        ),
    };
    Tile {
        label: "Variance removed by CUPED",
        value,
        detail: format!("{}, {detail}", label(metric.metric)),
    }
}

fn probability(p: f64) -> String {
    match p {
        p if p < 1e-4 => "below 0.0001".to_owned(),
        p => format!("{p:.4}"),
    }
}
