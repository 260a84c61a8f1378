//! Rows, names and state: the tables that all parts of the engine use.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use crate::connection::{Connection, TEXT_BYTES_MAX};
use crate::error::Error;
use crate::period::{Kept, Resolution};
use crate::query::OpenSample;
use crate::sql;

/// Most names of servers, protocols, countries, subdivisions and operators. Later ones are stored as `(other)`.
pub const NAMES_MAX: i64 = 1_000_000;
/// Row of `name` for names past [`NAMES_MAX`].
const OTHER: i64 = 1;
/// Last time of a close that is stored, the end of the year 9999.
pub(super) const CLOSED_S_MAX: u64 = 253_402_300_799;

/// Contents of the table `state`, and the version of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Version of the schema.
    pub(super) version: i64,
    /// Last row that the roll-ups contain.
    pub(super) rolled_id: i64,
    /// Begins of the stored roll-ups.
    pub(super) kept: Kept,
}

/// Stores rows.
pub(super) fn insert_rows(
    transaction: &Transaction<'_>,
    names: &mut HashMap<String, i64>,
    rows: &[Connection],
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let state = state(transaction)?;
    let last: Option<i64> = transaction.query_row(sql::LAST_ID, [], |row| row.get(0))?;
    let mut id = last.unwrap_or(0).max(state.rolled_id);
    let mut statement = transaction.prepare(sql::INSERT)?;
    for row in rows {
        // The number of a deleted row is not used again: it is below `rolled_id`.
        id += 1;
        let mut number = |text: &str| number_of(transaction, names, text);
        let country = row.country.map(|code| code.map(char::from));
        let country = country.map_or(String::new(), |code| code.iter().collect());
        statement.execute(params![
            id,
            int(row.closed_s.min(CLOSED_S_MAX)),
            number(&row.server)?,
            number(&row.protocol)?,
            number(&row.tls)?,
            number(&country)?,
            number(&row.subdivision)?,
            number(&row.operator)?,
            row.network.map(|network| network.to_string()),
            row.via_proxy,
            row.min_rtt_us,
            row.rtt_us,
            row.first_byte_us,
            row.handshake_us,
            row.requests,
            int(row.bytes_sent),
            int(row.bytes_received),
            row.retransmits,
            int(row.stalls.delayed_ack),
            int(row.stalls.retransmit),
            int(row.stalls.window),
            int(row.duration_ms),
            row.handshake_kind as u8,
            row.statuses[0],
            row.statuses[1],
            row.statuses[2],
            row.statuses[3],
        ])?;
    }
    Ok(())
}

/// Stores samples of open connections.
pub(super) fn insert_open(
    db: &rusqlite::Connection,
    names: &mut HashMap<String, i64>,
    samples: &[OpenSample],
) -> Result<(), Error> {
    let mut statement = db.prepare(sql::INSERT_OPEN)?;
    for sample in samples {
        statement.execute(params![
            int(Resolution::Minute.floor(sample.at_s.min(CLOSED_S_MAX))),
            number_of(db, names, &sample.server)?,
            number_of(db, names, &sample.protocol)?,
            int(sample.connections),
        ])?;
    }
    Ok(())
}

/// Begins a writing transaction. Another process waits for its end.
pub(super) fn write(db: &mut rusqlite::Connection) -> Result<Transaction<'_>, Error> {
    Ok(db.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// Reads the table `state` and the version of the schema, which another process may change between two transactions.
pub(super) fn state(db: &rusqlite::Connection) -> Result<State, Error> {
    let version = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let state = db.query_row(sql::STATE, [], |row| {
        Ok(State {
            version,
            rolled_id: row.get(0)?,
            kept: Kept {
                minutes_from_s: uint(row.get(1)?),
                hours_from_s: uint(row.get(2)?),
                days_from_s: uint(row.get(3)?),
            },
        })
    })?;
    Ok(state)
}

/// Returns the number of a name, and adds it if necessary.
pub(super) fn number_of(
    db: &rusqlite::Connection,
    names: &mut HashMap<String, i64>,
    text: &str,
) -> Result<i64, Error> {
    if text.is_empty() {
        return Ok(0);
    }
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    if let Some(id) = names.get(text) {
        return Ok(*id);
    }
    let id = match find_name(db, text)? {
        Some(id) => id,
        None if db.query_row(sql::LAST_NAME, [], |row| row.get::<_, i64>(0))? >= NAMES_MAX => OTHER,
        None => db.query_row(sql::ADD_NAME, [text], |row| row.get(0))?,
    };
    names.insert(text.to_owned(), id);
    Ok(id)
}

/// Returns the number of a name, if it has one.
pub(super) fn find_name(db: &rusqlite::Connection, text: &str) -> Result<Option<i64>, Error> {
    Ok(db
        .query_row(sql::ID_OF, [text], |row| row.get(0))
        .optional()?)
}

/// Integers of SQLite have a sign.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Counts are not negative.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
