//! Visits as a page that needs nothing else: summary, waterfall, filmstrip, connections, resources, runs.
//!
//! It follows the reader's choice of light or dark, fits a telephone, prints, and is walked through by keyboard.

use maud::{Markup, PreEscaped, html};

use crate::page::{FIGURES, Runs, View, Views, Visit};
use crate::report::PROGRAM;
use crate::report::document::{document, wide};
use crate::report::escape::{bounded, shortened};

use super::details::resources;
use super::filmstrip::filmstrip;
use super::rows::{Drawing, left_out};
use super::summary::{is_telling, of_runs, text_or_dash, values};
use super::text::{NOTE_MOST, NOTES_MOST};
use super::{connections, figures as words, palette, svg};

/// A view as it is drawn: its runs with their figures, and the drawing of one of them.
struct Shown<'a> {
    title: &'static str,
    runs: &'a Runs<'a>,
    values: Vec<Vec<Option<f64>>>,
    drawing: Drawing<'a>,
}

impl<'a> Shown<'a> {
    fn of(runs: &'a Runs<'a>) -> Self {
        Self {
            title: match runs.shown().visit.view {
                View::Cold => "Cold view",
                View::Warm => "Warm view",
            },
            runs,
            values: runs.all().iter().map(values).collect(),
            drawing: Drawing::of(runs.shown()),
        }
    }
}

/// The whole page.
#[must_use]
pub fn html(views: &Views<'_>) -> String {
    let first = Shown::of(&views.first);
    let url = shortened(&first.drawing.visit.url, URL_MOST);
    let title = format!("Waterfall of {url}");
    let heading = heading(first.drawing.visit);
    let warm = views.warm.as_ref().map(Shown::of);
    let views: Vec<Shown<'_>> = std::iter::once(first).chain(warm).collect();
    let content = html! {
        h1 { (title) }
        (heading)
        (summary(&views))
        @for view in &views { (pictures(view.title, &view.drawing)) }
        @for view in &views { (runs(view)) }
    };
    document(&title, &[palette::STYLE, STYLE], PROGRAM, &content)
}

/// The page's title and the browser.
fn heading(visit: &Visit) -> Markup {
    html! {
        @if let Some(title) = &visit.title { p { "\u{201c}" (bounded(title, TITLE_MOST)) "\u{201d}" } }
        p .key { (words::agent(visit)) }
    }
}

