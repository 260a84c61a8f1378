//! chain-over-window, no-certificate-compression: whether the server's first flight fits into TCP's initial window.
//!
//! Source: RFC 8446 section 4.4.2, RFC 8879, RFC 6928.

use std::cmp::Reverse;
use std::io::Write;

use serde_json::{Value, json};

use super::handshake::Version;
use super::{Facts, Packets, count};
use crate::doctor::chain::{self, Needless};
use crate::doctor::code::{
    COMPRESS_NGINX, COMPRESS_OURS, SMALLER_CHAIN, chain_over_window, no_certificate_compression,
};
use crate::doctor::figures::milliseconds;
use crate::doctor::slow_start::{
    INITIAL_WINDOW_BYTES, SEGMENT_BYTES, further_round_trips, over_window,
};
use crate::doctor::{Finding, Severity};
use crate::stats::Estimate;

/// All that a server sends in a capture from its ServerHello to the client's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Bytes of payload.
    pub(crate) bytes: u64,
    /// Bytes before the first pause of a round trip.
    pub(crate) first_bytes: u64,
    /// Bytes of a first window.
    pub(crate) window: u64,
    /// One, and one more for each pause; `None` if the round trip is too short to see one, or something was sent twice.
    pub(crate) round_trips: Option<u64>,
    pub(crate) round_trip_ns: u64,
    pub(crate) connection: String,
    /// The first packet after the first pause.
    pub(crate) packet_behind: Option<u64>,
    pub(crate) last_packet: u64,
}

/// Capabilities that a client offers for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// TLS 1.3, and takes compressed certificates, as browsers do.
    Compressed,
    /// TLS 1.3 without compression.
    Tls13,
    /// TLS 1.2, which has no compression.
    Tls12,
}

impl Offer {
    pub(crate) const fn version(self) -> Version {
        match self {
            Self::Compressed | Self::Tls13 => Version::Tls13,
            Self::Tls12 => Version::Tls12,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Compressed => "TLS 1.3, compression offered",
            Self::Tls13 => "TLS 1.3",
            Self::Tls12 => "TLS 1.2",
        }
    }

    /// As in the evidence.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::Compressed => "tls1.3_compressed",
            Self::Tls13 => "tls1.3",
            Self::Tls12 => "tls1.2",
        }
    }
}

/// The server's flight of a full handshake until it waits for the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flight {
    pub(crate) offer: Offer,
    /// Its bytes with the heads of records.
    pub(crate) bytes: u64,
    /// Round trips of the handshake, if the link has a delay by which they can be counted.
    pub(crate) round_trips: Option<Estimate>,
}

/// Full handshakes of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Flights, those of most clients first, without versions that the server does not support.
    pub(crate) flights: Vec<Flight>,
    /// DER, the server's own first.
    pub(crate) certificates: Vec<Vec<u8>>,
    /// The least round trip.
    pub(crate) round_trip_ms: f64,
    /// The server as `openssl s_client` takes it: host and port, and its name.
    pub(crate) server: (String, String),
}

impl Figures {
    fn flight(&self, offer: Offer) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.offer == offer)
    }

    /// Whether the server compresses certificates for clients that accept it.
    fn is_compressed(&self) -> bool {
        let (Some(compressed), Some(plain)) =
            (self.flight(Offer::Compressed), self.flight(Offer::Tls13))
        else {
            return false;
        };
        compressed.bytes + SAME_BYTES < plain.bytes
    }

    pub(crate) fn measured(&self) -> Value {
        let flights = self.flights.iter().map(|flight| {
            let figures = json!({
                "first_flight_bytes": flight.bytes,
                "over_window_bytes": over_window(flight.bytes),
                "round_trips": flight.round_trips.map(|trips| trips.value),
            });
            (flight.offer.member().to_owned(), figures)
        });
        let all: u64 = self.certificates.iter().map(|der| der.len() as u64).sum();
        json!({
            "handshakes": Value::Object(flights.collect()),
            "certificates": self.certificates.len(),
            "certificate_bytes": all,
            "initial_window_bytes": INITIAL_WINDOW_BYTES,
            "certificates_compressed": self.is_compressed(),
        })
    }
}

