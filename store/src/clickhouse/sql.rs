//! Texts of SQL for ClickHouse: the schema, and the statements that write.
//!
//! ClickHouse 18.16 has no common table expressions, no window functions, no `LowCardinality` and no TTL. Its materialized views
//! read their table directly, without a subquery. Numbers and escaped literals are the only values in a text.

use super::text::{identifier, literal};

/// Version of the schema.
pub(super) const SCHEMA_VERSION: u32 = 2;

/// Columns of `connection` in the order of [`super::encode`], with their types in a batch. `run` and `batch` follow.
pub(super) const COLUMNS: [(&str, &str); 26] = [
    ("closed_s", "UInt64"),
    ("server", "String"),
    ("protocol", "String"),
    ("tls", "String"),
    ("country", "String"),
    ("subdivision", "String"),
    ("operator", "String"),
    ("network", "String"),
    ("via_proxy", "UInt8"),
    ("min_rtt_us", "Nullable(UInt32)"),
    ("rtt_us", "Nullable(UInt32)"),
    ("first_byte_us", "Nullable(UInt32)"),
    ("handshake_us", "Nullable(UInt32)"),
    ("handshake_kind", "String"),
    ("requests", "UInt32"),
    ("bytes_sent", "UInt64"),
    ("bytes_received", "UInt64"),
    ("retransmits", "UInt32"),
    ("stalls_delayed_ack", "UInt64"),
    ("stalls_retransmit", "UInt64"),
    ("stalls_window", "UInt64"),
    ("status_2xx", "UInt32"),
    ("status_3xx", "UInt32"),
    ("status_4xx", "UInt32"),
    ("status_5xx", "UInt32"),
    ("duration_ms", "UInt64"),
];

/// Columns of `open`.
pub(super) const OPEN_COLUMNS: [(&str, &str); 4] = [
    ("at_s", "UInt64"),
    ("server", "String"),
    ("protocol", "String"),
    ("connections", "UInt64"),
];

/// Sums of a roll-up: the column of a row, and that of the roll-up. 18.16 does not tell columns from aliases of the same name,
/// and the histograms of RTTs read `via_proxy`.
pub(super) const SUMS: [(&str, &str); 13] = [
    ("requests", "requests"),
    ("bytes_sent", "bytes_sent"),
    ("bytes_received", "bytes_received"),
    ("retransmits", "retransmits"),
    ("via_proxy", "proxied"),
    ("stalls_delayed_ack", "stalls_delayed_ack"),
    ("stalls_retransmit", "stalls_retransmit"),
    ("stalls_window", "stalls_window"),
    ("status_2xx", "status_2xx"),
    ("status_3xx", "status_3xx"),
    ("status_4xx", "status_4xx"),
    ("status_5xx", "status_5xx"),
    ("duration_ms", "duration_ms"),
];

/// Histograms of a roll-up by [`crate::Metric`], and whether they exclude connections through a proxy.
pub(super) const HISTOGRAMS: [(&str, bool); 4] = [
    ("min_rtt", true),
    ("rtt", true),
    ("first_byte", false),
    ("handshake", false),
];

/// Tables of roll-ups, and their lengths in seconds.
pub(super) const ROLLUPS: [(&str, u64); 2] = [("rollup_hour", 3600), ("rollup_day", 86_400)];

/// Dimension of the markers: one for each batch that a roll-up contains.
pub(super) const MARKER: u8 = 3;

/// Tables and views of version 1.
pub(super) const TABLES: [&str; 8] = [
    "schema",
    "connection",
    "open",
    "kept",
    "rollup_hour",
    "rollup_day",
    "rollup_hour_view",
    "rollup_day_view",
];

/// Full name of a table.
pub(super) fn table(database: &str, name: &str) -> String {
    format!("{}.{}", identifier(database), identifier(name))
}

/// List of columns with their types.
pub(super) fn structure(columns: &[(&str, &str)]) -> String {
    let each = columns.iter().map(|(name, kind)| format!("{name} {kind}"));
    each.collect::<Vec<_>>().join(", ")
}

