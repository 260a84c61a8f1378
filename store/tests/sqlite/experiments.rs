//! Experiments: every query of random rows, page views that are sent again, kills, limits of age and size.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use firstbyte_tests::TempDir;
use firstbyte_tests::wait::{pause, wait_until};
use store::{
    ArmFigures, ExperimentQuery, ExperimentRows, ExperimentSettings, MAX_BYTES_LEAST, Retention,
    Settings, Sqlite, SqliteReader, Store, Visit,
};

use crate::common_experiments::{check_experiments, experiment_rows};
use crate::rows::{DAY, NOON, child, child_argument, file, maintain, open, row, start, totals};

/// Processes that are killed.
const KILLS: u64 = 30;
/// Page views of one process at most.
const NUMBERS: u64 = 100_000;

fn commit(store: &mut Sqlite, rows: &ExperimentRows) {
    store.commit_all(&[], &[], rows).expect("they are stored");
}

fn visit(at_s: u64, user: u64, view: u64) -> Visit {
    Visit {
        at_ms: at_s * 1000,
        user,
        view,
        server: "a.example".to_owned(),
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        ..Visit::default()
    }
}

fn always() -> ExperimentQuery {
    ExperimentQuery {
        experiment: "spdy".to_owned(),
        to_s: u64::MAX,
        ..ExperimentQuery::default()
    }
}

/// Page views of the arm `fast`.
fn views(store: &dyn Store) -> u64 {
    let found = store.arm_totals(&always()).expect("totals");
    found.first().map_or(0, |arm| arm.views)
}

#[test]
fn results_are_those_of_a_list() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let rows = experiment_rows(seed);
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    check_experiments(&store, &ExperimentRows::default(), false);
    let half = rows.visits.len() / 2;
    let first = ExperimentRows {
        visits: rows.visits[..half].to_vec(),
        ..ExperimentRows::default()
    };
    commit(&mut store, &first);
    check_experiments(&store, &first, false);
    // Page views come again, and figures in parts.
    let rest = ExperimentRows {
        visits: rows.visits.clone(),
        ..rows.clone()
    };
    commit(&mut store, &rest);
    check_experiments(&store, &rows, false);
    maintain(&mut store, 0, &Retention::default());
    let reader = SqliteReader::open(&file(&dir)).expect("it opens");
    check_experiments(&reader, &rows, false);
}

#[test]
fn settings_are_stored_when_they_change() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let settings = |weight| ExperimentSettings {
        name: "spdy".to_owned(),
        arms: vec![("control".to_owned(), 1), ("fast".to_owned(), weight)],
        ..ExperimentSettings::default()
    };
    for (at_s, weight) in [(10, 1), (20, 1), (30, 2), (40, 2), (50, 1)] {
        let rows = ExperimentRows {
            settings: vec![(at_s, settings(weight)); 2],
            ..ExperimentRows::default()
        };
        commit(&mut store, &rows);
    }
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    let stored: Vec<(i64, String)> = db
        .prepare("SELECT since_s, arms FROM experiment ORDER BY id")
        .and_then(|mut rows| {
            rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .expect("rows");
    let row = |at_s, arms: &str| (at_s, arms.to_owned());
    let expected = [
        row(10, "control=1 fast=1"),
        row(30, "control=1 fast=2"),
        row(50, "control=1 fast=1"),
    ];
    assert_eq!(stored, expected);
    let found = store.experiments().expect("a list");
    assert_eq!(
        (found[0].since_s, found[0].settings.clone()),
        (50, Some(settings(1)))
    );
}

/// Settings in force are those that were stored last. A clock may have been wrong meanwhile, by more than two days.
#[test]
fn settings_of_a_wrong_clock_do_not_stay() {
    const IN_2040: u64 = 2_208_988_800;
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let settings = |weight| ExperimentSettings {
        name: "spdy".to_owned(),
        arms: vec![("fast".to_owned(), weight)],
        ..ExperimentSettings::default()
    };
    for (at_s, weight, rows, since_s) in [
        (NOON, 2, 1, NOON),
        // Two changes in one second.
        (NOON, 1, 2, NOON),
        (IN_2040, 2, 3, 0),
        (NOON + 10, 1, 4, NOON + 10),
        (NOON + 20, 1, 4, NOON + 10),
        (IN_2040, 2, 5, 0),
        (NOON + 30, 2, 6, NOON + 30),
        (NOON + 40, 2, 6, NOON + 30),
        (NOON + 2 * DAY + 50, 3, 7, NOON + 2 * DAY + 50),
        (NOON + 50, 3, 7, NOON + 2 * DAY + 50),
        (NOON + 49, 3, 8, NOON + 2 * DAY + 50),
    ] {
        let change = ExperimentRows {
            settings: vec![(at_s, settings(weight))],
            ..ExperimentRows::default()
        };
        commit(&mut store, &change);
        let found = store.experiments().expect("a list").remove(0);
        assert_eq!(found.settings, Some(settings(weight)), "{at_s}");
        if at_s == IN_2040 {
            // The present.
            assert!(found.since_s < IN_2040);
        } else {
            assert_eq!(found.since_s, since_s, "{at_s}");
        }
        let count: i64 = rusqlite::Connection::open(file(&dir))
            .and_then(|db| db.query_row("SELECT count(*) FROM experiment", [], |row| row.get(0)))
            .expect("a number");
        assert_eq!(count, rows, "{at_s}");
    }
}

/// Removes a store with its log.
fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::remove_file(name).expect("it is removed");
    }
}

