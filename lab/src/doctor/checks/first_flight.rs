//! chain-over-window, no-certificate-compression: whether the server's first flight fits into TCP's initial window.
//!
//! Source: RFC 8446 section 4.4.2, RFC 8879, RFC 6928.

use std::io::Write;

use serde_json::{Value, json};

use super::handshake::Version;
use crate::doctor::chain::{self, Needless};
use crate::doctor::slow_start::{
    INITIAL_WINDOW_BYTES, SEGMENT_BYTES, further_round_trips, over_window,
};
use crate::doctor::{Code, Finding, Severity};
use crate::stats::Estimate;

/// How a client asks for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// TLS 1.3, and takes compressed certificates, as browsers do.
    Compressed,
    /// TLS 1.3 without compression.
    Tls13,
    /// TLS 1.2, which has no compression.
    Tls12,
}

impl Asked {
    pub(super) const fn version(self) -> Version {
        match self {
            Self::Compressed | Self::Tls13 => Version::Tls13,
            Self::Tls12 => Version::Tls12,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Compressed => "TLS 1.3, compression offered",
            Self::Tls13 => "TLS 1.3",
            Self::Tls12 => "TLS 1.2",
        }
    }

    /// As in the evidence.
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::Compressed => "tls1.3_compressed",
            Self::Tls13 => "tls1.3",
            Self::Tls12 => "tls1.2",
        }
    }
}

/// The server's flight of a full handshake until it waits for the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flight {
    pub(super) asked: Asked,
    /// Its bytes with the heads of records.
    pub(super) bytes: u64,
    /// Round trips of the handshake, where the link has a delay by which they can be counted.
    pub(super) round_trips: Option<Estimate>,
}

/// Full handshakes of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// In the order of what most clients ask for; those of versions that the server does not speak are not there.
    pub(super) flights: Vec<Flight>,
    /// DER, the server's own first.
    pub(super) certificates: Vec<Vec<u8>>,
    /// The least round trip.
    pub(super) round_trip_ms: f64,
    /// The server as `openssl s_client` takes it: host and port, and its name.
    pub(super) server: (String, String),
}

