//! An SVG that is being written: elements with numbers of one decimal and text that is escaped.

use std::fmt::Write as _;

use super::palette::{FONT, attributes};
use crate::report::escape::escaped;

/// An SVG, or a part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Canvas {
    out: String,
}

/// The point of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// Its first character.
    Start,
    /// Its middle.
    Middle,
    /// Its last character.
    End,
}

impl Canvas {
    /// Draws a rectangle, at least half a pixel wide, so that it is visible.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let width = width.max(LEAST_WIDTH);
        let _ = write!(
            self.out,
            "<rect class=\"{class}\"{} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            attributes(class)
        );
    }

    /// A line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(
            self.out,
            "<line class=\"{class}\"{} x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>",
            attributes(class)
        );
    }

    /// Draws a text with its baseline at `y`.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = write!(
            self.out,
            "<text class=\"{class}\"{} x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{}</text>",
            attributes(class),
            escaped(text)
        );
    }

    /// Begins a group with a tooltip of these lines.
    pub(super) fn begin_group(&mut self, lines: &[String]) {
        self.out.push_str("<g><title>");
        for (n, line) in lines.iter().enumerate() {
            let end = if n == 0 { "" } else { "\n" };
            let _ = write!(self.out, "{end}{}", escaped(line));
        }
        self.out.push_str("</title>");
    }

    /// Begins a group of a class.
    pub(super) fn begin_class(&mut self, class: &str) {
        let _ = write!(self.out, "<g class=\"{class}\">");
    }

    /// Ends a group.
    pub(super) fn end_group(&mut self) {
        self.out.push_str("</g>\n");
    }

    /// Returns the whole picture. `style` is `None` if the surrounding page has the style.
    pub(super) fn finish(self, title: &str, height: f64, style: Option<&str>) -> String {
        let title = escaped(title);
        let style = style.map_or_else(String::new, |rules| format!("<style>{rules}</style>\n"));
        // Width and height are for programs that show a picture by itself; the style lets it fit a page.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"waterfall\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             width=\"{WIDTH:.0}\" height=\"{height:.0}\" {FONT} role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             {style}<rect class=\"page\"{} x=\"0\" y=\"0\" width=\"{WIDTH:.0}\" height=\"{height:.0}\"/>\n{}</svg>\n",
            attributes("page"),
            self.out
        )
    }
}

/// Room that a text takes, in pixels: all characters of the font are as wide, and others may be twice that.
pub(super) fn text_width(text: &str) -> f64 {
    let columns: usize = text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
    columns as f64 * COLUMN
}

/// Width of a picture, pixels.
pub(super) const WIDTH: f64 = 1280.0;
/// Width of a character, pixels: 0.602 of the font's size in the widest of the usual fonts, and a little more.
pub(super) const COLUMN: f64 = 6.7;
/// Width of the thinnest mark, pixels.
const LEAST_WIDTH: f64 = 0.5;
