//! no-compression, poor-compression: text as it is sent, and as it could be.
//!
//! Source: RFC 9110 sections 8.4 and 12.5.3.

use serde_json::{Map, Value, json};

use super::{Case, count, of_page};
use crate::doctor::code::{Text, no_compression, poor_compression};
use crate::doctor::codings::Coding;
use crate::doctor::command::quoted;
use crate::doctor::slow_start::{SEGMENT_BYTES, further_round_trips};
use crate::doctor::{Finding, Severity};

/// A response to a client that accepts all codings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) url: String,
    /// The type of its content, without parameters, in lower case.
    pub(crate) mime_type: String,
    /// Its `Content-Encoding`; empty without one.
    pub(crate) coding: String,
    /// Bytes as they were sent.
    pub(crate) sent_bytes: u64,
    /// Bytes without the coding; `None` for an unknown coding or a part of a body.
    pub(crate) plain_bytes: Option<u64>,
    /// Bytes of it under each coding, by our own compressors.
    pub(crate) possible: Vec<(Coding, u64)>,
    pub(crate) round_trip_ms: f64,
}

impl Figures {
    fn is_coded(&self) -> bool {
        !matches!(self.coding.as_str(), "" | "identity")
    }

    /// The coding that makes least of it.
    fn best(&self) -> Option<(Coding, u64)> {
        self.possible
            .iter()
            .copied()
            .min_by_key(|(_, bytes)| *bytes)
    }

    pub(crate) fn measured(&self) -> Value {
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

/// no-compression: bad if it costs a round trip, warned of from [`WARN_BYTES`] on, else a note.
pub(crate) fn judge_missing(figures: &Figures) -> Option<Finding> {
    if figures.is_coded() || !is_text(&figures.mime_type) || figures.sent_bytes < PLAIN_BYTES_MIN {
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
    let on = |coding: &str| match figures.mime_type.as_str() {
        // It is compressed without being named, and named it is a duplicate.
        "text/html" => format!("{coding} on;"),
        other => format!("{coding} on; {coding}_types {other};"),
    };
    let others = format!("{} {}", on("brotli"), on("zstd"));
    let Figures { mime_type, url, .. } = figures;
    let (sent, best, gzip) = (figures.sent_bytes, coding.in_words(), on("gzip"));
    let text = no_compression::server(sent, mime_type, best, bytes, gzip, others, quoted(url));
    Some(finding(text, severity, trips, figures))
}

/// no-compression in a page: bad, since the bytes under a coding are unknown.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    let is_large = |one: &Case| one.size >= PAGE_BYTES_MIN as f64;
    of_page(cases, is_large, Severity::Bad, |n, _| {
        no_compression::page(count(n, "text"), PAGE_BYTES_MIN)
    })
}

/// poor-compression: warned of if it costs a round trip, else a note.
pub(crate) fn judge_poor(figures: &Figures) -> Option<Finding> {
    if !figures.is_coded() || !is_text(&figures.mime_type) {
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
    let (best, url) = (coding.in_words(), quoted(&figures.url));
    let Figures {
        mime_type, coding, ..
    } = figures;
    let text = poor_compression::server(figures.sent_bytes, mime_type, coding, best, bytes, url);
    Some(finding(text, severity, trips, figures))
}

fn finding(text: Text, severity: Severity, trips: u32, figures: &Figures) -> Finding {
    Finding::of(text, severity)
        .costs(f64::from(trips) * figures.round_trip_ms, f64::from(trips))
        .proof("response", figures.measured())
        .proof("round_trips_saved", trips)
}

/// Whether a saving justifies a change.
fn is_worth(sent: u64, possible: u64, share: f64) -> bool {
    let saved = sent.saturating_sub(possible);
    saved >= SAVED_BYTES_MIN && saved as f64 >= share * sent as f64
}

/// Whether content of a type is text that compresses.
pub(crate) fn is_text(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || mime_type.ends_with("+xml")
        || mime_type.ends_with("+json")
        || TEXT_TYPES.contains(&mime_type)
}

/// Text below one segment takes a packet, compressed or not.
const PLAIN_BYTES_MIN: u64 = SEGMENT_BYTES;

/// A smaller text of a page fits into a segment either way.
pub(crate) const PAGE_BYTES_MIN: u64 = 1400;

/// A saving below one segment takes no packet less.
const SAVED_BYTES_MIN: u64 = SEGMENT_BYTES;

/// Bytes that take 8 ms at 10 mbit, if they cost no round trip.
const WARN_BYTES: u64 = 10_000;

/// The share of its bytes that text must lose by compression: packed content loses next to nothing.
const MISSING_SHARE: f64 = 0.1;

/// The share that another coding or level must save: gzip at level 1, which a server may choose to save its processor, is 12 %
/// above level 6 in the median of 88 documents.
const POOR_SHARE: f64 = 0.2;

/// Further types of text in pages: scripts, data, and fonts and pictures in forms that are not packed.
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
            found.fixes[0],
            "nginx: gzip on; gzip_types text/css; gzip_comp_level 6;"
        );
        let page = Figures {
            mime_type: "text/html".to_owned(),
            ..figures("", 5000, 1000)
        };
        let found_page = judge_missing(&page).expect("it is uncompressed");
        assert_eq!(
            found_page.fixes[1],
            "firstbyte: brotli on; zstd on; gzip on;"
        );
        let large = figures("identity", INITIAL_WINDOW_BYTES + 1, 4000);
        let found = judge_missing(&large).expect("it is uncompressed");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 30.0));
        assert!(
            found
                .fixes
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
