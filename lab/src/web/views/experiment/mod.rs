//! One experiment: verdict, arms side by side, intervals and their course, figures of the server.

mod arms;
mod changes;
mod server;

use store::VisitMetric;

use super::lead::{Lead, minute};
use super::view::{Tile, View};
use crate::experiment::{Report, State, label};
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
    let mut all = Vec::new();
    let mut push = |label, value: String, detail: String| {
        all.push(Tile {
            label,
            value,
            detail,
        })
    };
    let rate = report
        .users_per_day
        .map(|rate| format!("{} a day", grouped(rate.round().max(0.0) as u64)));
    push("Users", grouped(report.users()), rate.unwrap_or_default());
    let window = match report.window_s {
        0 => "the first page view counts".to_owned(),
        window => format!("window {}", length(window)),
    };
    push("Unfinished users", grouped(report.unfinished_users), window);
    push(
        "Users in several arms",
        grouped(report.mixed_users),
        "they do not count".to_owned(),
    );
    let test = &report.sample_ratio;
    let verdict = if test.is_mismatch {
        "contradicts the weights"
    } else {
        "fits the weights"
    };
    push(
        "Shares of arms, p",
        probability(test.p_value),
        verdict.to_owned(),
    );
    if let Some(metric) = report.primary() {
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
        push(
            "Variance removed by CUPED",
            value,
            format!("{}, {detail}", label(metric.metric)),
        );
    }
    if let Some(last) = report.last_s {
        push(
            "Last visit",
            readable(minute(last)),
            report.state.label().to_owned(),
        );
    }
    all
}

fn probability(p: f64) -> String {
    match p {
        p if p < 1e-4 => "below 0.0001".to_owned(),
        p => format!("{p:.4}"),
    }
}
