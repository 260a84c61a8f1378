//! slow-server: requests for the target on an open connection.

use std::time::{Duration, Instant};

use crate::doctor::figures::ms;
use crate::doctor::judge::slow_server::{Figures, judge, longest_entry};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};

/// Requests the target repeatedly on an open connection.
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

/// Requests for the median.
const SAMPLES: usize = 11;
/// Requests to a server that exceeds [`LONGEST`]: the fewest with an interval.
const SAMPLES_MIN: usize = 6;
/// Limit of time for more than [`SAMPLES_MIN`] requests.
const LONGEST: Duration = Duration::from_secs(10);
