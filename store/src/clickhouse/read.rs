//! Answers from ClickHouse: roll-ups of whole hours and days, and rows for shorter ends of a period.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::client::Client;
use super::experiments;
use super::keep;
use super::migrate;
use super::parse::{Fields, unreadable};
use super::reader::Reader;
use super::select::{cells_of_segment, conditions, grouped, row_sums, sums_of_segment, union};
use super::sql;
use super::text::literal;
use super::transport::Transport;
use crate::connection::Stalls;
use crate::error::Error;
use crate::experiment::{
    ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentSummary, UserValue, VisitMetric,
};
use crate::histogram::Cell;
use crate::period::{Cover, Resolution, Segment, cover};
use crate::query::{
    Answer, Group, Grouping, NETWORK_ROWS_MAX, NetworkGroup, Networks, OpenConnections, Query,
    Step, Totals,
};
use crate::store::Store;

/// A database of ClickHouse that is read.
#[derive(Debug)]
pub struct ClickHouse {
    reader: RefCell<Reader>,
}

impl ClickHouse {
    /// Makes a reader. It connects with the first query.
    #[must_use]
    pub fn reader(
        transport: Box<dyn Transport>,
        database: String,
        user: Option<String>,
        password: Option<String>,
    ) -> Self {
        Self {
            reader: RefCell::new(Reader {
                client: Client::new(transport, user, password),
                database,
                version: None,
            }),
        }
    }

    /// Reads with a checked schema. After a failure the schema is checked again, and an old one each time.
    fn read<T>(&self, work: impl FnOnce(&mut Reader) -> Result<T, Error>) -> Result<T, Error> {
        let reader = &mut *self.reader.borrow_mut();
        let known = reader.version.take();
        let version = match known.filter(|version| *version == sql::SCHEMA_VERSION) {
            Some(version) => version,
            None => migrate::check_to_read(&mut reader.client, &reader.database)?,
        };
        reader.version = Some(version);
        let done = work(reader);
        if done.is_err() {
            reader.version = None;
        }
        done
    }
}

impl Store for ClickHouse {
    fn answer(&self, query: &Query) -> Result<Answer, Error> {
        query.check()?;
        self.read(|reader| {
            let cover = reader.cover(query)?;
            let mut groups: BTreeMap<String, Group> = BTreeMap::new();
            let sums = union(&reader.database, query, &cover, sums_of_segment);
            reader.each(sums, |fields| {
                let group = groups.entry(fields.text()?).or_default();
                group.totals.merge(&totals_of(fields)?);
                Ok(())
            })?;
            let cells = union(&reader.database, query, &cover, cells_of_segment);
            reader.each(cells, |fields| {
                let group = groups.entry(fields.text()?).or_default();
                let bucket = fields.number()?;
                let (count, sum_us) = (fields.number()?, fields.number()?);
                let bucket = u16::try_from(bucket).map_err(|_| unreadable("histogram"))?;
                group.histogram.add_cell(bucket, Cell { count, sum_us });
                Ok(())
            })?;
            let mut groups: Vec<Group> = groups
                .into_iter()
                .map(|(key, group)| Group { key, ..group })
                .collect();
            if let Grouping::Time(_) = query.grouping {
                // As numbers, the shorter first.
                groups.sort_by_key(|group| (group.key.len(), group.key.clone()));
            }
            Ok(Answer {
                from_s: cover.from_s,
                to_s: cover.to_s,
                groups,
            })
        })
    }

    fn totals(&self, query: &Query) -> Result<Totals, Error> {
        query.check()?;
        self.read(|reader| {
            let cover = reader.cover(query)?;
            let text = union(
                &reader.database,
                query,
                &cover,
                |database, query, segment| grouped(database, query, segment, "''"),
            );
            let mut totals = Totals::default();
            reader.each(text, |fields| {
                fields.text()?;
                totals.merge(&totals_of(fields)?);
                Ok(())
            })?;
            Ok(totals)
        })
    }

    fn networks(&self, query: &Query, limit: usize) -> Result<Networks, Error> {
        let query = Query {
            grouping: Grouping::default(),
            ..query.clone()
        };
        self.read(|reader| reader.networks(&query, limit, NETWORK_ROWS_MAX))
    }

    fn open_connections(&self, query: &Query, step: Step) -> Result<Vec<OpenConnections>, Error> {
        if query.country.is_some() {
            let why = "open connections have no country";
            return Err(Error::Other(why.to_owned()));
        }
        self.read(|reader| reader.open_connections(query, step))
    }

