//! The store in SQLite.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::OptionalExtension;

use crate::clock::WRONG_S;
use crate::connection::Connection;
use crate::error::Error;
use crate::experiment::{
    ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentRows, ExperimentSettings,
    ExperimentSummary, UserValue, VisitMetric,
};
use crate::query::{
    Answer, NETWORK_ROWS_MAX, Networks, OpenConnections, OpenSample, Query, Step, Totals,
};
use crate::retention::{Maintained, Retention};
use crate::sql;
use crate::store::Store;

mod aside;
mod experiments;
mod networks;
mod open;
mod opened;
mod read;
mod reader;
mod retain;
mod roll;
mod table;

pub use aside::MovedAside;
pub use reader::SqliteReader;
pub use table::NAMES_MAX;

use open::FileId;
use table::{CLOSED_S_MAX, uint};

/// Names that a writer remembers.
const KNOWN_NAMES_MAX: usize = 1 << 16;

/// A store that is open for writing.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Sqlite,
    /// The damaged file that was in its place.
    pub moved_aside: Option<MovedAside>,
}

/// An open store in a file of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    db: rusqlite::Connection,
    path: PathBuf,
    file: FileId,
    names: HashMap<String, i64>,
}

impl Sqlite {
    /// Opens a store for writing, and makes it if there is no file. A damaged store is moved aside, and a new one begins.
    ///
    /// # Errors
    /// [`Error::Foreign`] and [`Error::Newer`] for files of other programs or versions, which are left unchanged;
    /// errors of the system.
    pub fn open(path: &Path) -> Result<Opened, Error> {
        // Only one process at a time makes a file or moves it aside.
        let _lock = open::lock_directory(path)?;
        match open::to_write(path) {
            Ok(opened) => Ok(Opened {
                store: Self::of(path, opened),
                moved_aside: None,
            }),
            Err(Error::Damaged(reason)) => Self::begin_anew(path, &reason),
            Err(error) => Err(error),
        }
    }

    /// Moves aside this damaged store, and starts a new one.
    ///
    /// If another process was quicker, its new store is opened.
    ///
    /// # Errors
    /// See [`Sqlite::open`].
    pub fn replace(self, reason: &str) -> Result<Opened, Error> {
        let (path, file) = (self.path.clone(), self.file);
        drop(self);
        let lock = open::lock_directory(&path)?;
        if file.is_at(&path) {
            return Self::begin_anew(&path, reason);
        }
        drop(lock);
        Self::open(&path)
    }

    /// Opens a store for reading.
    ///
    /// # Errors
    /// If there is no file, if it is not a store of this program, or if it is damaged.
    pub fn open_to_read(path: &Path) -> Result<Self, Error> {
        Ok(Self::of(path, open::to_read(path)?))
    }

    fn begin_anew(path: &Path, reason: &str) -> Result<Opened, Error> {
        let moved = aside::move_aside(path, reason)?;
        Ok(Opened {
            store: Self::of(path, open::to_write(path)?),
            moved_aside: Some(moved),
        })
    }

    fn of(path: &Path, (db, file): (rusqlite::Connection, FileId)) -> Self {
        Self {
            db,
            path: path.to_owned(),
            file,
            names: HashMap::new(),
        }
    }

    /// Returns the time of the newest row, Unix seconds: that of the last connection, since a wrong clock may have
    /// made an earlier one, or of a page view that fits it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn newest_s(&self) -> Result<Option<u64>, Error> {
        let newest = self
            .db
            .query_row(sql::NEWEST, [], |row| row.get::<_, i64>(0));
        let newest_s = newest.optional()?.map(uint);
        let limit_s = newest_s.map_or(CLOSED_S_MAX, |newest_s| newest_s.saturating_add(WRONG_S));
        let visit_s = experiments::newest_s(&self.db, limit_s)?;
        Ok(newest_s.max(visit_s))
    }

    /// Stores rows in one transaction.
    ///
    /// # Errors
    /// If the rows cannot be stored; none is stored then.
    pub fn insert(&mut self, rows: &[Connection]) -> Result<(), Error> {
        self.commit(rows, &[])
    }

    /// Stores rows and samples of open connections in one transaction.
    ///
    /// # Errors
    /// If they cannot be stored; none is stored then.
    pub fn commit(&mut self, rows: &[Connection], open: &[OpenSample]) -> Result<(), Error> {
        self.commit_all(rows, open, &ExperimentRows::default())
    }

    /// Stores rows of all tables in one transaction. A repeated page view of a user is left out, and so are
    /// repeated settings of an experiment.
    ///
    /// # Errors
    /// If they cannot be stored; none is stored then.
    pub fn commit_all(
        &mut self,
        rows: &[Connection],
        open: &[OpenSample],
        experiments: &ExperimentRows,
    ) -> Result<(), Error> {
        let done = self.insert_all(rows, open, experiments);
        if done.is_err() || self.names.len() > KNOWN_NAMES_MAX {
            // Names added in a rolled-back transaction have no numbers.
            self.names.clear();
        }
        done
    }

    fn insert_all(
        &mut self,
        rows: &[Connection],
        open: &[OpenSample],
        experiments: &ExperimentRows,
    ) -> Result<(), Error> {
        let transaction = table::write(&mut self.db)?;
        let names = &mut self.names;
        table::insert_rows(&transaction, names, rows)?;
        table::insert_open(&transaction, names, open)?;
        experiments::insert(&transaction, names, experiments)?;
        Ok(transaction.commit()?)
    }

    /// Stores settings of experiments that an earlier file had, unless this file has them or later ones.
    pub(crate) fn restore_settings<'s>(
        &mut self,
        settings: impl Iterator<Item = &'s (u64, ExperimentSettings)>,
    ) -> Result<(), Error> {
        let transaction = table::write(&mut self.db)?;
        // Names of this transaction are forgotten: it may be rolled back.
        let mut names = HashMap::new();
        for (since_s, settings) in settings {
            experiments::restore_settings(&transaction, &mut names, *since_s, settings)?;
        }
        Ok(transaction.commit()?)
    }

    /// Adds new rows to the roll-ups, and deletes old rows and roll-ups. It stops after the step that reaches the time limit.
    ///
    /// # Errors
    /// If the store cannot be written. Completed steps remain.
    pub fn maintain(
        &mut self,
        now_s: u64,
        retention: &Retention,
        limit: Duration,
    ) -> Result<Maintained, Error> {
        let until = Instant::now() + limit;
        let mut done = Maintained::default();
        retain::correct(&mut self.db, now_s, retention)?;
        loop {
            let rolled = roll::step(&mut self.db)?;
            done.rolled_rows += rolled;
            let deleted = if rolled == 0 {
                retain::step(&mut self.db, now_s, retention)?
            } else {
                retain::Deleted::default()
            };
            done.deleted_rows += deleted.rows;
            done.deleted_rollups += deleted.rollups;
            done.more = rolled > 0 || deleted.more;
            if !done.more || Instant::now() >= until {
                return Ok(done);
            }
        }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes, without its write-ahead log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn size_bytes(&self) -> Result<u64, Error> {
        Ok(self.pragma("page_count")? * self.pragma("page_size")?)
    }

    /// Returns whether the path still leads to the open file.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.file.is_at(&self.path)
    }

    fn pragma(&self, name: &str) -> Result<u64, Error> {
        let value = self
            .db
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))?;
        Ok(uint(value))
    }
}

