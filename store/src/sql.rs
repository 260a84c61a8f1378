//! Texts of SQL, all in one place.
//!
//! The texts that read use neither joins nor common table expressions nor window functions, so ClickHouse 18.16 understands them
//! too. Their parameters are integers. The schema and the texts that write are SQLite's.

pub(crate) mod experiment;

/// `application_id` of a store: the letters `1byt`.
pub(crate) const APPLICATION_ID: i64 = 0x3162_7974;
/// `user_version` of a store: the version of its schema.
pub(crate) const SCHEMA_VERSION: i64 = 3;

/// Settings of a new file, before its first table. Roll-ups of 2 KB fit into a page of 8 KiB.
pub(crate) const NEW_FILE: &str = "PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;";

/// Settings of a writing connection. In WAL mode `synchronous = NORMAL` loses nothing if the process is killed; on
/// power failure it may lose the last transactions, and the file stays intact.
pub(crate) const WRITER: &str = "PRAGMA synchronous = NORMAL;
PRAGMA foreign_keys = OFF;
PRAGMA trusted_schema = OFF;
PRAGMA cache_size = -16384;
PRAGMA temp_store = MEMORY;
PRAGMA wal_autocheckpoint = 2000;
PRAGMA journal_size_limit = 33554432;";

/// Settings of a connection that reads.
pub(crate) const READER: &str = "PRAGMA query_only = ON;
PRAGMA trusted_schema = OFF;";

