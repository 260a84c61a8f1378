//! Experiments: every query of random rows, batches that are sent again, databases of version 1, killed servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::{holds_within, pause, wait_until};
use store::{
    ArmFigures, ClickHouse as Reader, ExperimentQuery, ExperimentRows, HttpRequest, HttpResponse,
    Retention, Step, Store, Transport, TransportError, Visit, VisitMetric,
};

use crate::common_experiments::{check_experiments, experiment_rows};
use crate::connected::{DATABASE, reader, settings, start, store_experiments};
use crate::fake::{self, Response};
use crate::http::Http;

const TABLES: [&str; 3] = ["visit", "arm_minute", "experiment"];
const DAY: u64 = 86_400;
/// Kills of the server.
const KILLS: u64 = 3;
/// Page views of a batch.
const BATCH: u64 = 1_000;
/// Longest time of the whole work.
const PATIENCE: Duration = Duration::from_secs(600);

/// Stores random rows, some of them twice, and compares all answers.
#[track_caller]
pub(crate) fn results_are_those_of_a_list(port: u16, spill: &Path, run: impl Fn(&str) -> String) {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let rows = experiment_rows(seed);
    let (writer, reports) = start(settings(spill), port);
    assert!(reports.recv().is_ok());
    let store = reader(port);
    check_experiments(&store, &ExperimentRows::default(), true);
    let half = rows.visits.len() / 2;
    let first = ExperimentRows {
        visits: rows.visits[..half].to_vec(),
        ..ExperimentRows::default()
    };
    store_experiments(&writer, &first);
    check_experiments(&store, &first, true);
    // Page views come again.
    store_experiments(&writer, &rows);
    check_experiments(&store, &rows, true);
    for table in TABLES {
        assert_eq!(run(&format!("OPTIMIZE TABLE lab.{table} FINAL")), "");
    }
    check_experiments(&store, &rows, true);
    let counts = writer.counters().counts();
    assert_eq!((counts.dropped, counts.failed, counts.retries), (0, 0, 0));
}

#[test]
fn results_of_experiments_are_those_of_a_list() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let spill = dir.path().join("spill");
    results_are_those_of_a_list(server.port(), &spill, |text| server.rows(text));
}

/// Yesterday, in days since 1970.
fn yesterday() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed();
    now.expect("after 1970").as_secs() / DAY - 1
}

fn visit(at_s: u64, n: u64) -> Visit {
    Visit {
        at_ms: at_s * 1000 + n,
        // Both small and large ids.
        user: n.rotate_right(2),
        view: n,
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        values: [Some(5); VisitMetric::ALL.len()],
        ..Visit::default()
    }
}

fn figures(at_s: u64) -> ArmFigures {
    ArmFigures {
        at_s,
        experiment: "spdy".to_owned(),
        arm: "fast".to_owned(),
        connections: 1,
        ..ArmFigures::default()
    }
}

fn always() -> ExperimentQuery {
    ExperimentQuery {
        experiment: "spdy".to_owned(),
        to_s: u64::MAX,
        ..ExperimentQuery::default()
    }
}

/// Users, page views, and connections of the arm.
fn sums(store: &dyn Store) -> (u64, u64, u64) {
    let totals = store.arm_totals(&always()).expect("totals");
    let totals = totals.first().cloned().unwrap_or_default();
    let steps = store.arm_steps(&always(), Step::Day).expect("steps");
    let connections = steps.iter().map(|step| step.connections).sum();
    (totals.users, totals.views, connections)
}

fn batches(spill: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(spill).expect("a directory").flatten();
    let paths = files.map(|file| file.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "batch"))
        .collect()
}

#[test]
fn batches_that_are_sent_again_are_stored_once() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let nowhere = fake::start(Response::Bytes(Vec::new()));
    let (writer, _reports) = start(settings(dir.path()), nowhere);
    let noon = yesterday() * DAY + DAY / 2;
    for n in 0..100 {
        assert!(writer.offer_arm(figures(noon + n)));
        assert!(writer.offer_visit(visit(noon, n)));
    }
    wait_until("they are spilled", || {
        writer.counters().counts().queued == 0
    });
    writer.close();
    let copies: Vec<(PathBuf, Vec<u8>)> = batches(dir.path())
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(&path).expect("a file")))
        .collect();
    assert!(copies.len() >= 2);
    for _ in 0..2 {
        for (path, bytes) in &copies {
            std::fs::write(path, bytes).expect("it is written");
        }
        let (writer, reports) = start(settings(dir.path()), server.port());
        assert!(reports.recv().is_ok());
        wait_until("they are sent", || {
            writer.counters().counts().spilled_batches == 0
        });
        let counts =
            "SELECT (SELECT count() FROM lab.visit), (SELECT sum(connections) FROM lab.arm_minute)";
        assert_eq!(server.rows(counts), "100\t100\n");
        assert_eq!(sums(&reader(server.port())), (100, 100, 100));
    }
}

