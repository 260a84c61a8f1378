//! The map as a page that needs nothing else: picture, legend, warnings, table.
//!
//! It follows the choice of light or dark, fits a telephone, and prints.

use maud::{Markup, html};

use super::options::Options;
use super::rows::Rows;
use super::scale::Fill;
use super::svg::{label, shapes_alone, swatch};
use super::{style, text};
use crate::map::RttMap;
use crate::report::{PROGRAM, document, visible, wide};

/// Returns the page.
#[must_use]
pub fn html(map: &RttMap, options: &Options) -> String {
    let rows = Rows::of(map, options);
    let title = rows.title();
    let content = html! {
        h1 { (title) }
        p .key { (rows.facts().join(" ")) }
        @for warning in rows.warnings() { p .warning { strong { "Warning:" } " " (warning) } }
        section {
            h2 { (rows.name()) }
            (shapes_alone(&rows))
            ul .legend { @for fill in Fill::all() { li { (swatch(fill)) (label(rows.measure, fill)) } } }
            p .key { (rows.least()) @for note in rows.notes() { " " (note) } }
        }
        section {
            h2 { "Countries" }
            (wide("Countries", &table(&rows)))
            p .key { (EXPLAINED) }
        }
    };
    document(&title, &[style::PICTURE, style::HTML], PROGRAM, &content)
}

fn table(rows: &Rows<'_>) -> Markup {
    let table = text::table(rows);
    let (heads, rows) = table.split_first().expect("it has heads");
    html! {
        table {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (n, cell) in row.iter().enumerate() {
                            @if n == 0 { th scope="row" { (visible(cell)) } } @else { td { (visible(cell)) } }
                        }
                    }
                }
            }
        }
    }
}

const EXPLAINED: &str = "Most samples first. The column \"95 %\" is the interval of the median by order statistics; it holds \
    for independent samples. 80 % of the samples are below p80, 95 % below p95.";
