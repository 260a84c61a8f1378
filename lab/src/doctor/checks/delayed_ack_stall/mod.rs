//! `delayed-ack-stall`: the server holds the end of a response until the client acknowledges its beginning.
//!
//! A sweep requests bodies of 100 to 5,000 bytes, with gzip and without, as each of the first four requests of a connection.
//! The client's acknowledgements are held as long as usual receivers do. Each body is also requested without a hold, and a
//! response is late if it takes longer than that by the cost of a held acknowledgement. A late response is requested twice
//! more, then at the shorter hold. A cell (body, coding, place) stalls if all of its samples are late. A slow server is not
//! reported as a stall, since it is slow without holds, too.
//!
//! Source: RFC 896 (Nagle), RFC 1122 section 4.2.3.2 (delayed acknowledgements).

mod bodies;
mod edge;
mod sweep;
mod walk;

use crate::doctor::judge::Facts;
use crate::doctor::judge::stall::judge;
use crate::doctor::judge::stall::sweep::{Sweep, SweepFacts};
use crate::doctor::{Examination, Failure, Finding};

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let subjects = bodies::gather(x)?;
    if subjects.is_empty() {
        return Err(Failure::no_body(
            *bodies::BYTES.start() as u64..=*bodies::BYTES.end() as u64,
        ));
    }
    let mut sweep = Sweep::new(subjects, x);
    sweep.screen(x)?;
    if sweep.verdict().suspects().is_empty() {
        sweep.measure(x);
        return Ok(Vec::new());
    }
    sweep.confirm(x)?;
    let edges = match sweep.verdict().stalled().is_empty() {
        true => Vec::new(),
        false => edge::find(x, &sweep)?,
    };
    sweep.measure(x);
    let server = x.first.response.field("server").unwrap_or_default();
    let facts = SweepFacts {
        sweep: &sweep,
        edges: &edges,
        round_trip_ms: x.round_trip_ms(),
        server,
    };
    Ok(x.with_command(judge(Facts::Server(&facts))))
}
