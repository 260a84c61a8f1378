//! Two visits as one SVG: each resource has two bars, the first visit's above the second's, on one time axis.

use crate::page::AnalysedVisit;
use crate::page::comparison::{Match, pairs};
use crate::report::escape::shortened;
use crate::report::waterfall::canvas::{Anchor, Canvas, WIDTH};
use crate::report::waterfall::figures::{self, Timing, ms};
use crate::report::waterfall::palette;
use crate::report::waterfall::rows::{Drawing, ROWS_MAX, Row, end_ms, left_out};
use crate::report::waterfall::scale::Scale;
use crate::report::waterfall::svg::{
    CONNECTION, Flow, LEFT, LINE, MARGIN, NUMBER, PIECES_MOST, PROTOCOL, RIGHT, STATUS, URL, axis,
    bar, caption, legend, moments, stripes,
};

/// The picture of two visits by itself; resources of one line are found by URL or path.
#[must_use]
pub fn svg(before: &AnalysedVisit<'_>, after: &AnalysedVisit<'_>, by: Match) -> String {
    picture(&Drawing::of(before), &Drawing::of(after), by, true)
}

/// The picture, by itself or (without a style) for a page that has it.
pub(super) fn picture(
    before: &Drawing<'_>,
    after: &Drawing<'_>,
    by: Match,
    is_alone: bool,
) -> String {
    let mut canvas = Canvas::default();
    let title = format!("Before and after: {}", shortened(&before.visit.url, 100));
    canvas.text("name", (MARGIN, 20.0), Anchor::Start, &title);
    let pairs = pairs(before.visit, after.visit, by);
    let y = heads(&mut canvas, before, after, pairs.len());
    let pairs: Vec<Pair<'_>> = pairs
        .into_iter()
        .take(ROWS_MAX)
        .map(|(old, new)| Pair {
            before: old.map(|place| &before.rows[place]),
            after: new.map(|place| &after.rows[place]),
        })
        .collect();
    let top = y + 22.0;
    let bottom = top + PAIR * pairs.len() as f64;
    let old = end_ms(pairs.iter().filter_map(|pair| pair.before), &before.timings);
    let new = end_ms(pairs.iter().filter_map(|pair| pair.after), &after.timings);
    let scale = Scale::new(old.max(new), LEFT, RIGHT);
    stripes(&mut canvas, pairs.len(), top, PAIR);
    axis(&mut canvas, scale, (top, bottom));
    // Below the bars, so that no figure is crossed out.
    for (class, drawing) in [("old", before), ("new", after)] {
        canvas.begin_class(class);
        moments(&mut canvas, &chosen(drawing), scale, (top, bottom));
        canvas.end_group();
    }
    let mut pieces_left = PIECES_MOST;
    for (n, pair) in pairs.iter().enumerate() {
        drawn(
            &mut canvas,
            pair,
            (before.host(), after.host()),
            scale,
            top + PAIR * n as f64,
            &mut pieces_left,
        );
    }
    let style = is_alone.then_some(palette::STYLE);
    canvas.finish(&title, bottom + 26.0, style)
}

/// A resource in both visits, or in one of them.
struct Pair<'a> {
    before: Option<&'a Row<'a>>,
    after: Option<&'a Row<'a>>,
}

/// The two sides, the meanings of colours and lines, and heads of the columns; returns the baseline of the last.
fn heads(canvas: &mut Canvas, before: &Drawing<'_>, after: &Drawing<'_>, resources: usize) -> f64 {
    let mut y = 38.0;
    for (name, drawing) in [("before", before), ("after", after)] {
        let agent = figures::agent(drawing.visit);
        let words = format!("{name}: {agent}; {}", drawing.sums());
        canvas.text("faint", (MARGIN, y), Anchor::Start, &words);
        y += LINE;
    }
    if let Some(words) = left_out(resources) {
        canvas.text("bad", (MARGIN, y), Anchor::Start, &words);
        y += LINE;
    }
    y = legend(canvas, before.drawn().iter().chain(after.drawn()), y);
    y = meanings(canvas, &chosen(before), &chosen(after), y);
    for (x, head) in HEADS {
        canvas.text("faint", (x, y), Anchor::Start, head);
    }
    y
}

