//! Rows become roll-ups.
//!
//! Roll-ups contain all rows up to `rolled_id`, which advances in the transaction that adds rows to them. So a row
//! counts once, regardless of its time, and a killed process leaves rows for the next one.

use rusqlite::{OptionalExtension, Row, Statement, Transaction, params};

use super::table::{CLOSED_S_MAX, State, int, state, uint, write};
use crate::connection::Stalls;
use crate::error::Error;
use crate::packed::Packed;
use crate::period::{Resolution, dimensions_of};
use crate::query::{Dimension, Totals};
use crate::sql;

/// Rows of one step, which is one transaction.
const STEP_ROWS: u32 = 100_000;
/// Metrics of a row.
pub(super) const METRICS: usize = 4;

/// A row of `connection`.
pub(super) struct Sample {
    pub(super) id: i64,
    pub(super) closed_s: u64,
    pub(super) server: i64,
    pub(super) protocol: i64,
    /// Numbers of country, subdivision and operator.
    pub(super) keys: [i64; 3],
    pub(super) totals: Totals,
    /// Times of the histograms in microseconds, by metric.
    pub(super) times: [Option<u32>; METRICS],
}

impl Sample {
    /// Reads a row of [`sql::rows`].
    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let count = |column| row.get::<_, i64>(column).map(uint);
        let time = |column| row.get::<_, Option<u32>>(column);
        let via_proxy: bool = row.get(7)?;
        let mut times = [time(8)?, time(9)?, time(10)?, time(11)?];
        if via_proxy {
            // The RTTs are those of the proxy.
            times[..2].fill(None);
        }
        Ok(Self {
            id: row.get(0)?,
            closed_s: count(1)?.min(CLOSED_S_MAX),
            server: row.get(2)?,
            protocol: row.get(3)?,
            keys: [row.get(4)?, row.get(5)?, row.get(6)?],
            totals: Totals {
                connections: 1,
                via_proxy: via_proxy.into(),
                requests: count(12)?,
                bytes_sent: count(13)?,
                bytes_received: count(14)?,
                retransmits: count(15)?,
                stalls: Stalls {
                    delayed_ack: count(16)?,
                    retransmit: count(17)?,
                    window: count(18)?,
                },
                statuses: [count(20)?, count(21)?, count(22)?, count(23)?],
                duration_ms: count(19)?,
            },
            times,
        })
    }
}

/// Returns whether connections without this property have a roll-up: countries add up to all connections.
pub(super) fn counts(dimension: Dimension, key: i64) -> bool {
    dimension == Dimension::Country || key != 0
}

/// Columns of the sums of a roll-up.
pub(super) const SUMS: usize = 14;

/// Reads the sums of a roll-up from [`SUMS`] columns.
pub(super) fn totals_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Totals> {
    let count = |column: usize| row.get::<_, i64>(first + column).map(uint);
    Ok(Totals {
        connections: count(0)?,
        requests: count(1)?,
        bytes_sent: count(2)?,
        bytes_received: count(3)?,
        retransmits: count(4)?,
        via_proxy: count(5)?,
        stalls: Stalls {
            delayed_ack: count(6)?,
            retransmit: count(7)?,
            window: count(8)?,
        },
        statuses: [count(9)?, count(10)?, count(11)?, count(12)?],
        duration_ms: count(13)?,
    })
}

/// Adds the next rows to the roll-ups. Returns their number.
pub(super) fn step(db: &mut rusqlite::Connection) -> Result<u64, Error> {
    let before = state(db)?;
    let last: Option<i64> = db.query_row(sql::LAST_ID, [], |row| row.get(0))?;
    if last.unwrap_or(0) <= before.rolled_id {
        return Ok(0);
    }
    let transaction = write(db)?;
    // Another process may have added rows meanwhile.
    let state = state(&transaction)?;
    let samples = transaction
        .prepare(&sql::rows(sql::SCHEMA_VERSION))?
        .query_map(params![state.rolled_id, STEP_ROWS], Sample::of)?
        .collect::<Result<Vec<_>, _>>()?;
    let Some(last) = samples.last() else {
        return Ok(0);
    };
    add(&transaction, &state, &samples)?;
    transaction.execute(sql::ROLLED, [last.id])?;
    transaction.commit()?;
    Ok(samples.len() as u64)
}

