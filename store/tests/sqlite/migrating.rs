//! Files of versions 1 and 2: readers accept them unchanged, and the first opening for writing makes version 3.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use firstbyte_tests::TempDir;
use firstbyte_tests::wait::pause;
use store::{
    Answer, Connection, Dimension, Error, ExperimentQuery, ExperimentRows, Grouping, OpenSample,
    Query, Retention, Sqlite, Step, Store, Totals, Visit, VisitMetric,
};

use crate::rows::{DAY, NOON, child, child_argument, file, maintain, open, row, totals};

const VERSION_1: &str = include_str!("version_1.sql");
const VERSION_2: &str = include_str!("version_2.sql");
/// Columns of version 1, in their order.
const COLUMNS: [&str; 2] = [
    "id, closed_s, server, protocol, tls, country, subdivision, operator, network, via_proxy, min_rtt_us, rtt_us, first_byte_us,
    handshake_us, requests, bytes_sent, bytes_received, retransmits, stalls_delayed_ack, stalls_retransmit, stalls_window,
    duration_ms, handshake_kind",
    "resolution, dimension, start_s, key, protocol, server, connections, requests, bytes_sent, bytes_received, retransmits,
    via_proxy, stalls_delayed_ack, stalls_retransmit, stalls_window, min_rtt, rtt, first_byte, handshake",
];
/// Processes that are killed.
const KILLS: u64 = 40;

fn always(grouping: Grouping) -> Query {
    Query {
        to_s: u64::MAX,
        grouping,
        ..Query::default()
    }
}

fn old_rows() -> Vec<Connection> {
    let at = |n: u64| row(NOON + n * 700, ["DE", "FR"][n as usize % 2], 1000);
    (0..50).map(at).collect()
}

/// Makes a file of version 1 with 50 connections, 40 of them in roll-ups, and returns its sums.
fn version_1(path: &Path) -> Totals {
    let dir = TempDir::new();
    let newer = file(&dir);
    let mut store = open(&newer);
    let rows = old_rows();
    store.insert(&rows[..40]).expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
    store.insert(&rows[40..]).expect("they are stored");
    let found = store.totals(&always(Grouping::default())).expect("totals");
    drop(store);
    let db = rusqlite::Connection::open(path).expect("it opens");
    db.execute_batch(VERSION_1).expect("the old schema");
    db.execute("ATTACH ?1 AS newer", [newer.display().to_string()])
        .expect("it is attached");
    let [connection, rollup] = COLUMNS;
    db.execute_batch(&format!(
        "INSERT INTO connection SELECT {connection} FROM newer.connection;
        INSERT INTO rollup SELECT {rollup} FROM newer.rollup;
        DELETE FROM name; INSERT INTO name SELECT * FROM newer.name;
        DELETE FROM state; INSERT INTO state SELECT * FROM newer.state;"
    ))
    .expect("its content");
    found
}

fn version(path: &Path) -> i64 {
    let db = rusqlite::Connection::open(path).expect("it opens");
    db.pragma_query_value(None, "user_version", |row| row.get(0))
        .expect("a version")
}

fn schema(path: &Path) -> Vec<(String, Option<String>)> {
    let db = rusqlite::Connection::open(path).expect("it opens");
    let mut statement = db
        .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")
        .expect("a table");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).expect("its rows")
}

fn answers(store: &Sqlite) -> Vec<Answer> {
    let groupings = [
        Grouping::default(),
        Grouping::Dimension(Dimension::Operator),
        Grouping::Protocol,
        Grouping::Time(Step::Hour),
    ];
    let answer = |grouping| store.answer(&always(grouping)).expect("an answer");
    groupings.map(answer).to_vec()
}