/// Tables that version 1 has too. The check of an opening holds strict tables to their types. Names of servers, protocols,
/// countries, subdivisions and operators are numbers of `name`; 0 is the empty text. `ADDED` are columns of later versions: they
/// have defaults, and rows of version 1 remain unchanged.
const TABLES: &str = "
CREATE TABLE name (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO name VALUES (0, ''), (1, '(other)');
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    rolled_id INTEGER NOT NULL,
    minutes_from_s INTEGER NOT NULL,
    hours_from_s INTEGER NOT NULL,
    days_from_s INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (0, 0, 0, 0, 0);
CREATE TABLE connection (
    id INTEGER PRIMARY KEY,
    closed_s INTEGER NOT NULL,
    server INTEGER NOT NULL,
    protocol INTEGER NOT NULL,
    tls INTEGER NOT NULL,
    country INTEGER NOT NULL,
    subdivision INTEGER NOT NULL,
    operator INTEGER NOT NULL,
    network TEXT,
    via_proxy INTEGER NOT NULL,
    min_rtt_us INTEGER,
    rtt_us INTEGER,
    first_byte_us INTEGER,
    handshake_us INTEGER,
    requests INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    retransmits INTEGER NOT NULL,
    stalls_delayed_ack INTEGER NOT NULL,
    stalls_retransmit INTEGER NOT NULL,
    stalls_window INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    handshake_kind INTEGER NOT NULLADDED_TO_CONNECTION
) STRICT;
CREATE TABLE rollup (
    resolution INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    start_s INTEGER NOT NULL,
    key INTEGER NOT NULL,
    protocol INTEGER NOT NULL,
    server INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    retransmits INTEGER NOT NULL,
    via_proxy INTEGER NOT NULL,
    stalls_delayed_ack INTEGER NOT NULL,
    stalls_retransmit INTEGER NOT NULL,
    stalls_window INTEGER NOT NULL,
    min_rtt BLOB NOT NULL,
    rtt BLOB NOT NULL,
    first_byte BLOB NOT NULL,
    handshake BLOB NOT NULLADDED_TO_ROLLUP,
    PRIMARY KEY (resolution, dimension, start_s, key, protocol, server)
) STRICT, WITHOUT ROWID;
";

/// Columns of version 2.
const STATUS_COLUMNS: &str = ",
    status_2xx INTEGER NOT NULL DEFAULT 0,
    status_3xx INTEGER NOT NULL DEFAULT 0,
    status_4xx INTEGER NOT NULL DEFAULT 0,
    status_5xx INTEGER NOT NULL DEFAULT 0";
const DURATION_COLUMN: &str = ",
    duration_ms INTEGER NOT NULL DEFAULT 0";

/// Table of version 2: open connections by minute.
const OPEN_TABLE: &str = "
CREATE TABLE open (
    at_s INTEGER NOT NULL,
    server INTEGER NOT NULL,
    protocol INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    PRIMARY KEY (at_s, server, protocol)
) STRICT, WITHOUT ROWID;
";

/// Views with texts in place of numbers.
const VIEWS: &str = "
CREATE VIEW connections AS SELECT
    c.id, datetime(c.closed_s, 'unixepoch') AS closed, server.text AS server, protocol.text AS protocol, tls.text AS tls,
    country.text AS country, subdivision.text AS subdivision, operator.text AS operator, c.network, c.via_proxy,
    c.min_rtt_us / 1000.0 AS min_rtt_ms, c.rtt_us / 1000.0 AS rtt_ms, c.first_byte_us / 1000.0 AS first_byte_ms,
    c.handshake_us / 1000.0 AS handshake_ms,
    CASE c.handshake_kind WHEN 0 THEN 'none' WHEN 1 THEN 'full' WHEN 2 THEN 'resumed' ELSE 'early' END AS handshake_kind,
    c.requests, c.bytes_sent, c.bytes_received, c.retransmits, c.stalls_delayed_ack, c.stalls_retransmit, c.stalls_window,
    c.duration_ms, c.status_2xx, c.status_3xx, c.status_4xx, c.status_5xx
FROM connection AS c
    JOIN name AS server ON server.id = c.server
    JOIN name AS protocol ON protocol.id = c.protocol
    JOIN name AS tls ON tls.id = c.tls
    JOIN name AS country ON country.id = c.country
    JOIN name AS subdivision ON subdivision.id = c.subdivision
    JOIN name AS operator ON operator.id = c.operator;
CREATE VIEW rollups AS SELECT
    CASE r.resolution WHEN 0 THEN 'minute' WHEN 1 THEN 'hour' ELSE 'day' END AS resolution,
    CASE r.dimension WHEN 0 THEN 'country' WHEN 1 THEN 'subdivision' ELSE 'operator' END AS dimension,
    datetime(r.start_s, 'unixepoch') AS start, key.text AS key, protocol.text AS protocol, server.text AS server,
    r.connections, r.requests, r.bytes_sent, r.bytes_received, r.retransmits, r.via_proxy,
    r.stalls_delayed_ack, r.stalls_retransmit, r.stalls_window,
    r.status_2xx, r.status_3xx, r.status_4xx, r.status_5xx, r.duration_ms
FROM rollup AS r
    JOIN name AS key ON key.id = r.key
    JOIN name AS protocol ON protocol.id = r.protocol
    JOIN name AS server ON server.id = r.server;
CREATE VIEW open_connections AS SELECT
    datetime(o.at_s, 'unixepoch') AS at, server.text AS server, protocol.text AS protocol, o.connections
FROM open AS o
    JOIN name AS server ON server.id = o.server
    JOIN name AS protocol ON protocol.id = o.protocol;
";

/// Tables of a version, 1 or later.
pub(crate) fn tables(version: i64) -> String {
    let (connection, rollup) = match version {
        1 => (String::new(), String::new()),
        _ => (
            STATUS_COLUMNS.to_owned(),
            format!("{STATUS_COLUMNS}{DURATION_COLUMN}"),
        ),
    };
    let tables = TABLES.replace("ADDED_TO_CONNECTION", &connection);
    tables.replace("ADDED_TO_ROLLUP", &rollup) + &later_tables(1, version)
}

/// Tables added by the versions after one, up to another.
fn later_tables(after: i64, version: i64) -> String {
    let added = [(2, OPEN_TABLE), (3, experiment::TABLES)];
    let within = added
        .into_iter()
        .filter(|(since, _)| (after + 1..=version).contains(since));
    within.map(|(_, tables)| tables).collect()
}

/// Tables and views of this version.
pub(crate) fn schema() -> String {
    tables(SCHEMA_VERSION) + VIEWS + experiment::VIEWS
}

/// Texts of the statements that make tables and views, as SQLite stores them.
pub(crate) fn statements(schema: &str) -> impl Iterator<Item = &str> {
    let texts = schema.split(";\n").map(str::trim);
    texts.filter(|text| text.starts_with("CREATE"))
}

/// Makes this version of an earlier one within a transaction.
///
/// `ALTER TABLE ADD COLUMN` would read a whole strict table to check it, for minutes in a large store. New columns at the end, with
/// a default, need no change of rows: texts of the two tables of version 1 are replaced, as that statement does it.
pub(crate) fn migration(version: i64) -> String {
    let tables = tables(2);
    let quoted = statements(&tables).filter_map(|text| {
        let name = text.strip_prefix("CREATE TABLE ")?.split(' ').next()?;
        let text = text.replace('\'', "''");
        Some(format!(
            "UPDATE sqlite_schema SET sql = '{text}' WHERE type = 'table' AND name = '{name}';\n"
        ))
    });
    let updates = match version {
        1 => format!(
            "PRAGMA writable_schema = ON;\n{}PRAGMA writable_schema = RESET;\n",
            quoted.collect::<String>()
        ),
        _ => String::new(),
    };
    format!(
        "{updates}DROP VIEW IF EXISTS connections;
DROP VIEW IF EXISTS rollups;
DROP VIEW IF EXISTS open_connections;
{}{VIEWS}{}PRAGMA user_version = {SCHEMA_VERSION};",
        later_tables(version, SCHEMA_VERSION),
        experiment::VIEWS
    )
}

// Texts that read.

pub(crate) const NAME_OF: &str = "SELECT text FROM name WHERE id = ?1";

/// The one text with a text as parameter.
pub(crate) const ID_OF: &str = "SELECT id FROM name WHERE text = ?1";

pub(crate) const LAST_NAME: &str = "SELECT max(id) FROM name";

pub(crate) const STATE: &str =
    "SELECT rolled_id, minutes_from_s, hours_from_s, days_from_s FROM state";

const STATUSES: &str = "status_2xx, status_3xx, status_4xx, status_5xx";

/// Sums of a roll-up.
const SUMS: &str = "connections, requests, bytes_sent, bytes_received, retransmits,
    via_proxy, stalls_delayed_ack, stalls_retransmit, stalls_window";

/// Roll-ups of a resolution and dimension within a period; -1 is any protocol, server or key. `group` is the number of the group,
/// and `histogram` a column.
pub(crate) fn rollups(version: i64, group: &str, histogram: &str) -> String {
    let added = match version {
        1 => "0, 0, 0, 0, 0".to_owned(),
        _ => format!("{STATUSES}, duration_ms"),
    };
    format!(
        "SELECT {group}, {SUMS}, {added}, {histogram}
FROM rollup
WHERE resolution = ?1 AND dimension = ?2 AND start_s >= ?3 AND start_s < ?4
    AND (?5 < 0 OR protocol = ?5) AND (?6 < 0 OR server = ?6) AND (?7 < 0 OR key = ?7)"
    )
}

/// Columns of a sample.
const SAMPLE: &str = "id, closed_s, server, protocol, country, subdivision, operator, via_proxy,
    min_rtt_us, rtt_us, first_byte_us, handshake_us, requests, bytes_sent, bytes_received, retransmits,
    stalls_delayed_ack, stalls_retransmit, stalls_window, duration_ms";

/// Rows after an id, in the order of their ids.
pub(crate) fn rows(version: i64) -> String {
    let statuses = statuses(version);
    format!("SELECT {SAMPLE}, {statuses} FROM connection WHERE id > ?1 ORDER BY id LIMIT ?2")
}

/// Networks and sums of rows from an id to another, within a period; -1 is any protocol, server or country.
pub(crate) fn network_rows(version: i64) -> String {
    let statuses = statuses(version);
    format!(
        "SELECT network, 1, requests, bytes_sent, bytes_received, retransmits, via_proxy,
    stalls_delayed_ack, stalls_retransmit, stalls_window, {statuses}, duration_ms
FROM connection
WHERE id >= ?1 AND id <= ?2 AND closed_s >= ?3 AND closed_s < ?4
    AND (?5 < 0 OR protocol = ?5) AND (?6 < 0 OR server = ?6) AND (?7 < 0 OR country = ?7)"
    )
}

fn statuses(version: i64) -> &'static str {
    match version {
        1 => "0, 0, 0, 0",
        _ => STATUSES,
    }
}