/// Settings are offered once. A file that begins anew still has them.
#[test]
fn new_files_have_the_settings() {
    type Change = fn(&Path);
    let damage: Change = |path| {
        let db = rusqlite::Connection::open(path).expect("it opens");
        db.execute_batch("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'no SQL' WHERE name = 'visit'; PRAGMA schema_version = 1000;")
            .expect("damage");
    };
    let weighted = |name: &str, weight| ExperimentSettings {
        name: name.to_owned(),
        arms: vec![("fast".to_owned(), weight)],
        ..ExperimentSettings::default()
    };
    for change in [remove as Change, damage] {
        let dir = TempDir::new();
        let mut quick = Settings::new(&file(&dir));
        quick.commit_pause = Duration::from_millis(1);
        let (writer, _reports) = start(quick);
        assert!(writer.offer_settings(5, weighted("spdy", 1)));
        assert!(writer.offer_settings(6, weighted("other", 7)));
        assert!(writer.offer_settings(7, weighted("spdy", 2)));
        for (view, count) in [(1, 1), (2, 2)] {
            assert!(writer.offer_visit(visit(NOON, 1, view)));
            wait_until("the page view is stored", || {
                writer.counters().counts().written == count
            });
            if view == 1 {
                change(&file(&dir));
            }
        }
        writer.close();
        let found = open(&file(&dir)).experiments().expect("a list");
        let settings: Vec<_> = found
            .into_iter()
            .map(|found| (found.views, found.since_s, found.settings))
            .collect();
        let expected = [
            (0, 6, Some(weighted("other", 7))),
            (1, 7, Some(weighted("spdy", 2))),
        ];
        assert_eq!(settings, expected);
    }
}

/// Another process has changed the settings meanwhile: its file is opened again, and keeps them.
#[test]
fn later_settings_of_a_file_stay() {
    let dir = TempDir::new();
    let weighted = |weight| ExperimentSettings {
        name: "spdy".to_owned(),
        arms: vec![("fast".to_owned(), weight)],
        ..ExperimentSettings::default()
    };
    for (later_s, expected) in [(6, 1), (7, 1), (8, 2)] {
        let path = dir.path().join(format!("{later_s}.db"));
        let mut quick = Settings::new(&path);
        quick.commit_pause = Duration::from_millis(1);
        let (writer, _reports) = start(quick);
        assert!(writer.offer_settings(7, weighted(1)));
        assert!(writer.offer_visit(visit(NOON, 1, 1)));
        let written = || writer.counters().counts().written;
        wait_until("the page view is stored", || written() == 1);
        let rows = ExperimentRows {
            settings: vec![(later_s, weighted(2))],
            ..ExperimentRows::default()
        };
        // A file with the settings of the other process takes the place of the first one.
        let other = dir.path().join("other.db");
        let mut store = open(&other);
        commit(&mut store, &rows);
        drop(store);
        remove(&path);
        std::fs::rename(&other, &path).expect("it is renamed");
        assert!(writer.offer_visit(visit(NOON, 1, 2)));
        wait_until("the page view is stored", || written() == 2);
        writer.close();
        let found = open(&path).experiments().expect("a list");
        assert_eq!(found[0].settings, Some(weighted(expected)), "{later_s}");
    }
}