impl Figures {
    fn flight(&self, asked: Asked) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.asked == asked)
    }

    /// Whether the server compresses certificates for those that take it.
    fn is_compressed(&self) -> bool {
        let (Some(compressed), Some(plain)) =
            (self.flight(Asked::Compressed), self.flight(Asked::Tls13))
        else {
            return false;
        };
        compressed.bytes + SAME_BYTES < plain.bytes
    }

    fn test(&self) -> String {
        let (server, name) = &self.server;
        format!("openssl s_client -connect {server} -servername {name} -showcerts </dev/null")
    }

    pub(super) fn measured(&self) -> Value {
        let flights = self.flights.iter().map(|flight| {
            let figures = json!({
                "first_flight_bytes": flight.bytes,
                "over_window_bytes": over_window(flight.bytes),
                "round_trips": flight.round_trips.map(|trips| trips.value),
            });
            (flight.asked.member().to_owned(), figures)
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

/// chain-over-window: bad where the flight of most clients does not fit, since each new visitor waits for one more round trip;
/// warned of where it is that of clients of TLS 1.2 or without compression alone.
pub(super) fn judge_window(figures: &Figures) -> Option<Finding> {
    let most = figures.flights.first()?;
    let over = |flight: &&Flight| over_window(flight.bytes) > 0;
    let worst = Some(most)
        .filter(over)
        .or(figures.flights.iter().find(over))?;
    let severity = match worst.asked == most.asked {
        true => Severity::Bad,
        false => Severity::Warn,
    };
    let further = further_round_trips(worst.bytes);
    let chain = chain::read(&figures.certificates);
    let needless = chain::needless(&chain);
    let saved: u64 = needless.iter().map(|one| chain[one.place].bytes).sum();
    let title = format!(
        "The server's first flight ({}) has {} bytes, {} above the initial window of {INITIAL_WINDOW_BYTES}",
        worst.asked.name(),
        worst.bytes,
        over_window(worst.bytes),
    );
    let mut found = Finding::new(Code::ChainOverWindow, severity, title)
        .costs(
            f64::from(further) * figures.round_trip_ms,
            f64::from(further),
        )
        .proof("handshakes", figures.measured()["handshakes"].clone())
        .proof("segment_bytes", SEGMENT_BYTES)
        .proof("initial_window_bytes", INITIAL_WINDOW_BYTES)
        .proof("certificates", listed(&chain, &needless));
    for line in chain::mends(&chain, &needless) {
        found = found.mend(line);
    }
    if over_window(worst.bytes.saturating_sub(saved)) > 0 {
        found = found.mend(chain::SMALLER);
    }
    if !figures.is_compressed() {
        found = found.mend(chain::COMPRESS_NGINX).mend(chain::COMPRESS_OURS);
    }
    Some(found.mend(figures.test()))
}

fn listed(chain: &[chain::Entry], needless: &[Needless]) -> Vec<Value> {
    let one = |(place, entry): (usize, &chain::Entry)| {
        let why = needless.iter().find(|one| one.place == place);
        json!({
            "subject": chain::shown(&entry.subject),
            "issuer": chain::shown(&entry.issuer),
            "bytes": entry.bytes,
            "needless": why.map(|one| one.why),
        })
    };
    chain.iter().enumerate().map(one).collect()
}

/// no-certificate-compression: a note, and warned of where the flight is over the window and would not be.
pub(super) fn judge_compression(figures: &Figures) -> Option<Finding> {
    let offered = figures.flight(Asked::Compressed)?;
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
    let title = format!(
        "Certificates are sent uncompressed: brotli would make the first flight {left} bytes of {}",
        offered.bytes
    );
    let found = Finding::new(Code::NoCertificateCompression, severity, title)
        .costs(f64::from(trips) * figures.round_trip_ms, f64::from(trips))
        .proof("first_flight_bytes", offered.bytes)
        .proof("certificate_bytes", plain)
        .proof("saving_bytes", saving)
        .proof("first_flight_bytes_compressed", left)
        .proof("initial_window_bytes", INITIAL_WINDOW_BYTES)
        .mend(chain::COMPRESS_NGINX)
        .mend(chain::COMPRESS_OURS)
        .mend("firstbyte doctor has first_flight_bytes of tls1.3_compressed below those of tls1.3 then");
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

/// Below that a note is not worth its line: a third of a segment.
const SAVING_BYTES_MIN: u64 = SEGMENT_BYTES / 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(flights: &[(Asked, u64)]) -> Figures {
        let flight = |(asked, bytes): &(Asked, u64)| Flight {
            asked: *asked,
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
        let fits = figures(&[(Asked::Tls13, WINDOW), (Asked::Tls12, WINDOW)]);
        assert_eq!(judge_window(&fits), None);
        let over = judge_window(&figures(&[(Asked::Tls13, WINDOW + 1)])).expect("it is over");
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
            (Asked::Compressed, 4000),
            (Asked::Tls13, WINDOW + 500),
            (Asked::Tls12, WINDOW + 400),
        ];
        let found = judge_window(&figures(&flights)).expect("it is over");
        assert_eq!(found.severity, Severity::Warn);
        assert!(found.title.contains("(TLS 1.3)"), "{}", found.title);
        assert!(
            !found
                .mend
                .iter()
                .any(|line| line.contains("compression on"))
        );
    }

    #[test]
    fn three_windows_more_cost_two_round_trips() {
        let found = judge_window(&figures(&[(Asked::Tls12, 3 * WINDOW + 1)])).expect("it is over");
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
            (Asked::Compressed, WINDOW + 900),
            (Asked::Tls13, WINDOW + 900),
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
        let mut fits = figures(&[(Asked::Compressed, 4000), (Asked::Tls13, 4000)]);
        fits.certificates = vec![half_random(3000)];
        let found = judge_compression(&fits).expect("it is uncompressed");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Note, 0.0)
        );
        fits.certificates = vec![half_random(600)];
        assert_eq!(judge_compression(&fits), None, "it would save too little");
        assert_eq!(judge_compression(&figures(&[(Asked::Tls12, 4000)])), None);
    }
}
