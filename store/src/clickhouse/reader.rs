//! A database opened for reading: queries, and the rows of their responses.

use super::client::Client;
use super::parse::{Fields, unreadable};
use super::sql;
use crate::error::Error;

/// First version of the schema with experiments.
const EXPERIMENTS_VERSION: u32 = 2;

/// A client of a database that is read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) database: String,
    /// Version of the schema, once it is checked.
    pub(super) version: Option<u32>,
}

impl Reader {
    /// Runs a query, and reads each of its rows. There is none for an empty text.
    pub(super) fn each(
        &mut self,
        text: String,
        mut read: impl FnMut(&mut Fields<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let rows = self.client.query(&text)?;
        if !rows.is_empty() && !rows.ends_with('\n') {
            return Err(unreadable("last row"));
        }
        for line in rows.lines() {
            let mut fields = Fields::of(line);
            read(&mut fields)?;
            fields.end()?;
        }
        Ok(())
    }

    /// Full name of a table.
    pub(super) fn table(&self, name: &str) -> String {
        sql::table(&self.database, name)
    }

    /// Returns whether the schema has tables of experiments.
    pub(super) fn has_experiments(&self) -> bool {
        self.version.is_some_and(|it| it >= EXPERIMENTS_VERSION)
    }
}
