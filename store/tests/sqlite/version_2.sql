-- Version 2 of the schema, as files of it have it.
PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
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
    handshake_kind INTEGER NOT NULL,
    status_2xx INTEGER NOT NULL DEFAULT 0,
    status_3xx INTEGER NOT NULL DEFAULT 0,
    status_4xx INTEGER NOT NULL DEFAULT 0,
    status_5xx INTEGER NOT NULL DEFAULT 0
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
    status_2xx INTEGER NOT NULL DEFAULT 0,
    status_3xx INTEGER NOT NULL DEFAULT 0,
    status_4xx INTEGER NOT NULL DEFAULT 0,
    status_5xx INTEGER NOT NULL DEFAULT 0,
    duration_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (resolution, dimension, start_s, key, protocol, server)
) STRICT, WITHOUT ROWID;

CREATE TABLE open (
    at_s INTEGER NOT NULL,
    server INTEGER NOT NULL,
    protocol INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    PRIMARY KEY (at_s, server, protocol)
) STRICT, WITHOUT ROWID;

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
PRAGMA application_id = 828537204;
PRAGMA user_version = 2;
