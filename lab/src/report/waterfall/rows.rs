//! A visit as rows to draw: segments of phases, parts of waits, stalls, and the words of a row's tooltip.
//!
//! Pictures and text draw the same rows, so that they agree.

use std::collections::{BTreeMap, HashMap};

use crate::page::analysis::{Analysis, WaitParts};
use crate::page::{AnalysedVisit, Resource, Visit};
use crate::report::escape::{bounded, shortened};

use super::figures::{self, Timing, bytes, ms};
use super::scale::sane_ms;

/// A visit, as it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Drawing<'a> {
    /// The visit.
    pub(super) visit: &'a Visit,
    /// A row for each resource, in their order; [`Self::drawn`] are drawn.
    pub(super) rows: Vec<Row<'a>>,
    /// The moments that the page reached.
    pub(super) timings: Vec<Timing>,
    /// Time of the last drawn event, ms.
    pub(super) end_ms: f64,
    /// The visit's analysis.
    pub(super) analysis: &'a Analysis,
}

/// A resource, as it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    /// Its number, from 1.
    pub(super) number: usize,
    /// The resource.
    pub(super) resource: &'a Resource,
    /// Its connection's number, from 1 in the order of opening.
    pub(super) connection: Option<usize>,
    /// Its phases.
    pub(super) segments: Vec<Segment>,
    /// Parts of its wait, as shares from the wait's begin on.
    pub(super) parts: Vec<Part>,
    /// Its stalls.
    pub(super) stalls: Vec<Mark>,
}

/// Time of a phase, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// Which phase.
    pub(super) phase: Phase,
    /// Its begin.
    pub(super) from_ms: f64,
    /// Its end.
    pub(super) to_ms: f64,
}

/// A phase of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for a connection or a turn.
    Queued,
    /// Looking addresses up.
    Dns,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending the request.
    Send,
    /// Waiting for the first byte.
    Wait,
    /// Receiving.
    Receive,
}

impl Phase {
    /// All phases in the order of [`Phases::all`](crate::page::Phases::all).
    pub(super) const ALL: [Self; 7] = [
        Self::Queued,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Send,
        Self::Wait,
        Self::Receive,
    ];

    /// Its name, in pictures and as a class of the style.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::Wait => "wait",
            Self::Receive => "receive",
        }
    }

    /// Its character in text.
    pub(super) fn character(self) -> char {
        match self {
            Self::Queued => '.',
            Self::Dns => 'd',
            Self::Connect => 'c',
            Self::Tls => 't',
            Self::Send => 's',
            Self::Wait => '-',
            Self::Receive => '=',
        }
    }
}

/// A part of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Its class in the style.
    pub(super) class: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// Start, ms.
    pub(super) from_ms: f64,
    /// End, ms.
    pub(super) to_ms: f64,
}

/// A stall, ms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// Its begin.
    pub(super) from_ms: f64,
    /// Its end.
    pub(super) to_ms: f64,
    /// Its cause, in words.
    pub(super) cause: &'static str,
}

impl<'a> Drawing<'a> {
    /// The drawing of a visit.
    pub(super) fn of(run: &'a AnalysedVisit<'_>) -> Self {
        let (visit, analysis) = (run.visit, &run.analysis);
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for (n, one) in analysis.connections.iter().enumerate() {
            numbers.extend(one.resources.iter().map(|place| (*place, n + 1)));
        }
        let places = visit.resources.iter().enumerate();
        let mut rows: Vec<Row<'_>> = places
            .map(|(place, resource)| {
                let segments = segments(resource);
                let wait = analysis.waits.get(place).copied().flatten();
                Row {
                    number: place + 1,
                    resource,
                    connection: numbers.get(&place).copied(),
                    parts: wait.map_or_else(Vec::new, |wait| parts(&segments, wait)),
                    segments,
                    stalls: Vec::new(),
                }
            })
            .collect();
        for stall in &analysis.stalls {
            if let Some(row) = rows.get_mut(stall.resource) {
                row.stalls.push(Mark {
                    from_ms: sane_ms(stall.from_ms),
                    to_ms: sane_ms(stall.to_ms),
                    cause: stall.cause.name(),
                });
            }
        }
        let timings = figures::timings(run);
        Self {
            visit,
            end_ms: end_ms(rows.iter().take(ROWS_MAX), &timings),
            rows,
            timings,
            analysis,
        }
    }

