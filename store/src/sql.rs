//! Texts of SQL, all in one place.
//!
//! The texts that read use neither joins nor common table expressions nor window functions, so ClickHouse 18.16 understands them
//! too. Their parameters are integers. The schema and the texts that write are SQLite's.

/// `application_id` of a store: the letters `1byt`.
pub(crate) const APPLICATION_ID: i64 = 0x3162_7974;
/// `user_version` of a store: the version of its schema.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Settings of a new file, before its first table. Roll-ups of 2 KB fit into a page of 8 KiB.
pub(crate) const NEW_FILE: &str = "PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;";

/// Settings of a connection that writes. In WAL mode `synchronous = NORMAL` loses nothing if the process is killed; if the
/// power fails it may lose the last transactions, and the file stays whole.
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

/// Tables and views. Strict tables have types that the check of an opening holds them to. Names of servers, protocols, countries, subdivisions and operators are numbers of `name`; 0 is the
/// empty text. The views show them as texts.
pub(crate) const SCHEMA: &str = "
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
    handshake_kind INTEGER NOT NULL
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
    handshake BLOB NOT NULL,
    PRIMARY KEY (resolution, dimension, start_s, key, protocol, server)
) STRICT, WITHOUT ROWID;
CREATE VIEW connections AS SELECT
    c.id, datetime(c.closed_s, 'unixepoch') AS closed, server.text AS server, protocol.text AS protocol, tls.text AS tls,
    country.text AS country, subdivision.text AS subdivision, operator.text AS operator, c.network, c.via_proxy,
    c.min_rtt_us / 1000.0 AS min_rtt_ms, c.rtt_us / 1000.0 AS rtt_ms, c.first_byte_us / 1000.0 AS first_byte_ms,
    c.handshake_us / 1000.0 AS handshake_ms,
    CASE c.handshake_kind WHEN 0 THEN 'none' WHEN 1 THEN 'full' WHEN 2 THEN 'resumed' ELSE 'early' END AS handshake_kind,
    c.requests, c.bytes_sent, c.bytes_received, c.retransmits, c.stalls_delayed_ack, c.stalls_retransmit, c.stalls_window,
    c.duration_ms
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
    r.stalls_delayed_ack, r.stalls_retransmit, r.stalls_window
FROM rollup AS r
    JOIN name AS key ON key.id = r.key
    JOIN name AS protocol ON protocol.id = r.protocol
    JOIN name AS server ON server.id = r.server;
";

// Texts that read.

pub(crate) const NAME_OF: &str = "SELECT text FROM name WHERE id = ?1";

/// The one text with a text as parameter.
pub(crate) const ID_OF: &str = "SELECT id FROM name WHERE text = ?1";

pub(crate) const LAST_NAME: &str = "SELECT max(id) FROM name";

pub(crate) const STATE: &str =
    "SELECT rolled_id, minutes_from_s, hours_from_s, days_from_s FROM state";

/// Roll-ups of a resolution and dimension within a period; -1 is any protocol, server or key. `GROUP` is the number of the group,
/// and `COLUMN` a histogram.
pub(crate) const ROLLUPS: &str =
    "SELECT GROUP, connections, requests, bytes_sent, bytes_received, retransmits,
    via_proxy, stalls_delayed_ack, stalls_retransmit, stalls_window, COLUMN
FROM rollup
WHERE resolution = ?1 AND dimension = ?2 AND start_s >= ?3 AND start_s < ?4
    AND (?5 < 0 OR protocol = ?5) AND (?6 < 0 OR server = ?6) AND (?7 < 0 OR key = ?7)";

/// Columns of a sample.
const SAMPLE: &str = "id, closed_s, server, protocol, country, subdivision, operator, via_proxy,
    min_rtt_us, rtt_us, first_byte_us, handshake_us, requests, bytes_sent, bytes_received, retransmits,
    stalls_delayed_ack, stalls_retransmit, stalls_window, duration_ms";

/// Rows after an id, in the order of their ids.
pub(crate) fn rows() -> String {
    format!("SELECT {SAMPLE} FROM connection WHERE id > ?1 ORDER BY id LIMIT ?2")
}

/// Networks and rows up to an id, the last ones first.
pub(crate) fn network_rows() -> String {
    format!("SELECT {SAMPLE}, network FROM connection WHERE id <= ?1 ORDER BY id DESC LIMIT ?2")
}

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
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";

pub(crate) const FIND_ROLLUP: &str = "SELECT connections, requests, bytes_sent, bytes_received, retransmits,
    via_proxy, stalls_delayed_ack, stalls_retransmit, stalls_window, min_rtt, rtt, first_byte, handshake
FROM rollup
WHERE resolution = ?1 AND dimension = ?2 AND start_s = ?3 AND key = ?4 AND protocol = ?5 AND server = ?6";

pub(crate) const PUT_ROLLUP: &str = "INSERT OR REPLACE INTO rollup VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

pub(crate) const ROLLED: &str = "UPDATE state SET rolled_id = ?1";

pub(crate) const KEPT: &str =
    "UPDATE state SET minutes_from_s = ?1, hours_from_s = ?2, days_from_s = ?3";

pub(crate) const DELETE_ROWS: &str = "DELETE FROM connection WHERE id <= ?1";

pub(crate) const DELETE_ROLLUPS: &str =
    "DELETE FROM rollup WHERE resolution = ?1 AND dimension = ?2 AND start_s = ?3";
