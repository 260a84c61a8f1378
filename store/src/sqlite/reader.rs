//! A reader that follows its path: if the store is replaced by another file, the next query reads the new one.
//!
//! A writer moves a damaged file aside, and an operator may remove or restore one. An open file would show its old rows for as long
//! as the process lives.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::Sqlite;
use crate::error::Error;
use crate::experiment::{
    ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentSummary, UserValue, VisitMetric,
};
use crate::query::{Answer, Networks, OpenConnections, Query, Step, Totals};
use crate::store::Store;

/// A store in a file of SQLite, opened for long-term reading.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
    /// `None` after a failed opening.
    open: RefCell<Option<Sqlite>>,
}

impl SqliteReader {
    /// Opens a store for reading.
    ///
    /// # Errors
    /// See [`Sqlite::open_to_read`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let store = Sqlite::open_to_read(path)?;
        Ok(Self {
            path: path.to_owned(),
            open: RefCell::new(Some(store)),
        })
    }

    /// Reads from the file that the path leads to.
    fn read<T>(&self, read: impl FnOnce(&Sqlite) -> Result<T, Error>) -> Result<T, Error> {
        let mut open = self.open.borrow_mut();
        let store = match open.take_if(|store| store.is_in_place()) {
            Some(store) => store,
            None => Sqlite::open_to_read(&self.path)?,
        };
        let found = read(&store);
        // A damaged file is opened and checked anew.
        *open = Some(store).filter(|_| found.is_ok());
        found
    }
}

impl Store for SqliteReader {
    fn answer(&self, query: &Query) -> Result<Answer, Error> {
        self.read(|store| store.answer(query))
    }

    fn totals(&self, query: &Query) -> Result<Totals, Error> {
        self.read(|store| store.totals(query))
    }

    fn networks(&self, query: &Query, limit: usize) -> Result<Networks, Error> {
        self.read(|store| store.networks(query, limit))
    }

    fn open_connections(&self, query: &Query, step: Step) -> Result<Vec<OpenConnections>, Error> {
        self.read(|store| store.open_connections(query, step))
    }

    fn extent(&self) -> Result<Option<(u64, u64)>, Error> {
        self.read(Store::extent)
    }

    fn experiments(&self) -> Result<Vec<ExperimentSummary>, Error> {
        self.read(Store::experiments)
    }

    fn experiment(&self, name: &str) -> Result<Option<ExperimentSummary>, Error> {
        self.read(|store| store.experiment(name))
    }

    fn users(
        &self,
        query: &ExperimentQuery,
        metric: VisitMetric,
        each: &mut dyn FnMut(UserValue),
    ) -> Result<Excluded, Error> {
        self.read(|store| store.users(query, metric, each))
    }

    fn arm_totals(&self, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error> {
        self.read(|store| store.arm_totals(query))
    }

    fn arm_steps(&self, query: &ExperimentQuery, step: Step) -> Result<Vec<ArmStep>, Error> {
        self.read(|store| store.arm_steps(query, step))
    }
}