/// chain-over-window: bad if the flight of most clients does not fit, since each new visitor waits for one more round trip. Warned
/// of if only clients of TLS 1.2 or without compression wait, or if a capture shows bytes and no pause.
pub(crate) fn judge_window(facts: Facts<'_, Figures, [Captured]>) -> Option<Finding> {
    match facts {
        Facts::Server(figures) => judge_server(figures),
        Facts::Packets(all) => judge_packets(all),
        Facts::Page(_) => None,
    }
}

fn judge_server(figures: &Figures) -> Option<Finding> {
    let most = figures.flights.first()?;
    let over = |flight: &&Flight| over_window(flight.bytes) > 0;
    let worst = Some(most)
        .filter(over)
        .or(figures.flights.iter().find(over))?;
    let severity = match worst.offer == most.offer {
        true => Severity::Bad,
        false => Severity::Warn,
    };
    let further = f64::from(further_round_trips(worst.bytes));
    let chain = chain::read(&figures.certificates);
    let needless = chain::needless(&chain);
    let (bytes, over, client) = (worst.bytes, over_window(worst.bytes), worst.offer.name());
    let (server, name) = &figures.server;
    let text = chain_over_window::server(client, bytes, over, INITIAL_WINDOW_BYTES, server, name);
    let found = Finding::of(text, severity)
        .costs(further * figures.round_trip_ms, further)
        .proof("handshakes", figures.measured()["handshakes"].clone())
        .proof("segment_bytes", SEGMENT_BYTES)
        .proof("initial_window_bytes", INITIAL_WINDOW_BYTES)
        .proof("certificates", listed(&chain, &needless));
    let fixes = fixes(&chain, &needless, bytes, figures.is_compressed());
    Some(found.fix_first(fixes))
}

/// chain-over-window of the certificates of a file, DER, the server's own first.
pub(crate) fn judge_file(certificates: &[Vec<u8>]) -> Option<Finding> {
    let chain = chain::read(certificates);
    let own: u64 = chain.iter().map(|one| one.bytes + ENTRY_BYTES).sum();
    let flight = own + REST_BYTES;
    let over = over_window(flight);
    if over == 0 {
        return None;
    }
    let names = chain
        .iter()
        .map(|one| format!("{}, {} bytes", chain::short_name(&one.subject), one.bytes));
    let text = chain_over_window::file(chain.len(), own, flight, over, INITIAL_WINDOW_BYTES);
    let found = Finding::of(text, Severity::Bad)
        .costs(0.0, f64::from(further_round_trips(flight)))
        .proof("certificate_bytes", own)
        .proof("flight_bytes_about", flight)
        .proof("bytes_over_window_about", over)
        .proof("certificates", names.collect::<Vec<_>>());
    Some(found.fix_first(fixes(&chain, &chain::needless(&chain), flight, false)))
}

/// Ways to shorten a flight.
fn fixes(
    chain: &[chain::Entry],
    needless: &[Needless],
    flight_bytes: u64,
    is_compressed: bool,
) -> Vec<String> {
    let mut lines = chain::fixes(chain, needless);
    let saved: u64 = needless.iter().map(|one| chain[one.place].bytes).sum();
    if over_window(flight_bytes.saturating_sub(saved)) > 0 {
        lines.push(SMALLER_CHAIN.to_owned());
    }
    if !is_compressed {
        lines.extend([COMPRESS_NGINX, COMPRESS_OURS].map(str::to_owned));
    }
    lines
}

