//! Visits before and after a change as a page: figures with their changes, the picture of both, then each by itself.

use maud::{Markup, PreEscaped, html};

use crate::page::Runs;
use crate::page::comparison::{Match, compare};
use crate::report::PROGRAM;
use crate::report::document::{document, wide};
use crate::report::escape::shortened;
use crate::report::waterfall::html::{STYLE, pictures};
use crate::report::waterfall::rows::Drawing;
use crate::report::waterfall::{figures, palette};

use super::{Line, lines, overlay, sureness};

/// The whole page.
#[must_use]
pub fn html(before: &Runs<'_>, after: &Runs<'_>, by: Match) -> String {
    let lines = lines(&compare(before, after, by));
    let sides = [("before", before), ("after", after)];
    let [before, after] = [before, after].map(|runs| Drawing::of(runs.shown()));
    let title = format!(
        "Before and after: {}",
        shortened(&before.visit.url, URL_MOST)
    );
    let content = html! {
        h1 { (title) }
        dl {
            @for (name, runs) in sides { div { dt { (name) } dd { (figures::side(runs, URL_MOST)) } } }
        }
        section {
            h2 { "Figures" }
            (wide("Figures", &table(&lines)))
            p .key { (sureness(&lines)) }
        }
        section {
            h2 { "Both on one time axis" }
            (wide("Both on one time axis", &PreEscaped(overlay::picture(&before, &after, by, false))))
        }
        (pictures("Before", &before))
        (pictures("After", &after))
    };
    document(&title, &[palette::STYLE, STYLE], PROGRAM, &content)
}

/// Figures of both sides with the change, and a verdict if there are several runs.
fn table(lines: &[Line]) -> Markup {
    let has_verdicts = lines.iter().any(|line| line.verdict.is_some());
    html! {
        table .figures {
            thead {
                tr {
                    @for head in ["figure", "before", "after", "change"] { th scope="col" { (head) } }
                    @if has_verdicts { th scope="col" { "verdict" } }
                }
            }
            tbody {
                @for line in lines {
                    tr {
                        th scope="row" { (line.name) }
                        td { (line.before) } td { (line.after) } td { (line.change) }
                        @if has_verdicts { td { (line.verdict.as_deref().unwrap_or("-")) } }
                    }
                }
            }
        }
    }
}

/// Columns of a URL in titles.
const URL_MOST: usize = 200;
