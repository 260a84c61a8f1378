//! Retention: partitions of days beyond the retention time are dropped.
//!
//! All servers of a database check once an hour, and the first one drops. The table `kept` holds the begins of the
//! stored times, so a reader does not take a dropped day for an empty one.

use super::client::Client;
use super::sql;
use super::text::literal;
use crate::clock::wall_s;
use crate::error::Error;
use crate::period::{Kept, Resolution};
use crate::retention::{HOURS_KEPT_S, Retention};

const DAY_S: u64 = 86_400;

/// Reads the begins of the stored times.
pub(super) fn kept(client: &mut Client, database: &str) -> Result<Kept, Error> {
    let text = format!(
        "SELECT resolution, max(from_s) FROM {} GROUP BY resolution FORMAT TabSeparated",
        sql::table(database, "kept")
    );
    let mut kept = Kept::default();
    for line in client.query(&text)?.lines() {
        let parsed = line
            .split_once('\t')
            .and_then(|(resolution, from)| Some((resolution, from.parse::<u64>().ok()?)));
        match parsed {
            Some(("0", from_s)) => kept.minutes_from_s = from_s,
            Some(("1", from_s)) => kept.hours_from_s = from_s,
            Some(("2", from_s)) => kept.days_from_s = from_s,
            _ => return Err(super::parse::unreadable("list of kept times")),
        }
    }
    Ok(kept)
}

/// Drops the partitions of days before the limits of age. Returns the number of deleted connections and page views.
pub(super) fn drop_old(
    client: &mut Client,
    database: &str,
    retention: &Retention,
) -> Result<u64, Error> {
    let now_s = now_s(client)?;
    let before = |age_s: u64| now_s.saturating_sub(age_s) / DAY_S;
    let rows = before(retention.rows_s);
    let hours = before(HOURS_KEPT_S.min(retention.rollups_s));
    let days = before(retention.rollups_s);
    let mut deleted = 0;
    for (table, resolution, from_day) in [
        ("connection", Some(Resolution::Minute), rows),
        ("rollup_hour", Some(Resolution::Hour), hours),
        ("rollup_day", Some(Resolution::Day), days),
        ("open", None, days),
        ("arm_minute", None, days),
        ("visit", None, days),
    ] {
        let old = old_partitions(client, database, table, from_day)?;
        if old.is_empty() {
            continue;
        }
        if let Some(resolution) = resolution {
            // Written first: a reader must not count partly dropped days.
            client.run(&format!(
                "INSERT INTO {} SELECT {}, {}",
                sql::table(database, "kept"),
                resolution as u8,
                from_day * DAY_S
            ))?;
        }
        let is_visits = table == "visit";
        for (day, count) in old {
            let table = sql::table(database, table);
            client.run(&format!("ALTER TABLE {table} DROP PARTITION {day}"))?;
            if resolution == Some(Resolution::Minute) || is_visits {
                deleted += count;
            }
        }
    }
    Ok(deleted)
}

/// Days before a limit that have a partition, and their numbers of rows.
fn old_partitions(
    client: &mut Client,
    database: &str,
    table: &str,
    from_day: u64,
) -> Result<Vec<(u64, u64)>, Error> {
    let text = format!(
        "SELECT partition, sum(rows) FROM system.parts WHERE active AND database = {} AND table = {} \
         GROUP BY partition FORMAT TabSeparated",
        literal(database),
        literal(table)
    );
    let rows = client.query(&text)?;
    let days = rows.lines().filter_map(|line| {
        let (day, count) = line.split_once('\t')?;
        Some((day.parse().ok()?, count.parse().ok()?))
    });
    Ok(days.filter(|(day, _)| *day < from_day).collect())
}

/// The earlier one of two clocks: a wrong clock of one machine must not delete the rows of all.
fn now_s(client: &mut Client) -> Result<u64, Error> {
    let text = "SELECT toUInt64(toUnixTimestamp(now())) FORMAT TabSeparated";
    let their_s = client.query(text)?.trim().parse().unwrap_or(0);
    Ok(wall_s().min(their_s))
}
