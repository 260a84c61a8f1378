//! Generates connections of the last 30 days, and measures their insertion and the map of these days.
//!
//! `cargo run --release -p firstbyte-store --example generate -- CONNECTIONS FILE [END]` prints rows a second, the
//! size of the file, the time of an opening, three times of each grouping, and the time of the networks. With END
//! it stops after that number of connections. An existing file is only read. `rows` makes the connections.

#[path = "rows/mod.rs"]
mod rows;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rows::Generator;
use store::{Connection, Dimension, Grouping, Query, Retention, Sqlite, Step, Store};

const DAY_S: u64 = 86_400;
const DAYS: u64 = 30;
const BATCH_ROWS: u64 = 8192;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Time that this thread has run.
fn thread_time() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}

/// Wall-clock time and processor time of a kind of work.
#[derive(Default)]
struct Spent(Duration, Duration);

impl Spent {
    fn on<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (begin, ran) = (Instant::now(), thread_time());
        let done = work();
        self.0 += begin.elapsed();
        self.1 += thread_time() - ran;
        done
    }

    fn print(&self, what: &str, rows: u64) {
        let (wall, ran) = (self.0.as_secs_f64(), self.1.as_secs_f64());
        println!(
            "{what}: {wall:.1} s, {:.0} connections a second; {ran:.1} s of processor time, {:.0} a second",
            rows as f64 / wall,
            rows as f64 / ran
        );
    }
}

fn generate(path: &Path, rows: u64, last: u64) -> Outcome<()> {
    let mut store = Sqlite::open(path)?.store;
    let retention = Retention {
        rows_s: 40 * DAY_S,
        max_bytes: u64::MAX,
        ..Retention::default()
    };
    let today = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_secs()
        / DAY_S;
    let begin_s = (today - DAYS) * DAY_S;
    let mut generator = Generator::new(46);
    let (mut inserting, mut rolling) = (Spent::default(), Spent::default());
    let mut done = 0;
    while done < last {
        let end = last.min(done + BATCH_ROWS);
        let at = |row: u64| {
            begin_s + (u128::from(row) * u128::from(DAYS * DAY_S) / u128::from(rows)) as u64
        };
        let batch: Vec<Connection> = (done..end)
            .map(|row| generator.row(at(row), "www.example.org"))
            .collect();
        inserting.on(|| store.insert(&batch))?;
        if end / 100_000 > done / 100_000 || end == last {
            let forever = Duration::from_secs(1 << 30);
            rolling.on(|| store.maintain(at(end), &retention, forever))?;
        }
        if end / 10_000_000 > done / 10_000_000 {
            println!("{end} rows, {} bytes", store.size_bytes()?);
        }
        done = end;
    }
    inserting.print("rows", last);
    rolling.print("roll-ups", last);
    Spent(inserting.0 + rolling.0, inserting.1 + rolling.1).print("both", last);
    println!(
        "{} bytes, {:.1} a connection",
        store.size_bytes()?,
        store.size_bytes()? as f64 / last as f64
    );
    Ok(())
}

fn read(path: &Path) -> Outcome<()> {
    let begin = Instant::now();
    drop(Sqlite::open(path)?);
    let seconds = begin.elapsed().as_secs_f64();
    println!("opened for writing, with its check, in {seconds:.3} s");
    let dimensions = Dimension::ALL.map(Grouping::Dimension);
    let others = [
        Grouping::Protocol,
        Grouping::Time(Step::Day),
        Grouping::Time(Step::Hour),
    ];
    let always = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    for grouping in dimensions.into_iter().chain(others) {
        for _ in 0..3 {
            let begin = Instant::now();
            let store = Sqlite::open_to_read(path)?;
            let query = Query {
                grouping,
                ..always.clone()
            };
            let answer = store.answer(&query)?;
            println!(
                "{grouping:?}: {} groups of {} connections in {:.3} s",
                answer.groups.len(),
                answer.totals().connections,
                begin.elapsed().as_secs_f64()
            );
        }
    }
    let begin = Instant::now();
    let found = Sqlite::open_to_read(path)?.networks(&always, 10)?;
    println!(
        "networks of {} connections in {:.3} s",
        found.connections,
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let usage = "usage: generate CONNECTIONS FILE [END]";
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().ok_or(usage)?.parse()?;
    let path = arguments.next().ok_or(usage)?;
    let path = Path::new(&path);
    let last = arguments.next().map_or(Ok(rows), |end| end.parse())?;
    if !path.exists() {
        generate(path, rows, last.min(rows))?;
    }
    read(path)
}