#[test]
fn experiments_end_at_the_age_of_roll_ups() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let retention = Retention {
        rows_s: DAY,
        rollups_s: 100 * DAY,
        ..Retention::default()
    };
    let figures = |at_s| ArmFigures {
        at_s,
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        connections: 1,
        ..ArmFigures::default()
    };
    let rows = ExperimentRows {
        visits: vec![visit(NOON, 1, 1), visit(NOON + 60, 2, 2)],
        arms: vec![figures(NOON), figures(NOON + 60)],
        settings: Vec::new(),
    };
    commit(&mut store, &rows);
    let count = |store: &Sqlite| {
        let steps = store.arm_steps(&always(), store::Step::Day).expect("steps");
        let connections = steps.iter().map(|step| step.connections).sum::<u64>();
        let found = store.experiments().expect("a list");
        let views = found.first().map_or(0, |it| it.views);
        (views, connections)
    };
    for (after_s, expected) in [
        (0, (2, 2)),
        (1, (1, 1)),
        (60, (1, 1)),
        // Without page views and settings, nothing is left.
        (61, (0, 0)),
    ] {
        maintain(&mut store, NOON + 100 * DAY + after_s, &retention);
        assert_eq!(count(&store), expected, "{after_s}");
    }
    assert_eq!(store.experiments(), Ok(Vec::new()));
}

/// Rows of a wrong clock leave the sums of their arms: the future two days after the present, the past by its age.
#[test]
fn rows_of_wrong_clocks_are_deleted() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let figures = |at_s| ArmFigures {
        at_s,
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        connections: 1,
        ..ArmFigures::default()
    };
    let times = [
        60,
        NOON - 60,
        NOON + 60,
        NOON + 2 * DAY,
        NOON + 2 * DAY + 60,
    ];
    // More than one step deletes.
    let future = (0..6000).map(|n| NOON + 9000 * DAY + n);
    let all: Vec<u64> = times.into_iter().chain(future).collect();
    let rows = ExperimentRows {
        visits: all.iter().map(|at_s| visit(*at_s, *at_s, 1)).collect(),
        arms: times.map(figures).to_vec(),
        settings: Vec::new(),
    };
    commit(&mut store, &rows);
    let count = |store: &Sqlite| {
        let steps = store
            .arm_steps(&always(), store::Step::Minute)
            .expect("steps");
        let found = store.experiments().expect("a list").remove(0);
        assert_eq!(found.views, views(store));
        (found.first_s, found.last_s, found.views, steps.len())
    };
    let last_s = NOON + 9000 * DAY + 5999;
    maintain(&mut store, 0, &Retention::default());
    assert_eq!(count(&store), (Some(60), Some(last_s), 6005, 5));
    maintain(&mut store, NOON, &Retention::default());
    let expected = (Some(NOON - 60), Some(NOON + 2 * DAY), 3, 3);
    assert_eq!(count(&store), expected);
}

