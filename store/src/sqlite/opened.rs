//! Open connections: one number for each minute, server and protocol.

use rusqlite::Connection;

use crate::error::Error;
use crate::query::{OpenConnections, Query, Step};

/// Returns the open connections of a period.
pub(super) fn open_connections(
    _db: &Connection,
    query: &Query,
    _step: Step,
) -> Result<Vec<OpenConnections>, Error> {
    if query.country.is_some() {
        let why = "open connections have no country";
        return Err(Error::Other(why.to_owned()));
    }
    Ok(Vec::new())
}