/// Place of a roll-up within its resolution and dimension, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    start: u32,
    key: u32,
    protocol: u32,
    server: u32,
}

fn add(transaction: &Transaction<'_>, state: &State, samples: &[Sample]) -> Result<(), Error> {
    let mut adder = Adder {
        find: transaction.prepare(sql::FIND_ROLLUP)?,
        put: transaction.prepare(sql::PUT_ROLLUP)?,
        times: Default::default(),
        bytes: Default::default(),
    };
    let mut order: Vec<(Slot, u32)> = Vec::with_capacity(samples.len());
    for resolution in Resolution::ALL {
        let seconds = resolution.seconds();
        let from_s = state.kept.begin_s(resolution);
        for &dimension in dimensions_of(resolution) {
            order.clear();
            for (at, sample) in samples.iter().enumerate() {
                let key = sample.keys[dimension as usize];
                if counts(dimension, key) && resolution.floor(sample.closed_s) >= from_s {
                    // Numbers of names and of minutes until the year 9999 have 32 bits.
                    let slot = Slot {
                        start: (sample.closed_s / seconds) as u32,
                        key: key as u32,
                        protocol: sample.protocol as u32,
                        server: sample.server as u32,
                    };
                    order.push((slot, at as u32));
                }
            }
            order.sort_unstable();
            for group in order.chunk_by(|one, other| one.0 == other.0) {
                adder.add(resolution, dimension, group, samples)?;
            }
        }
    }
    Ok(())
}

/// Statements and memory of a step.
struct Adder<'a> {
    find: Statement<'a>,
    put: Statement<'a>,
    times: [Vec<u32>; METRICS],
    bytes: [Vec<u8>; METRICS],
}

impl Adder<'_> {
    /// Adds the samples of one slot to its roll-up.
    fn add(
        &mut self,
        resolution: Resolution,
        dimension: Dimension,
        group: &[(Slot, u32)],
        samples: &[Sample],
    ) -> Result<(), Error> {
        let slot = group[0].0;
        let start_s = u64::from(slot.start) * resolution.seconds();
        let mut totals = Totals::default();
        self.times.iter_mut().for_each(Vec::clear);
        for (_, at) in group {
            let sample = &samples[*at as usize];
            totals.merge(&sample.totals);
            for (times, time) in self.times.iter_mut().zip(sample.times) {
                times.extend(time);
            }
        }
        let mut packed = self.times.each_mut().map(|times| Packed::of(times));
        let place = params![
            resolution as u8,
            dimension as u8,
            int(start_s),
            slot.key,
            slot.protocol,
            slot.server
        ];
        let found = self
            .find
            .query_row(place, |row| {
                totals.merge(&totals_of(row, 0)?);
                let mut whole = true;
                for (at, packed) in packed.iter_mut().enumerate() {
                    let bytes = row.get_ref(SUMS + at)?.as_blob()?;
                    match std::mem::take(packed).merged(bytes) {
                        Some(merged) => *packed = merged,
                        None => whole = false,
                    }
                }
                Ok(whole)
            })
            .optional()?;
        if found == Some(false) {
            return Err(damaged());
        }
        for (packed, bytes) in packed.iter().zip(&mut self.bytes) {
            packed.write(bytes);
        }
        self.put(resolution, dimension, start_s, slot, &totals)
    }

    fn put(
        &mut self,
        resolution: Resolution,
        dimension: Dimension,
        start_s: u64,
        slot: Slot,
        totals: &Totals,
    ) -> Result<(), Error> {
        self.put.execute(params![
            resolution as u8,
            dimension as u8,
            int(start_s),
            slot.key,
            slot.protocol,
            slot.server,
            int(totals.connections),
            int(totals.requests),
            int(totals.bytes_sent),
            int(totals.bytes_received),
            int(totals.retransmits),
            int(totals.via_proxy),
            int(totals.stalls.delayed_ack),
            int(totals.stalls.retransmit),
            int(totals.stalls.window),
            self.bytes[0],
            self.bytes[1],
            self.bytes[2],
            self.bytes[3],
            int(totals.statuses[0]),
            int(totals.statuses[1]),
            int(totals.statuses[2]),
            int(totals.statuses[3]),
            int(totals.duration_ms),
        ])?;
        Ok(())
    }
}

/// Error of a histogram that cannot be read.
pub(super) fn damaged() -> Error {
    Error::Damaged("a histogram is unreadable".to_owned())
}
