//! no-compression, poor-compression: text as it is sent, and as it could be.
//!
//! Source: RFC 9110 sections 8.4 and 12.5.3.

use serde_json::{Map, Value, json};

use super::codings::{Coding, decoded};
use crate::doctor::command::quoted;
use crate::doctor::slow_start::{SEGMENT_BYTES, further_round_trips};
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::fetch::Response;

/// A response to a client that accepts all codings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) url: String,
    /// The type of its content, without parameters, in lower case.
    pub(super) mime_type: String,
    /// Its `Content-Encoding`; empty where there is none.
    pub(super) coding: String,
    /// Bytes as they were sent.
    pub(super) sent_bytes: u64,
    /// Bytes without the coding; `None` where it is not known or the body did not come whole.
    pub(super) plain_bytes: Option<u64>,
    /// Bytes of it under each coding, by our own compressors.
    pub(super) possible: Vec<(Coding, u64)>,
    pub(super) round_trip_ms: f64,
}

impl Figures {
    /// The coding that makes least of it.
    fn best(&self) -> Option<(Coding, u64)> {
        self.possible
            .iter()
            .copied()
            .min_by_key(|(_, bytes)| *bytes)
    }

    pub(super) fn measured(&self) -> Value {
        let possible: Map<String, Value> = self
            .possible
            .iter()
            .map(|(coding, bytes)| {
                (
                    format!("{}_level_{}", coding.name(), coding.level()),
                    (*bytes).into(),
                )
            })
            .collect();
        json!({
            "url": self.url,
            "type": self.mime_type,
            "coding": if self.coding.is_empty() { "identity" } else { &self.coding },
            "sent_bytes": self.sent_bytes,
            "plain_bytes": self.plain_bytes,
            "possible_bytes": possible,
        })
    }

    /// Round trips that a body of `bytes` would save.
    fn saves(&self, bytes: u64) -> u32 {
        further_round_trips(self.sent_bytes) - further_round_trips(bytes.min(self.sent_bytes))
    }
}

/// Asks for the target and the further URLs as a browser does.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let round_trip_ms = x.round_trip_ms();
    let all = x.visit(NetworkPath::Direct, |visitor| {
        responses(visitor, round_trip_ms)
    })??;
    let measured: Vec<Value> = all.iter().map(Figures::measured).collect();
    x.measure("compression", measured.clone());
    let worst = |judge: fn(&Figures) -> Option<Finding>| {
        let found = all
            .iter()
            .filter_map(|figures| Some((judge(figures)?, figures.sent_bytes)));
        let worst = found
            .max_by_key(|(found, bytes)| (found.severity, *bytes))?
            .0;
        // One finding of all URLs: what mends it is one directive.
        Some(worst.proof("responses", measured.clone()))
    };
    Ok([worst(judge_missing), worst(judge_poor)]
        .into_iter()
        .flatten()
        .collect())
}

fn responses(visitor: &Visitor<'_>, round_trip_ms: f64) -> Result<Vec<Figures>, Failure> {
    let mut all = Vec::new();
    let mut session = visitor.open(&visitor.dial())?;
    for url in visitor.plan().urls().take(URLS_MAX) {
        session.keep_open()?;
        let response = session.exchange(&visitor.get(url, &[("accept-encoding", ACCEPTED)]))?;
        if response.status == 200 {
            all.push(figures(url.to_string(), &response, round_trip_ms));
        }
    }
    Ok(all)
}

fn figures(url: String, response: &Response, round_trip_ms: f64) -> Figures {
    let value = |name| {
        response
            .field(name)
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    };
    let (mime_type, coding) = (value("content-type"), value("content-encoding"));
    let mime_type = mime_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    // Of a body that is too large to be kept a part is there, which is no measure.
    let is_there = response.body.len() as u64 == response.body_bytes;
    let plain = decoded(&response.body, &coding).filter(|_| is_there);
    let possible = match &plain {
        Some(plain) if is_text(&mime_type) => {
            let one = |coding: Coding| Some((coding, coding.bytes(plain)?));
            Coding::ALL.into_iter().filter_map(one).collect()
        }
        _ => Vec::new(),
    };
    // A type that is written into a command or a directive has no other characters (RFC 6838 section 4.2).
    let is_name = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    let mime_type = mime_type
        .chars()
        .filter(|c| is_name(*c))
        .take(NAME_CHARS_MAX)
        .collect();
    Figures {
        url,
        mime_type,
        coding: coding
            .chars()
            .filter(|c| is_name(*c))
            .take(NAME_CHARS_MAX)
            .collect(),
        sent_bytes: response.body_bytes,
        plain_bytes: plain.map(|plain| plain.len() as u64),
        possible,
        round_trip_ms,
    }
}

