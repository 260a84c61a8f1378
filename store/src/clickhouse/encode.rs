//! Rows as TabSeparated data, in batches of one day.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::batch::{BatchHead, Kind};
use super::text::escape;
use crate::connection::{Connection, TEXT_BYTES_MAX};
use crate::query::OpenSample;

/// Most rows of a batch. ClickHouse inserts them as one block, which is one part of each table.
pub(super) const ROWS_MAX: usize = 50_000;
/// Bytes after which a batch ends.
const BYTES_MAX: usize = 16 << 20;
/// Latest time that is stored, the end of the year 9999.
pub(super) const TIME_MAX_S: u64 = 253_402_300_799;
/// Largest number of bytes of a row, as in SQLite.
pub(super) const COUNT_MAX: u64 = i64::MAX as u64;
const DAY_S: u64 = 86_400;

/// Rows of one UTC day as TabSeparated data.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) head: BatchHead,
    pub(super) rows: String,
    /// Places of the rows in the input.
    pub(super) places: Vec<usize>,
}

/// Makes batches of connections.
pub(super) fn connections(rows: &[Connection]) -> Vec<Encoded> {
    let each = rows.iter().map(|row| row.closed_s);
    batches(Kind::Connections, each, |at, out| {
        connection(&rows[at], out)
    })
}

/// Makes batches of samples of open connections.
pub(super) fn samples(samples: &[OpenSample]) -> Vec<Encoded> {
    let each = samples.iter().map(|sample| sample.at_s);
    batches(Kind::Open, each, |at, out| {
        let sample = &samples[at];
        let _ = write!(out, "{}", minute(sample.at_s.min(TIME_MAX_S)));
        for text in [&sample.server, &sample.protocol] {
            out.push('\t');
            text_of(text, out);
        }
        let _ = write!(out, "\t{}", sample.connections.min(COUNT_MAX));
    })
}

/// Begin of the minute of a time.
pub(super) fn minute(at_s: u64) -> u64 {
    at_s - at_s % 60
}

/// Makes batches of rows of one day each. `encode` appends the row of a place.
pub(super) fn batches(
    kind: Kind,
    times: impl Iterator<Item = u64>,
    mut encode: impl FnMut(usize, &mut String),
) -> Vec<Encoded> {
    let mut done = Vec::new();
    let mut open: BTreeMap<u64, Encoded> = BTreeMap::new();
    for (at, time_s) in times.enumerate() {
        let time_s = time_s.min(TIME_MAX_S);
        let day = time_s / DAY_S;
        let batch = open.entry(day).or_insert_with(|| Encoded {
            head: BatchHead::new(kind, time_s),
            rows: String::new(),
            places: Vec::new(),
        });
        encode(at, &mut batch.rows);
        batch.rows.push('\n');
        batch.places.push(at);
        batch.head.add(time_s);
        if batch.places.len() >= ROWS_MAX || batch.rows.len() >= BYTES_MAX {
            done.extend(open.remove(&day));
        }
    }
    done.extend(open.into_values());
    done
}

/// Appends a row in the order of [`super::sql::COLUMNS`].
fn connection(row: &Connection, out: &mut String) {
    let _ = write!(out, "{}", row.closed_s.min(TIME_MAX_S));
    let country = row
        .country
        .map_or(String::new(), |code| code.map(char::from).iter().collect());
    let network = row.network.map_or(String::new(), |it| it.to_string());
    for text in [
        &row.server,
        &row.protocol,
        &row.tls,
        &country,
        &row.subdivision,
        &row.operator,
        &network,
    ] {
        out.push('\t');
        text_of(text, out);
    }
    let _ = write!(out, "\t{}", u8::from(row.via_proxy));
    for time in [
        row.min_rtt_us,
        row.rtt_us,
        row.first_byte_us,
        row.handshake_us,
    ] {
        let _ = match time {
            Some(us) => write!(out, "\t{us}"),
            None => write!(out, "\t\\N"),
        };
    }
    let _ = write!(out, "\t{}", row.handshake_kind.name());
    let count = |number: u64| number.min(COUNT_MAX);
    for number in [
        row.requests.into(),
        count(row.bytes_sent),
        count(row.bytes_received),
        row.retransmits.into(),
        count(row.stalls.delayed_ack),
        count(row.stalls.retransmit),
        count(row.stalls.window),
        row.statuses[0].into(),
        row.statuses[1].into(),
        row.statuses[2].into(),
        row.statuses[3].into(),
        count(row.duration_ms),
    ] {
        let _ = write!(out, "\t{number}");
    }
}

/// Returns the server of the first of some rows, with its escapes: those of a literal are the same.
pub(super) fn first_server(rows: &[u8]) -> &str {
    let line = rows.split(|byte| *byte == b'\n').next();
    let field = line.and_then(|line| line.split(|byte| *byte == b'\t').nth(1));
    // Rows are made of texts.
    field
        .and_then(|field| std::str::from_utf8(field).ok())
        .unwrap_or_default()
}

/// Appends a text that is cut and escaped.
pub(super) fn text_of(text: &str, out: &mut String) {
    escape(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)], out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_server_is_the_one_of_the_first_row() {
        for (server, expected) in [
            ("a.example.org", "a.example.org"),
            ("it's\t\\N\n", "it\\'s\\t\\\\N\\n"),
            ("", ""),
        ] {
            let row = |server: &str| Connection {
                server: server.to_owned(),
                protocol: "HTTP/2.0".to_owned(),
                ..Connection::default()
            };
            let batches = connections(&[row(server), row("other")]);
            assert_eq!(batches.len(), 1);
            assert_eq!(first_server(batches[0].rows.as_bytes()), expected);
        }
        assert_eq!(first_server(b""), "");
    }
}
