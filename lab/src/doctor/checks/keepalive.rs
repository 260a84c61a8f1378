//! no-keepalive: requests one after another on a connection.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::handshakes::spoken;
use crate::client::Protocol;
use crate::doctor::figures::ms;
use crate::doctor::judge::keepalive::{ASKED, Figures, judge};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};

/// Sends requests one after another on a connection of each protocol.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let of_tls = spoken(x).first().map_or(0, |version| version.needs());
    let mut protocols = vec![x.first.protocol];
    // An explicit `--protocol` excludes the other one.
    if x.plan.protocol.is_none() && !protocols.contains(&Protocol::H1) {
        protocols.push(Protocol::H1);
    }
    let round_trip_ms = x.round_trip_ms();
    let all = x.visit(NetworkPath::Direct, |visitor| {
        visitor.rounds(protocols.len(), |n| {
            let mut figures = requests(visitor, protocols[n])?;
            (figures.round_trips, figures.round_trip_ms) = (1 + of_tls, round_trip_ms);
            Ok(figures)
        })
    })??;
    let measured: Vec<Value> = all.iter().map(Figures::measured).collect();
    x.measure("keepalive", measured);
    let findings = all.iter().filter_map(judge);
    Ok(findings
        .max_by_key(|found| found.severity)
        .into_iter()
        .collect())
}

fn requests(visitor: &Visitor<'_>, protocol: Protocol) -> Result<Figures, Failure> {
    let url = &visitor.plan().url;
    let mut dial = visitor.dial();
    dial.protocols = vec![protocol];
    let mut session = visitor.open(&dial)?;
    let record = session.record();
    let ready = record
        .handshake
        .as_ref()
        .map_or(record.opened.1, |handshake| handshake.to);
    let mut figures = Figures {
        protocol,
        asked: ASKED,
        answered: 0,
        said_close: false,
        is_http10: false,
        round_trips: 0,
        round_trip_ms: 0.0,
        open_ms: ms(record.opened.0, ready),
        url: url.to_string(),
    };
    let begun = Instant::now();
    while figures.answered < figures.asked {
        if figures.answered > 0 && begun.elapsed() > LONGEST {
            // The connection is open after the time limit, so it counts as kept.
            figures.asked = figures.answered;
            break;
        }
        match session.exchange(&visitor.get(url, &[])) {
            Ok(response) => {
                figures.answered += 1;
                if response.status >= 400 {
                    // Servers close after errors, and may (RFC 9112 section 9.6).
                    figures.asked = figures.answered;
                    break;
                }
                figures.said_close = response.announces_close();
                figures.is_http10 = response.is_http10;
            }
            // A server may close while the request is on its way, which is no fault of either.
            Err(Failure::Fetch(_)) if session.record().closed.is_some() && figures.answered > 0 => {
                break;
            }
            Err(failure) => return Err(failure),
        }
        if !session.is_open() {
            break;
        }
    }
    Ok(figures)
}

/// Limit of time for the requests of one connection.
const LONGEST: Duration = Duration::from_secs(5);
