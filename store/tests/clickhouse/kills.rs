//! `kill -9` of the server and of the process that writes: no row is lost or doubled, neither as a row nor in roll-ups.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::{holds_within, pause, wait_until};
use store::{Connection, Stalls, Writer};

use crate::connected::{settings, start};

const DAY: u64 = 86_400;
/// Kills of the server.
const KILLS: u64 = 10;
/// Rows of a batch.
const BATCH: u64 = 4_000;
/// Longest time of the whole work.
const PATIENCE: Duration = Duration::from_secs(600);
/// Variable that makes a test the child of another one; its value is the child's argument.
const CHILD: &str = "FIRSTBYTE_STORE_CHILD";

/// Noon of the day before yesterday: roll-ups by hour are deleted after 60 days.
fn noon() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let today = now.expect("after 1970").as_secs() / DAY;
    (today - 2) * DAY + DAY / 2
}

/// A row with a number, which is its count of bytes. Rows are of two days and many hours, countries and operators.
fn row(n: u64) -> Connection {
    Connection {
        closed_s: noon() + n * 7919 % DAY,
        server: format!("server-{}", n % 3),
        protocol: ["HTTP/1.1", "HTTP/2.0"][(n % 2) as usize].to_owned(),
        country: Some([b'A' + (n % 5) as u8, b'A' + (n % 7) as u8]),
        subdivision: format!("DE-{}", n % 11),
        operator: format!("AS{}", n % 300),
        min_rtt_us: Some((n % 50_000) as u32),
        first_byte_us: (!n.is_multiple_of(3)).then_some((n % 900_000) as u32),
        requests: 3,
        bytes_sent: n,
        stalls: Stalls {
            window: n % 2,
            ..Stalls::default()
        },
        ..Connection::default()
    }
}

/// Number, sum of the numbers, and sum of the times of the rows in each table.
fn sums(server: &ClickHouse) -> Vec<(String, String)> {
    let rows = "SELECT count(), sum(bytes_sent), sum(min_rtt_us) FROM lab.connection";
    let unique =
        "SELECT uniqExact(bytes_sent), sum(bytes_sent), sum(min_rtt_us) FROM lab.connection";
    let mut found = vec![
        ("rows".to_owned(), server.rows(rows)),
        ("different rows".to_owned(), server.rows(unique)),
    ];
    for table in ["rollup_hour", "rollup_day"] {
        for dimension in 0..3 {
            let text = format!(
                "SELECT sum(connections), sum(bytes_sent), sum(arraySum(`min_rttMap.sum_us`)) \
                 FROM lab.{table} WHERE dimension = {dimension}"
            );
            found.push((format!("{table} {dimension}"), server.rows(&text)));
        }
    }
    found
}

#[track_caller]
fn is_whole(server: &ClickHouse, rows: u64) {
    let numbers: u64 = (0..rows).sum();
    let times: u64 = (0..rows).map(|n| n % 50_000).sum();
    let expected = format!("{rows}\t{numbers}\t{times}\n");
    for (table, found) in sums(server) {
        assert_eq!(found, expected, "{table}");
    }
    // Hours and days agree.
    let by_day = |table: &str| {
        server.rows(&format!(
            "SELECT day, sum(connections), sum(bytes_sent) FROM lab.{table} WHERE dimension = 0 \
             GROUP BY day ORDER BY day"
        ))
    };
    assert_eq!(by_day("rollup_hour"), by_day("rollup_day"));
}

fn written(writer: &Writer) -> u64 {
    writer.counters().counts().written
}

#[test]
fn killed_servers_neither_lose_nor_double_rows() {
    let Some(mut server) = ClickHouse::start() else {
        return;
    };
    let is_long = std::env::var_os("LAB_LONG").is_some();
    let rows: u64 = if is_long { 1_000_000 } else { 200_000 };
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kills: Vec<u64> = (0..KILLS).map(|_| random.u64(0..rows)).collect();
    kills.sort_unstable();
    let dir = TempDir::new();
    let (writer, _reports) = start(settings(dir.path()), server.port());
    let (mut offered, mut next_kill) = (0, kills.into_iter().peekable());
    let done = holds_within(PATIENCE, || {
        let counts = writer.counters().counts();
        if offered < rows && counts.queued == 0 && counts.spilled_batches < 8 {
            let end = rows.min(offered + BATCH);
            assert!((offered..end).all(|n| writer.offer(row(n))));
            offered = end;
        }
        if next_kill.next_if(|at| *at <= counts.written).is_some() {
            pause(Duration::from_millis(random.u64(0..150)));
            server.kill();
            server.restart();
        }
        counts.written == rows
    });
    let counts = writer.counters().counts();
    assert!(done, "{counts:?}, {:?}", writer.counters().last_error());
    assert_eq!((counts.dropped, counts.moved_aside), (0, 0));
    assert!(
        counts.retries > 0,
        "no insertion was interrupted: {counts:?}"
    );
    is_whole(&server, rows);
    println!("{counts:?}");
}

