//! slow-server: requests for the target on a connection that is there.

use std::time::{Duration, Instant};

use crate::doctor::figures::ms;
use crate::doctor::judge::slow_server::{Figures, judge, longest_entry};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};

/// Asks for the target again and again on a connection that is there.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let figures = x.visit(NetworkPath::Direct, requests)??;
    x.measure("server", figures.measured());
    Ok(judge(&figures).into_iter().collect())
}

fn requests(visitor: &Visitor<'_>) -> Result<Figures, Failure> {
    let url = &visitor.plan().url;
    let (mut samples, mut said) = (Vec::new(), Vec::new());
    let mut least_ns = u64::MAX;
    let begun = Instant::now();
    let mut session = visitor.open(&visitor.dial())?;
    while samples.len() < SAMPLES && (samples.len() < SAMPLES_MIN || begun.elapsed() < LONGEST) {
        session.keep_open()?;
        let response = session.exchange(&visitor.get(url, &[]))?;
        least_ns = least_ns.min(session.record().round_trip_ns());
        samples.push((response.sent, response.head));
        said.extend(response.field("server-timing").and_then(longest_entry));
    }
    let round_trip_ms = ms(0, least_ns);
    let beyond = |took_ms: f64| (took_ms - round_trip_ms).max(0.0);
    let took_ms = visitor.valid_ms(&samples).into_iter();
    Ok(Figures {
        url: url.to_string(),
        waits_ms: took_ms.map(beyond).collect(),
        said,
        round_trip_ms,
    })
}

/// Requests of which the median is taken.
const SAMPLES: usize = 11;
/// The least of them that have an interval, where the server is so slow that more take too long.
const SAMPLES_MIN: usize = 6;
/// How long more than that are waited for.
const LONGEST: Duration = Duration::from_secs(10);
