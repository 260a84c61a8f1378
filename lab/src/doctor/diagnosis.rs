//! A diagnosis: all findings of a target, ranked.

use serde::Serialize;
use serde_json::{Map, Value};

use super::finding::{Finding, Severity};

/// All findings of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// [`FORMAT`].
    pub format: String,
    /// The URL or file that was examined.
    pub target: String,
    /// The protocol that the server chose, by its ALPN name; empty if there is none.
    pub protocol: String,
    /// Its findings, most costly first.
    pub findings: Vec<Finding>,
    /// Checks with and without a verdict.
    pub coverage: Coverage,
    /// All measured figures by name, also those without a finding.
    pub measured: Map<String, Value>,
    /// Conditions of the measurement: network, machine, notes.
    pub conditions: Map<String, Value>,
}

/// Checks of a diagnosis with and without a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Number of checks; 0 if they are not counted.
    pub checks: usize,
    /// Names of the checks without a verdict, or with a part of it.
    pub unjudged: Vec<String>,
    /// Whether the examination was interrupted.
    pub is_interrupted: bool,
}

impl Diagnosis {
    /// A diagnosis without findings.
    #[must_use]
    pub fn new(target: &str, protocol: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            target: target.to_owned(),
            protocol: protocol.to_owned(),
            findings: Vec::new(),
            coverage: Coverage::default(),
            measured: Map::new(),
            conditions: Map::new(),
        }
    }

    /// Ranks the findings: bad ones first, then by milliseconds lost, then by round trips.
    pub fn rank(&mut self) {
        self.findings.sort_by(|a, b| {
            let costs = b.lost_ms.total_cmp(&a.lost_ms);
            let trips = b.lost_round_trips.total_cmp(&a.lost_round_trips);
            b.severity.cmp(&a.severity).then(costs).then(trips)
        });
    }

    /// Whether something has to be done.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.findings
            .iter()
            .any(|one| one.severity == Severity::Bad)
    }
}

/// The format of `--json`: members are added to it, and none is taken away or given another meaning.
pub const FORMAT: &str = "firstbyte-doctor/1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Code;

    #[test]
    fn the_worst_comes_first() {
        let mut diagnosis = Diagnosis::new("http://h/", "http/1.1");
        for (code, severity, lost_ms) in [
            (Code::HeaderBloat, Severity::Note, 9.0),
            (Code::SlowDns, Severity::Bad, 1.0),
            (Code::NoKeepalive, Severity::Bad, 50.0),
        ] {
            let found = Finding::new(code, severity, "it is so").costs(lost_ms, 0.0);
            diagnosis.findings.push(found);
        }
        diagnosis.rank();
        let codes: Vec<Code> = diagnosis.findings.iter().map(|one| one.code).collect();
        assert_eq!(codes, [Code::NoKeepalive, Code::SlowDns, Code::HeaderBloat]);
        assert!(diagnosis.is_bad());
    }
}