/// A database of an older program has no tables of experiments. Readers show none, and the first writer adds them.
#[test]
fn version_1_gets_tables_of_experiments() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    writer.close();
    for table in TABLES {
        assert_eq!(server.rows(&format!("DROP TABLE lab.{table}")), "");
    }
    assert_eq!(server.rows("DROP TABLE lab.schema"), "");
    let schema =
        "CREATE TABLE lab.schema (version UInt32, at_s UInt64) ENGINE = MergeTree ORDER BY version";
    assert_eq!(server.rows(schema), "");
    assert_eq!(server.rows("INSERT INTO lab.schema SELECT 1, 0"), "");
    let store = reader(server.port());
    assert_eq!(store.experiments(), Ok(Vec::new()));
    assert_eq!(sums(&store), (0, 0, 0));
    assert_eq!(store.extent(), Ok(None));
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let rows = ExperimentRows {
        visits: vec![visit(yesterday() * DAY, 1)],
        ..ExperimentRows::default()
    };
    store_experiments(&writer, &rows);
    assert_eq!(server.rows("SELECT max(version) FROM lab.schema"), "2\n");
    // The reader has checked the old schema.
    assert_eq!(sums(&store), (1, 1, 0));
}

/// The list counts rows, and one experiment reads no page view of another. Reports count a page view once.
#[test]
fn list_counts_rows_of_each_experiment() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let at_s = yesterday() * DAY + DAY / 2;
    let again = Visit {
        arm: "late".to_owned(),
        ..visit(at_s + 100, 1)
    };
    let other = Visit {
        experiment: "other".to_owned(),
        arm: String::new(),
        ..visit(at_s, 1)
    };
    let rows = ExperimentRows {
        visits: vec![visit(at_s, 1), again, visit(at_s + 5, 2), other],
        ..ExperimentRows::default()
    };
    store_experiments(&writer, &rows);
    let most = Arc::new(AtomicUsize::new(0));
    let client = Counting {
        http: Http::new(server.port()),
        most: Arc::clone(&most),
    };
    let store = Reader::reader(Box::new(client), DATABASE.to_owned(), None, None);
    // The first query checks the schema.
    assert_eq!(store.experiment(""), Ok(None));
    most.store(0, Ordering::Relaxed);
    let found = store.experiment("spdy").expect("an answer").expect("one");
    // One row for each arm.
    assert_eq!(most.load(Ordering::Relaxed), 2);
    assert_eq!(
        (found.views, &found.arms[..]),
        (3, &["fast".to_owned(), "late".to_owned()][..])
    );
    assert_eq!(
        (found.first_s, found.last_s),
        (Some(at_s), Some(at_s + 100))
    );
    let all = store.experiments().expect("a list");
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert_eq!(all.len(), 2);
    assert_eq!(all[1], found);
    assert_eq!((all[0].views, all[0].first_s), (0, None));
    let totals = store.arm_totals(&always()).expect("totals");
    let views: Vec<u64> = totals.iter().map(|arm| arm.views).collect();
    assert_eq!(views, [2, 0]);
    assert_eq!(store.experiment("fast"), Ok(None));
}

/// Settings of a server with a clock that is ahead, by two days and by more.
#[test]
fn settings_from_the_future_do_not_count() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (_writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let insert = |after_s: i64, arms: &str| {
        let text = format!(
            "INSERT INTO lab.experiment (since_s, name, arms) \
             SELECT toUInt64(toUnixTimestamp(now()) + {after_s}), 'spdy', '{arms}'"
        );
        assert_eq!(server.rows(&text), "");
    };
    let store = reader(server.port());
    for (after_s, arms, last) in [
        (-100, "fast=1", "fast=1"),
        // A minute is the time of the test.
        (2 * DAY as i64 + 60, "fast=2", "fast=1"),
        (2 * DAY as i64, "fast=3", "fast=3"),
    ] {
        insert(after_s, arms);
        let found = store.experiments().expect("a list").remove(0);
        let found = found.settings.expect("settings").arms;
        let found: Vec<_> = found
            .iter()
            .map(|it| format!("{}={}", it.0, it.1))
            .collect();
        assert_eq!(found, [last]);
    }
}

/// A client that counts the rows of the largest response.
struct Counting {
    http: Http,
    most: Arc<AtomicUsize>,
}

