//! Records of experiments become rows of the store: page views at once, figures of arms by minute.
//!
//! Figures of a minute wait in memory until a record or the clock is past it. A process that is killed loses them. It also loses page
//! views that the writer has not committed: those of about a second with SQLite, and those of a batch with ClickHouse.

use std::collections::BTreeMap;

use server_base::experiment::{ArmConnection, ArmOpen, ExperimentSettings, Name, Visit};
use store::ArmFigures;

/// Largest number of rows that are gathered. With 1,000 arms, one minute and the next one fit.
const ARMS_MAX: usize = 4096;

/// Figures by minute, experiment and arm that the store does not have yet.
pub(super) struct ArmMinutes {
    server: String,
    figures: BTreeMap<(u64, Name, Name), ArmFigures>,
}

impl ArmMinutes {
    /// Makes an empty list; `server` is the name in the rows.
    pub(super) fn new(server: String) -> Self {
        Self {
            server,
            figures: BTreeMap::new(),
        }
    }

    /// Adds a closed connection. Returns rows of earlier minutes.
    pub(super) fn add(&mut self, connection: &ArmConnection) -> Vec<ArmFigures> {
        let at_s = connection.closed_ms / 1000;
        let (figures, past) = self.of(at_s, connection.experiment, connection.arm);
        figures.connections += 1;
        figures.requests += u64::from(connection.requests);
        figures.promised = figures.promised.saturating_add(connection.promised);
        figures.sent = figures.sent.saturating_add(connection.sent);
        figures.truncated += u64::from(connection.truncated);
        figures.aborted += u64::from(connection.aborted);
        figures.duration_ms += u64::from(connection.duration_ms);
        if let Some(cpu_us) = connection.cpu_us {
            figures.cpu_us += u64::from(cpu_us);
            figures.cpu_connections += 1;
        }
        if let Some(us) = connection.first_byte_us {
            figures.first_byte.add(us.into());
        }
        if let Some(us) = connection.handshake_us {
            figures.handshake.add(us.into());
        }
        past
    }

    /// Adds open connections. Returns rows of earlier minutes.
    pub(super) fn add_open(&mut self, open: &ArmOpen) -> Vec<ArmFigures> {
        let (figures, past) = self.of(open.at_ms / 1000, open.experiment, open.arm);
        figures.open_sum += u64::from(open.connections);
        figures.open_samples += 1;
        figures.open_max = figures.open_max.max(open.connections.into());
        figures.memory_max = figures.memory_max.max(open.memory_bytes);
        past
    }

    /// Returns the figures of a minute, and rows of minutes that are not this one, if it begins, or if there are too many.
    fn of(&mut self, at_s: u64, experiment: Name, arm: Name) -> (&mut ArmFigures, Vec<ArmFigures>) {
        let minute = at_s / 60;
        let key = (minute, experiment, arm);
        let past = if self.figures.contains_key(&key) {
            Vec::new()
        } else if self.figures.len() >= ARMS_MAX {
            self.take_all()
        } else {
            self.take_before(at_s)
        };
        let server = &self.server;
        let figures = self.figures.entry(key).or_insert_with(|| ArmFigures {
            at_s: minute * 60,
            server: server.clone(),
            experiment: experiment.as_str().to_owned(),
            arm: arm.as_str().to_owned(),
            ..ArmFigures::default()
        });
        (figures, past)
    }

    /// Removes the rows of the minutes before that of a time. Records of several threads may be late, so the last
    /// minute waits.
    pub(super) fn take_before(&mut self, at_s: u64) -> Vec<ArmFigures> {
        let first = (at_s.saturating_sub(LATE_S) / 60, Name::EMPTY, Name::EMPTY);
        let rest = self.figures.split_off(&first);
        std::mem::replace(&mut self.figures, rest)
            .into_values()
            .collect()
    }

    /// Removes all rows.
    pub(super) fn take_all(&mut self) -> Vec<ArmFigures> {
        std::mem::take(&mut self.figures).into_values().collect()
    }
}

/// Delay of records, seconds: a minute is stored so long after its end.
const LATE_S: u64 = 2;

