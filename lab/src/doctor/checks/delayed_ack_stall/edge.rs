//! The edge of the sizes that stall: bisection between the largest size that stalls and the next one that does not.

use super::bodies::kind;
use super::sweep::spare;
use super::walk::walk;
use crate::doctor::judge::stall::sweep::{Edge, Subject, Sweep};
use crate::doctor::judge::stall::verdict::Verdict;
use crate::doctor::{Examination, Failure, NetworkPath};

/// The edges of both codings, as exactly as the requests that are left allow.
///
/// # Errors
/// Interrupted; files cannot be written.
pub(super) fn find(x: &mut Examination<'_>, sweep: &Sweep) -> Result<Vec<Edge>, Failure> {
    let mut edges = Vec::new();
    for gzip in [false, true] {
        if let Some(edge) = coarse(sweep, gzip) {
            edges.push(refine(x, sweep, edge)?);
        }
    }
    Ok(edges)
}

/// The edge among the sizes of the sweep.
fn coarse(sweep: &Sweep, gzip: bool) -> Option<Edge> {
    let (subjects, cells) = (&sweep.subjects, sweep.verdict().cells());
    let own = |n: &usize| subjects[*n].gzip == gzip;
    let stalled = cells.iter().filter(|(n, _)| own(n));
    let (last, _) = stalled.copied().max_by_key(|(n, _)| subjects[*n].bytes)?;
    let places = cells.iter().filter(|(n, _)| *n == last);
    let place = places.map(|(_, place)| *place).min()?;
    let above = (0..subjects.len())
        .filter(own)
        .filter(|n| subjects[*n].bytes > subjects[last].bytes);
    let first = above.min_by_key(|n| subjects[*n].bytes)?;
    let bytes = |n: usize| (subjects[n].bytes, sweep.sent_bytes(n));
    Some(Edge {
        gzip,
        place,
        stalls: bytes(last),
        free: bytes(first),
    })
}

/// Halves an edge with files of sizes between its ends.
fn refine(x: &mut Examination<'_>, sweep: &Sweep, mut edge: Edge) -> Result<Edge, Failure> {
    let Edge { gzip, place, .. } = edge;
    let requests = (1 + SAMPLES) * (place + 1);
    while edge.free.0 - edge.stalls.0 > 1 && spare(x) >= requests {
        let bytes = edge.stalls.0.midpoint(edge.free.0);
        let Some(url) = x.planted(bytes as usize, kind(gzip))? else {
            break;
        };
        let subject = [Subject { url, bytes, gzip }];
        let sequence = vec![0; place + 1];
        let once = std::slice::from_ref(&sequence);
        let free = walk(x, &subject, NetworkPath::Delayed(None), once)?;
        let held = walk(x, &subject, sweep.network_path(0), &vec![sequence; SAMPLES])?;
        let Some(sent) = held.first().map(|one| one.sent_bytes) else {
            break;
        };
        let verdict = Verdict {
            subjects: 1,
            free: &free,
            held: &[held],
            late_after_ms: &sweep.late_after_ms[..1],
        };
        match verdict.cells().is_empty() {
            false => edge.stalls = (bytes, sent),
            true => edge.free = (bytes, sent),
        }
    }
    Ok(edge)
}

/// Samples of a size with a hold; all of them have to be late.
const SAMPLES: usize = 3;
