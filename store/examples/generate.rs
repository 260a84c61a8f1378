//! Generates connections of the last 30 days, and measures their insertion and the map of these days.
//!
//! `cargo run --release -p firstbyte-store --example generate -- CONNECTIONS FILE [END]` prints rows a second, the size of the
//! file, the time of an opening, and three times of the map. With END it ends after so many of the connections. An existing file
//! is only read. 200 countries, their 2,000 subdivisions and 5,000 network operators have the frequencies of Zipf's law;
//! round-trip times are lognormal.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use store::{
    Connection, Dimension, Grouping, HandshakeKind, Network, Prefixes, Query, Retention, Sqlite,
    Stalls, Store,
};

const DAY_S: u64 = 86_400;
const DAYS: u64 = 30;
const COUNTRIES: usize = 200;
const SUBDIVISIONS: usize = 10;
const OPERATORS: usize = 25;
const BATCH_ROWS: u64 = 8192;
const PROTOCOLS: [(&str, u32); 4] = [
    ("HTTP/2.0", 70),
    ("HTTP/1.1", 95),
    ("SPDY/3.1", 98),
    ("HTTP/1.0", 100),
];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Frequencies of Zipf's law, added up.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, random: &mut fastrand::Rng) -> usize {
        let at = random.f64() * self.0.last().copied().unwrap_or_default();
        self.0
            .partition_point(|sum| *sum < at)
            .min(self.0.len() - 1)
    }
}

struct Generator {
    random: fastrand::Rng,
    countries: Zipf,
    subdivisions: Zipf,
    operators: Zipf,
}

impl Generator {
    fn new() -> Self {
        Self {
            random: fastrand::Rng::with_seed(46),
            countries: Zipf::new(COUNTRIES),
            subdivisions: Zipf::new(SUBDIVISIONS),
            operators: Zipf::new(OPERATORS),
        }
    }

    /// A time around a median, with a lognormal distribution.
    fn time_us(&mut self, median_us: f64) -> u32 {
        let normal = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        (median_us * (normal * 0.5).exp()) as u32
    }

    fn row(&mut self, closed_s: u64) -> Connection {
        let country = self.countries.draw(&mut self.random);
        let code = [b'A' + (country / 26) as u8, b'A' + (country % 26) as u8];
        let letters = code.map(char::from);
        let subdivision = self.subdivisions.draw(&mut self.random);
        let operator = country * OPERATORS + self.operators.draw(&mut self.random);
        let lot = self.random.u32(0..100);
        let protocol = PROTOCOLS.iter().find(|(_, below)| lot < *below);
        let median_us = 5000.0 + (country * 1500) as f64;
        let min_rtt_us = self.time_us(median_us);
        let rtt_us = min_rtt_us + self.time_us(median_us / 5.0);
        let handshake_us = min_rtt_us + 900;
        let client = self.random.u32(0x0100_0000..0xe000_0000).to_be_bytes();
        Connection {
            closed_s,
            server: "www.example.org".to_owned(),
            protocol: protocol.map_or(PROTOCOLS[0].0, |(name, _)| name).to_owned(),
            tls: "TLSv1.3".to_owned(),
            network: Some(Network::of(client.into(), Prefixes::default())),
            country: Some(code),
            subdivision: format!("{}{}-{subdivision}", letters[0], letters[1]),
            operator: format!("AS{} Example {operator}", 64_496 + operator),
            via_proxy: false,
            min_rtt_us: Some(min_rtt_us),
            rtt_us: Some(rtt_us),
            retransmits: u32::from(lot == 0),
            bytes_sent: self.random.u64(1_000..1_000_000),
            bytes_received: self.random.u64(300..3_000),
            requests: self.random.u32(1..30),
            statuses: [self.random.u32(1..20), lot / 50, lot / 95, 0],
            duration_ms: self.random.u64(100..90_000),
            handshake_us: Some(handshake_us),
            handshake_kind: HandshakeKind::Full,
            first_byte_us: Some(rtt_us + 700),
            stalls: Stalls::default(),
        }
    }
}

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
    let mut generator = Generator::new();
    let (mut inserting, mut rolling) = (Spent::default(), Spent::default());
    let mut done = 0;
    while done < last {
        let end = last.min(done + BATCH_ROWS);
        let at = |row: u64| {
            begin_s + (u128::from(row) * u128::from(DAYS * DAY_S) / u128::from(rows)) as u64
        };
        let batch: Vec<Connection> = (done..end).map(|row| generator.row(at(row))).collect();
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
    for dimension in Dimension::ALL {
        for _ in 0..3 {
            let begin = Instant::now();
            let store = Sqlite::open_to_read(path)?;
            let answer = store.answer(&Query {
                to_s: u64::MAX,
                grouping: Grouping::Dimension(dimension),
                ..Query::default()
            })?;
            println!(
                "{dimension:?}: {} groups of {} connections in {:.3} s",
                answer.groups.len(),
                answer.totals().connections,
                begin.elapsed().as_secs_f64()
            );
        }
    }
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
