//! The map as SVG: countries in the colour of their class, a legend, counts, warnings.
//!
//! The picture needs no script, no font of its own, and no variable of CSS.

use maud::{Markup, PreEscaped, html};

use super::options::Options;
use super::rows::{Row, Rows};
use super::scale::{Fill, Measure, Ms};
use super::style::{self, BAD, BORDER, FONT, INK, PAGE, SOFT};
use crate::map::RttMap;
use crate::map::world::{Country, SIZE, UNITS, countries};
use crate::report::visible;

/// Returns the picture by itself.
#[must_use]
pub fn svg(map: &RttMap, options: &Options) -> String {
    let rows = Rows::of(map, options);
    let mut lines = Lines::default();
    lines.add("ink", 18.0, &rows.title());
    rows.facts()
        .iter()
        .for_each(|fact| lines.add("soft", 12.0, fact));
    for warning in rows.warnings() {
        lines.add("bad", 12.0, &format!("Warning: {warning}"));
    }
    let top = lines.y + GAP;
    lines.y = top + SIZE.1;
    lines.add("ink", 12.0, &rows.name());
    let legend = legend(rows.measure, lines.y + GAP / 2.0);
    lines.y += FIELD + GAP;
    lines.add("soft", 12.0, &rows.least());
    rows.notes()
        .iter()
        .for_each(|note| lines.add("soft", 12.0, note));
    let height = lines.y + MARGIN;
    let content = html! {
        style { (PreEscaped(style::PICTURE)) }
        rect .page fill=(PAGE) width=(SIZE.0) height=(height) {}
        (PreEscaped(lines.out))
        g transform={ "translate(0 " (top) ")" } { (shapes(&rows)) }
        (legend)
    };
    picture(&rows, height, &content).into_string()
}

/// Returns the map and its legend, for a page with other content.
pub(crate) fn part(map: &RttMap, options: &Options) -> Markup {
    let rows = Rows::of(map, options);
    html! {
        (shapes_alone(&rows))
        p .key { (rows.name()) }
        ul .legend { @for fill in Fill::all() { li { (swatch(fill)) (label(rows.measure, fill)) } } }
        p .key { (rows.least()) @for note in rows.notes() { " " (note) } }
    }
}

/// Returns the map without texts, for a page.
pub(super) fn shapes_alone(rows: &Rows<'_>) -> Markup {
    let ground = html! { rect .page fill=(PAGE) width=(SIZE.0) height=(SIZE.1) {} };
    picture(rows, SIZE.1, &html! { (ground) (shapes(rows)) })
}

/// Returns the field of a legend, for a page.
pub(super) fn swatch(fill: Fill) -> Markup {
    html! {
        svg .map viewBox="0 0 28 18" aria-hidden="true" { (field(fill, 0.0, 0.0)) }
    }
}

fn picture(rows: &Rows<'_>, height: f64, content: &Markup) -> Markup {
    let title = rows.title();
    // Programs that show the picture by itself need width and height; in a page the style overrides both.
    html! {
        svg xmlns="http://www.w3.org/2000/svg" .map viewBox={ "0 0 " (SIZE.0) " " (height) } width=(SIZE.0)
            height=(height) font-family=(FONT) role="img" aria-label=(title) {
            title { (title) }
            desc { (rows.facts().join(" ")) " " (rows.least()) }
            defs {
                pattern #few width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect .ground fill=(Fill::None.paint()) width="6" height="6" {}
                    rect .stripe fill=(STRIPE) width="2" height="6" {}
                }
                // In units of the map.
                pattern #fewmap width="24" height="24" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect .ground fill=(Fill::None.paint()) width="24" height="24" {}
                    rect .stripe fill=(STRIPE) width="8" height="24" {}
                }
            }
            (content)
        }
    }
}

/// All countries, and above them the markers of small ones.
fn shapes(rows: &Rows<'_>) -> Markup {
    let row_of = |country: &Country| {
        let is_it = |row: &&Row| row.country.is_some_and(|own| own.code == country.code);
        rows.countries.iter().find(is_it)
    };
    let all: Vec<_> = countries().iter().map(|one| (one, row_of(one))).collect();
    let of = |row: Option<&Row>| row.map_or(Fill::None, |row| row.fill);
    html! {
        g transform={ "scale(" (1.0 / UNITS) ")" } stroke=(BORDER) stroke-width="2" stroke-linejoin="round" {
            @for (country, row) in &all {
                @if let Some(path) = country.path {
                    path class=(of(*row).class()) fill=(on_map(of(*row))) d=(path) { title { (tooltip(rows.measure, country, *row)) } }
                }
            }
            @for (country, row) in all.iter().filter(|(one, row)| one.needs_marker() && of(*row) != Fill::None) {
                circle class=(of(*row).class()) fill=(on_map(of(*row))) cx=(country.middle.0) cy=(country.middle.1)
                    r=(RADIUS) { title { (tooltip(rows.measure, country, *row)) } }
            }
        }
    }
}