/// List of columns without their types.
pub(super) fn names(columns: &[(&str, &str)]) -> String {
    let each = columns.iter().map(|(name, _)| *name);
    each.collect::<Vec<_>>().join(", ")
}

/// Statements that make version 1 of the schema; each has no effect if its table exists. Views come last: they read
/// the tables.
pub(super) fn schema(database: &str) -> Vec<String> {
    let create = |name: &str, rest: &str| {
        let name = table(database, name);
        format!("CREATE TABLE IF NOT EXISTS {name} {rest}")
    };
    let kinds = "Enum8('none' = 0, 'full' = 1, 'resumed' = 2, 'early' = 3)";
    let columns =
        structure(&COLUMNS).replace("handshake_kind String", &format!("handshake_kind {kinds}"));
    let mut statements = vec![
        create(
            "schema",
            "(version UInt32, at_s UInt64) ENGINE = MergeTree ORDER BY version",
        ),
        create(
            "connection",
            &format!(
                "({columns}, run UInt64, batch UInt64) ENGINE = MergeTree PARTITION BY intDiv(closed_s, 86400) \
                 ORDER BY (intDiv(closed_s, 3600), server, country, subdivision, operator)"
            ),
        ),
        create(
            "open",
            &format!(
                "({}) ENGINE = MergeTree PARTITION BY intDiv(at_s, 86400) ORDER BY (at_s, server, protocol)",
                structure(&OPEN_COLUMNS)
            ),
        ),
        create(
            "kept",
            "(resolution UInt8, from_s UInt64) ENGINE = MergeTree ORDER BY resolution",
        ),
    ];
    for (name, _) in ROLLUPS {
        let sums = SUMS.map(|(_, sum)| format!("{sum} UInt64")).join(", ");
        let histograms = HISTOGRAMS
            .map(|(name, _)| {
                format!("{name}Map Nested(bucket UInt16, count UInt64, sum_us UInt64)")
            })
            .join(", ");
        // Columns outside of the order are summed, so the day is in it. A granule is short: a query reads a few keys of many.
        statements.push(create(
            name,
            &format!(
                "(day UInt32, dimension UInt8, start_s UInt64, key String, protocol String, server String, \
                 connections UInt64, {sums}, {histograms}) ENGINE = SummingMergeTree PARTITION BY day \
                 ORDER BY (dimension, day, start_s, key, protocol, server) SETTINGS index_granularity = 1024"
            ),
        ));
    }
    for (name, seconds) in ROLLUPS {
        statements.push(format!(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS {} TO {} AS {}",
            table(database, &format!("{name}_view")),
            table(database, name),
            rolled(database, seconds, "", "")
        ));
    }
    statements
}

/// Bucket of the time `us`, equal to [`crate::bucket_of`]. The logarithm is taken of a power of two, so rounding
/// makes it exact.
pub(super) fn bucket(us: &str) -> String {
    let large = format!("greatest({us}, 16)");
    format!(
        "toUInt16(if({us} < 16, toInt64({us}), toInt64(round(log2(roundToExp2({large})))) * 16 - 64 \
         + intDiv(toUInt64({large}) * 16, roundToExp2({large}))))"
    )
}

/// Rows of roll-ups from rows of connections; `prewhere` and `and` choose them.
///
/// A histogram counts each time in a cell of its own. The table adds up equal buckets when it merges, and so do queries.
fn rolled(database: &str, seconds: u64, prewhere: &str, and: &str) -> String {
    let sums = SUMS
        .map(|(row, sum)| format!("sum({row}) AS {sum}"))
        .join(", ");
    let histograms = HISTOGRAMS
        .map(|(name, without_proxies)| {
            let proxy = if without_proxies {
                " OR via_proxy = 1"
            } else {
                ""
            };
            // It leaves out NULL.
            let times = format!("groupArray(if(dimension = {MARKER}{proxy}, NULL, {name}_us))");
            format!(
                "arrayMap(us -> {}, {times}) AS `{name}Map.bucket`, \
                 arrayMap(us -> toUInt64(1), {times}) AS `{name}Map.count`, \
                 arrayMap(us -> toUInt64(us), {times}) AS `{name}Map.sum_us`",
                bucket("us")
            )
        })
        .join(", ");
    format!(
        "SELECT toUInt32(intDiv(closed_s, 86400)) AS day, dimension, \
         if(dimension = {MARKER}, batch, intDiv(closed_s, {seconds}) * {seconds}) AS start_s, key, protocol, server, \
         count() AS connections, {sums}, {histograms} FROM {} \
         ARRAY JOIN [0, 1, 2, {MARKER}] AS dimension, [country, subdivision, operator, toString(run)] AS key{prewhere} \
         WHERE (dimension = 0 OR key != ''){and} GROUP BY day, dimension, start_s, key, protocol, server",
        table(database, "connection")
    )
}

