//! The lead of pages about experiments as HTML: form, verdict, warnings.

use maud::{Markup, html};

use super::views::{Form, Lead};
use crate::experiment::label;
use crate::report::visible;

/// Returns the lead of a page.
pub(super) fn markup(lead: &Lead) -> Markup {
    html! {
        @if !lead.about.is_empty() { p .period { (visible(&lead.about)) } }
        @if let Some(form) = &lead.form { (controls(form)) }
        @if let Some((first, others)) = lead.sentences.split_first() {
            section .verdict aria-label="Verdict" {
                p { strong { (visible(first)) } }
                @for sentence in others { p { (visible(sentence)) } }
            }
        }
        @if lead.is_in_progress { p .note data-reload="2" { a href="" { "Load the page again" } } }
        @for warning in &lead.warnings { p .warning { strong { "Warning: " } (visible(warning)) } }
        @if let Some(example) = lead.example { pre { code { (example) } } }
    }
}

/// The form of the page of an experiment.
fn controls(form: &Form) -> Markup {
    html! {
        form .controls method="get" action="experiments" aria-label="Experiment" {
            input type="hidden" name="experiment" value=(visible(&form.experiment));
            label { span { "Course of" }
                select name="visit" {
                    @for (n, metric) in form.metrics.iter().enumerate() {
                        @let is_chosen = form.chosen.map_or(n == 0, |chosen| chosen == *metric);
                        option value=(metric.name()) selected[is_chosen] { (label(*metric)) }
                    }
                }
            }
            label { span { "Arms" }
                select name="aa" {
                    option value="" selected[!form.is_a_a] { "differ" }
                    option value="1" selected[form.is_a_a] { "have the same effect (A/A)" }
                }
            }
            button type="submit" { "Show" }
            a .step href="experiments" { "All experiments" }
        }
    }
}