#[test]
fn version_1_is_read_with_zeros_and_stays() {
    let dir = TempDir::new();
    let path = file(&dir);
    let expected = version_1(&path);
    assert_eq!((expected.connections, expected.statuses), (50, [0; 4]));
    let store = Sqlite::open_to_read(&path).expect("it opens");
    assert_eq!(store.totals(&always(Grouping::default())), Ok(expected));
    let networks = store.networks(&always(Grouping::default()), 9);
    assert_eq!(networks.expect("networks").groups[0].totals, expected);
    let open = store.open_connections(&always(Grouping::default()), Step::Day);
    assert_eq!(open, Ok(Vec::new()));
    assert_eq!(
        store.extent(),
        Ok(Some((NOON, NOON + 49 * 700 / 60 * 60 + 60)))
    );
    assert_eq!(version(&path), 1);
}

#[test]
fn opening_for_writing_makes_version_3() {
    let dir = TempDir::new();
    let path = file(&dir);
    let before = version_1(&path);
    let reader = Sqlite::open_to_read(&path).expect("it opens");
    let old_answers = answers(&reader);
    let mut store = open(&path);
    assert_eq!(version(&path), 3);
    let new = TempDir::new();
    drop(open(&file(&new)));
    assert_eq!(schema(&path), schema(&file(&new)));
    assert_eq!(answers(&store), old_answers);
    // Some of the new rows have a roll-up of version 1.
    let mut rows = old_rows();
    for (n, row) in (1..).zip(&mut rows) {
        row.statuses = [n, 2 * n, 3 * n, 4 * n];
        row.duration_ms = 5;
    }
    let sample = OpenSample {
        at_s: NOON,
        server: "a.example".to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        connections: 7,
    };
    store.commit(&rows, &[sample]).expect("they are stored");
    let mut expected = before;
    expected.merge(&before);
    let sum = (1..=50).sum::<u64>();
    expected.statuses = [sum, 2 * sum, 3 * sum, 4 * sum];
    expected.duration_ms = 250;
    for _ in 0..2 {
        // The reader was open before the migration.
        for store in [&store, &reader] {
            assert_eq!(store.totals(&always(Grouping::default())), Ok(expected));
            let open = store.open_connections(&always(Grouping::default()), Step::Day);
            assert_eq!(open.expect("a number")[0].max, 7);
        }
        maintain(&mut store, NOON + DAY, &Retention::default());
    }
    drop((store, reader));
    let db = rusqlite::Connection::open(&path).expect("it opens");
    let check: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a check");
    assert_eq!(check, "ok");
    // Opening again changes nothing.
    drop(open(&path));
    assert_eq!(totals(&path), expected);
}

/// Version 2 has all but the tables of experiments.
#[test]
fn version_2_is_read_and_gets_experiments() {
    let dir = TempDir::new();
    let path = file(&dir);
    let newer = TempDir::new();
    let mut store = open(&file(&newer));
    let mut rows = old_rows();
    rows.iter_mut().for_each(|row| row.statuses = [1, 2, 3, 4]);
    let sample = OpenSample {
        at_s: NOON,
        server: "a.example".to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        connections: 7,
    };
    store
        .commit(&rows[..40], &[sample])
        .expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
    store.insert(&rows[40..]).expect("they are stored");
    let expected = (answers(&store), totals(&file(&newer)));
    drop(store);
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch(VERSION_2).expect("the old schema");
    db.execute("ATTACH ?1 AS newer", [file(&newer).display().to_string()])
        .expect("it is attached");
    for table in ["name", "state", "connection", "rollup", "open"] {
        db.execute_batch(&format!(
            "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM newer.{table};"
        ))
        .expect("its content");
    }
    drop(db);
    let reader = Sqlite::open_to_read(&path).expect("it opens");
    let query = ExperimentQuery {
        experiment: "spdy".to_owned(),
        to_s: u64::MAX,
        ..ExperimentQuery::default()
    };
    let values = |reader: &Sqlite| {
        let mut count = 0;
        let excluded = reader.users(&query, VisitMetric::Load, &mut |_| count += 1);
        excluded.expect("an answer");
        (
            reader.experiments().expect("a list").len(),
            count,
            reader.arm_totals(&query).expect("totals").len(),
            reader.arm_steps(&query, Step::Day).expect("steps").len(),
        )
    };
    assert_eq!(values(&reader), (0, 0, 0, 0));
    assert_eq!((answers(&reader), version(&path)), (expected.0.clone(), 2));
    let mut store = open(&path);
    let new = TempDir::new();
    drop(open(&file(&new)));
    assert_eq!((version(&path), schema(&path)), (3, schema(&file(&new))));
    assert_eq!((answers(&store), totals(&path)), expected);
    let open = store.open_connections(&always(Grouping::default()), Step::Day);
    assert_eq!(open.expect("a number")[0].max, 7);
    let visit = Visit {
        at_ms: NOON * 1000,
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        values: [Some(5); VisitMetric::ALL.len()],
        ..Visit::default()
    };
    let rows = ExperimentRows {
        visits: vec![visit],
        ..ExperimentRows::default()
    };
    store.commit_all(&[], &[], &rows).expect("it is stored");
    // The reader was open before the migration.
    for store in [&store, &reader] {
        assert_eq!(values(store), (1, 1, 1, 0));
    }
}