/// A batch in statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchRows<'a> {
    /// Day of UTC, since 1970.
    pub(super) day: u64,
    /// Times of the first and of the last row, Unix seconds.
    pub(super) first_s: u64,
    pub(super) last_s: u64,
    pub(super) run: u64,
    pub(super) batch: u64,
    /// Server of the first row, escaped.
    pub(super) server: &'a str,
}

impl BatchRows<'_> {
    /// Condition that chooses the rows of the batch.
    fn chosen(&self) -> String {
        let Self {
            first_s,
            last_s,
            run,
            batch,
            ..
        } = self;
        format!(
            "run = {run} AND batch = {batch} AND closed_s >= {first_s} AND closed_s <= {last_s} \
             AND intDiv(closed_s, 3600) >= {} AND intDiv(closed_s, 3600) <= {}",
            first_s / 3600,
            last_s / 3600
        )
    }
}

/// Inserts the rows of a batch, unless they are stored.
///
/// A batch is one part, so one of its rows is enough for the check. With the server of a row it reads the rows of that server
/// in an hour, and not those of the whole fleet: the table is sorted by hour and server.
pub(super) fn insert_rows(database: &str, batch: &BatchRows<'_>) -> String {
    let (name, columns) = (table(database, "connection"), names(&COLUMNS));
    format!(
        "INSERT INTO {name} ({columns}, run, batch) SELECT {columns}, {}, {} FROM {} \
         WHERE (SELECT count() FROM {name} WHERE server = '{}' AND {}) = 0",
        batch.run,
        batch.batch,
        super::client::INCOMING,
        batch.server,
        batch.chosen()
    )
}

/// Counts the markers of a batch in a roll-up.
pub(super) fn markers(database: &str, rollup: &str, batch: &BatchRows<'_>) -> String {
    format!(
        "SELECT count() FROM {} WHERE day = {} AND dimension = {MARKER} AND start_s = {} AND key = {}",
        table(database, rollup),
        batch.day,
        batch.batch,
        literal(&batch.run.to_string())
    )
}

/// Adds the rows of a batch to a roll-up, unless it has the marker of the batch.
pub(super) fn repair(database: &str, rollup: (&str, u64), batch: &BatchRows<'_>) -> String {
    let (name, seconds) = (table(database, rollup.0), rollup.1);
    let sums = SUMS.map(|(_, sum)| sum).join(", ");
    let histograms = HISTOGRAMS
        .map(|(name, _)| format!("`{name}Map.bucket`, `{name}Map.count`, `{name}Map.sum_us`"))
        .join(", ");
    let prewhere = format!(" PREWHERE {}", batch.chosen());
    let missing = format!(" AND ({}) = 0", markers(database, rollup.0, batch));
    format!(
        "INSERT INTO {name} (day, dimension, start_s, key, protocol, server, connections, {sums}, {histograms}) {}",
        rolled(database, seconds, &prewhere, &missing)
    )
}

/// Inserts samples of open connections. Doubled ones do not matter: queries take the largest of a minute.
pub(super) fn insert_open(database: &str) -> String {
    let (name, columns) = (table(database, "open"), names(&OPEN_COLUMNS));
    format!(
        "INSERT INTO {name} ({columns}) SELECT {columns} FROM {}",
        super::client::INCOMING
    )
}
