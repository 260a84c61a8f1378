//! Figures of a page for `--fail-if`: budgets.

use lab::page::{FIGURES, Figure as PageFigure, Runs};

use super::views::Visits;
use crate::cli::condition::{Condition, Figure, Vocabulary};

/// Parses a condition on a figure of a page.
///
/// # Errors
/// It is not a condition.
pub(super) fn condition(text: &str) -> Result<Condition, String> {
    let known = Vocabulary {
        names: FIGURES.iter().map(|figure| figure.name).collect(),
        statuses: true,
        warm: true,
        ..Vocabulary::default()
    };
    Condition::parse(text, &known)
}

/// Compares visits with their budgets.
///
/// # Errors
/// Sentences about conditions that hold and figures without a value.
pub(super) fn kept(conditions: &[Condition], visits: &Visits) -> Result<(), String> {
    if conditions.is_empty() {
        return Ok(());
    }
    let views = visits.analysed()?;
    let failed = conditions.iter().filter_map(|condition| {
        let url = &views.first.shown().visit.url;
        let (subject, runs) = match condition.is_warm() {
            true => (format!("{url}, warm view"), views.warm.as_ref()),
            false => (url.clone(), Some(&views.first)),
        };
        condition.failure(
            &subject,
            runs.and_then(|runs| value(condition.figure(), runs)),
        )
    });
    let failed: Vec<String> = failed.collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("\n")),
    }
}

/// Returns the mean over the runs; `None` unless all of them have the figure.
fn value(figure: &Figure, runs: &Runs<'_>) -> Option<f64> {
    let count = runs.all().len();
    let values: Vec<f64> = match figure {
        Figure::Named(name) => {
            let named = |figure: &&PageFigure| figure.name == *name;
            runs.values(FIGURES.iter().find(named)?)
        }
        Figure::Status(wanted) => {
            let counted = runs.all().iter().map(|run| {
                let requested = run.visit.resources.iter().filter(|one| !one.from_cache);
                requested.filter(|one| wanted.contain(one.status)).count() as f64
            });
            counted.collect()
        }
        Figure::Percentile(..) => return None,
    };
    (values.len() == count).then(|| values.iter().sum::<f64>() / count as f64)
}