/// Characters of a type and of a coding that are shown.
const NAME_CHARS_MAX: usize = 127;

/// URLs that are looked at.
const URLS_MAX: usize = 8;

/// Whether content of a type is text that compresses.
pub(in crate::doctor) fn is_text(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || mime_type.ends_with("+xml")
        || mime_type.ends_with("+json")
        || TEXT_TYPES.contains(&mime_type)
}

/// no-compression: bad where it costs a round trip, warned of from [`WARN_BYTES`] on, else a note.
pub(super) fn judge_missing(figures: &Figures) -> Option<Finding> {
    let plain = matches!(figures.coding.as_str(), "" | "identity");
    if !plain || !is_text(&figures.mime_type) || figures.sent_bytes < PLAIN_BYTES_MIN {
        return None;
    }
    let (coding, bytes) = figures.best()?;
    if !is_worth(figures.sent_bytes, bytes, MISSING_SHARE) {
        return None;
    }
    let trips = figures.saves(bytes);
    let severity = match (trips, figures.sent_bytes.saturating_sub(bytes)) {
        (1.., _) => Severity::Bad,
        (0, WARN_BYTES..) => Severity::Warn,
        _ => Severity::Note,
    };
    let title = format!(
        "{} bytes of {} are sent uncompressed; {} at level {} makes them {bytes}",
        figures.sent_bytes,
        figures.mime_type,
        coding.name(),
        coding.level()
    );
    let on = |coding: &str| match figures.mime_type.as_str() {
        // It is compressed without being named, and named it is a duplicate.
        "text/html" => format!("{coding} on;"),
        other => format!("{coding} on; {coding}_types {other};"),
    };
    let [gzip, brotli, zstd] = ["gzip", "brotli", "zstd"].map(on);
    Some(
        finding(Code::NoCompression, severity, title, trips, figures)
            .mend(format!("nginx: {gzip} gzip_comp_level 6;"))
            .mend(format!("firstbyte: {brotli} {zstd} {gzip}"))
            .mend(test(figures)),
    )
}

/// poor-compression: warned of where it costs a round trip, else a note.
pub(super) fn judge_poor(figures: &Figures) -> Option<Finding> {
    if matches!(figures.coding.as_str(), "" | "identity") || !is_text(&figures.mime_type) {
        return None;
    }
    let (coding, bytes) = figures.best()?;
    if !is_worth(figures.sent_bytes, bytes, POOR_SHARE) {
        return None;
    }
    let trips = figures.saves(bytes);
    let severity = if trips > 0 {
        Severity::Warn
    } else {
        Severity::Note
    };
    let title = format!(
        "{} bytes of {} as {}; {} at level {} makes them {bytes}",
        figures.sent_bytes,
        figures.mime_type,
        figures.coding,
        coding.name(),
        coding.level()
    );
    let raised =
        "nginx: gzip_comp_level 6; or files that were compressed before, with gzip_static on;";
    let ours = "firstbyte: brotli on; brotli_comp_level 5; zstd on; zstd_comp_level 6; or brotli_static on; with files of firstbyte freeze";
    Some(
        finding(Code::PoorCompression, severity, title, trips, figures)
            .mend(raised)
            .mend(ours)
            .mend(test(figures)),
    )
}

fn finding(
    code: Code,
    severity: Severity,
    title: String,
    trips: u32,
    figures: &Figures,
) -> Finding {
    Finding::new(code, severity, title)
        .costs(f64::from(trips) * figures.round_trip_ms, f64::from(trips))
        .proof("response", figures.measured())
        .proof("round_trips_saved", trips)
}

fn test(figures: &Figures) -> String {
    format!(
        "curl -s -o /dev/null -H 'Accept-Encoding: {ACCEPTED}' -w '%{{size_download}}\\n' {}",
        quoted(&figures.url)
    )
}

/// Whether fewer bytes are worth changing something.
fn is_worth(sent: u64, possible: u64, share: f64) -> bool {
    let saved = sent.saturating_sub(possible);
    saved >= SAVED_BYTES_MIN && saved as f64 >= share * sent as f64
}

/// The `Accept-Encoding` of a browser.
pub(super) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Text below one segment takes a packet, compressed or not.
const PLAIN_BYTES_MIN: u64 = SEGMENT_BYTES;

