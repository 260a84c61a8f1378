//! A waterfall as SVG: a row for each resource on one time axis, with phases, pieces, stalls and the page's moments.
//!
//! The picture is self-contained: no script, font or other file. It is light or dark like the reader's system. All text has a
//! monospace font, so its width is known and it stays within its area.

use crate::page::AnalysedVisit;
use crate::report::escape::{bounded, shortened};

use super::canvas::{Anchor, COLUMN, Canvas, WIDTH, text_width};
use super::figures::{self, Timing};
use super::palette;
use super::rows::{Drawing, PARTS, Phase, Row, left_out, stall_words};
use super::scale::{Scale, sane_ms, tick_label};

/// The picture of a visit, by itself or (without a style) for a page that has [`palette::STYLE`].
pub(super) fn picture(drawing: &Drawing<'_>, is_alone: bool) -> String {
    let visit = drawing.visit;
    let mut canvas = Canvas::default();
    let title = format!("Waterfall of {}", shortened(&visit.url, 110));
    canvas.text("name", (MARGIN, 20.0), Anchor::Start, &title);
    let facts = format!("{}; {}", figures::agent(visit), drawing.sums());
    canvas.text("faint", (MARGIN, 38.0), Anchor::Start, &facts);
    let mut y = 58.0;
    if let Some(words) = left_out(drawing.rows.len()) {
        canvas.text("bad", (MARGIN, y), Anchor::Start, &words);
        y += LINE;
    }
    let rows = drawing.drawn();
    y = legend(&mut canvas, rows.iter(), y);
    y = moments_legend(&mut canvas, &drawing.timings, y);
    let scale = Scale::new(drawing.end_ms, LEFT, RIGHT);
    let top = heads(&mut canvas, y) + 22.0;
    let bottom = top + ROW * rows.len() as f64;
    stripes(&mut canvas, rows.len(), top, ROW);
    axis(&mut canvas, scale, (top, bottom));
    // Below the bars, so that no figure is crossed out.
    moments(&mut canvas, &drawing.timings, scale, (top, bottom));
    let host = drawing.host();
    let mut pieces_left = PIECES_MOST;
    for (n, row) in rows.iter().enumerate() {
        let y = top + ROW * n as f64;
        canvas.begin_group(&row.tooltip());
        // The whole row shows the tooltip, not its marks alone.
        canvas.rect("hit", (0.0, y), (WIDTH, ROW));
        columns(&mut canvas, row, host, y + BASELINE);
        bar(
            &mut canvas,
            row,
            scale,
            (y + 3.0, ROW - 6.0),
            &mut pieces_left,
        );
        caption(&mut canvas, row, scale, y + BASELINE);
        canvas.end_group();
    }
    let label = format!("{title}: {facts}");
    let style = is_alone.then_some(palette::STYLE);
    canvas.finish(&label, bottom + 26.0, style)
}

/// The picture of a visit by itself.
#[must_use]
pub fn svg(run: &AnalysedVisit<'_>) -> String {
    picture(&Drawing::of(run), true)
}

/// Backgrounds of rows, every other one darker.
pub(super) fn stripes(canvas: &mut Canvas, rows: usize, top: f64, height: f64) {
    for n in (0..rows).step_by(2) {
        canvas.rect("stripe", (0.0, top + height * n as f64), (WIDTH, height));
    }
}

/// Vertical lines with their times above and below.
pub(super) fn axis(canvas: &mut Canvas, scale: Scale, (top, bottom): (f64, f64)) {
    let ticks = scale.ticks(TICKS);
    let step = ticks.get(1).copied().unwrap_or(1.0);
    for ms in ticks {
        let (x, label) = (scale.x(ms), tick_label(ms, step));
        canvas.line("grid", (x, top - 4.0), (x, bottom + 4.0));
        for y in [top - 8.0, bottom + 16.0] {
            canvas.text("faint", (x, y), Anchor::Middle, &label);
        }
    }
}

/// The page's moments as vertical lines.
pub(super) fn moments(
    canvas: &mut Canvas,
    timings: &[Timing],
    scale: Scale,
    (top, bottom): (f64, f64),
) {
    for timing in timings {
        let x = scale.x(timing.at_ms);
        let class = format!("m{}", timing.class);
        canvas.begin_group(&[format!("{}: {}", timing.name, figures::ms(timing.at_ms))]);
        canvas.line(&class, (x, top - 4.0), (x, bottom + 4.0));
        canvas.end_group();
    }
}

