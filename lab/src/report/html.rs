//! The report as one page that needs nothing else: figures in tables, drawings as SVG, no script.
//!
//! It follows the reader's choice of light or dark, fits a telephone, and prints.
//!
//! Source: docs/lab.md.

use std::fmt::Write as _;

use maud::PreEscaped;

use super::document::document;
use super::escape::escaped;
use super::format::Report;
use super::server::{Figure, ServerReport, TimesReport};
use super::table::list_counts;
use super::text;

/// The whole page.
#[must_use]
pub fn render(report: &Report) -> String {
    let names: Vec<&str> = report.servers.iter().map(|one| one.name.as_str()).collect();
    let title = format!("Bench of {}", names.join(" and "));
    let mut out = format!("<h1>{}</h1>\n", escaped(&title));
    for warning in &report.warnings {
        let _ = writeln!(
            out,
            "<p class=\"warning\"><strong>Warning:</strong> {}</p>",
            escaped(warning)
        );
    }
    paragraph(&mut out, &text::settings(&report.settings));
    if report.interrupted {
        paragraph(&mut out, "Interrupted; these are the results so far.");
    }
    if !report.comparison.is_empty() {
        out.push_str("<section>\n<h2>Verdict</h2>\n<ul>\n");
        for figure in &report.comparison {
            let _ = writeln!(out, "<li>{}</li>", escaped(&figure.sentence()));
        }
        out.push_str("</ul>\n</section>\n");
    }
    out.push_str("<section>\n<h2>Responses a second</h2>\n");
    out.push_str(&rates(&report.servers));
    out.push_str(&summary(&report.servers));
    out.push_str("</section>\n");
    for server in &report.servers {
        one(&mut out, server);
    }
    out.push_str("<section>\n<h2>Conditions</h2>\n");
    paragraph(&mut out, &text::conditions(&report.conditions));
    paragraph(&mut out, EXPLAINED);
    out.push_str("</section>\n");
    document(&title, &[STYLE], &report.program, &PreEscaped(out))
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "<p>{}</p>", escaped(text));
}

/// One row for each server.
fn summary(servers: &[ServerReport]) -> String {
    let heads = [
        "",
        "responses/s",
        "mean ms",
        "p99 ms",
        "heads saved",
        "server µs",
        "client µs",
        "failed",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for server in servers {
        let times = server.main_times();
        let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}"));
        rows.push(vec![
            format!("{} ({})", server.name, server.protocol()),
            cell(server.rate, 0),
            ms(times.map(|times| times.mean_ms)),
            ms(times.and_then(|times| times.percentile("p99"))),
            format!("{:.2} %", server.traffic.head_saved * 100.0),
            cell(server.server_cpu_us, 2),
            cell(server.client_cpu_us, 2),
            server.failed().to_string(),
        ]);
    }
    table(&rows)
}

/// `12.3 (11.9 to 12.7, n=20)`, or a dash.
fn cell(figure: Option<Figure>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |found| text::figure(found, digits))
}

fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::from("<div class=\"wide\"><table>\n");
    for (n, row) in rows.iter().enumerate() {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let tag = if n == 0 || column == 0 { "th" } else { "td" };
            let _ = write!(out, "<{tag}>{}</{tag}>", escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out + "</table></div>\n"
}

/// The rates of all pieces of all servers, as lines over time.
fn rates(servers: &[ServerReport]) -> String {
    let all = servers.iter().flat_map(|server| &server.rates);
    let most = all.copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let mut out = begin("Responses a second over the run");
    // The axis ends at a round number, so that its labels are readable.
    let top = rounded_up(most);
    for share in [0.0, 0.5, 1.0] {
        let y = BOTTOM - share * (BOTTOM - TOP);
        let _ = write!(
            out,
            "<line class=\"grid\" stroke=\"#d0d7de\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0}</text>",
            LEFT - 6.0,
            y + 4.0,
            top * share
        );
    }
    for (n, server) in servers.iter().enumerate() {
        // Servers may have run for different numbers of pieces: each line spans the whole width.
        let step = (RIGHT - LEFT) / (server.rates.len().max(2) - 1) as f64;
        let points: Vec<String> = server
            .rates
            .iter()
            .enumerate()
            .map(|(at, rate)| {
                let (x, y) = (
                    LEFT + at as f64 * step,
                    BOTTOM - rate / top * (BOTTOM - TOP),
                );
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let _ = write!(
            out,
            "<polyline class=\"line s{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>",
            n % COLOURS.len(),
            COLOURS[n % COLOURS.len()],
            points.join(" ")
        );
    }
    out.push_str("</svg>\n");
    if servers.len() > 1 {
        out.push_str("<p class=\"key\">");
        for (n, server) in servers.iter().enumerate() {
            let _ = write!(
                out,
                "<span class=\"s{}\">&#9632;</span> {} ",
                n % COLOURS.len(),
                escaped(&server.name)
            );
        }
        out.push_str("</p>\n");
    }
    out
}

/// The next number of one digit and noughts, or half of one.
fn rounded_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    (value / unit * 2.0).ceil() / 2.0 * unit
}

/// The beginning of a chart. Light colours are presentation attributes, for programs without variables of CSS; the style
/// has the others.
fn begin(title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" fill=\"#57606a\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>\
         <rect class=\"page\" fill=\"#fff\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>"
    )
}

fn one(out: &mut String, server: &ServerReport) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escaped(&server.name));
    paragraph(
        out,
        &format!(
            "{} responses in {:.3} s ({}); {} bytes of bodies, {} received, {} sent.",
            server.done,
            server.elapsed_s,
            list_counts(&server.statuses),
            server.traffic.body_bytes,
            server.traffic.received_bytes,
            server.traffic.sent_bytes
        ),
    );
    if !server.errors.is_empty() {
        paragraph(
            out,
            &format!(
                "Failed: {} ({}).",
                server.failed(),
                list_counts(&server.errors)
            ),
        );
    }
    if let Some(times) = server.main_times() {
        out.push_str(&percentiles(times));
    }
    let heads = ["ms", "mean", "p50", "p90", "p99", "p99.9", "max", "n"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (name, times) in &server.times {
        let share = |name: &str| times.percentiles.get(name).copied();
        rows.push(vec![
            name.replace('_', " "),
            format!("{:.3}", times.mean_ms),
            ranged(share("p50")),
            ranged(share("p90")),
            ranged(share("p99")),
            ranged(share("p99.9")),
            format!("{:.3}", times.max_ms),
            times.n.to_string(),
        ]);
    }
    out.push_str(&table(&rows));
    if let Some(sentence) = server.excluded_sentence() {
        paragraph(out, &format!("{sentence}."));
    }
    out.push_str("</section>\n");
}

