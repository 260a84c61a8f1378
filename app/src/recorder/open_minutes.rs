//! Numbers of open connections become rows of the store: the largest of each minute.

use engines::http::Protocol;
use server_base::samples::OpenCounts;
use store::OpenSample;

/// Numbers of this minute that the store has.
pub(super) struct OpenMinutes {
    server: String,
    minute: u64,
    /// Largest number of this minute, by the place in [`Protocol::ALL`].
    largest: [Option<u32>; Protocol::ALL.len()],
    /// Protocols that had a connection. HTTP/1 counts always, so that each minute has a row.
    seen: [bool; Protocol::ALL.len()],
}

impl OpenMinutes {
    /// Makes an empty list; `server` is the name in the rows.
    pub(super) fn new(server: String) -> Self {
        Self {
            server,
            minute: 0,
            largest: Default::default(),
            seen: Protocol::ALL.map(|protocol| protocol == Protocol::Http1),
        }
    }

    /// Returns a row for each protocol with more connections than before in this minute. The store replaces the smaller number.
    pub(super) fn add(&mut self, counts: &OpenCounts) -> Vec<OpenSample> {
        let at_s = counts.at_ms / 1000;
        if at_s / 60 != self.minute {
            self.minute = at_s / 60;
            self.largest = Default::default();
        }
        let mut rows = Vec::new();
        for (at, (protocol, count)) in Protocol::ALL.into_iter().zip(counts.counts).enumerate() {
            self.seen[at] |= count > 0;
            if self.seen[at] && self.largest[at].is_none_or(|largest| count > largest) {
                self.largest[at] = Some(count);
                rows.push(OpenSample {
                    at_s,
                    server: self.server.clone(),
                    protocol: name_of(protocol).to_owned(),
                    connections: count.into(),
                });
            }
        }
        rows
    }
}

/// Returns the numbers other than 0, with the names of their rows.
pub(super) fn named(counts: &OpenCounts) -> impl Iterator<Item = (String, u64)> {
    let all = Protocol::ALL.into_iter().zip(counts.counts);
    all.filter(|(_, count)| *count > 0)
        .map(|(protocol, count)| (name_of(protocol).to_owned(), count.into()))
}

/// Returns the name as in `$server_protocol`. An HTTP/1 connection may use an older version.
fn name_of(protocol: Protocol) -> &'static str {
    protocol.newest_version().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protocol and number of each row.
    fn added(minutes: &mut OpenMinutes, at_s: u64, counts: [u32; 4]) -> Vec<(String, u64)> {
        let counts = OpenCounts {
            at_ms: at_s * 1000 + 999,
            counts,
        };
        let rows = minutes.add(&counts).into_iter();
        rows.map(|row| {
            assert_eq!((row.at_s, &*row.server), (at_s, "edge"));
            (row.protocol, row.connections)
        })
        .collect()
    }

    #[test]
    fn rows_rise_within_a_minute_and_begin_again_in_the_next() {
        let mut minutes = OpenMinutes::new("edge".to_owned());
        let row = |protocol: &str, count| (protocol.to_owned(), count);
        // Nothing is open: one row all the same.
        let found = added(&mut minutes, 120, [0; 4]);
        assert_eq!(found, [row("HTTP/1.1", 0)]);
        assert_eq!(added(&mut minutes, 121, [0; 4]), []);
        let found = added(&mut minutes, 122, [2, 0, 5, 0]);
        assert_eq!(found, [row("HTTP/1.1", 2), row("HTTP/2.0", 5)]);
        assert_eq!(added(&mut minutes, 123, [2, 0, 4, 0]), []);
        let found = added(&mut minutes, 179, [1, 1, 6, 0]);
        assert_eq!(found, [row("SPDY/3.1", 1), row("HTTP/2.0", 6)]);
        // Protocols that are gone have zeros.
        let found = added(&mut minutes, 180, [0, 0, 1, 0]);
        let expected = [row("HTTP/1.1", 0), row("SPDY/3.1", 0), row("HTTP/2.0", 1)];
        assert_eq!(found, expected);
        let open = OpenCounts {
            at_ms: 0,
            counts: [0, 3, 0, 7],
        };
        let expected = [row("SPDY/3.1", 3), row("HTTP/3.0", 7)];
        assert!(named(&open).eq(expected));
        // A clock that goes back.
        assert_eq!(added(&mut minutes, 60, [0; 4]).len(), 3);
    }
}