/// Layout of a legend: the position of the next sign and its word, in several lines.
pub(super) struct Flow {
    x: f64,
    y: f64,
}

impl Flow {
    /// Begins at the left.
    pub(super) fn new(y: f64) -> Self {
        Self { x: MARGIN, y }
    }

    /// The place of a sign with its word, on the next line if it does not fit.
    fn place(&mut self, word: &str) -> (f64, f64) {
        let width = SIGN + 4.0 + text_width(word);
        if self.x > MARGIN && self.x + width > WIDTH - MARGIN {
            (self.x, self.y) = (MARGIN, self.y + LINE);
        }
        let place = (self.x, self.y);
        self.x += width + 16.0;
        place
    }

    /// A box of a colour, and its meaning.
    pub(super) fn colour(&mut self, canvas: &mut Canvas, class: &str, word: &str) {
        let (x, y) = self.place(word);
        canvas.rect(class, (x, y - 9.0), (SIGN, 10.0));
        canvas.text("faint", (x + SIGN + 4.0, y), Anchor::Start, word);
    }

    /// A line of a colour, and its meaning.
    pub(super) fn line(&mut self, canvas: &mut Canvas, class: &str, word: &str) {
        let (x, y) = self.place(word);
        canvas.line(class, (x, y - 4.0), (x + SIGN, y - 4.0));
        canvas.text("faint", (x + SIGN + 4.0, y), Anchor::Start, word);
    }

    /// The baseline of the line below.
    pub(super) fn end(self) -> f64 {
        self.y + LINE
    }
}

