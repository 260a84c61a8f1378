//! Shared types of A/B experiments: names, page views, figures by arm, settings.
//!
//! The beacon makes a [`Visit`] of each page view, and the driver an [`ArmConnection`] of each connection to the host of an arm.
//! Both reach the store process as records ([`crate::samples::Record`]). None of them has an address of a client. Absent:
//! assignment, the beacon, the store.
//!
//! Source: docs/experiments.md.

use std::fmt;
use std::sync::OnceLock;

pub use engines::beacon::{VISIT_METRICS, VisitMetric};
use engines::http::Version;

/// Name of an experiment, an arm or an exclusion group: 1 to [`NAME_BYTES_MAX`] bytes of `[A-Za-z0-9_-]`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name([u8; NAME_BYTES_MAX]);

/// Longest name, bytes.
pub const NAME_BYTES_MAX: usize = 32;

impl Name {
    /// The empty name: the arm of page views before the start of an experiment.
    pub const EMPTY: Self = Self([0; NAME_BYTES_MAX]);

    /// Checks a name; `None` if it is empty, too long, or has another byte than `[A-Za-z0-9_-]`.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.iter().all(fits) {
            return None;
        }
        let mut name = Self::EMPTY;
        name.0[..text.len()].copy_from_slice(text);
        Some(name)
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("names are ASCII")
    }

    /// Returns the name without its padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(NAME_BYTES_MAX)]
    }

    /// Returns whether it is [`Self::EMPTY`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Returns the name with zeros behind it.
    pub(crate) fn padded(&self) -> &[u8; NAME_BYTES_MAX] {
        &self.0
    }

    /// Reads a padded name, which may be empty.
    pub(crate) fn from_padded(bytes: &[u8; NAME_BYTES_MAX]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == 0);
        let (text, padding) = bytes.split_at(end.unwrap_or(NAME_BYTES_MAX));
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        match text {
            [] => Some(Self::EMPTY),
            text => Self::new(text),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

/// A page view of a user in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When the beacon came, milliseconds since 1970.
    pub at_ms: u64,
    /// The user: a keyed hash or a random id, never an address.
    pub user: u64,
    /// Random id of the page view. The store keeps the first view of a user with this id.
    pub view: u64,
    /// The experiment.
    pub experiment: Name,
    /// Arm of the user; empty before the start of the experiment.
    pub arm: Name,
    /// Values by the place in [`VisitMetric::ALL`]; `None` for a metric that the browser has not measured. `u32::MAX` is not stored.
    pub values: [Option<u32>; VISIT_METRICS],
    /// Static files requested from the experiment's host.
    pub files: u32,
    /// Static files that failed.
    pub files_failed: u32,
    /// Static files with fewer bytes than promised.
    pub files_truncated: u32,
    /// Bytes of the bodies of static files.
    pub file_bytes: u64,
    /// The page never loaded.
    pub is_failed: bool,
}

/// A connection to the host of an arm, as it was at its close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmConnection {
    /// When the connection was closed, milliseconds since 1970.
    pub closed_ms: u64,
    /// The experiment.
    pub experiment: Name,
    /// Its arm.
    pub arm: Name,
    /// Version of HTTP of the first request.
    pub version: Version,
    /// Time since it was accepted, milliseconds.
    pub duration_ms: u32,
    /// Requests.
    pub requests: u32,
    /// Bytes of response bodies that their heads promised.
    pub promised: u64,
    /// Bytes of response bodies that were sent.
    pub sent: u64,
    /// Responses with fewer bytes than promised.
    pub truncated: u32,
    /// Responses that the client aborted.
    pub aborted: u32,
    /// Processor time of the connection, microseconds; `None` if it was not measured.
    pub cpu_us: Option<u32>,
    /// Time of the TLS handshake, microseconds.
    pub handshake_us: Option<u32>,
    /// Time to the first byte of the first response, microseconds.
    pub first_byte_us: Option<u32>,
}

/// Open connections to the host of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmOpen {
    /// Time, milliseconds since 1970.
    pub at_ms: u64,
    /// The experiment.
    pub experiment: Name,
    /// Its arm.
    pub arm: Name,
    /// Open connections.
    pub connections: u32,
    /// Memory of these connections, bytes.
    pub memory_bytes: u64,
}

/// Settings of an experiment, as the store process writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentSettings {
    /// Name.
    pub name: Name,
    /// Arms with their weights, in the order of the configuration.
    pub arms: Vec<(Name, u32)>,
    /// Share of users, hundredths of a percent.
    pub share: u32,
    /// Start, Unix seconds.
    pub start_s: Option<u64>,
    /// End, Unix seconds.
    pub end_s: Option<u64>,
    /// Time for which a user is observed, seconds; 0 for the first page view alone.
    pub window_s: u64,
    /// Time before the start with page views for covariates, seconds; 0 for none.
    pub pre_period_s: u64,
    /// Metrics, the primary one first.
    pub metrics: Vec<VisitMetric>,
}

/// Reads the open connections of each arm of this process. The time is in milliseconds since 1970.
pub type ReadOpenArms = fn(at_ms: u64, each: &mut dyn FnMut(&ArmOpen));

/// The function that the thread of records calls once a second.
static OPEN_ARMS: OnceLock<ReadOpenArms> = OnceLock::new();

/// Sets the function that reads the open connections of arms. The first one remains.
pub fn set_open_arms(read: ReadOpenArms) {
    // A second configuration sets the same function.
    let _ = OPEN_ARMS.set(read);
}

/// Reads the open connections of each arm, none before [`set_open_arms`].
pub fn each_open_arm(at_ms: u64, each: &mut dyn FnMut(&ArmOpen)) {
    if let Some(read) = OPEN_ARMS.get() {
        read(at_ms, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_1_to_32_bytes() {
        for (length, fits) in [(0, false), (1, true), (32, true), (33, false)] {
            let text = "x".repeat(length);
            let name = Name::new(text.as_bytes());
            assert_eq!(name.is_some(), fits, "{length}");
            if let Some(name) = name {
                assert_eq!((name.as_str(), name.is_empty()), (&*text, false));
                assert_eq!(Name::from_padded(name.padded()), Some(name));
            }
        }
        assert_eq!(
            Name::new(b"aZ09_-").map(|name| name.to_string()).as_deref(),
            Some("aZ09_-")
        );
        for text in ["a b", "a.b", "a\0", "\u{e4}", "a/b", "a'"] {
            assert_eq!(Name::new(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn padded_names_are_checked() {
        assert_eq!(Name::from_padded(&[0; NAME_BYTES_MAX]), Some(Name::EMPTY));
        for (at, byte) in [(0, 0), (1, b'\''), (31, 0xff)] {
            let mut bytes = [b'a'; NAME_BYTES_MAX];
            bytes[at] = byte;
            assert_eq!(Name::from_padded(&bytes), None, "{at}: {byte}");
        }
    }
}