/// The limit of the size deletes page views after all else.
#[test]
fn size_takes_page_views_last() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let visits = (0..12_000).map(|n| visit(NOON + n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n));
    let rows = ExperimentRows {
        visits: visits.collect(),
        ..ExperimentRows::default()
    };
    let connections: Vec<_> = (0..8000).map(|n| row(NOON + n, "DE", 5)).collect();
    store
        .commit_all(&connections, &[], &rows)
        .expect("they are stored");
    let size = store.size_bytes().expect("a size");
    let limits = |max_bytes| Retention {
        max_bytes,
        ..Retention::default()
    };
    maintain(&mut store, 0, &limits(size - (64 << 10)));
    assert_eq!(views(&store), 12_000);
    assert!(store.size_bytes().expect("a size") <= size - (64 << 10));
    maintain(&mut store, 0, &limits(MAX_BYTES_LEAST));
    let left = views(&store);
    assert!(left > 0 && left < 12_000, "{left}");
    assert_eq!(totals(&file(&dir)).connections, 0);
    // The oldest ones are gone, and sums know that.
    let found = store.experiments().expect("a list");
    assert_eq!(
        (found[0].views, found[0].last_s),
        (left, Some(NOON + 11_999))
    );
    let first_s = found[0].first_s.expect("a time");
    assert!((NOON + 11_998 - left..=NOON + 12_000 - left).contains(&first_s));
}

/// Offers page views until it is killed, each of them twice. It prints `open` when the store is open.
#[test]
fn child_writes_page_views_until_it_is_killed() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (path, first) = argument.split_once(' ').expect("two words");
    let first: u64 = first.parse().expect("a number");
    let mut settings = Settings::new(&PathBuf::from(path));
    settings.commit_pause = Duration::from_millis(3);
    let (writer, reports) = start(settings);
    reports.recv().expect("it opens");
    println!("open");
    for n in first..first + NUMBERS {
        for user in [n, n.saturating_sub(50)] {
            assert!(writer.offer_visit(visit(NOON, user, user)));
        }
        while writer.counters().counts().queued > 300 {
            pause(Duration::from_millis(1));
        }
    }
}

/// Page views that a killed process has stored are offered again by the next one.
#[test]
fn killed_processes_count_page_views_once() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = TempDir::new();
    let path = file(&dir);
    let mut next = 0;
    for _ in 0..KILLS {
        let name = "experiments::child_writes_page_views_until_it_is_killed";
        let argument = format!("{} {next}", path.display());
        let mut process = child(name, &argument, &[]).spawn().expect("it starts");
        let out = process.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(out).lines();
        // On a busy machine a start takes longer than a life. One in four is killed as long after its start.
        if random.u8(0..4) > 0 {
            assert!(lines.any(|line| line.is_ok_and(|line| line.ends_with("open"))));
        }
        pause(Duration::from_millis(random.u64(0..80)));
        process.kill().expect("it runs");
        process.wait().expect("its end");
        if Path::exists(&path) {
            let store = open(&path);
            let found = store.experiments().expect("a list");
            let counted = found.first().map_or(0, |it| it.views);
            let arms = store.arm_totals(&always()).expect("totals");
            let users = arms.first().map_or(0, |arm| arm.users);
            // Each user has one page view, and none is missing before the last.
            assert_eq!((views(&store), users), (counted, counted));
            let last: Option<i64> = rusqlite::Connection::open(&path)
                .and_then(|db| db.query_row("SELECT max(user_id) FROM visit", [], |row| row.get(0)))
                .expect("a number");
            assert_eq!(last.map_or(0, |last| last as u64 + 1), counted);
            next = counted.saturating_sub(100);
        }
    }
    assert!(next > 0, "no page view was stored");
}

/// Neither table has a text that could be an address: names and numbers alone.
#[test]
fn tables_have_no_addresses() {
    let dir = TempDir::new();
    drop(open(&file(&dir)));
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    let mut texts = Vec::new();
    for table in ["visit", "arm_minute", "experiment", "experiment_arm"] {
        let mut columns = db
            .prepare("SELECT name, type FROM pragma_table_info(?1)")
            .expect("a table");
        let rows = columns.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)));
        let rows: Vec<(String, String)> = rows.and_then(Iterator::collect).expect("columns");
        assert!(!rows.is_empty());
        texts.extend(rows.into_iter().filter(|(_, kind)| kind == "TEXT"));
    }
    let names: Vec<_> = texts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["arms", "metrics"]);
}
