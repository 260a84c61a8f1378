//! Pages as HTML: navigation, controls, tiles, charts with their tables.
//!
//! All links are relative and one level deep, so the site works below any prefix. Without script the controls are a form.

use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::choices::Choices;
use super::http::{HTML, Response};
use super::panel::{panel, tiles};
use super::params::{EXACT, METRICS, PRESETS, Params, SHIFT_MAX};
use super::views::{Page, View, country_name};
use crate::report::{PROGRAM, bounded, visible};
use crate::time::{input, iso, length, readable};

/// Data around a view.
pub(super) struct Frame<'a> {
    pub(super) page: Page,
    pub(super) params: &'a Params,
    /// Name of the store.
    pub(super) store: &'a str,
    pub(super) choices: &'a Choices,
}

/// Returns the page of a view.
pub(super) fn page(frame: &Frame<'_>, view: &View) -> String {
    let (page, params) = (frame.page, frame.params);
    let (from, to) = params.period();
    let csv = |table: &str| {
        format!(
            "{}.csv{}",
            page.path(),
            params.query(&[("table", Some(table))])
        )
    };
    let heading = view.lead.as_ref().map_or("", |lead| lead.heading.as_str());
    let heading = if heading.is_empty() {
        page.label()
    } else {
        heading
    };
    let heading = bounded(heading, NAME_MOST);
    let content = html! {
        h1 { (heading) }
        @if page.has_period() {
            p .period {
                time datetime=(iso(from)) { (readable(from)) } " to " time datetime=(iso(to)) { (readable(to)) }
                " UTC (" (length(to - from)) ")"
                @if params.preset.is_some() {
                    @let exact = [("period", None), ("shift", None), ("from", Some(iso(from))), ("to", Some(iso(to)))];
                    @let exact: Vec<_> = exact.iter().map(|(name, value)| (*name, value.as_deref())).collect();
                    " " a href={ (page.path()) (params.query(&exact)) } { "Link to this period" }
                }
            }
            (controls(frame))
            @if view.connections == 0 { (nothing(frame)) }
        }
        @if let Some(lead) = &view.lead { (super::verdict::markup(lead)) }
        @for note in &view.notes { p .note { (visible(note)) } }
        @if matches!(page, Page::Overview | Page::Connections) { (live()) }
        (tiles(&view.tiles))
        div .panels { @for section in &view.sections { (panel(section, Some(&csv))) } }
        p .key { "All figures of this page: " a href={ (page.path()) ".json" (params.query(&[])) } { "JSON" } }
    };
    document(Some(page), Some(params), &heading, frame.store, &content)
}

/// Returns the page of an empty store: the next steps.
pub(super) fn empty(page: Page, params: &Params, store: &str) -> Response {
    let content = html! {
        h1 { "No connections yet" }
        p { "The store " strong { (bounded(store, NAME_MOST)) } " is empty. Next steps:" }
        ol {
            li { "Let the server record connections. These lines belong into " code { "http" } ":"
                pre { code { (CONFIGURATION) } } }
            li { "Check the configuration with " code { "firstbyte -t" } ", then load it with " code { "firstbyte -s reload" } "." }
            li { "Visit a page of the server, for example with " code { "curl" } ". A connection is stored at its close, within a second." }
            li { "Load this page again. It shows the first connection." }
        }
        p { "Still nothing? The error log has the reason if the store cannot be written, and "
            code { "firstbyte_store_rows_dropped_total" } " in the metrics counts lost rows. "
            "Connections through UNIX-domain sockets, and those without a response, are not recorded." }
    };
    let text = document(
        Some(page),
        Some(params),
        "No connections yet",
        store,
        &content,
    );
    Response::made(200, HTML, text)
}

/// Returns the page of a store that cannot be read.
pub(super) fn failed(page: Page, params: &Params, store: &str, reason: &str) -> Response {
    let again = format!("{}{}", page.path(), params.query(&[]));
    let content = html! {
        h1 { "The store cannot be read" }
        p .warning { strong { "Reason: " } (bounded(reason, REASON_MOST)) }
        p { "The server goes on serving. " a href=(again) { "Try again" } }
    };
    let text = document(
        Some(page),
        Some(params),
        "The store cannot be read",
        store,
        &content,
    );
    Response::made(503, HTML, text)
}

/// Returns the page of parameters without meaning.
pub(super) fn refused(page: Page, reason: &str) -> Response {
    let content = html! {
        h1 { "This address has a mistake" }
        p .warning { (bounded(reason, REASON_MOST)) }
        p { "Times are UTC, such as " code { "2026-01-31T08:00" } ". " a href=(page.path()) { "Begin with the last 24 hours" } }
    };
    Response::made(
        400,
        HTML,
        document(Some(page), None, "Mistake", "", &content),
    )
}