/// Open connections of a period, by time; -1 is any server.
pub(crate) const OPEN: &str = "SELECT at_s, protocol, connections FROM open
WHERE at_s >= ?1 AND at_s < ?2 AND (?3 < 0 OR server = ?3) ORDER BY at_s";

/// First row from an id.
pub(crate) const ROW_FROM: &str =
    "SELECT id, closed_s FROM connection WHERE id >= ?1 ORDER BY id LIMIT 1";

pub(crate) const FIRST_ID: &str = "SELECT min(id) FROM connection";

pub(crate) const LAST_ID: &str = "SELECT max(id) FROM connection";

/// Begin of the oldest roll-ups.
pub(crate) const OLDEST: &str =
    "SELECT min(start_s) FROM rollup WHERE resolution = ?1 AND dimension = ?2";

/// Begin of the newest roll-ups.
pub(crate) const LATEST: &str =
    "SELECT max(start_s) FROM rollup WHERE resolution = ?1 AND dimension = ?2";

pub(crate) const OLDEST_OPEN: &str = "SELECT min(at_s) FROM open";

pub(crate) const LATEST_OPEN: &str = "SELECT max(at_s) FROM open";

/// Last old row among the oldest ones.
pub(crate) const LAST_OLD: &str = "SELECT max(id) FROM
    (SELECT id, closed_s FROM connection WHERE id <= ?1 ORDER BY id LIMIT ?2) AS oldest WHERE closed_s < ?3";