/// The moments that are drawn: all of two visits would hide the rows.
fn chosen(drawing: &Drawing<'_>) -> Vec<Timing> {
    let all = drawing.timings.iter();
    all.filter(|timing| DRAWN.contains(&timing.letter))
        .copied()
        .collect()
}

/// Meanings of the vertical lines of both visits.
fn meanings(canvas: &mut Canvas, old: &[Timing], new: &[Timing], y: f64) -> f64 {
    if old.is_empty() && new.is_empty() {
        return y;
    }
    let mut flow = Flow::new(y);
    for (when, class, timings) in [("before", "old", old), ("after", "new", new)] {
        for timing in timings {
            let words = format!("{when}, {} {}", timing.name, ms(timing.at_ms));
            canvas.begin_class(class);
            flow.line(canvas, &format!("m{}", timing.class), &words);
            canvas.end_group();
        }
    }
    flow.end()
}

/// Both bars of a resource with their columns.
fn drawn(
    canvas: &mut Canvas,
    pair: &Pair<'_>,
    (old_host, new_host): (&str, &str),
    scale: Scale,
    top: f64,
    pieces_left: &mut usize,
) {
    let lines = [
        ("before", pair.before, old_host, 0.0),
        ("after", pair.after, new_host, HALF),
    ];
    let is_alone = pair.before.is_none() || pair.after.is_none();
    for (name, row, host, offset) in lines {
        let y = top + offset;
        let Some(row) = row else {
            canvas.text(
                "faint",
                (WHEN, y + BASELINE),
                Anchor::Start,
                &format!("not {name}"),
            );
            continue;
        };
        let mut tooltip = row.tooltip();
        tooltip.insert(0, name.to_owned());
        canvas.begin_group(&tooltip);
        canvas.rect("hit", (0.0, y), (WIDTH, HALF));
        // The name is drawn once for both bars.
        if offset == 0.0 || is_alone {
            let name = figures::name(&row.resource.url, host, URL_COLUMNS);
            canvas.text("ink", (URL, y + BASELINE), Anchor::Start, &name);
        }
        canvas.text(
            "faint",
            (NUMBER, y + BASELINE),
            Anchor::End,
            &row.number.to_string(),
        );
        canvas.text("faint", (WHEN, y + BASELINE), Anchor::Start, name);
        let class = if figures::is_bad(row.resource) {
            "bad"
        } else {
            "ink"
        };
        canvas.text(
            class,
            (STATUS, y + BASELINE),
            Anchor::Start,
            &figures::status(row.resource),
        );
        canvas.text(
            "ink",
            (PROTOCOL, y + BASELINE),
            Anchor::Start,
            &figures::protocol(row.resource),
        );
        let number = row
            .connection
            .map_or_else(|| "-".to_owned(), |number| number.to_string());
        canvas.text("ink", (CONNECTION, y + BASELINE), Anchor::Start, &number);
        bar(canvas, row, scale, (y + 2.0, HALF - 4.0), pieces_left);
        caption(canvas, row, scale, y + BASELINE);
        canvas.end_group();
    }
}

/// Heads of the columns with their places.
const HEADS: [(f64, &str); 6] = [
    (NUMBER - 7.0, "#"),
    (URL, "resource"),
    (WHEN, "visit"),
    (STATUS, "status"),
    (PROTOCOL, "proto"),
    (CONNECTION, "conn"),
];
/// Letters of the moments that are drawn: first byte, largest contentful paint, load.
const DRAWN: [char; 3] = ['B', 'L', 'O'];
/// Position of the visit's name, ten characters before the status.
const WHEN: f64 = 270.0;
/// Columns of a URL.
const URL_COLUMNS: usize = 32;
/// Heights of a resource and of each of its bars; position of its text.
const PAIR: f64 = 36.0;
const HALF: f64 = 18.0;
const BASELINE: f64 = 13.0;
