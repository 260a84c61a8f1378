//! Traffic of a visit beside a pause: whether its connection was in use, and whether other responses paused with it.

use std::collections::HashMap;

use super::stall::{PAUSE_LEAST_MS, Stall};
use crate::page::resource::Resource;
use crate::page::visit::Visit;

/// Arrivals of all responses of a visit.
pub(super) struct Traffic {
    /// By connection: moments of pieces and of first bytes in order of time, with the place of the resource.
    moments: HashMap<u64, Vec<(f64, usize)>>,
    /// By connection: spans of responses without pieces, in order and disjoint.
    unseen: HashMap<u64, Vec<(f64, f64)>>,
    /// By connection: when requests were sent, and when responses ended, each in order.
    exchanges: HashMap<u64, (Vec<f64>, Vec<f64>)>,
    /// Moments of all connections in order of time, ends included.
    all: Vec<Moment>,
}

/// An arrival of a part of a response.
struct Moment {
    at_ms: f64,
    /// Time of the part before it, or of the request for the first part.
    since_ms: f64,
    resource: usize,
}

impl Traffic {
    pub(super) fn of(visit: &Visit) -> Self {
        let mut found = Self {
            moments: HashMap::new(),
            unseen: HashMap::new(),
            exchanges: HashMap::new(),
            all: Vec::new(),
        };
        let sent = visit.resources.iter().enumerate();
        for (place, resource) in sent.filter(|(_, one)| !one.from_cache) {
            found.add(place, resource);
        }
        for of_connection in found.moments.values_mut() {
            of_connection.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        for spans in found.unseen.values_mut() {
            *spans = joined(std::mem::take(spans));
        }
        for (sent, ends) in found.exchanges.values_mut() {
            sent.sort_by(f64::total_cmp);
            ends.sort_by(f64::total_cmp);
        }
        found.all.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        found
    }

    fn add(&mut self, place: usize, resource: &Resource) {
        let (first, end) = (resource.first_byte_ms(), resource.end_ms());
        let came = || resource.pieces.iter().map(|piece| piece.at_ms);
        let sent_ms = resource.sent_ms();
        let mut since_ms = sent_ms;
        let mut moments: Vec<f64> = came().chain([first, end]).collect();
        moments.sort_by(f64::total_cmp);
        for at_ms in moments {
            self.all.push(Moment {
                at_ms,
                since_ms,
                resource: place,
            });
            since_ms = at_ms;
        }
        let Some(connection) = resource.connection else {
            return;
        };
        let of_connection = self.moments.entry(connection).or_default();
        of_connection.extend(came().chain([first]).map(|at| (at, place)));
        if resource.pieces.is_empty() && end - first > PAUSE_LEAST_MS {
            self.unseen
                .entry(connection)
                .or_default()
                .push((first, end));
        }
        let (sent, ends) = self.exchanges.entry(connection).or_default();
        sent.push(sent_ms);
        ends.push(end);
    }

    /// Returns whether the connection of a pause carried another response meanwhile, or may have.
    pub(super) fn is_busy(&self, resource: &Resource, pause: &Stall) -> bool {
        let Some(connection) = resource.connection else {
            return false;
        };
        let moments = self.moments.get(&connection).map_or(&[][..], Vec::as_slice);
        let begin = moments.partition_point(|(at, _)| *at <= pause.from_ms);
        let inside = moments.iter().skip(begin);
        // Bytes received with the end of the pause may share its segment, so they are not its reason.
        let mut inside = inside.take_while(|(at, _)| *at < pause.to_ms - TOGETHER_MS);
        let unseen = self.unseen.get(&connection).map_or(&[][..], Vec::as_slice);
        let first_after = unseen.partition_point(|(_, end)| *end <= pause.from_ms);
        let unseen = unseen.get(first_after);
        inside.any(|(_, other)| *other != pause.resource)
            || unseen.is_some_and(|(first, _)| *first < pause.to_ms)
    }

    /// Returns whether the connection of a pause had no other request in progress. Without a number of the connection it is not
    /// known: false.
    pub(super) fn is_alone(&self, resource: &Resource, pause: &Stall) -> bool {
        let exchanges = resource.connection.and_then(|one| self.exchanges.get(&one));
        exchanges.is_some_and(|(sent, ends)| {
            let begun = sent.partition_point(|at| *at <= pause.to_ms);
            let over = ends.partition_point(|at| *at < pause.from_ms);
            begun == over + 1
        })
    }

    /// Returns whether another response paused with this one for at least half of its length. Then the receiver or the
    /// machine was busy, or the network was idle. A browser continues its responses one by one; other receivers read
    /// all of them within [`RESUMED_MS`].
    pub(super) fn is_shared(&self, pause: &Stall, by_browser: bool) -> bool {
        let (first_ms, last_ms) = match by_browser {
            true => (pause.from_ms, f64::INFINITY),
            false => (pause.to_ms - RESUMED_MS, pause.to_ms + RESUMED_MS),
        };
        let begin = self.all.partition_point(|moment| moment.at_ms < first_ms);
        let near = self.all.iter().skip(begin).take(LOOKED_AT_MAX);
        let near = near.take_while(|moment| moment.at_ms <= last_ms);
        let mut others = near.filter(|moment| moment.resource != pause.resource);
        others.any(|other| {
            let common_ms = other.at_ms.min(pause.to_ms) - other.since_ms.max(pause.from_ms);
            common_ms >= pause.length_ms() / 2.0
        })
    }
}

/// Spans of time in order, those that overlap as one.
fn joined(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut apart: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// Bytes within this time count as received together, ms.
const TOGETHER_MS: f64 = 1.0;
/// Most time between the ends of pauses with one cause, ms.
pub(super) const RESUMED_MS: f64 = 30.0;
/// Maximum number of moments read for a pause. It bounds the work for a file with a million moments.
const LOOKED_AT_MAX: usize = 1000;