    /// The rows that are drawn: the first [`ROWS_MAX`].
    pub(super) fn drawn(&self) -> &[Row<'a>] {
        &self.rows[..self.rows.len().min(ROWS_MAX)]
    }

    /// Scheme, host and port of the page.
    pub(super) fn host(&self) -> &'a str {
        self.rows.first().map_or("", |row| row.resource.origin())
    }

    /// Sums: `34 requests, 1.2 MB, 6 connections`.
    pub(super) fn sums(&self) -> String {
        let total = &self.analysis.total;
        let requests = figures::quantity(total.requests, "request");
        let least = if total.unknown_bytes > 0 {
            "at least "
        } else {
            ""
        };
        let connections = figures::quantity(total.connections, "connection");
        let mut text = format!("{requests}, {least}{}, {connections}", bytes(total.bytes));
        if total.from_cache > 0 {
            text += &format!(", {} from the cache", total.from_cache);
        }
        if total.failed > 0 {
            text += &format!(", {} failed", total.failed);
        }
        text
    }

    /// A sentence about the staircase; `None` if no start can be analyzed.
    pub(super) fn staircase(&self) -> Option<String> {
        let stairs = &self.analysis.staircase;
        let score = stairs.score()?;
        let (steps, starts) = (
            stairs.steps.len(),
            figures::quantity(stairs.starts, "start"),
        );
        let depth = match stairs.depth {
            0 => String::new(),
            depth => format!(", at most {depth} in a row"),
        };
        Some(format!(
            "{score:.2}: {steps} of {starts} waited for another request to end{depth}"
        ))
    }

    /// Sums of the parts of all waits; `None` without waits.
    pub(super) fn waits(&self) -> Option<String> {
        let waits: Vec<WaitParts> = self.analysis.waits.iter().flatten().copied().collect();
        let sum = |part: fn(&WaitParts) -> Option<f64>| {
            let known: Vec<f64> = waits.iter().filter_map(part).map(sane_ms).collect();
            (known.len(), known.iter().sum::<f64>())
        };
        let parts = [
            ("round trips", sum(|wait| wait.round_trip_ms)),
            ("server", sum(|wait| wait.server_ms)),
            ("unexplained", sum(|wait| Some(wait.unexplained_ms))),
        ];
        let words = parts.iter().filter(|(_, (n, _))| *n > 0);
        let words: Vec<String> = words
            .map(|(name, (n, took))| format!("{name} {} (n={n})", ms(*took)))
            .collect();
        (!waits.is_empty()).then(|| words.join(", "))
    }

    /// Numbers of stalls by cause; empty without stalls.
    pub(super) fn stalls(&self) -> Vec<String> {
        let all = self.rows.iter().flat_map(|row| &row.stalls);
        let mut sums: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for stall in all {
            let sum = sums.entry(stall.cause).or_default();
            *sum = (sum.0 + 1, sum.1 + stall.to_ms - stall.from_ms);
        }
        let sums = sums.into_iter();
        sums.map(|(cause, (n, took))| format!("{n} by {cause}, {} together", ms(took)))
            .collect()
    }
}

