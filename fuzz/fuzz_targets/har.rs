//! HAR archives: parsed times are finite and in order, and survive writing and reading. The analysis and the comparison
//! with itself keep their bounds.
#![no_main]

use lab::page::comparison::{Match, compare};
use lab::page::har::{TIME_MS_MAX, find, read, write};
use lab::page::{Runs, Visit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let pages = match read(input) {
        Ok(pages) => pages,
        Err(fault) => {
            assert!(!fault.why.is_empty());
            return;
        }
    };
    assert_eq!(find(&pages, &pages[0].id), Ok(0));
    let visits: Vec<&Visit> = pages.iter().map(|page| &page.visit).collect();
    for visit in &visits {
        check(visit);
    }
    let archive = write(&visits);
    let again = read(archive.as_bytes()).expect("what is written can be read");
    // Pages without entries are kept, in any number.
    assert_eq!(again.len(), pages.len());
    for (first, second) in pages.iter().zip(&again) {
        assert_eq!(first.visit, second.visit);
    }
});

fn check(visit: &Visit) {
    let count = visit.resources.len();
    for resource in &visit.resources {
        let times = resource.phases.all().into_iter().flatten();
        let mut times = times.chain(resource.pieces.iter().map(|piece| piece.at_ms));
        assert!(times.all(|ms| (0.0..=TIME_MS_MAX).contains(&ms)));
        assert!(resource.start_ms.is_finite() && resource.end_ms() >= resource.start_ms);
        assert!(resource.initiator.is_none_or(|place| place < count));
        assert!(!resource.url.contains('#'));
    }
    let runs = Runs::of(std::slice::from_ref(visit)).expect("there is one");
    let found = &runs.shown().analysis;
    assert_eq!(found.waits.len(), count);
    for parts in found.waits.iter().flatten() {
        let all = [parts.round_trip_ms, parts.server_ms, Some(parts.unexplained_ms)];
        assert!(all.into_iter().flatten().all(|ms| ms >= 0.0));
    }
    assert!(found.staircase.score().is_none_or(|score| score <= 1.0));
    assert!(found.staircase.depth <= found.staircase.steps.len());
    assert!(found.stalls.iter().all(|stall| stall.length_ms() > 0.0));
    assert!(found.connections.iter().all(|one| one.idle_ms >= 0.0 && one.busy_ms >= 0.0));
    assert!(found.critical_path.len() <= count);
    let same = compare(&runs, &runs, Match::Url);
    assert!(same.resources.iter().all(|one| one.difference_ms() == Some(0.0)));
}
