//! The list of experiments.

use store::{Error, ExperimentSummary};

use super::lead::Lead;
use super::view::{Context, Head, View};
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let all = context.store.experiments()?;
    let mut view = View::default();
    if all.is_empty() {
        view.lead = Some(Lead::none());
    }
    let mut table = Table::new("experiments", &COLUMNS);
    for one in &all {
        table.push(row(context, one));
    }
    let section = view.section("Experiments", None, table);
    section.note = "The page of an experiment has its verdict.".to_owned();
    Ok(view)
}

fn row(context: &Context<'_>, one: &ExperimentSummary) -> Vec<Cell> {
    let settings = one.settings.clone().unwrap_or_default();
    let link = format!(
        "experiments{}",
        context.params.query(&[("experiment", Some(&one.name))])
    );
    let time = |time: Option<u64>| time.map_or(Cell::Empty, Cell::Time);
    let weight = |name: &String| {
        settings
            .arms
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, weight)| weight)
    };
    let arms = one
        .arms
        .iter()
        .take(ARMS_MAX)
        .map(|name| match weight(name) {
            Some(weight) => format!("{name} {weight}"),
            None => name.clone(),
        });
    let more = if one.arms.len() > ARMS_MAX {
        ", ..."
    } else {
        ""
    };
    let arms = arms.collect::<Vec<_>>().join(", ") + more;
    let primary = settings.metrics.first().map_or("", |metric| metric.name());
    vec![
        Cell::Link(one.name.clone(), link),
        Cell::Text(state(one, context.params.now_s).to_owned()),
        Cell::Count(one.arms.len() as u64),
        Cell::Text(arms),
        Cell::Text(primary.to_owned()),
        Cell::Count(one.views),
        time(one.first_s),
        time(one.last_s),
        time(settings.start_s),
        time(settings.end_s),
    ]
}

/// State by the configured times alone; the page of an experiment knows more.
fn state(one: &ExperimentSummary, now_s: u64) -> &'static str {
    let Some(settings) = &one.settings else {
        return "unknown";
    };
    match (settings.start_s, settings.end_s) {
        (Some(start), _) if now_s < start => "not begun",
        (_, Some(end)) if now_s >= end => "ended",
        _ => "running",
    }
}

const COLUMNS: [Head; 10] = [
    ("experiment", "Experiment", Format::Text),
    ("state", "State", Format::Text),
    ("arms", "Arms", Format::Count),
    ("weights", "Arms and weights", Format::Text),
    ("primary_metric", "Primary metric", Format::Text),
    ("views", "Page views", Format::Count),
    ("first", "First view", Format::Time),
    ("last", "Last view", Format::Time),
    ("start", "Start", Format::Time),
    ("end", "End", Format::Time),
];
/// Most arms named in the list.
const ARMS_MAX: usize = 6;