/// Returns the fill in units of the map; stripes in pixels would be too narrow.
fn on_map(fill: Fill) -> &'static str {
    match fill {
        Fill::TooFew => "url(#fewmap)",
        fill => fill.paint(),
    }
}

fn tooltip(measure: Measure, country: &Country, row: Option<&Row>) -> String {
    let name = geoip::name_of(country.code).unwrap_or_default();
    let Some(row) = row else {
        return format!("{name}: no samples");
    };
    let counted = measure.unit_of_least();
    let counts = format!("{} samples, {} requests", row.samples, row.requests);
    match row.sufficient_times() {
        Some(times) => format!(
            "{name}: median {} ms, p80 {} ms, p95 {} ms; {counts}",
            Ms(times.median),
            Ms(times.p80),
            Ms(times.p95)
        ),
        None if row.enough => format!("{name}: {counts}"),
        None => format!("{name}: too few {counted}; {counts}"),
    }
}

/// A field of the legend with the colour of a country.
fn field(fill: Fill, x: f64, y: f64) -> Markup {
    html! {
        rect class=(fill.class()) fill=(fill.paint()) stroke=(BORDER) x=(x + 0.5) y=(y + 0.5) width="27" height="17" {}
    }
}

/// All fills with their labels, in a row.
fn legend(measure: Measure, y: f64) -> Markup {
    let mut x = MARGIN;
    let place = |fill| {
        let (own, label) = (x, label(measure, fill));
        x += LABEL + columns(&label) * COLUMN * 12.0 + GAP;
        (own, fill, label)
    };
    let places: Vec<_> = Fill::all().map(place).collect();
    html! {
        @for (x, fill, label) in &places {
            (field(*fill, *x, y))
            text .soft fill=(SOFT) font-size="12" x=(x + LABEL) y=(y + 13.0) { (label) }
        }
    }
}

/// Returns the label of a fill.
pub(super) fn label(measure: Measure, fill: Fill) -> String {
    match fill {
        Fill::Class(class) => measure.label(class),
        Fill::TooFew => "too few".to_owned(),
        Fill::None => "none".to_owned(),
    }
}

/// Texts below each other, broken at the width of the picture.
#[derive(Debug)]
struct Lines {
    out: String,
    /// End of the last line, pixels.
    y: f64,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            out: String::new(),
            y: GAP,
        }
    }
}

impl Lines {
    fn add(&mut self, class: &str, size: f64, text: &str) {
        let room = (SIZE.0 - 2.0 * MARGIN) / (COLUMN * size);
        let paint = match class {
            "ink" => INK,
            "bad" => BAD,
            _ => SOFT,
        };
        for line in broken(text, room) {
            self.y += size * 1.4;
            let line = html! {
                text class=(class) fill=(paint) font-size=(size) x=(MARGIN) y=(self.y - size * 0.4) { (line) }
            };
            self.out.push_str(&line.into_string());
        }
    }
}

/// Breaks a text between words; a word that is longer than a line is broken, too.
fn broken(text: &str, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0.0;
    for word in visible(text).split_inclusive(' ') {
        if used > 0.0 && used + columns(word.trim_end()) > room {
            lines.push(String::new());
            used = 0.0;
        }
        for c in word.chars() {
            let width = column(c);
            // A space may be beyond the edge.
            if c != ' ' && used + width > room {
                lines.push(String::new());
                used = 0.0;
            }
            used += width;
            lines.last_mut().expect("there is a line").push(c);
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn columns(text: &str) -> f64 {
    text.chars().map(column).sum()
}

/// Returns the columns of a character: other fonts may have characters twice as wide.
fn column(c: char) -> f64 {
    match c.is_ascii() {
        true => 1.0,
        false => 2.0,
    }
}

/// Pixels at the sides and between parts.
const MARGIN: f64 = 12.0;
const GAP: f64 = 12.0;
/// Width of a character, as a share of the size of the font. The widest usual font has 0.602.
const COLUMN: f64 = 0.61;
/// Height of a field of the legend with its border, and the place of its label.
const FIELD: f64 = 18.0;
const LABEL: f64 = 34.0;
/// Radius of a marker, units of the map: 3.5 pixels.
const RADIUS: f64 = 14.0;
/// Stripes of countries with too few samples.
const STRIPE: &str = "#9aa4af";