/// Last of the oldest rows.
pub(crate) const LAST_OF_OLDEST: &str = "SELECT max(id) FROM
    (SELECT id FROM connection WHERE id <= ?1 ORDER BY id LIMIT ?2) AS oldest";

// Texts that write.

/// Time of the row that was stored last.
pub(crate) const NEWEST: &str = "SELECT closed_s FROM connection ORDER BY id DESC LIMIT 1";

pub(crate) const ADD_NAME: &str = "INSERT INTO name (text) VALUES (?1) RETURNING id";

pub(crate) const INSERT: &str = "INSERT INTO connection VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
    ?24, ?25, ?26, ?27)";

/// Adds a number of open connections; of one minute, the largest number remains.
pub(crate) const INSERT_OPEN: &str = "INSERT INTO open VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET connections = max(connections, excluded.connections)";

pub(crate) const FIND_ROLLUP: &str = "SELECT connections, requests, bytes_sent, bytes_received, retransmits,
    via_proxy, stalls_delayed_ack, stalls_retransmit, stalls_window,
    status_2xx, status_3xx, status_4xx, status_5xx, duration_ms, min_rtt, rtt, first_byte, handshake
FROM rollup
WHERE resolution = ?1 AND dimension = ?2 AND start_s = ?3 AND key = ?4 AND protocol = ?5 AND server = ?6";

pub(crate) const PUT_ROLLUP: &str = "INSERT OR REPLACE INTO rollup VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24)";

pub(crate) const ROLLED: &str = "UPDATE state SET rolled_id = ?1";

pub(crate) const KEPT: &str =
    "UPDATE state SET minutes_from_s = ?1, hours_from_s = ?2, days_from_s = ?3";

pub(crate) const DELETE_ROWS: &str = "DELETE FROM connection WHERE id <= ?1";

pub(crate) const DELETE_ROLLUPS: &str =
    "DELETE FROM rollup WHERE resolution = ?1 AND dimension = ?2 AND start_s = ?3";

/// Deletes the oldest numbers of open connections, before a time.
pub(crate) const DELETE_OPEN: &str = "DELETE FROM open WHERE at_s < ?1 AND at_s <=
    (SELECT max(at_s) FROM (SELECT at_s FROM open ORDER BY at_s LIMIT ?2))";

/// Deletes numbers of open connections from a time on, which is in the future.
pub(crate) const DELETE_LATER_OPEN: &str = "DELETE FROM open WHERE at_s > ?1";