/// `1.2 (1.1-1.3)`.
fn ranged(figure: Option<Figure>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(Figure {
            value,
            low: Some(low),
            high: Some(high),
            ..
        }) => format!("{value:.3} ({low:.3}-{high:.3})"),
        Some(Figure {
            value,
            low: Some(low),
            ..
        }) => format!("{value:.3} (>{low:.3}, n too small)"),
        Some(Figure {
            value,
            high: Some(high),
            ..
        }) => format!("{value:.3} (<{high:.3}, n too small)"),
        Some(Figure { value, .. }) => format!("{value:.3} (n too small)"),
    }
}

/// Percentiles as bars, on a scale of logarithms.
fn percentiles(times: &TimesReport) -> String {
    let shown = ["p50", "p75", "p90", "p99", "p99.9", "p99.99"];
    let values: Vec<(&str, f64)> = shown
        .iter()
        .filter_map(|name| Some((*name, times.percentile(name)?)))
        .filter(|(_, ms)| *ms > 0.0)
        .collect();
    let Some((_, most)) = values.last().copied() else {
        return String::new();
    };
    let least = times.min_ms.max(most / 1e6) / 2.0;
    let scale = |ms: f64| (ms / least).ln() / (most / least).ln().max(f64::MIN_POSITIVE);
    let mut out = begin("Percentiles, milliseconds, on a scale of logarithms");
    for (n, (name, ms)) in values.iter().enumerate() {
        let y = TOP + n as f64 * BAR;
        let width = scale(*ms).clamp(0.0, 1.0) * (RIGHT - LEFT - VALUE);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"bar\" fill=\"{}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{ms:.3} ms</text>",
            LEFT - 6.0,
            y + BAR / 2.0,
            COLOURS[0],
            BAR - 8.0,
            LEFT + width + 6.0,
            y + BAR / 2.0
        );
    }
    out + "</svg>\n"
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 628.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 188.0;
/// Height of a bar with the space below.
const BAR: f64 = 30.0;
/// Width for a value to the right of a bar.
const VALUE: f64 = 100.0;
/// Colours of lines in light mode, `--s0` to `--s5`.
const COLOURS: [&str; 6] = [
    "#0b62c4", "#b3480a", "#1a7f37", "#8250df", "#a40e60", "#6b5900",
];

const EXPLAINED: &str = "Intervals of single figures are at 95 %: of several runs by Student's t over the runs, of one run \
    over its pieces, of percentiles by the ranks between which they lie. Two servers are compared within blocks at 99 %.";

const STYLE: &str = "
svg { display: block; width: 100%; height: auto; max-width: 48rem; }
svg text { fill: var(--soft); font: 13px system-ui, sans-serif; }
.grid { stroke: var(--line); } .line { fill: none; stroke-width: 2; stroke: currentColor; }
.bar { fill: var(--s0); } .page { fill: var(--page); }
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); } .s3 { color: var(--s3); }
.s4 { color: var(--s4); } .s5 { color: var(--s5); }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        for (value, top) in [(1.0, 1.0), (1.1, 1.5), (99.0, 100.0), (23_456.0, 25_000.0)] {
            assert!((rounded_up(value) - top).abs() < 1e-9, "{value}");
        }
    }
}
