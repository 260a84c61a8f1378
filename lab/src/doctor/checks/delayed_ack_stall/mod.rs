//! `delayed-ack-stall`: the server keeps the end of a response until the client acknowledges the beginning.
//!
//! A sweep: bodies of 100 to 5,000 bytes, with gzip and without, as each of the first four requests of a connection, while the
//! client's acknowledgements are held for as long as receivers hold them. Each body is also requested while none is held, and
//! a response is late when it takes longer than that one by as much as an acknowledgement that is waited for costs. One that
//! was late is requested twice more, and then at the shorter hold: a cell (body, coding, place) stalls when all of its
//! samples are late. So a slow server is not said to stall: it is as slow without holds.
//!
//! Source: RFC 896 (Nagle), RFC 1122 section 4.2.3.2 (delayed acknowledgements).

mod bodies;
mod edge;
mod sweep;
mod walk;

use crate::doctor::judge::Facts;
use crate::doctor::judge::stall::judge;
use crate::doctor::judge::stall::sweep::{Sweep, Swept};
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
    let swept = Swept {
        sweep: &sweep,
        edges: &edges,
        round_trip_ms: x.round_trip_ms(),
        server,
    };
    Ok(x.with_command(judge(Facts::Server(&swept))))
}