/// The figures of each view, with statistics over several runs.
fn summary(views: &[Shown<'_>]) -> Markup {
    let all = views.iter().flat_map(|view| &view.values);
    let all: Vec<&[Option<f64>]> = all.map(Vec::as_slice).collect();
    let table = html! {
        table .figures {
            thead { tr { th scope="col" { "figure" } @for view in views { th scope="col" { (view.title) } } } }
            tbody {
                @for (n, figure) in FIGURES.iter().enumerate().filter(|(n, _)| is_telling(&all, *n)) {
                    tr {
                        th scope="row" { (figure.title) }
                        @for view in views {
                            td {
                                (text_or_dash(figure, view.values[view.runs.shown_place()][n]))
                                @if let Some(found) = of_runs(figure, view.runs) { br; small { (found) } }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        section {
            h2 { "Summary" }
            (wide("Summary", &table))
            @if views.iter().any(|view| view.values.len() > 1) {
                p .key { "One of several runs is shown; means have 95 % confidence intervals (Student's t over the runs)." }
            }
        }
    }
}

/// A visit with all its pictures and tables.
pub(super) fn pictures(title: &str, drawing: &Drawing<'_>) -> Markup {
    let visit = drawing.visit;
    html! {
        section {
            h2 { (title) }
            p { (drawing.sums()) "." }
            @if let Some(staircase) = drawing.staircase() { p { "Staircase score " (staircase) "." } }
            @if let Some(waits) = drawing.waits() { p { "Total wait of all requests: " (waits) "." } }
            @for stalls in drawing.stalls() { p .warning { "Stalls: " (stalls) "." } }
            h3 { "Waterfall" }
            @if let Some(words) = left_out(drawing.rows.len()) { p .warning { (words) "." } }
            (wide(&format!("Waterfall, {title}"), &PreEscaped(svg::picture(drawing, false))))
            (filmstrip(&visit.filmstrip, title))
            @if let Some(picture) = connections::picture(drawing) {
                h3 { "Connections" }
                (wide(&format!("Connections, {title}"), &PreEscaped(picture)))
            }
            @if !drawing.rows.is_empty() {
                h3 { "Resources" }
                (resources(drawing))
            }
            (notes(visit))
        }
    }
}

/// Whatever a reader has to know.
fn notes(visit: &Visit) -> Markup {
    html! {
        @if !visit.notes.is_empty() {
            h3 { "Notes" }
            ul { @for note in visit.notes.iter().take(NOTES_MOST) { li { (bounded(note, NOTE_MOST)) } } }
        }
    }
}

/// The figures of each run, if there are several.
fn runs(view: &Shown<'_>) -> Markup {
    let all = &view.values[..view.values.len().min(RUNS_MOST)];
    let shown: Vec<&[Option<f64>]> = all.iter().map(Vec::as_slice).collect();
    let columns: Vec<usize> = (0..FIGURES.len())
        .filter(|n| is_telling(&shown, *n))
        .collect();
    let table = html! {
        table {
            thead { tr { th scope="col" { "run" } @for n in &columns { th scope="col" { (FIGURES[*n].title) } } } }
            tbody {
                @for (at, run) in all.iter().enumerate() {
                    tr {
                        th scope="row" { (at + 1) @if at == view.runs.shown_place() { " (shown)" } }
                        @for n in &columns { td { (text_or_dash(&FIGURES[*n], run[*n])) } }
                    }
                }
            }
        }
    };
    html! {
        @if all.len() > 1 {
            section {
                h2 { "Runs, " (view.title.to_lowercase()) }
                (wide(&format!("Runs, {}", view.title), &table))
                @if view.values.len() > all.len() { p .key { "and " (view.values.len() - all.len()) " more" } }
            }
        }
    }
}

/// Rules of these pages.
pub(super) const STYLE: &str = "
main { max-width: 84rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
.wide:focus-visible, .film:focus-visible, summary:focus-visible { outline: 3px solid var(--s0); outline-offset: 2px; }
.wide .waterfall { width: 100%; min-width: 56rem; height: auto; }
.film { display: flex; gap: .75rem; overflow-x: auto; list-style: none; margin: 0; padding: 0 0 .5rem; }
.film figure { margin: 0; } .film img { display: block; height: 8rem; width: auto; border: 1px solid var(--line); }
.film figcaption { font-size: .85rem; color: var(--soft); text-align: center; white-space: nowrap; }
.resources { width: 100%; table-layout: auto; } .resources .url { text-align: left; white-space: normal; width: 60%;
  overflow-wrap: anywhere; } .resources td { vertical-align: top; } .resources .bad > td { color: var(--s1); }
summary { cursor: pointer; word-break: break-all; }
.figures td, .figures th { white-space: normal; } small { color: var(--soft); font-size: .85em; }
dl { margin: .5rem 0; } dl div { display: flex; gap: .75rem; } dt { flex: 0 0 8.5rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
details table { margin: .5rem 0; font-size: .85rem; } .phases td { white-space: nowrap; } .phases th { white-space: normal; } caption { text-align: left; font-weight: 600; }
.fields td, .fields th { text-align: left; white-space: normal; overflow-wrap: anywhere; vertical-align: top; min-width: 5rem; }
@media (max-width: 48rem) { .more { display: none; } .resources, .resources table { table-layout: fixed; width: 100%; }
  .resources > thead th:nth-child(1) { width: 2.2rem; } .resources > thead th:nth-child(3) { width: 3.6rem; }
  .resources > thead th:last-child { width: 5rem; } .resources table th, .resources table td { white-space: normal;
  min-width: 0; overflow-wrap: anywhere; } dl div { flex-direction: column; gap: 0; } dt { flex: none; } }
@media print { .wide .waterfall { min-width: 0; } .film { flex-wrap: wrap; } section { break-inside: auto; }
  svg, figure, tr { break-inside: avoid; } details::details-content { content-visibility: visible; } }
";
/// Columns of a URL in titles, characters of the page's title, runs in a table.
const URL_MOST: usize = 200;
const TITLE_MOST: usize = 300;
const RUNS_MOST: usize = 100;
