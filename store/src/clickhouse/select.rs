//! Texts of queries that read: one part for each segment of a period.

use super::sql;
use super::text::literal;
use crate::period::{Cover, Resolution, Segment};
use crate::query::{Dimension, Grouping, Query};

/// A query with one part for each segment; empty for none.
pub(super) fn union(
    database: &str,
    query: &Query,
    cover: &Cover,
    part: impl Fn(&str, &Query, &Segment) -> String,
) -> String {
    let segments = cover.segments.iter().filter(|it| it.from_s < it.to_s);
    let parts: Vec<String> = segments.map(|it| part(database, query, it)).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("{} FORMAT TabSeparated", parts.join(" UNION ALL "))
}

pub(super) fn sums_of_segment(database: &str, query: &Query, segment: &Segment) -> String {
    grouped(database, query, segment, &key_of(query, segment))
}

/// Sums of a segment by a key.
pub(super) fn grouped(database: &str, query: &Query, segment: &Segment, key: &str) -> String {
    let (table, sums) = match table_of(segment.resolution) {
        Some(table) => (table, rollup_sums()),
        None => ("connection", row_sums()),
    };
    // Without a group an empty table would have a row of zeros.
    format!(
        "SELECT {key} AS group_key, {sums} FROM {} WHERE {} GROUP BY group_key",
        sql::table(database, table),
        conditions(query, segment)
    )
}

/// Cells of the histograms of a segment by a key.
pub(super) fn cells_of_segment(database: &str, query: &Query, segment: &Segment) -> String {
    let key = key_of(query, segment);
    let (metric, without_proxies) = sql::HISTOGRAMS[query.metric as usize];
    let chosen = conditions(query, segment);
    match table_of(segment.resolution) {
        Some(table) => format!(
            "SELECT {key} AS group_key, bucket, sum(cell_count), sum(cell_sum) FROM {} \
             ARRAY JOIN `{metric}Map.bucket` AS bucket, `{metric}Map.count` AS cell_count, \
             `{metric}Map.sum_us` AS cell_sum WHERE {chosen} GROUP BY group_key, bucket",
            sql::table(database, table)
        ),
        None => {
            let us = format!("assumeNotNull({metric}_us)");
            let proxies = if without_proxies {
                " AND via_proxy = 0"
            } else {
                ""
            };
            format!(
                "SELECT {key} AS group_key, {} AS bucket, count(), sum({us}) FROM {} \
                 WHERE {chosen} AND isNotNull({metric}_us){proxies} GROUP BY group_key, bucket",
                sql::bucket(&us),
                sql::table(database, "connection")
            )
        }
    }
}

/// Table of the roll-ups of a resolution; minutes are read from rows.
fn table_of(resolution: Resolution) -> Option<&'static str> {
    match resolution {
        Resolution::Minute => None,
        Resolution::Hour => Some("rollup_hour"),
        Resolution::Day => Some("rollup_day"),
    }
}

fn key_of(query: &Query, segment: &Segment) -> String {
    let of_rows = segment.resolution == Resolution::Minute;
    match query.grouping {
        Grouping::Dimension(_) if !of_rows => "key".to_owned(),
        Grouping::Dimension(Dimension::Country) => "country".to_owned(),
        Grouping::Dimension(Dimension::Subdivision) => "subdivision".to_owned(),
        Grouping::Dimension(Dimension::Operator) => "operator".to_owned(),
        Grouping::Protocol => "protocol".to_owned(),
        Grouping::Server => "server".to_owned(),
        Grouping::Time(step) => {
            let seconds = step.seconds();
            let time = if of_rows { "closed_s" } else { "start_s" };
            format!("toString(intDiv({time}, {seconds}) * {seconds})")
        }
    }
}

/// Conditions of a query for a segment.
pub(super) fn conditions(query: &Query, segment: &Segment) -> String {
    let Segment {
        resolution,
        from_s,
        to_s,
    } = segment;
    let dimension = query.grouping.dimension();
    let (mut text, country) = match resolution {
        // The table is sorted by hour.
        Resolution::Minute => (
            format!(
                "closed_s >= {from_s} AND closed_s < {to_s} AND intDiv(closed_s, 3600) >= {} \
                 AND intDiv(closed_s, 3600) <= {}",
                from_s / 3600,
                to_s / 3600
            ),
            "country",
        ),
        _ => (
            format!(
                "dimension = {} AND start_s >= {from_s} AND start_s < {to_s} AND day >= {} AND day <= {}",
                dimension as u8,
                from_s / 86_400,
                to_s / 86_400
            ),
            "key",
        ),
    };
    let mut equal = |column: &str, value: &Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!(" AND {column} = {}", literal(value)));
        }
    };
    equal("protocol", &query.protocol);
    equal("server", &query.server);
    match (&query.country, dimension) {
        (Some(code), Dimension::Subdivision) => {
            let prefix = format!("{code}-");
            let (length, prefix) = (prefix.len(), literal(&prefix));
            text.push_str(&format!(
                " AND substring({country}, 1, {length}) = {prefix}"
            ));
        }
        _ => equal(country, &query.country),
    }
    text
}

/// Sums of rows, in the order of [`Totals`]'s fields.
pub(super) fn row_sums() -> String {
    let sums = sql::SUMS.map(|(row, _)| format!("sum({row})"));
    format!("count(), {}", sums.join(", "))
}

/// Sums of roll-ups, in the order of [`Totals`]'s fields.
fn rollup_sums() -> String {
    let sums = sql::SUMS.map(|(_, sum)| format!("sum({sum})"));
    format!("sum(connections), {}", sums.join(", "))
}