impl Row<'_> {
    /// Its start, ms.
    pub(super) fn start_ms(&self) -> f64 {
        sane_ms(self.resource.start_ms)
    }

    /// End of its last segment, ms.
    pub(super) fn end_ms(&self) -> f64 {
        let ends = self.segments.iter().map(|segment| segment.to_ms);
        ends.fold(self.start_ms(), f64::max)
    }

    /// The lines of its tooltip, the whole URL first.
    pub(super) fn tooltip(&self) -> Vec<String> {
        let resource = self.resource;
        let mut lines = vec![format!(
            "{}. {} {}",
            self.number,
            bounded(&resource.method, 20),
            bounded(&resource.url, URL_MOST)
        )];
        lines.push(self.facts());
        let took = self.end_ms() - self.start_ms();
        lines.push(format!(
            "starts at {}, takes {}",
            ms(self.start_ms()),
            ms(took)
        ));
        for segment in &self.segments {
            lines.push(format!(
                "{} {}",
                segment.phase.name(),
                ms(segment.to_ms - segment.from_ms)
            ));
        }
        for part in &self.parts {
            lines.push(format!(
                "of the wait, {}: {}",
                part.name,
                ms(part.to_ms - part.from_ms)
            ));
        }
        for stall in &self.stalls {
            lines.push(format!(
                "stall at {}: {}",
                ms(stall.from_ms),
                stall_words(stall)
            ));
        }
        lines.extend(
            resource
                .error
                .as_ref()
                .map(|why| format!("failed: {}", bounded(why, 200))),
        );
        lines
    }

    /// Status, kind, protocol, connection and bytes, as far as they are known.
    fn facts(&self) -> String {
        let resource = self.resource;
        let mut facts = vec![figures::status(resource), resource.kind.name().to_owned()];
        if !resource.protocol.is_empty() {
            facts.push(shortened(&resource.protocol, 20));
        }
        if let Some(number) = self.connection {
            let remote = resource.remote.as_ref();
            let remote = remote.map(|remote| format!(" ({})", shortened(remote, 60)));
            facts.push(format!("connection {number}{}", remote.unwrap_or_default()));
        }
        if let Some(n) = resource.transferred_bytes() {
            facts.push(bytes(n));
        }
        if resource.from_cache {
            facts.push("from the cache".to_owned());
        }
        facts.join(", ")
    }

    /// Its time in words.
    pub(super) fn caption(&self) -> String {
        match self.resource.from_cache {
            true => "cache".to_owned(),
            false => ms(self.end_ms() - self.start_ms()),
        }
    }
}

/// The last end of rows and of the page's moments, ms.
pub(super) fn end_ms<'r>(rows: impl Iterator<Item = &'r Row<'r>>, timings: &[Timing]) -> f64 {
    let moments = timings.iter().map(|timing| timing.at_ms);
    rows.map(Row::end_ms).chain(moments).fold(0.0, f64::max)
}

/// A sentence about resources that are not drawn; `None` if all are drawn.
pub(super) fn left_out(resources: usize) -> Option<String> {
    let more = resources.checked_sub(ROWS_MAX).filter(|more| *more > 0)?;
    let more = figures::quantity(more, "further resource");
    Some(format!("{more} left out: the first {ROWS_MAX} are drawn"))
}

/// `40 ms, delayed ACK`.
pub(super) fn stall_words(stall: &Mark) -> String {
    format!("{}, {}", ms(stall.to_ms - stall.from_ms), stall.cause)
}

/// The phases of a resource in sequence.
fn segments(resource: &Resource) -> Vec<Segment> {
    let mut from_ms = sane_ms(resource.start_ms);
    let mut found = Vec::new();
    for (phase, took) in Phase::ALL.into_iter().zip(resource.phases.all()) {
        let took_ms = took.map_or(0.0, sane_ms);
        if took_ms > 0.0 {
            let to_ms = sane_ms(from_ms + took_ms);
            found.push(Segment {
                phase,
                from_ms,
                to_ms,
            });
            from_ms = to_ms;
        }
    }
    found
}

/// The parts of a wait as shares of its segment. Their order is arbitrary, since no source has the times of the parts.
fn parts(segments: &[Segment], wait: WaitParts) -> Vec<Part> {
    let Some(segment) = segments.iter().find(|one| one.phase == Phase::Wait) else {
        return Vec::new();
    };
    if wait.round_trip_ms.is_none() && wait.server_ms.is_none() {
        // Only the whole wait is known, which is drawn already.
        return Vec::new();
    }
    let known = [
        wait.round_trip_ms,
        wait.server_ms,
        Some(wait.unexplained_ms),
    ];
    let (mut from_ms, mut found) = (segment.from_ms, Vec::new());
    for ((class, name), took) in PARTS.into_iter().zip(known) {
        let took_ms = took.map_or(0.0, sane_ms);
        let to_ms = (from_ms + took_ms).min(segment.to_ms);
        if to_ms > from_ms {
            found.push(Part {
                class,
                name,
                from_ms,
                to_ms,
            });
            from_ms = to_ms;
        }
    }
    found
}

/// Classes of the parts of a wait, with their names.
pub(super) const PARTS: [(&str, &str); 3] = [
    ("trip", "round trip"),
    ("server", "server"),
    ("rest", "unexplained"),
];
/// The resources that are drawn, of a visit or of two together: their page is of 5 MB without their fields.
pub(super) const ROWS_MAX: usize = 2_000;
/// Characters of a URL in a tooltip or a table.
pub(super) const URL_MOST: usize = 2_000;