/// Returns the page of an unknown path.
pub(super) fn missing() -> Response {
    let content = html! {
        h1 { "No such page" }
        p { a href="overview" { "Overview" } }
    };
    Response::made(
        404,
        HTML,
        document(None, None, "No such page", "", &content),
    )
}

fn document(
    page: Option<Page>,
    params: Option<&Params>,
    title: &str,
    store: &str,
    content: &Markup,
) -> String {
    let query = params.map_or_else(String::new, |params| params.query(&OTHER_PAGES));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) @if !store.is_empty() { " \u{2013} " (bounded(store, NAME_MOST)) } }
                link rel="icon" href=(assets::target("icon.svg"));
                link rel="stylesheet" href=(assets::target("style.css"));
                script defer src=(assets::target("uplot.js")) {}
                script defer src=(assets::target("app.js")) {}
            }
            body .dashboard {
                a .skip href="#main" { "Skip to content" }
                header {
                    p .brand { strong { "firstbyte" } @if !store.is_empty() { " " span { (bounded(store, NAME_MOST)) } } }
                    nav aria-label="Pages" {
                        ul {
                            @for one in Page::ALL {
                                @let current = (page == Some(one)).then_some("page");
                                li { a href={ (one.path()) (query) } aria-current=[current] { (one.label()) } }
                            }
                        }
                    }
                }
                main #main tabindex="-1" { (content) }
                footer { (PROGRAM) " \u{b7} times are UTC \u{b7} no full address is stored" }
            }
        }
    };
    page.into_string()
}

/// The form with period, time slider and filters.
fn controls(frame: &Frame<'_>) -> Markup {
    let (page, params, choices) = (frame.page, frame.params, frame.choices);
    let (from, to) = params.period();
    let preset = params.preset.map_or(EXACT, |preset| preset.name);
    let periods: Vec<(&str, &str)> = PRESETS.iter().map(|one| (one.name, one.label)).collect();
    let periods = [&periods[..], &[(EXACT, "Exact times")]].concat();
    html! {
        form .controls method="get" action=(page.path()) aria-label="Period and filters" {
            (select("period", "Period", &periods, preset))
            (moment("from", "From (UTC)", from))
            (moment("to", "To (UTC)", to))
            @if page == Page::Compare { (moment("before", "Earlier period from", params.before().0)) }
            @else if let Some(before) = params.before_s { (hidden("before", &input(before))) }
            (choice("protocol", "Protocol", &choices.protocols, params.protocol.as_deref()))
            (choice("server", "Server", &choices.servers, params.server.as_deref()))
            (metric_controls(page, params))
            @if let Some(country) = &params.country {
                @let code = if country.is_empty() { super::views::UNKNOWN } else { country };
                (hidden("country", code))
                p .chip { "Country: " (visible(&country_name(country))) " "
                    a href={ (page.path()) (params.query(&[("country", None)])) } { "All countries" } }
            }
            (slider(frame))
            button type="submit" { "Show" }
        }
    }
}

fn metric_controls(page: Page, params: &Params) -> Markup {
    let names: Vec<(&str, &str)> = METRICS.iter().map(|one| (one.name, one.label)).collect();
    let metric = super::params::metric(params.metric).name;
    let percentile = params.percentile.to_string();
    let percentiles = [
        ("50", "Median"),
        ("80", "80th percentile"),
        ("95", "95th percentile"),
    ];
    // Pages without the choice hand it on.
    html! {
        @if page.has_metric() { (select("metric", "Time", &names, metric)) }
        @else if metric != METRICS[0].name { (hidden("metric", metric)) }
        @if page.has_percentile() { (select("percentile", "Map shows", &percentiles, &percentile)) }
        @else if params.percentile != 50 { (hidden("percentile", &percentile)) }
    }
}