/// A server that does not answer for longer than the client waits executes the old requests and the new ones at once.
#[test]
fn late_executions_do_not_double_rows() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let mut settings = settings(dir.path());
    settings.batch_pause = Duration::from_millis(5);
    let (writer, _reports) = crate::connected::start_with(
        settings,
        &Arc::new(server.port().into()),
        Duration::from_millis(300),
    );
    let mut offered = 0;
    for _ in 0..5 {
        server.signal(firstbyte_tests::Signal::STOP);
        for n in offered..offered + BATCH {
            assert!(writer.offer(row(n)));
        }
        offered += BATCH;
        let failed = writer.counters().counts().failed;
        wait_until("two requests without a response", || {
            writer.counters().counts().failed >= failed + 2
        });
        server.signal(firstbyte_tests::Signal::CONT);
        assert!(holds_within(PATIENCE, || written(&writer) == offered));
    }
    is_whole(&server, offered);
}

/// Offers numbered rows until it is killed, and prints `spilled N` if all rows before N are on disk.
#[test]
fn child_writes_until_it_is_killed() {
    let Ok(argument) = std::env::var(CHILD) else {
        return;
    };
    let words: Vec<&str> = argument.split(' ').collect();
    let [path, port, first] = words[..] else {
        panic!("{argument}")
    };
    let first: u64 = first.parse().expect("a number");
    let mut settings = settings(Path::new(path));
    settings.batch_pause = Duration::from_millis(3);
    let (writer, _reports) = start(settings, port.parse().expect("a port"));
    let mut out = std::io::stdout().lock();
    for n in first.. {
        assert!(writer.offer(row(n)));
        if n % 1000 == 999 {
            while writer.counters().counts().queued > 0 {
                pause(Duration::from_micros(200));
            }
            writeln!(out, "spilled {}", n + 1).expect("a pipe");
            out.flush().expect("a pipe");
        }
    }
}

#[test]
fn killed_writers_neither_lose_nor_double_spilled_rows() {
    const LIVES: u64 = 12;
    /// Numbers of one life.
    const NUMBERS: u64 = 1_000_000;
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = TempDir::new();
    let spill = dir.path().join("spill");
    let mut spilled = Vec::new();
    for life in 0..LIVES {
        let first = life * NUMBERS;
        let this = std::env::current_exe().expect("this program");
        let mut child = Command::new(this)
            .args([
                "--exact",
                "kills::child_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(
                CHILD,
                format!("{} {} {first}", spill.display(), server.port()),
            )
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = out.lines().map_while(Result::ok);
        let mut last = first;
        let number = |line: String| line.strip_prefix("spilled ")?.parse::<u64>().ok();
        // Its first rows may still wait for the lock of the former process.
        last = lines.by_ref().find_map(number).unwrap_or(last);
        pause(Duration::from_millis(random.u64(0..200)));
        child.kill().expect("it runs");
        last = lines.filter_map(number).last().unwrap_or(last);
        child.wait().expect("its end");
        spilled.push((first, last));
    }
    // The batches of the last one. They are counted before the first report.
    let (writer, reports) = start(settings(&spill), server.port());
    assert!(reports.recv().is_ok());
    let counts = || writer.counters().counts();
    let done = holds_within(PATIENCE, || counts().spilled_batches == 0);
    assert!(done, "{:?}", counts());
    let doubled = "SELECT count() - uniqExact(bytes_sent) FROM lab.connection";
    assert_eq!(server.rows(doubled), "0\n");
    for (first, last) in spilled {
        let text = format!(
            "SELECT count() FROM lab.connection WHERE bytes_sent >= {first} AND bytes_sent < {last}"
        );
        assert_eq!(server.rows(&text), format!("{}\n", last - first));
    }
    let found = sums(&server);
    assert!(
        found.iter().all(|(_, sums)| *sums == found[0].1),
        "{found:?}"
    );
    assert_eq!(writer.counters().counts().moved_aside, 0);
}
