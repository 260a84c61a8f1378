//! Simulates a fleet of servers that record visitors into one ClickHouse, and verifies the stored rows.
//!
//! `cargo run --release -p firstbyte-lab --example fleet -- [SERVERS] [SECONDS] [RATE] [BATCH_MS]` starts ClickHouse 18.16 of Debian 12
//! and processes with 50 servers each. A server is a `Writer` with the HTTP client of the store; it closes RATE connections a second,
//! at times by lot. The defaults are 200 servers, 600 s, 50 connections a second and batches of 10 s. Printed are processor time
//! and bytes of each server, parts, sizes and processor time of ClickHouse, and all numbers that are not exact.

#[path = "../../store/examples/rows/mod.rs"]
mod rows;

use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use firstbyte_tests::clickhouse::ClickHouse;
use lab::client::Url;
use lab::fetch::{HttpClient, HttpClientSettings};
use rows::Generator;
use store::{
    ClickHouseSettings, Counts, HttpRequest, HttpResponse, OpenSample, Query, Retention, Store,
    Transport, TransportError, Writer,
};

/// Servers of a process.
const SERVERS_A_PROCESS: u64 = 50;
const DATABASE: &str = "firstbyte";
/// Longest time until all batches are stored after the last connection.
const PATIENCE: Duration = Duration::from_secs(300);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The parameters of a run.
#[derive(Clone, Copy)]
struct Fleet {
    servers: u64,
    seconds: u64,
    rate: u64,
    batch_ms: u64,
}

impl Fleet {
    fn of(arguments: &[String]) -> Outcome<Self> {
        let number = |at: usize, default: u64| {
            let given = arguments.get(at).map(|text| text.parse());
            given.unwrap_or(Ok(default))
        };
        Ok(Self {
            servers: number(0, 200)?,
            seconds: number(1, 600)?,
            rate: number(2, 50)?,
            batch_ms: number(3, 10_000)?,
        })
    }
}

/// Client that counts the bytes of its requests.
struct Counted {
    client: HttpClient,
    sent_bytes: Arc<AtomicU64>,
}

impl Transport for Counted {
    fn send(&mut self, request: &HttpRequest<'_>) -> Result<HttpResponse, TransportError> {
        let fields = request.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let bytes = request.target.len() + fields + request.body.len() + FRAME_BYTES;
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.client.send(request)
    }
}

/// Bytes of a head beside target and the caller's fields: the rest of the first line, `Host`, `User-Agent`, `Content-Length`.
const FRAME_BYTES: usize = 110;

fn client(port: u16) -> Outcome<HttpClient> {
    let url = Url::parse(&format!("http://127.0.0.1:{port}/"))?;
    Ok(HttpClient::new(HttpClientSettings::new(&url)))
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

fn name_of(server: u64) -> String {
    format!("web-{server:03}.example.org")
}

/// Processor time of a process so far, from its line in `/proc`; the kernel counts hundredths of a second.
fn processor_time(pid: u32) -> Duration {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<u64> = line
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let ticks = fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0);
    Duration::from_millis(ticks * 10)
}

/// One server of a process.
struct Recorder {
    name: String,
    writer: Writer,
    sent_bytes: Arc<AtomicU64>,
    offered: u64,
}

impl Recorder {
    fn start(fleet: Fleet, port: u16, server: u64, spill: &std::path::Path) -> Outcome<Self> {
        let name = name_of(server);
        let settings = ClickHouseSettings {
            database: DATABASE.to_owned(),
            user: Some("writer".to_owned()),
            password: Some("s3cret".to_owned()),
            spill: spill.join(&name),
            spill_bytes: 1 << 30,
            batch_pause: Duration::from_millis(fleet.batch_ms),
            retention: Retention::default(),
        };
        let sent_bytes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent_bytes);
        let url = Url::parse(&format!("http://127.0.0.1:{port}/"))?;
        let client = HttpClientSettings::new(&url);
        let connect = Box::new(move || -> Box<dyn Transport> {
            Box::new(Counted {
                client: HttpClient::new(client.clone()),
                sent_bytes: Arc::clone(&counter),
            })
        });
        let own = name.clone();
        let report = move |report| eprintln!("{own}: {report}");
        Ok(Self {
            name,
            writer: Writer::start_clickhouse(settings, connect, report)?,
            sent_bytes,
            offered: 0,
        })
    }
}