    fn extent(&self) -> Result<Option<(u64, u64)>, Error> {
        self.read(Reader::extent)
    }

    fn experiments(&self) -> Result<Vec<ExperimentSummary>, Error> {
        self.read(experiments::summaries)
    }

    fn experiment(&self, name: &str) -> Result<Option<ExperimentSummary>, Error> {
        self.read(|reader| experiments::experiment(reader, name))
    }

    fn users(
        &self,
        query: &ExperimentQuery,
        metric: VisitMetric,
        each: &mut dyn FnMut(UserValue),
    ) -> Result<Excluded, Error> {
        self.read(|reader| experiments::users(reader, query, metric, each))
    }

    fn arm_totals(&self, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error> {
        self.read(|reader| experiments::totals(reader, query))
    }

    fn arm_steps(&self, query: &ExperimentQuery, step: Step) -> Result<Vec<ArmStep>, Error> {
        self.read(|reader| experiments::steps(reader, query, step))
    }
}

impl Reader {
    /// Covers the period of a query by roll-ups and rows with steps short enough for its groups.
    fn cover(&mut self, query: &Query) -> Result<Cover, Error> {
        let kept = keep::kept(&mut self.client, &self.database)?;
        let coarsest = match query.grouping {
            Grouping::Time(step) => Resolution::of(step),
            _ => Resolution::Day,
        };
        let kept = kept.of(query.grouping.dimension());
        Ok(cover(query.from_s, query.to_s, &kept, coarsest))
    }