impl Transport for Counting {
    fn send(&mut self, request: &HttpRequest<'_>) -> Result<HttpResponse, TransportError> {
        let response = self.http.send(request)?;
        let rows = response.body.iter().filter(|byte| **byte == b'\n').count();
        self.most.fetch_max(rows, Ordering::Relaxed);
        Ok(response)
    }
}

/// A response has the earliest 20,000 page views of a user: at the limit, one below and one above.
#[test]
fn busy_users_do_not_fill_responses() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (_writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let first_ms = (yesterday() * DAY + DAY / 2) * 1000;
    // The earliest page views have the largest ids.
    for (user, views) in [(1, 19_999), (2, 20_000), (3, 20_001), (4, 1)] {
        let text = format!(
            "INSERT INTO lab.visit (at_ms, experiment, user_id, view_id, arm, load_us) \
             SELECT toUInt64({first_ms} + 20001 - number), 'spdy', toUInt64({user}), number, 'fast', \
             toUInt32(number) FROM numbers({views})"
        );
        assert_eq!(server.rows(&text), "");
    }
    let most = Arc::new(AtomicUsize::new(0));
    let client = Counting {
        http: Http::new(server.port()),
        most: Arc::clone(&most),
    };
    let store = Reader::reader(Box::new(client), DATABASE.to_owned(), None, None);
    let query = ExperimentQuery {
        window_s: DAY,
        ..always()
    };
    let mut values = Vec::new();
    let excluded = store.users(&query, VisitMetric::Load, &mut |user| {
        values.push(user.value);
    });
    assert_eq!(excluded, Ok(store::Excluded::default()));
    assert_eq!(values, [14_998.5, 14_999.5, 15_000.5, 0.0]);
    assert_eq!(most.load(Ordering::Relaxed), 19_999 + 20_000 + 20_000 + 1);
    assert_eq!(sums(&store), (4, 30_001, 0));
    assert_eq!(most.load(Ordering::Relaxed), 19_999 + 20_000 + 20_000 + 1);
}

#[test]
fn old_page_views_are_dropped_with_roll_ups() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let today = yesterday() + 1;
    let at = |days_ago: u64| (today - days_ago) * DAY + DAY / 2;
    let dir = TempDir::new();
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let rows = ExperimentRows {
        visits: [0, 89, 90, 92].map(|days| visit(at(days), days)).to_vec(),
        arms: [0, 89, 90, 92].map(|days| figures(at(days))).to_vec(),
        settings: Vec::new(),
    };
    store_experiments(&writer, &rows);
    writer.close();
    let mut limited = settings(dir.path());
    limited.retention = Retention {
        rows_s: DAY,
        rollups_s: 90 * DAY,
        ..Retention::default()
    };
    let (writer, _reports) = start(limited, server.port());
    let store = reader(server.port());
    wait_until("old days are dropped", || {
        let (_, views, connections) = sums(&store);
        views < 4 && connections < 4
    });
    if yesterday() + 1 != today {
        return firstbyte_tests::skip::skip("a day has passed meanwhile");
    }
    // The day at the limit stays.
    assert_eq!(sums(&store), (3, 3, 3));
    assert_eq!(writer.counters().counts().failed, 0);
}

#[test]
fn killed_servers_count_page_views_and_figures_once() {
    let Some(mut server) = ClickHouse::start() else {
        return;
    };
    let is_long = std::env::var_os("LAB_LONG").is_some();
    let rows: u64 = if is_long { 200_000 } else { 10_000 };
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kills: Vec<u64> = (0..KILLS).map(|_| random.u64(0..rows)).collect();
    kills.sort_unstable();
    let dir = TempDir::new();
    let (writer, _reports) = start(settings(dir.path()), server.port());
    let noon = yesterday() * DAY + DAY / 2;
    let (mut offered, mut next_kill) = (0, kills.into_iter().peekable());
    let done = holds_within(PATIENCE, || {
        let counts = writer.counters().counts();
        if offered < rows && counts.queued == 0 && counts.spilled_batches < 8 {
            let end = rows.min(offered + BATCH);
            for n in offered..end {
                assert!(writer.offer_arm(figures(noon + n % 3600)));
                assert!(writer.offer_visit(visit(noon, n)));
            }
            offered = end;
        }
        if next_kill.next_if(|at| *at <= counts.written).is_some() {
            pause(Duration::from_millis(random.u64(0..100)));
            server.kill();
            server.restart();
        }
        counts.written == rows && counts.spilled_batches == 0
    });
    let counts = writer.counters().counts();
    assert!(done, "{counts:?}, {:?}", writer.counters().last_error());
    assert_eq!((counts.dropped, counts.moved_aside), (0, 0));
    assert_eq!(sums(&reader(server.port())), (rows, rows, rows));
}