/// Meanings of the colours that are in the rows.
pub(super) fn legend<'a>(
    canvas: &mut Canvas,
    rows: impl Iterator<Item = &'a Row<'a>> + Clone,
    y: f64,
) -> f64 {
    let mut flow = Flow::new(y);
    let any = |is_there: &dyn Fn(&Row<'_>) -> bool| rows.clone().any(is_there);
    for phase in Phase::ALL {
        if any(&|row| row.segments.iter().any(|segment| segment.phase == phase)) {
            flow.colour(canvas, phase.name(), phase.name());
        }
    }
    if any(&|row| !row.resource.pieces.is_empty()) {
        let words = "receiving, a mark for each piece of the body";
        flow.colour(canvas, "pale", words);
    }
    for (class, name) in PARTS {
        if any(&|row| row.parts.iter().any(|part| part.class == class)) {
            flow.colour(canvas, class, &format!("share of the wait: {name}"));
        }
    }
    if any(&|row| !row.stalls.is_empty()) {
        flow.colour(canvas, "stall", "stall");
    }
    flow.end()
}

/// Meanings and times of the vertical lines.
pub(super) fn moments_legend(canvas: &mut Canvas, timings: &[Timing], y: f64) -> f64 {
    if timings.is_empty() {
        return y;
    }
    let mut flow = Flow::new(y);
    for timing in timings {
        let word = format!("{} {}", timing.name, figures::ms(timing.at_ms));
        flow.line(canvas, &format!("m{}", timing.class), &word);
    }
    flow.end()
}

/// Names of the columns beside the rows.
fn heads(canvas: &mut Canvas, y: f64) -> f64 {
    canvas.text("faint", (NUMBER, y), Anchor::End, "#");
    for (x, head) in [
        (URL, "resource"),
        (STATUS, "status"),
        (PROTOCOL, "proto"),
        (CONNECTION, "conn"),
    ] {
        canvas.text("faint", (x, y), Anchor::Start, head);
    }
    y
}

/// The columns of a row.
fn columns(canvas: &mut Canvas, row: &Row<'_>, host: &str, y: f64) {
    let class = if figures::is_bad(row.resource) {
        "bad"
    } else {
        "ink"
    };
    canvas.text("faint", (NUMBER, y), Anchor::End, &row.number.to_string());
    canvas.text(
        class,
        (URL, y),
        Anchor::Start,
        &figures::name(&row.resource.url, host, URL_COLUMNS),
    );
    canvas.text(
        class,
        (STATUS, y),
        Anchor::Start,
        &figures::status(row.resource),
    );
    canvas.text(
        "ink",
        (PROTOCOL, y),
        Anchor::Start,
        &figures::protocol(row.resource),
    );
    let number = row
        .connection
        .map_or_else(|| "-".to_owned(), |number| number.to_string());
    canvas.text("ink", (CONNECTION, y), Anchor::Start, &number);
}

/// The phases of a row between `y` and `y + height`, with pieces, parts of the wait and stalls.
pub(super) fn bar(
    canvas: &mut Canvas,
    row: &Row<'_>,
    scale: Scale,
    (y, height): (f64, f64),
    pieces_left: &mut usize,
) {
    for segment in &row.segments {
        let (from, to) = (scale.x(segment.from_ms), scale.x(segment.to_ms));
        let has_pieces = segment.phase == Phase::Receive && !row.resource.pieces.is_empty();
        let class = if has_pieces {
            "pale"
        } else {
            segment.phase.name()
        };
        // The queue is no work: a thinner bar sets it apart without colour.
        let (y, height) = match segment.phase {
            Phase::Queued => (y + height * 0.3, height * 0.4),
            _ => (y, height),
        };
        canvas.rect(class, (from, y), (to - from, height));
        if has_pieces {
            pieces(canvas, row, scale, (y, height), pieces_left);
        }
    }
    for part in &row.parts {
        let (from, to) = (scale.x(part.from_ms), scale.x(part.to_ms));
        canvas.rect(
            part.class,
            (from, y + height * 0.65),
            (to - from, height * 0.35),
        );
    }
    for stall in &row.stalls {
        let (from, to) = (scale.x(stall.from_ms), scale.x(stall.to_ms));
        canvas.rect("stall", (from, y - 1.0), (to - from, height + 2.0));
    }
}

/// Draws a mark for each piece of a body. Marks at the same position are drawn once, at most [`PIECES_MOST`] in a picture.
fn pieces(
    canvas: &mut Canvas,
    row: &Row<'_>,
    scale: Scale,
    (y, height): (f64, f64),
    left: &mut usize,
) {
    let mut last = f64::NEG_INFINITY;
    for piece in &row.resource.pieces {
        let x = scale.x(sane_ms(piece.at_ms));
        if (x - last).abs() < 0.5 {
            continue;
        }
        if *left == 0 {
            return;
        }
        *left -= 1;
        last = x;
        canvas.rect("piece", (x - 0.5, y), (1.0, height));
    }
}

/// Draws the row's time and the causes of its stalls: after the bar, else before it, else over it.
pub(super) fn caption(canvas: &mut Canvas, row: &Row<'_>, scale: Scale, y: f64) {
    let mut text = row.caption();
    let mut class = "figure";
    if let Some(stall) = row.stalls.first() {
        let more = match row.stalls.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        text = format!("{text}  stall: {}{more}", stall_words(stall));
        class = "figure cause";
    }
    let text = bounded(&text, CAPTION_MOST);
    let (from, to) = (scale.x(row.start_ms()), scale.x(row.end_ms()));
    let width = text_width(&text);
    if to + 4.0 + width <= WIDTH - MARGIN {
        canvas.text(class, (to + 4.0, y), Anchor::Start, &text);
    } else if from - 4.0 - width >= LEFT {
        canvas.text(class, (from - 4.0, y), Anchor::End, &text);
    } else {
        canvas.text(class, (WIDTH - MARGIN, y), Anchor::End, &text);
    }
}

/// Room at the edges, pixels.
pub(super) const MARGIN: f64 = 12.0;
/// Ends of columns.
pub(super) const NUMBER: f64 = 42.0;
pub(super) const URL: f64 = 50.0;
pub(super) const STATUS: f64 = 344.0;
pub(super) const PROTOCOL: f64 = 390.0;
pub(super) const CONNECTION: f64 = 430.0;
const URL_COLUMNS: usize = ((STATUS - URL - 8.0) / COLUMN) as usize;
/// Ends of the time axis.
pub(super) const LEFT: f64 = 476.0;
pub(super) const RIGHT: f64 = 1180.0;
/// Height of a row, and position of its text.
const ROW: f64 = 20.0;
const BASELINE: f64 = 14.0;
/// Height of a line of a legend, and width of its signs.
pub(super) const LINE: f64 = 18.0;
const SIGN: f64 = 14.0;
/// Ticks of the axis after 0.
const TICKS: usize = 12;
/// Characters of a caption: no more fit between the time axis' ends.
const CAPTION_MOST: usize = 80;
/// Marks of pieces in a picture.
pub(super) const PIECES_MOST: usize = 50_000;
