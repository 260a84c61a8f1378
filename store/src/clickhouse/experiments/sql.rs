//! Texts of SQL for experiments: tables of version 2 of the schema, and the statements that insert.

use crate::clickhouse::batch::{BatchHead, Kind};
use crate::clickhouse::client::INCOMING;
use crate::clickhouse::sql::{names, structure, table};
use crate::experiment::METRIC_COLUMNS;

/// Tables of version 2.
pub(crate) const TABLES: [&str; 3] = ["experiment", "visit", "arm_minute"];

/// Columns of `visit` before the metrics.
const VISIT_COLUMNS: [(&str, &str); 11] = [
    ("at_ms", "UInt64"),
    ("experiment", "String"),
    ("user_id", "UInt64"),
    ("view_id", "UInt64"),
    ("arm", "String"),
    ("server", "String"),
    ("is_failed", "UInt8"),
    ("files", "UInt32"),
    ("files_failed", "UInt32"),
    ("files_truncated", "UInt32"),
    ("file_bytes", "UInt64"),
];

/// Columns of `arm_minute`. A histogram has three arrays.
pub(super) const ARM_COLUMNS: [(&str, &str); 23] = [
    ("at_s", "UInt64"),
    ("experiment", "String"),
    ("arm", "String"),
    ("server", "String"),
    ("connections", "UInt64"),
    ("requests", "UInt64"),
    ("promised", "UInt64"),
    ("sent", "UInt64"),
    ("truncated", "UInt64"),
    ("aborted", "UInt64"),
    ("duration_ms", "UInt64"),
    ("cpu_us", "UInt64"),
    ("cpu_connections", "UInt64"),
    ("open_sum", "UInt64"),
    ("open_samples", "UInt64"),
    ("open_max", "UInt64"),
    ("memory_max", "UInt64"),
    ("first_byte_bucket", "Array(UInt16)"),
    ("first_byte_count", "Array(UInt64)"),
    ("first_byte_sum_us", "Array(UInt64)"),
    ("handshake_bucket", "Array(UInt16)"),
    ("handshake_count", "Array(UInt64)"),
    ("handshake_sum_us", "Array(UInt64)"),
];

/// Columns of `experiment`.
pub(super) const SETTING_COLUMNS: [(&str, &str); 9] = [
    ("since_s", "UInt64"),
    ("name", "String"),
    ("arms", "String"),
    ("share", "UInt32"),
    ("start_s", "Nullable(UInt64)"),
    ("end_s", "Nullable(UInt64)"),
    ("window_s", "UInt64"),
    ("pre_period_s", "UInt64"),
    ("metrics", "String"),
];

/// Columns of `visit`.
pub(super) fn visit_columns() -> Vec<(&'static str, &'static str)> {
    let metrics = METRIC_COLUMNS.map(|column| (column, "Nullable(UInt32)"));
    VISIT_COLUMNS.into_iter().chain(metrics).collect()
}

/// Statements that make the tables; each does nothing if its table exists.
pub(crate) fn schema(database: &str) -> Vec<String> {
    let create = |name: &str, columns: &str, rest: &str| {
        let name = table(database, name);
        format!("CREATE TABLE IF NOT EXISTS {name} ({columns}) ENGINE = MergeTree {rest}")
    };
    let of_batch =
        |columns: &[(&str, &str)]| format!("{}, run UInt64, batch UInt64", structure(columns));
    vec![
        create(
            "experiment",
            &structure(&SETTING_COLUMNS),
            "ORDER BY (name, since_s)",
        ),
        create(
            "visit",
            &of_batch(&visit_columns()),
            "PARTITION BY intDiv(at_ms, 86400000) ORDER BY (experiment, user_id, view_id)",
        ),
        create(
            "arm_minute",
            &of_batch(&ARM_COLUMNS),
            "PARTITION BY intDiv(at_s, 86400) ORDER BY (at_s, experiment, arm, server)",
        ),
    ]
}

/// Columns of a batch with their types.
pub(crate) fn incoming(kind: Kind) -> String {
    match kind {
        Kind::Visits => structure(&visit_columns()),
        Kind::Arms => structure(&ARM_COLUMNS),
        _ => structure(&SETTING_COLUMNS),
    }
}

/// Inserts the rows of a batch, unless they are stored. Doubled settings do not matter: answers ignore equal ones.
pub(crate) fn insert(database: &str, head: &BatchHead, rows: &[u8]) -> String {
    let BatchHead {
        kind, run, batch, ..
    } = head;
    let (name, columns, stored) = match kind {
        Kind::Visits => ("visit", visit_columns(), first_visit(head, rows)),
        Kind::Arms => (
            "arm_minute",
            ARM_COLUMNS.to_vec(),
            format!(
                "at_s >= {} AND at_s <= {}",
                head.first_s - head.first_s % 60,
                head.last_s
            ),
        ),
        _ => {
            let (name, columns) = (table(database, "experiment"), names(&SETTING_COLUMNS));
            return format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {INCOMING}");
        }
    };
    let (name, columns) = (table(database, name), names(&columns));
    format!(
        "INSERT INTO {name} ({columns}, run, batch) SELECT {columns}, {run}, {batch} FROM {INCOMING} \
         WHERE (SELECT count() FROM {name} WHERE {stored} AND run = {run} AND batch = {batch}) = 0"
    )
}

/// Condition that finds the first page view of a batch. A batch is one part, so one of its rows is enough, and the
/// table is sorted by experiment and user.
fn first_visit(head: &BatchHead, rows: &[u8]) -> String {
    let line = rows.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = str::from_utf8(line).unwrap_or_default();
    let mut fields = line.split('\t').skip(1);
    // Escapes of rows and of literals are the same.
    let mut field = || fields.next().unwrap_or_default();
    let (experiment, user, view) = (field(), field(), field());
    let day = head.first_s / 86_400;
    format!(
        "at_ms >= {} AND at_ms < {} AND experiment = '{experiment}' AND user_id = {user} AND view_id = {view}",
        day * 86_400_000,
        (day + 1) * 86_400_000
    )
}

#[cfg(test)]
mod tests {
    use super::super::encode::visits;
    use super::*;
    use crate::experiment::Visit;

    #[test]
    fn batch_is_found_by_its_first_page_view() {
        let visit = Visit {
            at_ms: 86_400_500,
            user: u64::MAX,
            view: 7,
            experiment: "it's\t".to_owned(),
            ..Visit::default()
        };
        let batches = visits(&[visit.clone(), Visit { user: 1, ..visit }]);
        assert_eq!(batches.len(), 1);
        let rows = batches[0].rows.as_bytes();
        assert_eq!(
            first_visit(&batches[0].head, rows),
            "at_ms >= 86400000 AND at_ms < 172800000 AND experiment = 'it\\'s\\t' \
             AND user_id = 18446744073709551615 AND view_id = 7"
        );
    }
}
