//! slow-dns, slow-connect: lookups of the target's name, and connections without a request.

use crate::client::Protocol;
use crate::doctor::figures::{in_ms, ms};
use crate::doctor::judge::Facts;
use crate::doctor::judge::connect::{Connects, LOOKUPS, Lookups, judge_connects, judge_lookups};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};
use crate::fetch;

/// Looks up the name, and opens connections.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    // An address needs no lookup.
    if !x.plan.url.is_address() {
        let lookups = lookups(x)?;
        x.measure("lookup", lookups.measured());
        findings.extend(judge_lookups(&lookups));
    }
    let connects = x.visit(NetworkPath::Direct, connects)??;
    x.measure("connect", connects.measured());
    findings.extend(judge_connects(Facts::Server(&connects)));
    Ok(findings)
}

fn lookups(x: &Examination<'_>) -> Result<Lookups, Failure> {
    // `x.lookup` was the first lookup; the resolver may answer later ones from its cache.
    let mut took_ms = vec![in_ms(x.lookup.took)];
    while took_ms.len() < LOOKUPS {
        let again = fetch::resolve(&x.plan.url, x.plan.timeout)?;
        took_ms.push(in_ms(again.took));
    }
    Ok(Lookups {
        host: x.plan.url.host.clone(),
        took_ms,
        addresses: x.lookup.addresses.len(),
    })
}

pub(in crate::doctor) fn connects(visitor: &Visitor<'_>) -> Result<Connects, Failure> {
    let mut dial = visitor.dial();
    dial.tls = None;
    dial.protocols = vec![Protocol::H1];
    let (mut samples, mut least_ns) = (Vec::new(), u64::MAX);
    for _ in 0..CONNECTS {
        let session = visitor.open(&dial)?;
        let record = session.record();
        samples.push(record.opened);
        least_ns = least_ns
            .min(record.round_trip_ns())
            .min(record.connect_ns());
    }
    Ok(Connects {
        took_ms: visitor.valid_ms(&samples),
        round_trip_ms: ms(0, least_ns),
    })
}

/// Number of connections.
const CONNECTS: usize = 7;