/// Runs the servers of one process from a number on, and prints a line for each and one for all.
fn run_part(fleet: Fleet, port: u16, first: u64) -> Outcome<()> {
    let spill = std::env::temp_dir().join(format!("fleet-{}", std::process::id()));
    let last = fleet.servers.min(first + SERVERS_A_PROCESS);
    let recorders = (first..last).map(|server| Recorder::start(fleet, port, server, &spill));
    let mut recorders = recorders.collect::<Outcome<Vec<_>>>()?;
    let mut generator = Generator::new(first);
    let mut random = fastrand::Rng::with_seed(first);
    let count = recorders.len() as u64;
    let (begin, mut made) = (Instant::now(), 0);
    let mut generating = Duration::ZERO;
    let mut minute = 0;
    while begin.elapsed() < Duration::from_secs(fleet.seconds) {
        let due = (begin.elapsed().as_secs_f64() * (fleet.rate * count) as f64) as u64;
        let (closed_s, work) = (now_s(), thread_time());
        while made < due {
            let recorder = &mut recorders[random.usize(..count as usize)];
            let row = generator.row(closed_s, &recorder.name);
            // A row that is dropped is counted by the writer.
            let _ = recorder.writer.offer(row);
            recorder.offered += 1;
            made += 1;
        }
        if closed_s / 60 > minute {
            minute = closed_s / 60;
            for recorder in &recorders {
                let _ = recorder.writer.offer_open(OpenSample {
                    at_s: closed_s,
                    server: recorder.name.clone(),
                    protocol: "HTTP/2.0".to_owned(),
                    connections: fleet.rate * 20,
                });
            }
        }
        generating += thread_time() - work;
        thread::park_timeout(Duration::from_millis(10));
    }
    let deadline = Instant::now() + PATIENCE;
    let is_done = |counts: Counts| counts.queued == 0 && counts.spilled_batches == 0;
    for recorder in &recorders {
        while !is_done(recorder.writer.counters().counts()) && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(50));
        }
    }
    for recorder in &recorders {
        let counts = recorder.writer.counters().counts();
        println!(
            "server {} {} {} {} {} {} {}",
            recorder.name,
            recorder.offered,
            counts.dropped,
            counts.batches_sent,
            counts.retries,
            counts.failed,
            recorder.sent_bytes.load(Ordering::Relaxed)
        );
    }
    // Making rows by lot is no work of a server.
    let used = processor_time(std::process::id()).saturating_sub(generating);
    println!("used {}", used.as_micros());
    drop(recorders);
    std::fs::remove_dir_all(spill)?;
    Ok(())
}

/// Time that this thread has run.
fn thread_time() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}

/// Results of all processes.
#[derive(Default)]
struct Results {
    /// Names and numbers of connections.
    servers: Vec<(String, u64)>,
    dropped: u64,
    batches: u64,
    retries: u64,
    failed: u64,
    sent_bytes: u64,
    used: Duration,
}

impl Results {
    fn add(&mut self, line: &str) -> Outcome<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [
                "server",
                name,
                offered,
                dropped,
                batches,
                retries,
                failed,
                sent_bytes,
            ] => {
                self.servers.push((name.to_owned(), offered.parse()?));
                self.dropped += dropped.parse::<u64>()?;
                self.batches += batches.parse::<u64>()?;
                self.retries += retries.parse::<u64>()?;
                self.failed += failed.parse::<u64>()?;
                self.sent_bytes += sent_bytes.parse::<u64>()?;
            }
            ["used", micros] => self.used += Duration::from_micros(micros.parse()?),
            _ => return Err(format!("unexpected line: {line}").into()),
        }
        Ok(())
    }

    /// Prints the figures of all servers and of ClickHouse.
    fn print(&self, fleet: Fleet, used: Duration, most_parts: u64) {
        let rows: u64 = self.servers.iter().map(|(_, count)| count).sum();
        let (servers, seconds) = (fleet.servers as f64, fleet.seconds as f64);
        println!(
            "{rows} connections, {} dropped; {} batches, {} sent again, {} failures",
            self.dropped, self.batches, self.retries, self.failed
        );
        println!(
            "each server: {:.3} % of a processor, {:.0} bytes a second, {:.1} bytes a connection, {:.1} us a connection",
            self.used.as_secs_f64() / servers / seconds * 100.0,
            self.sent_bytes as f64 / servers / seconds,
            self.sent_bytes as f64 / rows as f64,
            self.used.as_micros() as f64 / rows as f64
        );
        println!(
            "ClickHouse: {:.1} s of processor time, {:.1} % of a processor, {:.1} us a connection; {most_parts} parts at most",
            used.as_secs_f64(),
            used.as_secs_f64() / seconds * 100.0,
            used.as_micros() as f64 / rows as f64
        );
    }
}

fn start_parts(fleet: Fleet, port: u16) -> Outcome<Vec<Child>> {
    let own = std::env::current_exe()?;
    let firsts = (0..fleet.servers).step_by(SERVERS_A_PROCESS as usize);
    let parts = firsts.map(|first| {
        let mut command = Command::new(&own);
        for number in [fleet.servers, fleet.seconds, fleet.rate, fleet.batch_ms] {
            command.arg(number.to_string());
        }
        command.arg(port.to_string()).arg(first.to_string());
        command.stdout(Stdio::piped()).spawn()
    });
    Ok(parts.collect::<Result<_, _>>()?)
}

