//! Events with the figures of this moment: of the recording process once a second, or of the store every five seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Grouping, Query, Step, Store};

use super::http::Events;
use super::live::{Figures, Live, Rows, Sums};
use super::site::Site;
use crate::time::{iso, now_s};

/// Returns the maker of events of a site.
pub(super) fn events(site: &Site) -> Events {
    match &site.live {
        Some(live) => of_process(Arc::clone(live)),
        None => of_store(site.clone()),
    }
}

/// Returns the time between two events.
pub(super) fn period(site: &Site) -> Duration {
    match site.live {
        Some(_) => Duration::from_secs(1),
        None => Duration::from_secs(5),
    }
}

fn of_process(live: Arc<Live>) -> Events {
    let mut before = (Instant::now(), live.closed());
    let mut id = now_s();
    Box::new(move || {
        let now = (Instant::now(), live.closed());
        let (then, sums) = std::mem::replace(&mut before, now);
        let seconds = (now.0 - then).as_secs_f64();
        // After a pause without streams the rate would be that of the whole pause.
        if seconds > PAUSE_S {
            return None;
        }
        let mut figures = Figures::between(iso(now_s()), &sums, &now.1, seconds);
        figures.open = live.open();
        figures.store = live.store().map(|counts| Rows {
            queued: counts.queued,
            dropped: counts.dropped,
            failing: counts.failing,
        });
        id += 1;
        Some(figures.event(id))
    })
}

/// Rates are those of the last whole minutes, since a store may get rows in batches.
fn of_store(site: Site) -> Events {
    let mut store = None;
    Box::new(move || {
        if store.is_none() {
            store = site.source.open().ok();
        }
        let made = store.as_deref().map(figures)?;
        match made {
            Ok(figures) => Some(figures.event(now_s())),
            Err(_) => {
                // Pages have the reason; the next event opens the store again.
                store = None;
                None
            }
        }
    })
}

fn figures(store: &dyn Store) -> Result<Figures, store::Error> {
    let now = now_s();
    let to = now - now % 60;
    let query = Query {
        from_s: to.saturating_sub(WINDOW_S),
        to_s: to,
        grouping: Grouping::Protocol,
        ..Query::default()
    };
    let totals = store.totals(&query)?;
    let sums = Sums {
        connections: totals.connections,
        requests: totals.requests,
        statuses: totals.statuses,
    };
    let mut figures = Figures::between(iso(now), &Sums::default(), &sums, WINDOW_S as f64);
    let open = store.open_connections(&query, Step::Minute)?;
    // The newest minute of each protocol.
    let newest = open.iter().map(|one| one.start_s).max();
    let of_newest = open.iter().filter(|one| Some(one.start_s) == newest);
    figures.open = of_newest
        .map(|one| (one.protocol.clone(), one.mean.round() as u64))
        .collect::<BTreeMap<_, _>>();
    Ok(figures)
}

/// Time between two events of a process that is no pause yet.
const PAUSE_S: f64 = 3.0;
/// Time behind the rates of a store.
const WINDOW_S: u64 = 300;
