//! Full handshakes of each version, measured once for chain-over-window, no-certificate-compression and
//! handshake-round-trips.

use rustls::ProtocolVersion;
use serde_json::{Map, Value};

use crate::doctor::command::server_name;
use crate::doctor::figures::ms;
use crate::doctor::judge::Facts;
use crate::doctor::judge::first_flight::{self, Flight, Offer};
use crate::doctor::judge::handshake::{self, ROUND_TRIP_MS_MIN, Version};
use crate::doctor::judge::sample::median;
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};
use crate::fetch::{ConnectionRecord, Handshake, Versions};
use crate::stats::Estimate;

/// Handshakes of one kind.
struct Series {
    offer: Offer,
    retried: bool,
    /// The most bytes of the server's first flight.
    flight_bytes: u64,
    certificates: Vec<Vec<u8>>,
    /// Durations of handshakes with a valid network path, ms.
    took_ms: Vec<f64>,
    /// Duration without the link's delay, ms: computation and CPU waits of both ends. `None` without a link.
    computed_ms: Option<Estimate>,
    /// The kernel's least round trip.
    round_trip_ms: f64,
}

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    if !x.plan.url.tls {
        return Ok(Vec::new());
    }
    let spoken = spoken(x);
    let kinds: &[Offer] = match spoken.contains(&Version::Tls13) {
        true => &[Offer::Compressed, Offer::Tls13, Offer::Tls12],
        false => &[Offer::Tls12],
    };
    let mut all = Vec::new();
    for offer in kinds {
        let found = x.visit(NetworkPath::Delayed(None), |visitor| {
            series(visitor, *offer)
        })?;
        match found {
            Ok(mut found) => {
                if x.network.round_trip().is_some() {
                    let near =
                        x.visit(NetworkPath::Direct, |visitor| series(visitor, *offer))??;
                    found.computed_ms = median(&near.took_ms);
                }
                all.push(found);
            }
            // A server with TLS 1.3 need not support 1.2.
            Err(Failure::Fetch(_)) if *offer == Offer::Tls12 && !all.is_empty() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(analyze(x, all, &spoken))
}

fn analyze(x: &mut Examination<'_>, all: Vec<Series>, spoken: &[Version]) -> Vec<Finding> {
    // One minimum for all kinds: a kind with a slightly late minimum would seem to need fewer round trips.
    let least_ms = all.iter().map(|series| series.round_trip_ms);
    let round_trip_ms = least_ms.fold(f64::INFINITY, f64::min);
    if round_trip_ms < ROUND_TRIP_MS_MIN {
        let why = Failure::short_round_trip(round_trip_ms);
        x.cannot_judge(NAME, format!("{NAME}: no verdict by time: {why}"));
    }
    let flights = all.iter().map(|series| Flight {
        offer: series.offer,
        bytes: series.flight_bytes,
        round_trips: trips(series, round_trip_ms),
    });
    let figures = first_flight::Figures {
        flights: flights.collect(),
        certificates: all
            .first()
            .map(|series| series.certificates.clone())
            .unwrap_or_default(),
        round_trip_ms,
        server: server_name(&x.plan.url),
    };
    let mut findings: Vec<Finding> = [
        first_flight::judge_window(Facts::Server(&figures)),
        first_flight::judge_compression(&figures),
        handshake::judge_versions(spoken, round_trip_ms),
    ]
    .into_iter()
    .flatten()
    .collect();
    let handshakes: Vec<handshake::Figures> = all
        .iter()
        .filter(|series| series.offer != Offer::Tls13)
        .map(|series| handshake::Figures {
            version: series.offer.version(),
            is_preferred: Some(&series.offer.version()) == spoken.first(),
            retried: series.retried,
            round_trips: trips(series, round_trip_ms),
            flight_bytes: series.flight_bytes,
            computed_ms: series.computed_ms,
            round_trip_ms,
        })
        .collect();
    let judged = handshakes
        .iter()
        .map(|one| handshake::judge(Facts::Server(one)));
    findings.extend(judged.flatten());
    x.measure("tls", figures.measured());
    let by_version = handshakes
        .iter()
        .map(|one| (one.version.name().to_owned(), one.measured()));
    x.measure(
        "handshake_round_trips",
        Value::Object(by_version.collect::<Map<_, _>>()),
    );
    findings
}

/// Round trips of a series by time, less the time of handshakes without a delay; `None` below [`ROUND_TRIP_MS_MIN`].
fn trips(series: &Series, round_trip_ms: f64) -> Option<Estimate> {
    let took = median(&series.took_ms).filter(|_| round_trip_ms >= ROUND_TRIP_MS_MIN)?;
    let zero = Estimate {
        value: 0.0,
        low: 0.0,
        high: 0.0,
        n: took.n,
    };
    let computed = series.computed_ms.unwrap_or(zero);
    let trips = |took: f64, computed: f64| (took - computed).max(0.0) / round_trip_ms;
    Some(Estimate {
        value: trips(took.value, computed.value),
        // Ends that hold for any value of the other median within its interval.
        low: trips(took.low, computed.high),
        high: trips(took.high, computed.low),
        n: took.n,
    })
}

/// Versions of the target, the preferred one first: a client that speaks both gets 1.3 if the server has it.
pub(super) fn spoken(x: &Examination<'_>) -> Vec<Version> {
    let first = x.first.record.handshake.as_ref();
    match first.map(|handshake| handshake.version) {
        Some(ProtocolVersion::TLSv1_3) => vec![Version::Tls13, Version::Tls12],
        Some(_) => vec![Version::Tls12],
        None => Vec::new(),
    }
}

/// The offer of a client that speaks one version alone.
pub(super) const fn alone(version: Version) -> Versions {
    match version {
        Version::Tls12 => Versions::Tls12,
        Version::Tls13 => Versions::Tls13,
    }
}

fn series(visitor: &Visitor<'_>, offer: Offer) -> Result<Series, Failure> {
    let mut dial = visitor.dial();
    if let Some(tls) = &mut dial.tls {
        tls.versions = alone(offer.version());
        tls.certificate_compression = offer == Offer::Compressed;
    }
    let mut found = Series {
        offer,
        retried: false,
        flight_bytes: 0,
        certificates: Vec::new(),
        took_ms: Vec::new(),
        computed_ms: None,
        round_trip_ms: f64::INFINITY,
    };
    let mut samples = Vec::new();
    let one = |_| Ok::<_, Failure>(visitor.open(&dial)?.record().clone());
    // Over a delay, handshakes run at the same time. Without one they run in turn, since they would wait for each other's work.
    let records = match visitor.network_path {
        NetworkPath::Delayed(_) => visitor.rounds(SAMPLES, one)?,
        NetworkPath::Direct => (0..SAMPLES).map(one).collect::<Result<_, _>>()?,
    };
    for record in &records {
        let Some(handshake) = &record.handshake else {
            continue;
        };
        samples.push((handshake.from, handshake.to));
        found.retried |= handshake.retried;
        found.flight_bytes = found
            .flight_bytes
            .max(first_flight_bytes(record, handshake));
        found.certificates.clone_from(&handshake.certificates);
        found.round_trip_ms = found.round_trip_ms.min(ms(0, record.round_trip_ns()));
    }
    found.took_ms = visitor.valid_ms(&samples);
    Ok(found)
}

/// Returns the bytes that the server sent before it waited for the client. In TLS 1.3 these are all bytes of the handshake. In
/// TLS 1.2 they end before the second flight, which begins with the ticket and change_cipher_spec.
fn first_flight_bytes(record: &ConnectionRecord, handshake: &Handshake) -> u64 {
    let records = &record.tls_records;
    let is_old = handshake.version == ProtocolVersion::TLSv1_2;
    let change = records
        .iter()
        .position(|one| one.content_type == CHANGE_CIPHER_SPEC);
    let Some(change) = change.filter(|_| is_old) else {
        return handshake.received_bytes;
    };
    let second = records[change].at;
    let first = records[..change].iter().filter(|one| one.at < second);
    first.map(|one| one.bytes).sum()
}

/// The check's name in progress and notes.
pub(super) const NAME: &str = "handshakes";
/// Handshakes of each kind. From nine on, the median's interval excludes one late sample at each end.
const SAMPLES: usize = 9;

/// A type of records (RFC 5246 section 6.2.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
