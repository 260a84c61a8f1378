//! The report of an experiment as one page that needs nothing else. It has the figures of the dashboard's page, for all metrics.

use maud::html;

use super::assets;
use super::panel::{panel, tiles};
use super::verdict;
use super::views::experiment;
use crate::experiment::Report;
use crate::report::{document, visible};

/// Returns the page of a report: no script, no picture but those within it.
#[must_use]
pub fn experiment_page(report: &Report) -> String {
    let view = experiment(report, None);
    let heading = format!("Experiment {}", report.experiment);
    let content = html! {
        h1 { (visible(&heading)) }
        @if let Some(lead) = &view.lead { (verdict::markup(lead)) }
        @for note in &view.notes { p .note { (visible(note)) } }
        (tiles(&view.tiles))
        div .panels { @for section in &view.sections { (panel(section, None)) } }
    };
    let content = html! { div .dashboard { (content) } };
    document(
        &heading,
        &[assets::OWN_SHEET, WIDE],
        report.program,
        &content,
    )
}

/// Panels need more width than the text of other reports.
const WIDE: &str = "main { max-width: 92rem; }";
