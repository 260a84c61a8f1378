//! Figures and names as texts, the same in every picture of a visit.

use crate::page::{AnalysedVisit, FIGURES, Kind, Resource, Runs, Visit};

use super::scale::sane_ms;
use crate::report::escape::{ascii, shortened};

/// `3.4 ms`, `123 ms`.
pub(super) fn ms(value: f64) -> String {
    let value = sane_ms(value);
    match value < 9.95 {
        true => format!("{value:.1} ms"),
        false => format!("{value:.0} ms"),
    }
}

/// `812 B`, `12.3 kB`, `1.2 MB`: powers of 1,000, eight columns at most.
pub(super) fn bytes(n: u64) -> String {
    if n < 1_000 {
        return format!("{n} B");
    }
    let (mut value, mut unit) = (n as f64 / 1e3, 0);
    // A figure that would be rounded to 1000.0 has the next unit.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1e3, unit + 1);
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `1 request`, `2 requests`.
pub(super) fn quantity(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A protocol in at most four columns: `h1`, `h2`, `h3`, `spdy`; `-` if unknown.
pub(super) fn protocol(resource: &Resource) -> String {
    match resource.protocol.as_str() {
        "" => "-".to_owned(),
        "http/1.1" => "h1".to_owned(),
        "http/1.0" => "h1.0".to_owned(),
        "spdy/3.1" => "spdy".to_owned(),
        other => shortened(other, 4),
    }
}

/// The status, or why there is none: `200`, `ERR`, `-`.
pub(super) fn status(resource: &Resource) -> String {
    match (resource.status, &resource.error) {
        (0, Some(_)) => "ERR".to_owned(),
        (0, None) => "-".to_owned(),
        (status, _) => status.to_string(),
    }
}

/// Whether a resource failed.
pub(super) fn is_bad(resource: &Resource) -> bool {
    resource.status >= 400 || resource.error.is_some()
}

/// A resource's name in at most `most` columns: its path if it is on the page's host, else its host and path.
pub(super) fn name(url: &str, page: &str, most: usize) -> String {
    let own = url.strip_prefix(page).filter(|path| path.starts_with('/'));
    let foreign = || url.split_once("://").map_or(url, |(_, rest)| rest);
    let name = own.unwrap_or_else(foreign);
    match name.split_once('?') {
        // The path identifies a resource better than its parameters.
        Some((path, _)) if name.len() > most && most > 10 => {
            format!("{}?...", shortened(path, most - 4))
        }
        _ => shortened(name, most),
    }
}

/// A kind's name in four columns.
pub(super) fn kind_short(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "doc",
        Kind::Stylesheet => "css",
        Kind::Script => "js",
        Kind::Image => "img",
        Kind::Font => "font",
        Kind::Media => "av",
        Kind::Fetch => "xhr",
        Kind::Other => "oth",
    }
}

/// The browser, and its caches: `Chromium 126, cold view`.
pub(super) fn agent(visit: &Visit) -> String {
    let view = format!("{} view", visit.view.name());
    let clients = match visit.agent.is_browser {
        true => "",
        false => ", network alone, no browser",
    };
    let (name, version) = (&visit.agent.name, &visit.agent.version);
    match name.is_empty() {
        true => format!("{view}{clients}"),
        false => format!(
            "{} {}, {view}{clients}",
            ascii(name, AGENT_MOST),
            ascii(version, AGENT_MOST)
        ),
    }
}

/// A side of a comparison: `https://h/, Chromium 126, cold view, 5 runs`.
pub(super) fn side(runs: &Runs<'_>, url_most: usize) -> String {
    let visit = runs.shown().visit;
    let (url, agent) = (shortened(&visit.url, url_most), agent(visit));
    format!("{url}, {agent}, {}", quantity(runs.all().len(), "run"))
}

/// Moments of a page with their names and classes of colour, those that it reached.
pub(super) fn timings(run: &AnalysedVisit<'_>) -> Vec<Timing> {
    // The moments are the first of all figures.
    let moments = FIGURES.iter().zip(LETTERS).enumerate();
    let reached = moments.filter_map(|(class, (figure, letter))| {
        let at_ms = sane_ms(figure.of(run.visit, &run.analysis)?);
        let name = figure.title;
        Some(Timing {
            name,
            letter,
            class,
            at_ms,
        })
    });
    reached.collect()
}

/// A moment of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timing {
    /// Its name.
    pub(super) name: &'static str,
    /// Its letter in text.
    pub(super) letter: char,
    /// Number of its colour.
    pub(super) class: usize,
    /// When it was.
    pub(super) at_ms: f64,
}

/// Letters of the moments of a page in text.
const LETTERS: [char; 6] = ['B', 'P', 'C', 'L', 'D', 'O'];
/// Columns of a program's name and of its version: a picture has room for both and all sums in a line.
const AGENT_MOST: usize = 20;
/// Units of bytes from 1,000 on.
const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::View;

    #[test]
    fn figures_have_the_unit_of_their_size() {
        for (value, text) in [
            (0.0, "0.0 ms"),
            (9.94, "9.9 ms"),
            (9.96, "10 ms"),
            (1234.4, "1234 ms"),
            (f64::NAN, "0.0 ms"),
        ] {
            assert_eq!(ms(value), text);
        }
        for (n, text) in [
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (12_345, "12.3 kB"),
            (1_200_000, "1.2 MB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn names_are_paths_on_the_host_of_the_page() {
        let page = "https://h.test";
        for (url, shown) in [
            ("https://h.test/a/b", "/a/b"),
            ("https://h.test.other/a", "h.test.other/a"),
            ("http://h.test/a", "h.test/a"),
            ("data:,x", "data:,x"),
            (
                "https://h.test/image.png?version=123456789",
                "/image.png?...",
            ),
            (
                "https://h.test/0123456789012345/image.png?v=1",
                "/012345...ge.png?...",
            ),
            ("", ""),
        ] {
            assert_eq!(name(url, page, 20), shown, "{url}");
        }
    }

    #[test]
    fn names_of_agents_are_as_they_are_written() {
        let mut visit = Visit::default();
        assert_eq!(agent(&visit), "cold view, network alone, no browser");
        (visit.agent.name, visit.agent.version) = ("Charles Proxy".to_owned(), "4.6".to_owned());
        (visit.agent.is_browser, visit.view) = (true, View::Warm);
        assert_eq!(agent(&visit), "Charles Proxy 4.6, warm view");
    }

    #[test]
    fn names_of_protocols_and_statuses_fit_their_columns() {
        let mut one = Resource {
            protocol: "http/1.1".to_owned(),
            ..Resource::default()
        };
        assert_eq!(
            (protocol(&one).as_str(), status(&one).as_str()),
            ("h1", "-")
        );
        one.protocol = "<script>alert(1)</script>".repeat(1000);
        one.error = Some("reset".to_owned());
        assert!(protocol(&one).len() <= 4);
        assert_eq!(status(&one), "ERR");
    }
}