/// Prints the state of ClickHouse once in a while; returns the largest number of parts of a table.
fn watch(server: &ClickHouse, seconds: u64) -> u64 {
    let begin = Instant::now();
    let mut most = 0;
    while begin.elapsed() < Duration::from_secs(seconds) {
        thread::park_timeout(Duration::from_secs(5));
        let parts = server.rows(&format!(
            "SELECT max(parts) FROM (SELECT table, partition, count() AS parts FROM system.parts \
             WHERE active AND database = '{DATABASE}' GROUP BY table, partition) AS x FORMAT TabSeparated"
        ));
        most = most.max(parts.trim().parse().unwrap_or(0));
        if begin.elapsed().as_secs() % 60 < 5 {
            println!(
                "{:4} s: most parts of a partition {}, ClickHouse has used {:.1} s",
                begin.elapsed().as_secs(),
                parts.trim(),
                server
                    .pid()
                    .map_or(Duration::ZERO, processor_time)
                    .as_secs_f64()
            );
        }
    }
    most
}

/// Verifies rows and roll-ups; returns the number of faults.
fn verify(server: &ClickHouse, results: &Results) -> Outcome<usize> {
    let mut faults = 0;
    let mut expect = |what: &str, found: &str, expected: u64| {
        let found = found.trim();
        if found != expected.to_string() {
            println!("NOT EXACT: {what}: {found}, expected {expected}");
            faults += 1;
        }
    };
    let all: u64 = results.servers.iter().map(|(_, count)| count).sum();
    let count = |table: &str, what: &str, more: &str| {
        server.rows(&format!(
            "SELECT {what} FROM {DATABASE}.{table} WHERE 1 {more} FORMAT TabSeparated"
        ))
    };
    expect("rows", &count("connection", "count()", ""), all);
    for rollup in ["rollup_hour", "rollup_day"] {
        let sum = count(rollup, "sum(connections)", "AND dimension = 0");
        expect(rollup, &sum, all);
    }
    for (name, offered) in &results.servers {
        let chosen = format!("AND server = '{name}'");
        expect(name, &count("connection", "count()", &chosen), *offered);
    }
    let reader = client(server.port())?;
    let reader = store::ClickHouse::reader(Box::new(reader), DATABASE.to_owned(), None, None);
    let totals = reader.totals(&Query {
        to_s: u64::MAX,
        ..Query::default()
    })?;
    expect("totals of a reader", &totals.connections.to_string(), all);
    let begin = Instant::now();
    let map = reader.answer(&Query {
        to_s: u64::MAX,
        ..Query::default()
    })?;
    let took = begin.elapsed().as_secs_f64();
    println!("map: {} countries in {took:.3} s", map.groups.len());
    Ok(faults)
}

fn sizes(server: &ClickHouse) -> String {
    server.rows(&format!(
        "SELECT table, sum(rows), count(), sum(bytes_on_disk), sum(data_uncompressed_bytes) FROM system.parts \
         WHERE active AND database = '{DATABASE}' GROUP BY table ORDER BY table FORMAT TabSeparated"
    ))
}

fn run(fleet: Fleet) -> Outcome<()> {
    let server = ClickHouse::start().ok_or("there is no clickhouse-server")?;
    let parts = start_parts(fleet, server.port())?;
    let most_parts = watch(&server, fleet.seconds);
    let mut results = Results::default();
    for mut part in parts {
        let output = part.stdout.take().ok_or("no output")?;
        for line in std::io::BufReader::new(output).lines() {
            results.add(&line?)?;
        }
        if !part.wait()?.success() {
            return Err("a process failed".into());
        }
    }
    let used = server.pid().map_or(Duration::ZERO, processor_time);
    let faults = verify(&server, &results)?;
    results.print(fleet, used, most_parts);
    println!(
        "table, rows, parts, bytes on disk, bytes uncompressed:\n{}",
        sizes(&server)
    );
    for table in ["connection", "rollup_hour", "rollup_day"] {
        let _ = server.rows(&format!("OPTIMIZE TABLE {DATABASE}.{table} FINAL"));
    }
    println!("merged:\n{}", sizes(&server));
    match faults {
        0 => println!("all rows are exact"),
        _ => return Err(format!("{faults} numbers are not exact").into()),
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let fleet = Fleet::of(&arguments)?;
    match &arguments[..] {
        [_, _, _, _, port, first] => run_part(fleet, port.parse()?, first.parse()?),
        _ => run(fleet),
    }
}
