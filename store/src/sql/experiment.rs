//! Texts of SQL for experiments: tables of version 3, and the statements that read and write them.

use crate::experiment::{VisitMetric, column};

/// Tables of version 3. A page view is stored once for a user and an id. `experiment_arm` has sums of `visit`: a count would read all
/// of it. The index finds old page views.
pub(super) const TABLES: &str = "
CREATE TABLE experiment (
    id INTEGER PRIMARY KEY,
    name INTEGER NOT NULL,
    since_s INTEGER NOT NULL,
    arms TEXT NOT NULL,
    share INTEGER NOT NULL,
    start_s INTEGER,
    end_s INTEGER,
    window_s INTEGER NOT NULL,
    pre_period_s INTEGER NOT NULL,
    metrics TEXT NOT NULL
) STRICT;
CREATE TABLE experiment_arm (
    experiment INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    views INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (experiment, arm)
) STRICT, WITHOUT ROWID;
CREATE TABLE visit (
    experiment INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    view_id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    server INTEGER NOT NULL,
    is_failed INTEGER NOT NULL,
    files INTEGER NOT NULL,
    files_failed INTEGER NOT NULL,
    files_truncated INTEGER NOT NULL,
    file_bytes INTEGER NOT NULL,
    dns_us INTEGER,
    connect_us INTEGER,
    tls_us INTEGER,
    first_byte_us INTEGER,
    response_us INTEGER,
    dom_content_loaded_us INTEGER,
    load_us INTEGER,
    first_contentful_paint_us INTEGER,
    largest_contentful_paint_us INTEGER,
    interaction_to_next_paint_us INTEGER,
    layout_shift INTEGER,
    files_us INTEGER,
    PRIMARY KEY (experiment, user_id, view_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX visit_at ON visit (at_ms);
CREATE TABLE arm_minute (
    at_s INTEGER NOT NULL,
    experiment INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    server INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    promised INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    aborted INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    cpu_us INTEGER NOT NULL,
    cpu_connections INTEGER NOT NULL,
    open_sum INTEGER NOT NULL,
    open_samples INTEGER NOT NULL,
    open_max INTEGER NOT NULL,
    memory_max INTEGER NOT NULL,
    first_byte BLOB NOT NULL,
    handshake BLOB NOT NULL,
    PRIMARY KEY (at_s, experiment, arm, server)
) STRICT, WITHOUT ROWID;
";

/// Views of these tables. Users are hexadecimal: numbers of SQLite have a sign.
pub(super) const VIEWS: &str = "
CREATE VIEW experiments AS SELECT
    name.text AS experiment, datetime(e.since_s, 'unixepoch') AS since, e.arms, e.share / 100.0 AS share,
    datetime(e.start_s, 'unixepoch') AS starts, datetime(e.end_s, 'unixepoch') AS ends, e.window_s, e.pre_period_s, e.metrics
FROM experiment AS e JOIN name ON name.id = e.name;
CREATE VIEW visits AS SELECT
    datetime(v.at_ms / 1000, 'unixepoch') AS at, experiment.text AS experiment, arm.text AS arm, server.text AS server,
    format('%016x', v.user_id) AS user, format('%016x', v.view_id) AS view,
    v.is_failed, v.files, v.files_failed, v.files_truncated, v.file_bytes,
    v.dns_us / 1000.0 AS dns_ms, v.connect_us / 1000.0 AS connect_ms, v.tls_us / 1000.0 AS tls_ms,
    v.first_byte_us / 1000.0 AS first_byte_ms, v.response_us / 1000.0 AS response_ms,
    v.dom_content_loaded_us / 1000.0 AS dom_content_loaded_ms, v.load_us / 1000.0 AS load_ms,
    v.first_contentful_paint_us / 1000.0 AS first_contentful_paint_ms,
    v.largest_contentful_paint_us / 1000.0 AS largest_contentful_paint_ms,
    v.interaction_to_next_paint_us / 1000.0 AS interaction_to_next_paint_ms,
    v.layout_shift / 1000.0 AS layout_shift, v.files_us / 1000.0 AS files_ms
FROM visit AS v
    JOIN name AS experiment ON experiment.id = v.experiment
    JOIN name AS arm ON arm.id = v.arm
    JOIN name AS server ON server.id = v.server;
CREATE VIEW arm_minutes AS SELECT
    datetime(a.at_s, 'unixepoch') AS at, experiment.text AS experiment, arm.text AS arm, server.text AS server,
    a.connections, a.requests, a.promised, a.sent, a.truncated, a.aborted, a.duration_ms, a.cpu_us / 1000.0 AS cpu_ms,
    a.cpu_connections, a.open_sum * 1.0 / nullif(a.open_samples, 0) AS open_mean, a.open_max, a.memory_max
FROM arm_minute AS a
    JOIN name AS experiment ON experiment.id = a.experiment
    JOIN name AS arm ON arm.id = a.arm
    JOIN name AS server ON server.id = a.server;
";

// Texts that read.

/// Settings of an experiment, in the order of storage: a clock may have been wrong.
pub(crate) const SETTINGS: &str =
    "SELECT since_s, arms, share, start_s, end_s, window_s, pre_period_s, metrics FROM experiment
WHERE name = ?1 ORDER BY id";

/// Numbers of the experiments with settings or page views.
pub(crate) const NUMBERS: &str =
    "SELECT name FROM experiment UNION SELECT experiment FROM experiment_arm";

/// Sums of the arms of an experiment.
pub(crate) const ARMS: &str =
    "SELECT arm, views, first_ms, last_ms FROM experiment_arm WHERE experiment = ?1";

/// Page views of an experiment before a time by user, with the value of a metric. The plus sign keeps SQLite from the index by time,
/// which would need a sort.
pub(crate) fn values(metric: VisitMetric) -> String {
    let column = column(metric);
    format!(
        "SELECT user_id, view_id, at_ms, arm, {column} FROM visit WHERE experiment = ?1 AND +at_ms < ?2
ORDER BY user_id"
    )
}

/// Page views of an experiment before a time by user, with their files.
pub(crate) const FILES: &str = "SELECT user_id, view_id, at_ms, arm,
    is_failed, files, files_failed, files_truncated, file_bytes FROM visit
WHERE experiment = ?1 AND +at_ms < ?2 ORDER BY user_id";

/// Figures of the arms of an experiment within a period, by time.
pub(crate) const STEPS: &str = "SELECT at_s, arm, connections, requests, promised, sent, truncated, aborted,
    duration_ms, cpu_us, cpu_connections, open_sum, open_samples, open_max, memory_max, first_byte, handshake
FROM arm_minute WHERE at_s >= ?1 AND at_s < ?2 AND experiment = ?3 ORDER BY at_s";

/// Time of the oldest page view.
pub(crate) const OLDEST_VISIT: &str = "SELECT min(at_ms) FROM visit";

/// Time of the newest page view before a time.
pub(crate) const NEWEST_VISIT: &str = "SELECT max(at_ms) FROM visit WHERE at_ms < ?1";

/// Time of the last page view.
pub(crate) const LATEST_VISIT: &str = "SELECT max(at_ms) FROM visit";

pub(crate) const OLDEST_ARM: &str = "SELECT min(at_s) FROM arm_minute";

pub(crate) const LATEST_ARM: &str = "SELECT max(at_s) FROM arm_minute";

// Texts that write.

pub(crate) const INSERT_SETTINGS: &str = "INSERT INTO experiment
    (name, since_s, arms, share, start_s, end_s, window_s, pre_period_s, metrics)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// Adds a page view, unless the user has one with this id.
pub(crate) const INSERT_VISIT: &str = "INSERT OR IGNORE INTO visit VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";

/// Adds page views to the sums of an arm.
pub(crate) const ADD_VIEWS: &str = "INSERT INTO experiment_arm VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET views = views + excluded.views,
    first_ms = min(first_ms, excluded.first_ms), last_ms = max(last_ms, excluded.last_ms)";

/// Subtracts page views from the sums of an arm. Its times stay within those of all remaining page views.
pub(crate) const TAKE_VIEWS: &str = "UPDATE experiment_arm SET views = views - ?3,
    first_ms = max(first_ms, (SELECT ifnull(min(at_ms), 0) FROM visit)),
    last_ms = min(last_ms, (SELECT ifnull(max(at_ms), 0) FROM visit)) WHERE experiment = ?1 AND arm = ?2";

/// Deletes an arm without page views.
pub(crate) const DELETE_ARM: &str =
    "DELETE FROM experiment_arm WHERE experiment = ?1 AND arm = ?2 AND views <= 0";

/// Deletes the oldest page views, before a time.
pub(crate) const DELETE_VISITS: &str =
    "DELETE FROM visit WHERE +at_ms < ?1 AND (experiment, user_id, view_id) IN
    (SELECT experiment, user_id, view_id FROM visit ORDER BY at_ms LIMIT ?2) RETURNING experiment, arm";

/// Deletes page views after a time, the latest ones.
pub(crate) const DELETE_LATER_VISITS: &str =
    "DELETE FROM visit WHERE +at_ms > ?1 AND (experiment, user_id, view_id) IN
    (SELECT experiment, user_id, view_id FROM visit ORDER BY at_ms DESC LIMIT ?2) RETURNING experiment, arm";

/// Deletes figures of arms after a time, which is in the future.
pub(crate) const DELETE_LATER_ARMS: &str = "DELETE FROM arm_minute WHERE at_s > ?1";

/// Deletes the oldest figures of arms, before a time.
pub(crate) const DELETE_ARMS: &str = "DELETE FROM arm_minute WHERE at_s < ?1 AND at_s <=
    (SELECT max(at_s) FROM (SELECT at_s FROM arm_minute ORDER BY at_s LIMIT ?2))";

pub(crate) const FIND_ARM: &str = "SELECT connections, requests, promised, sent, truncated, aborted,
    duration_ms, cpu_us, cpu_connections, open_sum, open_samples, open_max, memory_max, first_byte, handshake
FROM arm_minute WHERE at_s = ?1 AND experiment = ?2 AND arm = ?3 AND server = ?4";

pub(crate) const PUT_ARM: &str = "INSERT OR REPLACE INTO arm_minute VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