    fn networks(&mut self, query: &Query, limit: usize, rows_max: u64) -> Result<Networks, Error> {
        let mut found = Networks::default();
        let period = self.cover(query)?;
        let (from_s, is_cut) = self.newest_rows(query, &period, rows_max)?;
        found.is_cut = is_cut;
        let segment = Segment {
            resolution: Resolution::Minute,
            from_s,
            to_s: period.to_s,
        };
        if from_s >= period.to_s {
            return Ok(found);
        }
        let rows = format!(
            "FROM {} WHERE {}",
            self.table("connection"),
            conditions(query, &segment)
        );
        let count = format!("SELECT count() {rows} FORMAT TabSeparated");
        self.each(count, |fields| {
            found.connections = fields.number()?;
            Ok(())
        })?;
        let groups = format!(
            "SELECT network, {} {rows} GROUP BY network ORDER BY count() DESC, network LIMIT {limit} \
             FORMAT TabSeparated",
            row_sums()
        );
        self.each(groups, |fields| {
            found.groups.push(NetworkGroup {
                network: fields.text()?,
                totals: totals_of(fields)?,
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the begin of the newest hours of a period with about this many rows, and whether there are more.
    fn newest_rows(
        &mut self,
        query: &Query,
        period: &Cover,
        rows_max: u64,
    ) -> Result<(u64, bool), Error> {
        // Roll-ups have the numbers of whole hours; those of the ends are a little too large.
        let hours = Segment {
            resolution: Resolution::Hour,
            from_s: Resolution::Hour.floor(period.from_s),
            to_s: Resolution::Hour.ceil(period.to_s),
        };
        let text = format!(
            "SELECT start_s, sum(connections) FROM {} WHERE {} GROUP BY start_s ORDER BY start_s DESC \
             FORMAT TabSeparated",
            self.table("rollup_hour"),
            conditions(query, &hours)
        );
        let (mut rows, mut from_s, mut is_cut) = (0u64, period.from_s, false);
        self.each(text, |fields| {
            let (start_s, count) = (fields.number()?, fields.number()?);
            if is_cut {
                return Ok(());
            }
            // The newest hour is read in any case.
            if rows > 0 && rows.saturating_add(count) > rows_max {
                is_cut = true;
                from_s = from_s.max(start_s.saturating_add(3600));
            }
            rows = rows.saturating_add(count);
            Ok(())
        })?;
        Ok((from_s, is_cut))
    }

    fn open_connections(
        &mut self,
        query: &Query,
        step: Step,
    ) -> Result<Vec<OpenConnections>, Error> {
        let [from_s, to_s] = [query.from_s, query.to_s].map(|at_s| Resolution::Minute.ceil(at_s));
        let mut chosen = format!("at_s >= {from_s} AND at_s < {to_s}");
        if let Some(server) = &query.server {
            chosen.push_str(&format!(" AND server = {}", literal(server)));
        }
        let (table, seconds) = (self.table("open"), step.seconds());
        // A minute counts even without a sample of the protocol.
        let minutes = format!(
            "SELECT intDiv(at_s, {seconds}) * {seconds} AS start_s, uniqExact(at_s) FROM {table} \
             WHERE {chosen} GROUP BY start_s FORMAT TabSeparated"
        );
        let mut minutes_of: BTreeMap<u64, u64> = BTreeMap::new();
        self.each(minutes, |fields| {
            minutes_of.insert(fields.number()?, fields.number()?);
            Ok(())
        })?;
        if let Some(protocol) = &query.protocol {
            chosen.push_str(&format!(" AND protocol = {}", literal(protocol)));
        }
        let text = format!(
            "SELECT intDiv(at_s, {seconds}) * {seconds} AS start_s, protocol, sum(minute), max(minute) FROM \
             (SELECT at_s, protocol, sum(largest) AS minute FROM \
             (SELECT at_s, protocol, server, max(connections) AS largest FROM {table} WHERE {chosen} \
             GROUP BY at_s, protocol, server) AS each GROUP BY at_s, protocol) AS minutes \
             GROUP BY start_s, protocol ORDER BY start_s, protocol FORMAT TabSeparated"
        );
        let mut found = Vec::new();
        self.each(text, |fields| {
            let (start_s, protocol) = (fields.number()?, fields.text()?);
            let (sum, max) = (fields.number()?, fields.number()?);
            let minutes = minutes_of.get(&start_s).copied().unwrap_or(1).max(1);
            found.push(OpenConnections {
                start_s,
                protocol,
                mean: sum as f64 / minutes as f64,
                max,
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// Finds the first and the last day, then the hours and the minutes in them.
    fn extent(&mut self) -> Result<Option<(u64, u64)>, Error> {
        let all = "dimension = 0";
        let Some(days) = self.ends("rollup_day", "start_s", all)? else {
            return Ok(None);
        };
        let day_s = Resolution::Day.seconds();
        let mut ends = (days.0, days.1.saturating_add(day_s));
        // Either end may have lost its hours and rows.
        let hours = self.near(days, day_s, "rollup_hour", "start_s", all)?;
        ends.0 = hours.0.unwrap_or(ends.0);
        ends.1 = hours.1.map_or(ends.1, |last| Resolution::Hour.after(last));
        let rows = self.near(days, day_s, "connection", "closed_s", "1")?;
        ends.0 = rows.0.map_or(ends.0, |at| Resolution::Minute.floor(at));
        ends.1 = rows.1.map_or(ends.1, |at| Resolution::Minute.after(at));
        Ok(Some(ends))
    }

    /// Returns the least time of the first day, and the largest one of the last day.
    fn near(
        &mut self,
        days: (u64, u64),
        day_s: u64,
        table: &str,
        column: &str,
        chosen: &str,
    ) -> Result<(Option<u64>, Option<u64>), Error> {
        let mut of = |day: u64| {
            let end = day.saturating_add(day_s);
            let chosen = format!("{chosen} AND {column} >= {day} AND {column} < {end}");
            self.ends(table, column, &chosen)
        };
        let first = of(days.0)?.map(|ends| ends.0);
        let last = of(days.1)?.map(|ends| ends.1);
        Ok((first, last))
    }

    /// Returns the least and the largest value of a column.
    fn ends(
        &mut self,
        table: &str,
        column: &str,
        chosen: &str,
    ) -> Result<Option<(u64, u64)>, Error> {
        let text = format!(
            "SELECT min({column}), max({column}), count() FROM {} WHERE {chosen} FORMAT TabSeparated",
            self.table(table)
        );
        let mut found = None;
        self.each(text, |fields| {
            let ends = (fields.number()?, fields.number()?);
            found = (fields.number()? > 0).then_some(ends);
            Ok(())
        })?;
        Ok(found)
    }
}

fn totals_of(fields: &mut Fields<'_>) -> Result<Totals, Error> {
    let mut number = || fields.number();
    Ok(Totals {
        connections: number()?,
        requests: number()?,
        bytes_sent: number()?,
        bytes_received: number()?,
        retransmits: number()?,
        via_proxy: number()?,
        stalls: Stalls {
            delayed_ack: number()?,
            retransmit: number()?,
            window: number()?,
        },
        statuses: [number()?, number()?, number()?, number()?],
        duration_ms: number()?,
    })
}
