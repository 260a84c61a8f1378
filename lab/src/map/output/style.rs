//! Colours of the picture's ground and texts, and the rules of the picture and of its page.
//!
//! Light colours are presentation attributes, since librsvg and file managers know no variables of CSS. The rules change
//! them on dark screens.

pub(super) const PAGE: &str = "#ffffff";
pub(super) const INK: &str = "#1b1f24";
pub(super) const SOFT: &str = "#57606a";
pub(super) const BAD: &str = "#b3261e";
pub(super) const BORDER: &str = "#6e7781";

/// Font of the picture: characters of equal width, so texts of known length fit.
pub(super) const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

/// Rules of a picture by itself, and of a page with a picture.
pub(crate) const PICTURE: &str = "
@media screen and (prefers-color-scheme: dark) {
.map .page { fill: #0f1419; } .map .ink { fill: #e6e9ed; } .map .soft { fill: #9aa4af; } .map .bad { fill: #ff8a80; }
.map .none, .map .ground { fill: #1d242c; } .map .stripe { fill: #6e7781; } .map .known, .map .few, .map .none { stroke: #8b949e; } }
@media print { .map { print-color-adjust: exact; } }
";

/// Rules of a page.
pub(crate) const HTML: &str = "
main { max-width: 72rem; }
.map { display: block; width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: .5rem 0; padding: 0; }
.legend .map { display: inline-block; width: 1.4rem; height: .9rem; margin-right: .4rem; vertical-align: baseline; }
.wide:focus-visible { outline: 3px solid var(--s0); outline-offset: 2px; }
";

/// Colours of [`PICTURE`] on dark grounds.
#[cfg(test)]
pub(super) const DARK: [&str; 6] = [
    "#0f1419", "#e6e9ed", "#9aa4af", "#ff8a80", "#8b949e", "#1d242c",
];
