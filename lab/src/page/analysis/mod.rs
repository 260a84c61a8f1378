//! Analysis of a visit: the parts of each wait, stalls, the staircase of starts, connections, sums, the critical path.
//!
//! Pure functions of a [`Visit`]: equal visits have equal analyses, whether a browser, the clients of this crate or a
//! HAR file is the source. A figure that the visit lacks is absent from the analysis; nothing is estimated.
//!
//! Source: docs/waterfall.md.

mod connections;
mod critical;
mod staircase;
mod stalls;
mod sums;
mod wait;

use super::visit::Visit;

use connections::connections;
use critical::critical_path;
use staircase::staircase;
use stalls::stalls;
use sums::{by_host, by_protocol, total};
use wait::{RoundTrips, wait_parts};

pub use connections::ConnectionUse;
pub use staircase::{Staircase, Step};
pub use stalls::{Stall, StallCause};
pub use sums::Sum;
pub use wait::WaitParts;

/// The analysis of a visit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// The parts of each resource's wait, in the order of [`Visit::resources`]; `None` for a resource without a wait.
    pub waits: Vec<Option<WaitParts>>,
    /// Pauses of responses, in the order of resources.
    pub stalls: Vec<Stall>,
    /// Starts that waited for the end of another resource.
    pub staircase: Staircase,
    /// Connections, in the order in which they were opened.
    pub connections: Vec<ConnectionUse>,
    /// Sums by protocol, the most requests first.
    pub by_protocol: Vec<Sum>,
    /// Sums by host, the most requests first.
    pub by_host: Vec<Sum>,
    /// Sum of all requests.
    pub total: Sum,
    /// Places of a chain of resources, each of which delayed the next one, up to the one that ended last.
    pub critical_path: Vec<usize>,
}

impl Analysis {
    /// Analyses a visit. Time is at most that of sorting all resources and all pieces.
    #[must_use]
    pub fn of(visit: &Visit) -> Self {
        let round_trips = RoundTrips::of(visit);
        let waits = visit.resources.iter();
        let staircase = staircase(visit);
        Self {
            waits: waits
                .map(|resource| wait_parts(resource, round_trips.to(resource)))
                .collect(),
            stalls: stalls(visit, &round_trips),
            connections: connections(visit),
            by_protocol: by_protocol(visit),
            by_host: by_host(visit),
            total: total(visit),
            critical_path: critical_path(visit, &staircase),
            staircase,
        }
    }
}
