//! Stalls that a capture of the visit proves, and their resources.

use std::collections::HashMap;

use super::stall::{Stall, StallCause};
use crate::page::resource::Resource;
use crate::page::visit::{Visit, Withheld};

/// The proven stalls of a visit.
pub(super) struct Packets<'v> {
    visit: &'v Visit,
    /// Stalls shown by the capture.
    named: Vec<Stall>,
}

impl<'v> Packets<'v> {
    /// Finds the resources of a capture's stalls; `None` without a capture.
    pub(super) fn of(visit: &'v Visit) -> Option<Self> {
        let withheld = visit.withheld.as_ref()?;
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let sent = visit.resources.iter().enumerate();
        for (place, resource) in sent.filter(|(_, one)| !one.from_cache) {
            let request = format!("{} {}", resource.method, resource.target());
            places.entry(request).or_default().push(place);
        }
        let named = withheld.iter().filter_map(|one| {
            let places = places.get(one.request.as_ref()?)?;
            let resource = carrier(visit, one, places)?;
            Some(Stall {
                resource,
                from_ms: one.from_ms,
                to_ms: one.to_ms,
                rest_bytes: one.bytes,
                cause: StallCause::DelayedAck,
            })
        });
        Some(Self {
            visit,
            named: named.collect(),
        })
    }

    pub(super) fn named(&self) -> &[Stall] {
        &self.named
    }

    /// Returns whether a pause is one of these stalls.
    pub(super) fn is_named(&self, pause: &Stall) -> bool {
        let is_it =
            |one: &Stall| one.resource == pause.resource && covers((one.from_ms, one.to_ms), pause);
        self.named.iter().any(is_it)
    }

    /// Returns whether a stall without a request, such as one of TLS without keys, is this pause: the same server, and half of
    /// the pause or more.
    pub(super) fn is_proven(&self, pause: &Stall) -> bool {
        let resource = &self.visit.resources[pause.resource];
        let mut all = self.visit.withheld.iter().flatten();
        all.any(|one| {
            one.request.is_none()
                && covers((one.from_ms, one.to_ms), pause)
                && resource.port() == Some(one.port)
        })
    }
}

/// The place of the resource in progress for most of a stall, and for half of it at least.
fn carrier(visit: &Visit, stall: &Withheld, places: &[usize]) -> Option<usize> {
    let span = (stall.from_ms, stall.to_ms);
    let common_ms = |place: &usize| -> f64 {
        let resource: &Resource = &visit.resources[*place];
        common(span, (resource.sent_ms(), resource.end_ms()))
    };
    let of_server = places
        .iter()
        .filter(|place| visit.resources[**place].port() == Some(stall.port));
    let best = of_server.max_by(|a, b| common_ms(a).total_cmp(&common_ms(b)))?;
    (common_ms(best) >= (span.1 - span.0) / 2.0).then_some(*best)
}

/// Returns whether a span of time has half of a pause, or more.
fn covers(span: (f64, f64), pause: &Stall) -> bool {
    common(span, (pause.from_ms, pause.to_ms)) >= pause.length_ms() / 2.0
}

/// How long two spans of time are at once, ms; below 0 if they are apart.
fn common(a: (f64, f64), b: (f64, f64)) -> f64 {
    a.1.min(b.1) - a.0.max(b.0)
}
