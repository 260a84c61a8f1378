//! A page that needs nothing else: no script, no font, no picture but those within it, and a policy that forbids them.
//!
//! Source: W3C Content Security Policy Level 3.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::escape::visible;
use super::style;

/// The whole page around its content. `rules` follow the look that all pages have; `program` is in its foot.
#[must_use]
pub(crate) fn document(title: &str, rules: &[&str], program: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Whatever a report quotes from a server: nothing of it can be run or loaded.
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (visible(title)) }
                style { (PreEscaped(style::STYLE)) @for more in rules { (PreEscaped(more)) } }
            }
            body {
                main {
                    (content)
                    footer { (visible(program)) }
                }
            }
        }
    };
    page.into_string()
}

/// A region with its own scrolling, also by keyboard, if it is wider than the screen.
#[must_use]
pub(crate) fn wide(label: &str, content: &Markup) -> Markup {
    html! { div .wide role="region" tabindex="0" aria-label=(visible(label)) { (content) } }
}

const POLICY: &str = concat!(
    "default-src 'none'; style-src 'uns",
    "afe-inline'; img-src data:"
);