fn judge_packets(all: &[Captured]) -> Option<Finding> {
    let extra = |one: &Captured| match one.round_trips {
        // A pause with little data before it is the server's own.
        Some(trips) if one.first_bytes >= one.window / 2 => trips - 1,
        Some(_) => 0,
        None => u64::from(one.bytes > one.window),
    };
    let over = all.iter().map(|one| (one, extra(one)));
    let mut over: Vec<_> = over.filter(|(_, extra)| *extra > 0).collect();
    over.sort_by_key(|(one, extra)| Reverse((*extra, one.bytes)));
    let (worst, extra) = over.first().copied()?;
    let first = match worst.round_trips {
        Some(_) => worst.first_bytes,
        None => worst.window,
    };
    let severity = match worst.round_trips {
        Some(_) => Severity::Bad,
        // The rule counts bytes here; the server's window may be larger.
        None => Severity::Warn,
    };
    let (connection, last) = (worst.connection.clone(), worst.last_packet);
    let packets = Packets {
        connection,
        first: worst.packet_behind.unwrap_or(last),
        last,
    };
    let trips = count(extra as usize, "round trip");
    let text = chain_over_window::capture(worst.bytes, first, over.len(), all.len(), trips);
    let cost_ms = milliseconds(worst.round_trip_ns.saturating_mul(extra));
    let found = Finding::of(text, severity)
        .costs(cost_ms, extra as f64)
        .proof("flight_bytes", worst.bytes)
        .proof("first_bytes", first)
        .proof("bytes_over_window", worst.bytes.saturating_sub(first))
        .proof("packets", packets.to_string())
        .proof("is_pause_seen", worst.round_trips.is_some())
        .proof("round_trip_ms", milliseconds(worst.round_trip_ns));
    Some(found.examples(over.iter().map(|(flight, extra)| {
        json!({
            "connection": flight.connection,
            "flight_bytes": flight.bytes,
            "extra_round_trips": extra,
            "packet_behind_the_window": flight.packet_behind,
            "last_packet": flight.last_packet,
        })
    })))
}

fn listed(chain: &[chain::Entry], needless: &[Needless]) -> Vec<Value> {
    let one = |(place, entry): (usize, &chain::Entry)| {
        let why = needless.iter().find(|one| one.place == place);
        json!({
            "subject": chain::short_name(&entry.subject),
            "issuer": chain::short_name(&entry.issuer),
            "bytes": entry.bytes,
            "needless": why.map(|one| one.why),
        })
    };
    chain.iter().enumerate().map(one).collect()
}

/// no-certificate-compression: a note, and warned of if compression would save a round trip.
pub(crate) fn judge_compression(figures: &Figures) -> Option<Finding> {
    let offered = figures.flight(Offer::Compressed)?;
    if figures.is_compressed() {
        return None;
    }
    let plain: u64 = figures
        .certificates
        .iter()
        .map(|der| der.len() as u64)
        .sum();
    let saving = plain.saturating_sub(compressed_bytes(&figures.certificates)?);
    let left = offered.bytes.saturating_sub(saving);
    let trips = further_round_trips(offered.bytes) - further_round_trips(left);
    let severity = match (trips, saving) {
        (1.., _) => Severity::Warn,
        (0, SAVING_BYTES_MIN..) => Severity::Note,
        _ => return None,
    };
    let text = no_certificate_compression::server(left, offered.bytes);
    let found = Finding::of(text, severity)
        .costs(f64::from(trips) * figures.round_trip_ms, f64::from(trips))
        .proof("first_flight_bytes", offered.bytes)
        .proof("certificate_bytes", plain)
        .proof("saving_bytes", saving)
        .proof("first_flight_bytes_compressed", left)
        .proof("initial_window_bytes", INITIAL_WINDOW_BYTES);
    Some(found)
}

/// Bytes of these certificates as one message compressed by brotli at the quality that servers use while a client waits.
fn compressed_bytes(certificates: &[Vec<u8>]) -> Option<u64> {
    let bytes = certificates.concat();
    let mut encoder = brotlic::CompressorWriter::new(Vec::new());
    encoder.write_all(&bytes).ok()?;
    encoder.into_inner().ok().map(|out| out.len() as u64)
}

