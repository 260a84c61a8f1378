//! The interface of all engines for readers.

use crate::error::Error;
use crate::experiment::{
    ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentSummary, UserValue, VisitMetric,
};
use crate::query::{Answer, Networks, OpenConnections, Query, Step, Totals};

/// A store of connections that is read.
///
/// Engines with equal rows return equal results, as long as no row or roll-up is deleted. Periods begin and end at
/// whole minutes, or for subdivisions and operators at whole hours; other ends move to the next one.
pub trait Store: Send {
    /// Groups the connections of a period, each group with sums and with the histogram of one metric.
    ///
    /// # Errors
    /// If the store cannot be read, or [`Query::check`] fails.
    fn answer(&self, query: &Query) -> Result<Answer, Error>;

    /// Adds up the groups of a period. The metric of the query does not matter.
    ///
    /// # Errors
    /// See [`Store::answer`].
    fn totals(&self, query: &Query) -> Result<Totals, Error>;

    /// Returns at most `limit` networks with most connections. The metric and the grouping of the query do not matter.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn networks(&self, query: &Query, limit: usize) -> Result<Networks, Error>;

    /// Returns the open connections by step and protocol, in this order. The metric and the grouping of the query do not matter.
    ///
    /// # Errors
    /// If the store cannot be read, or the query filters by country: an open connection has none.
    fn open_connections(&self, query: &Query, step: Step) -> Result<Vec<OpenConnections>, Error>;

    /// Returns the period of the stored connections in Unix seconds, `None` for an empty store. A query from the first value to the
    /// second returns all of them.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn extent(&self) -> Result<Option<(u64, u64)>, Error>;

    /// Returns the experiments by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn experiments(&self) -> Result<Vec<ExperimentSummary>, Error>;

    /// Returns one of the experiments. In ClickHouse, that reads no page view of another one.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn experiment(&self, name: &str) -> Result<Option<ExperimentSummary>, Error> {
        let mut all = self.experiments()?.into_iter();
        Ok(all.find(|found| found.name == name))
    }

    /// Passes the values of users to `each`, in the order of entry, then of the user. Users count once their window is over. Returns
    /// the numbers of other users. An answer for a later end of the period begins with the users of this answer.
    ///
    /// Page views must be stored: the end of the period should be older than the time of a batch.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn users(
        &self,
        query: &ExperimentQuery,
        metric: VisitMetric,
        each: &mut dyn FnMut(UserValue),
    ) -> Result<Excluded, Error>;

    /// Adds up the page views in arms of a period, for all arms of the experiment. The window and the pre-period of the query do
    /// not matter.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn arm_totals(&self, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error>;

    /// Returns figures of servers by step and arm, in this order. The period begins and ends at whole minutes; other ends move to the
    /// next one. The window and the pre-period of the query do not matter.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn arm_steps(&self, query: &ExperimentQuery, step: Step) -> Result<Vec<ArmStep>, Error>;
}