/// A saving below one segment takes no packet less.
const SAVED_BYTES_MIN: u64 = SEGMENT_BYTES;

/// Bytes that take 8 ms at 10 mbit, where they cost no round trip.
const WARN_BYTES: u64 = 10_000;

/// The share of its bytes that text must lose by compression: what is already packed loses next to nothing.
const MISSING_SHARE: f64 = 0.1;

/// The share that another coding or level must save: gzip at level 1, which a server may choose to save its processor, is 12 %
/// above level 6 in the median of 88 documents.
const POOR_SHARE: f64 = 0.2;

/// Types besides those that say text themselves, of what pages are made of: scripts, data, and fonts and pictures in forms that
/// are not packed.
const TEXT_TYPES: [&str; 12] = [
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/json",
    "application/xml",
    "application/manifest",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "font/ttf",
    "font/otf",
    "image/bmp",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::slow_start::INITIAL_WINDOW_BYTES;

    fn figures(coding: &str, sent_bytes: u64, best: u64) -> Figures {
        Figures {
            url: "http://h/a'b".to_owned(),
            mime_type: "text/css".to_owned(),
            coding: coding.to_owned(),
            sent_bytes,
            plain_bytes: Some(sent_bytes),
            possible: vec![(Coding::Gzip, best + 1), (Coding::Brotli, best)],
            round_trip_ms: 30.0,
        }
    }

    #[test]
    fn text_that_is_sent_as_it_is_is_found() {
        let found = judge_missing(&figures("", 5000, 1000)).expect("it is uncompressed");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Note, 0.0)
        );
        let judged = |best| judge_missing(&figures("", 14_000, best)).map(|one| one.severity);
        assert_eq!(judged(4000), Some(Severity::Warn));
        assert_eq!(judged(4001), Some(Severity::Note));
        assert!(found.title.contains("br at level 5"), "{}", found.title);
        assert_eq!(
            found.mend[0],
            "nginx: gzip on; gzip_types text/css; gzip_comp_level 6;"
        );
        let page = Figures {
            mime_type: "text/html".to_owned(),
            ..figures("", 5000, 1000)
        };
        let found_page = judge_missing(&page).expect("it is uncompressed");
        assert_eq!(
            found_page.mend[1],
            "firstbyte: brotli on; zstd on; gzip on;"
        );
        let large = figures("identity", INITIAL_WINDOW_BYTES + 1, 4000);
        let found = judge_missing(&large).expect("it is uncompressed");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 30.0));
        assert!(
            found
                .mend
                .last()
                .is_some_and(|line| line.ends_with("'http://h/a'\\''b'"))
        );
    }

    #[test]
    fn what_is_small_or_packed_or_compressed_is_not_found() {
        assert_eq!(judge_missing(&figures("", PLAIN_BYTES_MIN - 1, 10)), None);
        assert_eq!(judge_missing(&figures("", 100_000, 95_000)), None);
        assert_eq!(judge_missing(&figures("gzip", 5000, 1000)), None);
        let picture = Figures {
            mime_type: "image/png".to_owned(),
            ..figures("", 5000, 1000)
        };
        assert_eq!(judge_missing(&picture), None);
        // Just at the limit, and one byte below.
        assert!(judge_missing(&figures("", 2000, 2000 - SAVED_BYTES_MIN)).is_some());
        assert!(judge_missing(&figures("", 2000, 2001 - SAVED_BYTES_MIN)).is_none());
    }

    #[test]
    fn coding_that_is_far_from_the_best_is_found() {
        let found = judge_poor(&figures("gzip", 20_000, 14_000)).expect("it is poor");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Warn, 1.0)
        );
        let found = judge_poor(&figures("gzip", 10_000, 8_000)).expect("it is poor");
        assert_eq!(found.severity, Severity::Note);
        assert_eq!(judge_poor(&figures("gzip", 10_000, 8_001)), None);
        assert_eq!(judge_poor(&figures("", 10_000, 2_000)), None);
        // Better than ours.
        assert_eq!(judge_poor(&figures("br", 10_000, 12_000)), None);
    }

    #[test]
    fn text_is_known_by_its_type() {
        for text in [
            "text/html",
            "image/svg+xml",
            "application/json",
            "application/ld+json",
        ] {
            assert!(is_text(text), "{text}");
        }
        for other in ["image/png", "", "application/zip", "font/woff2"] {
            assert!(!is_text(other), "{other}");
        }
    }
}