/// The most by which flights of one chain differ: signatures of ECDSA and RSA-PSS keep their length within a few bytes, tickets and
/// extensions within some tens. A compressed chain is shorter by hundreds.
const SAME_BYTES: u64 = 100;

/// The length and the extensions of a certificate in its message.
pub(crate) const ENTRY_BYTES: u64 = 5;
/// The rest of the flight in TLS 1.3: ServerHello, extensions, a signature of RSA with 2048 bits, Finished, heads of records.
pub(crate) const REST_BYTES: u64 = 600;

/// Least saving for a note: a third of a segment.
const SAVING_BYTES_MIN: u64 = SEGMENT_BYTES / 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(flights: &[(Offer, u64)]) -> Figures {
        let flight = |(offer, bytes): &(Offer, u64)| Flight {
            offer: *offer,
            bytes: *bytes,
            round_trips: None,
        };
        Figures {
            flights: flights.iter().map(flight).collect(),
            certificates: Vec::new(),
            round_trip_ms: 50.0,
            server: ("localhost:443".to_owned(), "localhost".to_owned()),
        }
    }

    const WINDOW: u64 = INITIAL_WINDOW_BYTES;

    #[test]
    fn flight_that_just_fits_is_not_found_and_one_byte_more_is() {
        let fits = figures(&[(Offer::Tls13, WINDOW), (Offer::Tls12, WINDOW)]);
        assert_eq!(judge_server(&fits), None);
        let over = judge_server(&figures(&[(Offer::Tls13, WINDOW + 1)])).expect("it is over");
        assert_eq!((over.lost_ms, over.lost_round_trips), (50.0, 1.0));
        assert_eq!(over.severity, Severity::Bad);
        assert_eq!(
            over.evidence["handshakes"]["tls1.3"]["over_window_bytes"],
            1
        );
    }

    #[test]
    fn clients_that_few_have_are_warned_of() {
        let flights = [
            (Offer::Compressed, 4000),
            (Offer::Tls13, WINDOW + 500),
            (Offer::Tls12, WINDOW + 400),
        ];
        let found = judge_server(&figures(&flights)).expect("it is over");
        assert_eq!(found.severity, Severity::Warn);
        assert!(found.title.contains("(TLS 1.3)"), "{}", found.title);
        assert!(
            !found
                .fixes
                .iter()
                .any(|line| line.contains("compression on"))
        );
    }

    #[test]
    fn three_windows_more_cost_two_round_trips() {
        let found = judge_server(&figures(&[(Offer::Tls12, 3 * WINDOW + 1)])).expect("it is over");
        assert_eq!(found.lost_round_trips, 2.0);
        assert_eq!(found.severity, Severity::Bad);
    }

    /// Bytes that compress well, and as many that do not.
    fn half_random(len: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(3);
        let random = (0..len / 2).map(|_| random.u8(..));
        std::iter::repeat_n(7, len / 2).chain(random).collect()
    }

    #[test]
    fn compression_that_saves_a_round_trip_is_warned_of() {
        let mut over = figures(&[
            (Offer::Compressed, WINDOW + 900),
            (Offer::Tls13, WINDOW + 900),
        ]);
        over.certificates = vec![half_random(14_000)];
        let found = judge_compression(&over).expect("it is uncompressed");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Warn, 1.0)
        );
        over.flights[0].bytes = 4000;
        assert_eq!(judge_compression(&over), None, "it is compressed");
    }

    #[test]
    fn compression_that_saves_bytes_alone_is_a_note() {
        let mut fits = figures(&[(Offer::Compressed, 4000), (Offer::Tls13, 4000)]);
        fits.certificates = vec![half_random(3000)];
        let found = judge_compression(&fits).expect("it is uncompressed");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Note, 0.0)
        );
        fits.certificates = vec![half_random(600)];
        assert_eq!(judge_compression(&fits), None, "it would save too little");
        assert_eq!(judge_compression(&figures(&[(Offer::Tls12, 4000)])), None);
    }
}
