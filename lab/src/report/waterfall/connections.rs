//! The connections of a visit as SVG: a row for each, with its opening and the requests that it carried.
//!
//! Requests that are on their way at the same time are drawn below each other within their connection's row.

use crate::page::analysis::ConnectionUse;
use crate::report::escape::shortened;

use super::canvas::{Anchor, Canvas, WIDTH, text_width};
use super::figures::{ms, quantity};
use super::rows::{Drawing, Phase, Row, Segment};
use super::scale::Scale;
use super::svg::{Flow, LEFT, MARGIN, RIGHT, axis, moments};

/// A connection as it is drawn.
struct Connection<'a> {
    number: usize,
    used: &'a ConnectionUse,
    /// Its requests that are drawn, each with its lane.
    requests: Vec<(&'a Row<'a>, usize)>,
}

/// The picture for a page that has the style; `None` if no connection is known.
pub(super) fn picture(drawing: &Drawing<'_>) -> Option<String> {
    let all = &drawing.analysis.connections;
    let drawn: Vec<Connection<'_>> = all
        .iter()
        .zip(1..)
        .filter_map(|(one, number)| Connection::of(one, number, drawing.drawn()))
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let mut canvas = Canvas::default();
    let y = heads(&mut canvas);
    let top = y + 22.0;
    let scale = Scale::new(drawing.end_ms, LEFT, RIGHT);
    let bottom = top + drawn.iter().map(Connection::height).sum::<f64>();
    let mut y = top;
    for (n, one) in drawn.iter().enumerate() {
        let class = if n % 2 == 0 { "stripe" } else { "plain" };
        canvas.rect(class, (0.0, y), (WIDTH, one.height()));
        y += one.height();
    }
    axis(&mut canvas, scale, (top, bottom));
    moments(&mut canvas, &drawing.timings, scale, (top, bottom));
    y = top;
    for one in &drawn {
        canvas.begin_group(&tooltip(one.number, one.used));
        canvas.rect("hit", (0.0, y), (WIDTH, one.height()));
        names(&mut canvas, one.number, one.used, y + 15.0);
        requests(&mut canvas, one, scale, y);
        canvas.end_group();
        y += one.height();
    }
    let label = format!(
        "Connections of {}: {}",
        shortened(&drawing.visit.url, 110),
        all.len()
    );
    Some(canvas.finish(&label, bottom + 26.0, None))
}

/// Meanings of the colours and heads of the columns; returns the baseline of the heads.
fn heads(canvas: &mut Canvas) -> f64 {
    let mut flow = Flow::new(20.0);
    // The queue of a request is before its connection: it is not drawn.
    for phase in Phase::ALL
        .into_iter()
        .filter(|phase| *phase != Phase::Queued)
    {
        flow.colour(canvas, phase.name(), phase.name());
    }
    let y = flow.end();
    for (x, head) in COLUMNS {
        canvas.text("faint", (x, y), Anchor::Start, head);
    }
    y
}

/// The columns beside a connection's bars.
fn names(canvas: &mut Canvas, number: usize, one: &ConnectionUse, y: f64) {
    let protocol = if one.protocol.is_empty() {
        "-".to_owned()
    } else {
        shortened(&one.protocol, 8)
    };
    let requests = one.resources.len().to_string();
    let cells = [
        number.to_string(),
        shortened(&one.host, 40),
        protocol,
        requests,
    ];
    for ((x, _), cell) in COLUMNS.into_iter().zip(cells) {
        canvas.text("ink", (x, y), Anchor::Start, &cell);
    }
}

/// The lines of a connection's tooltip.
fn tooltip(number: usize, one: &ConnectionUse) -> Vec<String> {
    let mut lines = vec![format!(
        "connection {number}: {}",
        shortened(&one.host, 200)
    )];
    lines.extend(
        one.remote
            .as_ref()
            .map(|remote| format!("to {}", shortened(remote, 60))),
    );
    let opening = [("TCP", one.connect_ms), ("TLS", one.tls_ms)];
    let opening: Vec<String> = opening
        .iter()
        .filter_map(|(name, took)| Some(format!("{name} {}", ms((*took)?))))
        .collect();
    if !opening.is_empty() {
        lines.push(format!(
            "opened at {}: {}",
            ms(one.opened_ms),
            opening.join(", ")
        ));
    }
    lines.push(format!(
        "{}, {} at a time at most",
        quantity(one.resources.len(), "request"),
        one.streams_max
    ));
    lines.push(format!(
        "busy {}, idle {}",
        ms(one.busy_ms),
        ms(one.idle_ms)
    ));
    lines
}

/// The time a request is drawn at: from the first phase on that belongs to the connection.
fn carried<'a>(row: &'a Row<'_>) -> impl Iterator<Item = &'a Segment> {
    row.segments
        .iter()
        .filter(|segment| segment.phase != Phase::Queued)
}

impl<'a> Connection<'a> {
    /// Returns a connection with its rows; `None` if it carried none of them.
    fn of(used: &'a ConnectionUse, number: usize, rows: &'a [Row<'a>]) -> Option<Self> {
        let carried = used.resources.iter().filter_map(|place| rows.get(*place));
        let carried: Vec<&Row<'_>> = carried.collect();
        let lanes = lanes(&carried);
        (!carried.is_empty()).then(|| Self {
            number,
            used,
            requests: carried.into_iter().zip(lanes).collect(),
        })
    }

    fn height(&self) -> f64 {
        let last = self.requests.iter().map(|(_, lane)| *lane).max();
        let lanes = last.map_or(1, |last| last + 1);
        (lanes as f64 * LANE + 6.0).max(22.0)
    }
}

/// The lane of each request: the first one in which nothing is drawn any more.
fn lanes(rows: &[&Row<'_>]) -> Vec<usize> {
    let mut ends: Vec<f64> = Vec::new();
    let place = |row: &&Row<'_>| {
        let from_ms = carried(row)
            .next()
            .map_or(row.start_ms(), |segment| segment.from_ms);
        let free = ends.iter().position(|end| *end <= from_ms);
        // Without a free lane, requests overlap in the last one.
        let lane = free.unwrap_or(ends.len()).min(LANES_MOST - 1);
        match ends.get_mut(lane) {
            Some(end) => *end = end.max(row.end_ms()),
            None => ends.push(row.end_ms()),
        }
        lane
    };
    rows.iter().map(place).collect()
}

/// The requests of a connection in their lanes, with their numbers if there is room.
fn requests(canvas: &mut Canvas, one: &Connection<'_>, scale: Scale, top: f64) {
    for (row, lane) in &one.requests {
        let y = top + 3.0 + *lane as f64 * LANE;
        canvas.begin_group(&row.tooltip()[..1]);
        for segment in carried(row) {
            let (from, to) = (scale.x(segment.from_ms), scale.x(segment.to_ms));
            canvas.rect(segment.phase.name(), (from, y), (to - from, LANE - 3.0));
        }
        let (from, to) = (scale.x(row.start_ms()), scale.x(row.end_ms()));
        let number = row.number.to_string();
        if to - from > text_width(&number) + 4.0 {
            canvas.text("figure", (to - 2.0, y + LANE - 4.0), Anchor::End, &number);
        }
        canvas.end_group();
    }
}

/// Begins and heads of the columns.
const COLUMNS: [(f64, &str); 4] = [
    (MARGIN, "conn"),
    (50.0, "server"),
    (330.0, "protocol"),
    (400.0, "requests"),
];
/// Lanes of a connection.
const LANES_MOST: usize = 40;
/// Height of a lane.
const LANE: f64 = 14.0;
