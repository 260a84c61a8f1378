//! header-bloat: bytes of a response's head.
//!
//! Source: nginx documentation, `proxy_buffer_size`; RFC 6928 for the size of the first flight.

use serde_json::{Value, json};

use super::{Case, count, of_page};
use crate::doctor::code::header_bloat;
use crate::doctor::command::quoted;
use crate::doctor::finding::name_of_server;
use crate::doctor::slow_start::further_round_trips;
use crate::doctor::{Finding, Severity};

/// The head of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) url: String,
    /// Bytes as they were transferred, compressed by protocols that do so.
    pub(crate) head_bytes: u64,
    /// Bytes of its text.
    pub(crate) text_bytes: u64,
    /// Bytes of the body.
    pub(crate) body_bytes: u64,
    /// Names of fields with the bytes of name and value.
    pub(crate) fields: Vec<(String, u64)>,
    pub(crate) round_trip_ms: f64,
}

impl Figures {
    pub(crate) fn measured(&self) -> Value {
        json!({
            "head_bytes": self.head_bytes,
            "head_text_bytes": self.text_bytes,
            "fields": self.fields.len(),
        })
    }

    /// The largest fields by name; fields of the same name are summed.
    fn largest(&self) -> Vec<(String, u64)> {
        let mut sums: Vec<(String, u64)> = Vec::new();
        for (name, bytes) in &self.fields {
            let name = name.to_ascii_lowercase();
            match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += bytes,
                None => sums.push((name, *bytes)),
            }
        }
        sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sums.truncate(LARGEST);
        sums
    }
}

/// header-bloat: warned of above [`WARN_BYTES`]; bad if the head moves the end of the response to another round trip, or fills half of
/// the first flight.
pub(crate) fn judge(figures: &Figures) -> Option<Finding> {
    // Bytes as transferred: compression of heads counts.
    let bytes = figures.head_bytes;
    if bytes <= WARN_BYTES {
        return None;
    }
    let usual = figures.body_bytes.saturating_add(USUAL_BYTES);
    let trips =
        further_round_trips(bytes.saturating_add(figures.body_bytes)) - further_round_trips(usual);
    let severity = match (trips, bytes) {
        (0, ..=BAD_BYTES) => Severity::Warn,
        _ => Severity::Bad,
    };
    let largest = figures.largest();
    let listed: Value = largest
        .iter()
        .map(|(name, bytes)| json!({"name": name_of_server(name), "bytes": bytes}))
        .collect();
    let text = header_bloat::server(bytes, USUAL_BYTES, quoted(&figures.url));
    let found = Finding::of(text, severity)
        .costs(f64::from(trips) * figures.round_trip_ms, f64::from(trips))
        .proof("head", figures.measured())
        .proof("largest_fields", listed);
    let large = largest.iter().filter(|(_, bytes)| *bytes > USUAL_BYTES / 2);
    Some(found.fix_first(large.map(|(name, bytes)| {
        let name = name_of_server(name);
        let hint = match name.as_str() {
            "set-cookie" => {
                "fewer or smaller cookies; none on files that do not need them".to_owned()
            }
            "link" => "Link fields in early hints (103) or in the page".to_owned(),
            "content-security-policy" | "permissions-policy" => {
                "a shorter policy, and only with pages: images and scripts do not need it"
                    .to_owned()
            }
            name => {
                format!("nginx and firstbyte: proxy_hide_header {name}; or remove its add_header")
            }
        };
        format!("{name} ({bytes} bytes): {hint}")
    })))
}

/// header-bloat in a page: warned of from [`PAGE_BYTES`] on.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    let is_large = |one: &Case| one.size >= PAGE_BYTES as f64;
    of_page(cases, is_large, Severity::Warn, |n, _| {
        header_bloat::page(count(n, "response"), PAGE_BYTES)
    })
}

/// Heads of most sites are below this.
const USUAL_BYTES: u64 = 1000;
/// More than a page of memory, the size of nginx's first buffer for an upstream's head (`proxy_buffer_size`).
const WARN_BYTES: u64 = 4096;
/// Half of the initial window.
const BAD_BYTES: u64 = crate::doctor::slow_start::INITIAL_WINDOW_BYTES / 2;
/// A head of a page that is larger than two segments.
pub(crate) const PAGE_BYTES: u64 = 2920;
/// Fields that are listed.
const LARGEST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(head_bytes: u64, body_bytes: u64) -> Figures {
        Figures {
            url: "http://h/".to_owned(),
            head_bytes,
            text_bytes: head_bytes,
            body_bytes,
            fields: vec![
                ("Set-Cookie".to_owned(), 900),
                ("X-Debug".to_owned(), 1200),
                ("set-cookie".to_owned(), 900),
                ("Date".to_owned(), 33),
            ],
            round_trip_ms: 40.0,
        }
    }

    #[test]
    fn usual_heads_are_not_found() {
        assert_eq!(judge(&figures(WARN_BYTES, 1000)), None);
        let found = judge(&figures(WARN_BYTES + 1, 1000)).expect("it is large");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Warn, 0.0)
        );
        assert_eq!(found.evidence["largest_fields"][0]["name"], "set-cookie");
        assert_eq!(found.evidence["largest_fields"][0]["bytes"], 1800);
        assert!(
            found.fixes[0].contains("cookies")
                && found.fixes[1].contains("proxy_hide_header x-debug")
        );
    }

    #[test]
    fn head_that_moves_the_body_over_the_window_is_bad() {
        let window = crate::doctor::slow_start::INITIAL_WINDOW_BYTES;
        let found = judge(&figures(5000, window - USUAL_BYTES)).expect("it is large");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 40.0));
        let found = judge(&figures(BAD_BYTES + 1, 10)).expect("it is large");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 0.0));
    }
}