/// Returns the row of a page view that a server recorded.
pub(super) fn visit(visit: &Visit, server: &str) -> store::Visit {
    store::Visit {
        at_ms: visit.at_ms,
        user: visit.user,
        view: visit.view,
        server: server.to_owned(),
        experiment: visit.experiment.as_str().to_owned(),
        arm: visit.arm.as_str().to_owned(),
        values: visit.values,
        files: visit.files,
        files_failed: visit.files_failed,
        files_truncated: visit.files_truncated,
        file_bytes: visit.file_bytes,
        is_failed: visit.is_failed,
    }
}

/// Returns settings as the store has them.
pub(super) fn settings(settings: &ExperimentSettings) -> store::ExperimentSettings {
    let arms = settings.arms.iter();
    store::ExperimentSettings {
        name: settings.name.as_str().to_owned(),
        arms: arms
            .map(|(name, weight)| (name.as_str().to_owned(), *weight))
            .collect(),
        share: settings.share,
        start_s: settings.start_s,
        end_s: settings.end_s,
        window_s: settings.window_s,
        pre_period_s: settings.pre_period_s,
        metrics: settings.metrics.clone(),
    }
}

#[cfg(test)]
mod tests {
    use engines::http::Version;

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text.as_bytes()).expect("a name")
    }

    fn connection(closed_ms: u64, arm: &str) -> ArmConnection {
        ArmConnection {
            closed_ms,
            experiment: name("spdy"),
            arm: name(arm),
            version: Version::Http2,
            duration_ms: 1000,
            requests: 3,
            promised: 500,
            sent: 400,
            truncated: 1,
            aborted: 2,
            cpu_us: Some(7),
            handshake_us: None,
            first_byte_us: Some(900),
        }
    }

    fn open(at_ms: u64, connections: u32, memory_bytes: u64) -> ArmOpen {
        ArmOpen {
            at_ms,
            experiment: name("spdy"),
            arm: name("a"),
            connections,
            memory_bytes,
        }
    }

    #[test]
    fn figures_of_a_minute_are_added_up() {
        let mut minutes = ArmMinutes::new("edge".to_owned());
        let unmeasured = ArmConnection {
            cpu_us: None,
            first_byte_us: None,
            handshake_us: Some(5),
            ..connection(179_999, "a")
        };
        for record in [
            connection(120_000, "a"),
            unmeasured,
            connection(120_000, "b"),
        ] {
            assert_eq!(minutes.add(&record), []);
        }
        assert_eq!(minutes.add_open(&open(121_000, 5, 100)), []);
        assert_eq!(minutes.add_open(&open(122_000, 2, 300)), []);
        // The minute waits for late records, and a row of it is stored once.
        assert_eq!(minutes.take_before(181), []);
        let rows = minutes.add_open(&open(182_000, 1, 1));
        let arms: Vec<_> = rows.iter().map(|row| &*row.arm).collect();
        assert_eq!(arms, ["a", "b"]);
        let mut expected = ArmFigures {
            at_s: 120,
            server: "edge".to_owned(),
            experiment: "spdy".to_owned(),
            arm: "a".to_owned(),
            connections: 2,
            requests: 6,
            promised: 1000,
            sent: 800,
            truncated: 2,
            aborted: 4,
            duration_ms: 2000,
            cpu_us: 7,
            cpu_connections: 1,
            open_sum: 7,
            open_samples: 2,
            open_max: 5,
            memory_max: 300,
            ..ArmFigures::default()
        };
        expected.first_byte.add(900);
        expected.handshake.add(5);
        assert_eq!(rows[0], expected);
        assert_eq!(minutes.take_before(182), []);
        assert_eq!(minutes.take_all().len(), 1);
        assert_eq!(minutes.take_all(), []);
    }

    #[test]
    fn figures_have_a_limit() {
        let mut minutes = ArmMinutes::new("edge".to_owned());
        // A record of each minute in reverse: none is before the other.
        for minute in (1..=ARMS_MAX as u64).rev() {
            assert_eq!(minutes.add_open(&open(minute * 60_000, 1, 1)), []);
        }
        let rows = minutes.add_open(&open(0, 1, 1));
        assert_eq!((rows.len(), minutes.figures.len()), (ARMS_MAX, 1));
    }
}
