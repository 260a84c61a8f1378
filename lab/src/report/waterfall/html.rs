//! Visits as a page that needs nothing else: summary, waterfall, filmstrip, connections, resources, runs.
//!
//! It follows the reader's choice of light or dark, fits a telephone, prints, and is walked through by keyboard.

use maud::{Markup, PreEscaped, html};

use crate::page::Visit;
use crate::page::comparison::FIGURES;
use crate::report::document::{document, wide};
use crate::report::escape::{bounded, shortened};

use super::details::resources;
use super::filmstrip::filmstrip;
use super::rows::Drawing;
use super::summary::{is_telling, of_runs, text_or_dash, values};
use super::text::{NOTE_MOST, NOTES_MOST};
use super::{connections, figures as words, palette, svg};

/// Visits of a page in reports.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Program and version, for the foot of the page.
    pub program: &'a str,
    /// Visits with empty caches.
    pub cold: Runs<'a>,
    /// Visits behind these with what they left in caches.
    pub warm: Option<Runs<'a>>,
}

/// Runs of one view.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// All runs; those of a page are of the same URL.
    pub visits: &'a [&'a Visit],
    /// Place of the run that is drawn; the first one where there is no such place.
    pub shown: usize,
}

/// A view as it is drawn: its runs, and the drawing of one of them.
struct View<'a> {
    title: &'static str,
    shown: usize,
    runs: Vec<Drawing<'a>>,
}

impl<'a> Runs<'a> {
    /// The run that is drawn; `None` where there are no runs.
    pub(super) fn drawn(self) -> Option<&'a Visit> {
        let shown = self.visits.get(self.shown).or(self.visits.first());
        shown.copied()
    }
}

impl<'a> View<'a> {
    /// The drawings of runs; `None` where there are none.
    fn of(title: &'static str, runs: Runs<'a>) -> Option<Self> {
        let drawings: Vec<Drawing<'a>> = runs.visits.iter().copied().map(Drawing::of).collect();
        let shown = if runs.shown < drawings.len() {
            runs.shown
        } else {
            0
        };
        (!drawings.is_empty()).then_some(Self {
            title,
            shown,
            runs: drawings,
        })
    }

    fn drawing(&self) -> &Drawing<'a> {
        &self.runs[self.shown]
    }
}

/// The whole page.
#[must_use]
pub fn html(page: &Page<'_>) -> String {
    let cold = View::of("Cold view", page.cold);
    let warm = page.warm.and_then(|runs| View::of("Warm view", runs));
    let views: Vec<View<'_>> = cold.into_iter().chain(warm).collect();
    let url = views
        .first()
        .map_or("", |view| view.drawing().visit.url.as_str());
    let title = format!("Waterfall of {}", shortened(url, URL_MOST));
    let content = html! {
        h1 { (title) }
        @if let Some(view) = views.first() { (heading(view.drawing())) }
        (summary(&views))
        @for view in &views { (pictures(view.title, view.drawing())) }
        @for view in &views { (runs(view)) }
    };
    document(&title, &[palette::STYLE, STYLE], page.program, &content)
}

/// The page's title, and who visited it.
fn heading(drawing: &Drawing<'_>) -> Markup {
    let visit = drawing.visit;
    html! {
        @if let Some(title) = &visit.title { p { "\u{201c}" (bounded(title, TITLE_MOST)) "\u{201d}" } }
        p .key { (words::agent(visit)) }
    }
}

/// The figures of each view, with the interval of several runs.
fn summary(views: &[View<'_>]) -> Markup {
    let runs: Vec<Vec<Vec<Option<f64>>>> = views
        .iter()
        .map(|view| view.runs.iter().map(values).collect())
        .collect();
    let all: Vec<&[Option<f64>]> = runs.iter().flatten().map(Vec::as_slice).collect();
    let table = html! {
        table .figures {
            thead { tr { th scope="col" { "figure" } @for view in views { th scope="col" { (view.title) } } } }
            tbody {
                @for (n, figure) in FIGURES.iter().enumerate().filter(|(n, _)| is_telling(&all, *n)) {
                    tr {
                        th scope="row" { (figure.title) }
                        @for (view, runs) in views.iter().zip(&runs) {
                            td { (text_or_dash(figure, runs[view.shown][n])) (interval(runs, n)) }
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
            @if views.iter().any(|view| view.runs.len() > 1) {
                p .key { "Of several runs one is shown; means have intervals at 95 % by Student's t over the runs." }
            }
        }
    }
}

/// The mean over runs of the figure at a place, where there are several.
fn interval(runs: &[Vec<Option<f64>>], n: usize) -> Markup {
    let values: Vec<f64> = runs.iter().filter_map(|run| run[n]).collect();
    html! { @if let Some(mean) = of_runs(&FIGURES[n], &values) { br; small { (mean) } } }
}

/// A visit with all its pictures and tables.
pub(super) fn pictures(title: &str, drawing: &Drawing<'_>) -> Markup {
    let visit = drawing.visit;
    html! {
        section {
            h2 { (title) }
            p { (drawing.sums()) "." }
            @if let Some(staircase) = drawing.staircase() { p { "Staircase score " (staircase) "." } }
            @if let Some(waits) = drawing.waits() { p { "Waits of all requests together: " (waits) "." } }
            @for stalls in drawing.stalls() { p .warning { "Stalls: " (stalls) "." } }
            h3 { "Waterfall" }
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

/// The figures of each run, where there are several.
fn runs(view: &View<'_>) -> Markup {
    let all: Vec<Vec<Option<f64>>> = view.runs.iter().take(RUNS_MOST).map(values).collect();
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
                        th scope="row" { (at + 1) @if at == view.shown { " (shown)" } }
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