#[test]
fn damaged_version_1_is_moved_aside() {
    let dir = TempDir::new();
    let path = file(&dir);
    version_1(&path);
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch("ALTER TABLE connection DROP COLUMN tls")
        .expect_err("a view needs it");
    db.execute_batch("DROP VIEW connections; ALTER TABLE connection DROP COLUMN tls")
        .expect("a table without it");
    drop(db);
    let opened = Sqlite::open(&path).expect("a new file");
    let moved = opened.moved_aside.expect("the damaged file");
    assert_eq!(version(&moved.to), 1);
    assert_eq!(totals(&path).connections, 0);
}

/// A failed migration leaves version 1: a table with the name of the new one.
#[test]
fn failed_migrations_change_nothing() {
    let dir = TempDir::new();
    let path = file(&dir);
    let expected = version_1(&path);
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch("CREATE TABLE open (x)").expect("a table");
    let before = schema(&path);
    let error = Sqlite::open(&path).expect_err("there is such a table");
    assert!(matches!(error, Error::Other(_)), "{error:?}");
    assert_eq!((version(&path), schema(&path)), (1, before));
    assert_eq!(totals(&path), expected);
    db.execute_batch("DROP TABLE open").expect("it is gone");
    drop(open(&path));
    assert_eq!((version(&path), totals(&path)), (3, expected));
}

#[test]
fn child_migrates_until_it_is_killed() {
    let Some(argument) = child_argument() else {
        return;
    };
    // The result does not matter: it has no waiter.
    let _ = Sqlite::open(&PathBuf::from(argument));
}

#[test]
fn killed_migrations_leave_a_whole_file() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = TempDir::new();
    let old = dir.path().join("old.db");
    let expected = version_1(&old);
    let path = file(&dir);
    let mut versions = [0; 2];
    for _ in 0..KILLS {
        fs::copy(&old, &path).expect("a copy");
        let name = "migrating::child_migrates_until_it_is_killed";
        let mut process = child(name, &path.display().to_string(), &[])
            .spawn()
            .expect("it starts");
        pause(Duration::from_micros(random.u64(0..30_000)));
        process.kill().expect("it runs");
        process.wait().expect("its end");
        let read = Sqlite::open_to_read(&path).expect("it opens");
        assert_eq!(read.totals(&always(Grouping::default())), Ok(expected));
        drop(read);
        let found = version(&path);
        versions[found as usize / 2] += 1;
        drop(open(&path));
        assert_eq!((version(&path), totals(&path)), (3, expected));
        for suffix in ["", "-wal", "-shm"] {
            // Without readers, some are gone.
            let _ = fs::remove_file(dir.path().join(format!("visitors.db{suffix}")));
        }
    }
    println!("killed with version 1 and 3: {versions:?}");
}
