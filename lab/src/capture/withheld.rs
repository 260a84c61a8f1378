//! The stalls of a capture as evidence for visits that were captured.

use super::collect::Capture;
use super::stall;
use crate::page::{Resource, Visit, Withheld};

/// Adds to each visit its stalls proven by packets, in order of time. The capture must be made at the client, since its times
/// count as arrival times.
pub fn note_withheld<'v>(capture: &Capture, visits: impl IntoIterator<Item = &'v mut Visit>) {
    let stalls = stall::of(capture).found;
    for visit in visits {
        let ends = visit.resources.iter().map(Resource::end_ms);
        let end_ms = ends.fold(0.0, f64::max);
        let since = |ns: u64| ns as f64 / 1e6 - visit.started_unix_ms;
        let found = stalls.iter().map(|stall| Withheld {
            port: capture.flows[stall.flow].server.port(),
            request: stall.request_line.clone(),
            from_ms: since(stall.span_ns.0),
            to_ms: since(stall.span_ns.1),
            bytes: stall.withheld_bytes.into(),
        });
        // A capture may have several visits.
        let mut found: Vec<Withheld> = found
            .filter(|one| one.to_ms >= 0.0 && one.from_ms <= end_ms)
            .collect();
        found.sort_by(|a, b| a.from_ms.total_cmp(&b.from_ms));
        visit.withheld = Some(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::tests::{MS, capture, withheld as script};

    /// A response of 401 bytes, captured at the client. Its last byte waited from 1,101 to 1,191.1 ms of the capture's clock.
    fn noted(started_unix_ms: f64, end_ms: f64) -> Vec<Withheld> {
        let mut visit = Visit {
            started_unix_ms,
            resources: vec![Resource {
                start_ms: end_ms,
                ..Resource::default()
            }],
            ..Visit::default()
        };
        let capture = capture(&script(0, 50 * MS, 40 * MS, 100));
        note_withheld(&capture, [&mut visit]);
        visit.withheld.expect("there was a capture")
    }

    #[test]
    fn a_visit_has_the_stalls_within_its_time() {
        let [found] = &noted(1000.0, 200.0)[..] else {
            panic!("there is one")
        };
        assert_eq!((found.port, found.request.as_deref()), (80, Some("GET /a")));
        assert_eq!(found.bytes, 1);
        assert!((found.from_ms - 101.0).abs() < 0.01, "{found:?}");
        assert!((found.to_ms - 191.1).abs() < 0.01, "{found:?}");
        // Before the visit, and after it.
        assert_eq!(noted(1200.0, 200.0), []);
        assert_eq!(noted(1000.0, 100.0), []);
        assert_eq!(noted(1191.0, 0.0).len(), 1);
        assert_eq!(noted(1000.0, 102.0).len(), 1);
    }
}