/// The slider that moves the period, between links to the previous and the next one.
fn slider(frame: &Frame<'_>) -> Markup {
    let (page, params) = (frame.page, frame.params);
    let (begin, end) = params.base;
    let length = params.length_s();
    let back = begin
        .saturating_sub(frame.choices.extent.0)
        .div_ceil(length);
    // A slider with one position would be a puzzle.
    let back = i64::try_from(back)
        .unwrap_or(SLIDER_MAX)
        .clamp(1, SLIDER_MAX);
    let ahead = (params.now_s.saturating_sub(end) / length).min(SLIDER_MAX as u64) as i64;
    let (least, most) = ((-back).min(params.shift), ahead.max(params.shift));
    let (from, to) = params.period();
    let link = |shift: i64| {
        let shift = (shift != 0).then(|| shift.to_string());
        format!(
            "{}{}",
            page.path(),
            params.query(&[("shift", shift.as_deref())])
        )
    };
    html! {
        div .slider {
            span .name #shift { "Move the period" }
            a .step rel="prev" href=(link((params.shift - 1).max(-SHIFT_MAX))) { "\u{2039} Previous" }
            input type="range" name="shift" min=(least) max=(most) step="1" value=(params.shift) aria-labelledby="shift"
                data-from=(begin) data-length=(length);
            // Nothing is recorded in the future.
            @if to < params.now_s { a .step rel="next" href=(link((params.shift + 1).min(SHIFT_MAX))) { "Next \u{203a}" } }
            output for="shift" { (readable(from)) " to " (readable(to)) }
        }
    }
}

/// A choice with a first option for all values. A value that the store does not have any more is an option, too.
/// A name with control characters works in links alone: no page has such characters.
fn choice(name: &str, label: &str, values: &[String], chosen: Option<&str>) -> Markup {
    let missing = chosen.filter(|chosen| !values.iter().any(|value| value == chosen));
    html! {
        label { span { (label) }
            select name=(name) {
                option value="" selected[chosen.is_none()] { "All" }
                @for value in values.iter().map(String::as_str).chain(missing).filter(|value| !value.is_empty()) {
                    option value=(visible(value)) selected[chosen == Some(value)] { (bounded(value, NAME_MOST)) }
                }
            }
        }
    }
}

fn select(name: &str, label: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        label { span { (label) }
            select name=(name) {
                @for (value, text) in options { option value=(value) selected[*value == chosen] { (text) } }
            }
        }
    }
}

/// A time as ISO 8601 has it; the browser's own field would have the order of its language.
fn moment(name: &str, label: &str, unix_s: u64) -> Markup {
    html! {
        label { span { (label) }
            input type="text" name=(name) value=(input(unix_s)) size="16" maxlength="25" placeholder="2026-01-31T08:00"
                pattern=(MOMENT) autocomplete="off" title="UTC, such as 2026-01-31T08:00";
        }
    }
}

fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// The message of a period without connections.
fn nothing(frame: &Frame<'_>) -> Markup {
    let (begin, end) = frame.choices.extent;
    let (from, to) = (iso(end.saturating_sub(frame.params.length_s())), iso(end));
    let newest = [
        ("period", None),
        ("shift", None),
        ("from", Some(from.as_str())),
        ("to", Some(to.as_str())),
    ];
    let all = [("protocol", None), ("server", None), ("country", None)];
    let has_filter = all
        .iter()
        .any(|(name, _)| frame.params.values().iter().any(|(own, _)| own == name));
    let page = frame.page.path();
    html! {
        p .warning { strong { "No connections in this period" } @if has_filter { " with these filters" } ". The store has "
            (readable(begin)) " to " (readable(end)) ". "
            a href={ (page) (frame.params.query(&newest)) } { "Show the newest" }
            @if has_filter { " " a href={ (page) (frame.params.query(&all)) } { "Without filters" } }
        }
    }
}

/// The place of live figures, which a script fills.
fn live() -> Markup {
    html! {
        section .live hidden aria-label="Now" data-live="events" {
            dl .tiles {
                div .tile { dt { "Open now" } dd { span data-figure="open" { "\u{2013}" } } dd .detail data-figure="protocols" {} }
                div .tile { dt { "Requests per second" } dd { span data-figure="requests" { "\u{2013}" } } dd .detail data-figure="statuses" {} }
                div .tile { dt { "Connections per second" } dd { span data-figure="connections" { "\u{2013}" } } dd .detail data-figure="store" {} }
            }
            p .key { "Now, at the close of connections: " span data-figure="at" {} }
        }
    }
}

/// Positions of the slider on each side.
const SLIDER_MAX: i64 = 400;
/// Times of the form, as a pattern of HTML.
const MOMENT: &str = r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?\s*";
/// Characters of names and reasons.
const NAME_MOST: usize = 80;
const REASON_MOST: usize = 500;

/// Parameters that no other page has.
const OTHER_PAGES: [(&str, Option<&str>); 3] =
    [("experiment", None), ("visit", None), ("aa", None)];

const CONFIGURATION: &str = "rtt_map on;
lab_store sqlite:/var/lib/firstbyte/lab/store.db;
geoip_database /usr/share/tor/geoip /usr/share/tor/geoip6;";