impl Store for Sqlite {
    fn answer(&self, query: &Query) -> Result<Answer, Error> {
        read::answer(&self.db, query, true)
    }

    fn totals(&self, query: &Query) -> Result<Totals, Error> {
        Ok(read::answer(&self.db, query, false)?.totals())
    }

    fn networks(&self, query: &Query, limit: usize) -> Result<Networks, Error> {
        networks::networks(&self.db, query, limit, NETWORK_ROWS_MAX)
    }

    fn open_connections(&self, query: &Query, step: Step) -> Result<Vec<OpenConnections>, Error> {
        opened::open_connections(&self.db, query, step)
    }

    fn extent(&self) -> Result<Option<(u64, u64)>, Error> {
        read::extent(&self.db)
    }

    fn experiments(&self) -> Result<Vec<ExperimentSummary>, Error> {
        experiments::summaries(&self.db)
    }

    fn experiment(&self, name: &str) -> Result<Option<ExperimentSummary>, Error> {
        experiments::experiment(&self.db, name)
    }

    fn users(
        &self,
        query: &ExperimentQuery,
        metric: VisitMetric,
        each: &mut dyn FnMut(UserValue),
    ) -> Result<Excluded, Error> {
        experiments::users(&self.db, query, metric, each)
    }

    fn arm_totals(&self, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error> {
        experiments::totals(&self.db, query)
    }

    fn arm_steps(&self, query: &ExperimentQuery, step: Step) -> Result<Vec<ArmStep>, Error> {
        experiments::steps(&self.db, query, step)
    }
}

#[cfg(test)]
mod tests {
    use firstbyte_tests::TempDir;

    use super::*;
    use crate::experiment::Visit;

    const NOON: u64 = 1_796_040_000;

    /// A page view of a wrong clock must not make that clock trusted.
    #[test]
    fn newest_row_is_not_of_a_wrong_clock() {
        let dir = TempDir::new();
        let mut store = Sqlite::open(&dir.path().join("a.db"))
            .expect("it opens")
            .store;
        let mut put = |closed_s: Option<u64>, visit_s: Option<u64>| {
            let row = |closed_s| Connection {
                closed_s,
                ..Connection::default()
            };
            let visit = |at_s| Visit {
                at_ms: at_s * 1000 + 999,
                view: at_s,
                experiment: "spdy".to_owned(),
                ..Visit::default()
            };
            let visits = ExperimentRows {
                visits: visit_s.map(visit).into_iter().collect(),
                ..ExperimentRows::default()
            };
            let rows: Vec<Connection> = closed_s.map(row).into_iter().collect();
            store.commit_all(&rows, &[], &visits).expect("stored");
            store.newest_s().expect("a time")
        };
        assert_eq!(put(None, None), None);
        assert_eq!(put(None, Some(NOON - 100)), Some(NOON - 100));
        assert_eq!(
            put(None, Some(NOON + WRONG_S + 1)),
            Some(NOON + WRONG_S + 1)
        );
        assert_eq!(put(Some(NOON), None), Some(NOON));
        assert_eq!(put(None, Some(NOON + 5)), Some(NOON + 5));
        assert_eq!(put(None, Some(NOON + WRONG_S)), Some(NOON + WRONG_S));
        // The last connection counts, not the latest.
        assert_eq!(put(Some(NOON - 1), None), Some(NOON + 5));
    }
}
