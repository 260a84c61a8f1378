//! One visitor: a link, the servers at its other end, and visits of all arms in turn.
//!
//! The servers are processes of their own: one for the page, and one for the files of each arm. So the CPU time of an arm is
//! exact. A visitor's link has a seed of its own. The order of arms in a block is random.

use std::fs;
use std::time::Instant;

use firstbyte_tests::{Server, wait_until};
use lab::client::trust::Trust;
use lab::client::{Protocol, Url};
use lab::page::Visit;
use lab::wire::{self, HostOverride, Kept};
use link::{Link, RouteOptions};

use super::support::available;
use super::{ARMS, Conditions};

/// Visits of all arms, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Times to the last file, milliseconds.
    pub(crate) times_ms: [f64; ARMS.len()],
    /// Connections to the host of the files.
    pub(crate) connections: [usize; ARMS.len()],
    /// The link was late for a packet.
    pub(crate) is_void: bool,
}

/// A visitor behind a link.
pub(crate) struct Visitor {
    conditions: Conditions,
    number: usize,
    // Servers end before their network does.
    page: Server,
    arms: Vec<Server>,
    pub(crate) link: Link,
    /// The algorithm of congestion control at the server.
    pub(crate) congestion_control: &'static str,
}

impl Visitor {
    /// Starts the servers; `None` if the machine cannot have links.
    pub(crate) fn new(conditions: Conditions, number: usize) -> Option<Self> {
        let link = available(Link::new(conditions.link(number)))?;
        // Links use Reno, since some machines allow no other. CUBIC is the default of Linux.
        let cubic = RouteOptions {
            congestion_control: Some("cubic".to_owned()),
            ..RouteOptions::default()
        };
        let is_cubic = link.set_route(&cubic).is_ok();
        let arms: Vec<Server> = link.in_server(|| ARMS.into_iter().map(files).collect());
        let page = link.in_server(|| page(conditions.files, &arms));
        Some(Self {
            conditions,
            number,
            page,
            arms,
            link,
            congestion_control: if is_cubic { "CUBIC" } else { "Reno" },
        })
    }

    /// Visits the page `count` times in each arm.
    pub(crate) fn blocks(&self, count: usize) -> Vec<Block> {
        let mut random = fastrand::Rng::with_seed(self.conditions.seed + self.number as u64);
        let visits = || {
            let mut blocks = Vec::new();
            // The first block is not counted: servers read their files.
            for _ in 0..=count {
                let mut order: Vec<usize> = (0..ARMS.len()).collect();
                random.shuffle(&mut order);
                blocks.push(self.block(&order));
            }
            blocks.split_off(1)
        };
        self.link.in_client(visits)
    }

    fn block(&self, order: &[usize]) -> Block {
        let mut times_ms = [0.0; ARMS.len()];
        let mut connections = [0; ARMS.len()];
        let began = Instant::now();
        for &arm in order {
            let visit = self.visit(arm);
            (times_ms[arm], connections[arm]) = self.checked(arm, &visit);
        }
        let is_void = self
            .link
            .is_void(began, Instant::now(), self.conditions.late());
        Block {
            times_ms,
            connections,
            is_void,
        }
    }

    fn visit(&self, arm: usize) -> Visit {
        let url = format!("https://www.test:{}/{}.html", self.page.port(), name(arm));
        let address = Some(self.link.server_address().into());
        let host = |name: String, protocol| HostOverride {
            name,
            address,
            protocol,
        };
        let options = wire::Options {
            hosts: vec![
                host("www.test".to_owned(), Some(Protocol::H1)),
                host(format!("{}.test", name(arm)), Some(ARMS[arm])),
            ],
            trust: Trust::Nobody,
            ..wire::Options::new(Url::parse(&url).expect("a URL"))
        };
        wire::visit(&options, &mut Kept::default(), &mut |_| true).expect("a page")
    }

    /// The time and the number of connections of a visit; all its files must be complete.
    fn checked(&self, arm: usize, visit: &Visit) -> (f64, usize) {
        assert_eq!(visit.resources.len(), 1 + self.conditions.files);
        for (place, file) in visit.resources[1..].iter().enumerate() {
            let protocol = ARMS[arm].alpn();
            assert_eq!((file.status, &file.error), (200, &None), "{file:?}");
            assert_eq!(file.protocol.as_bytes(), protocol);
            assert_eq!(file.body_bytes, Some(size_bytes(place) as u64));
        }
        let mut used: Vec<_> = visit.resources[1..]
            .iter()
            .map(|file| file.connection)
            .collect();
        used.sort_unstable();
        used.dedup();
        (visit.timings.load_ms.expect("an end"), used.len())
    }

    /// CPU time of the workers of an arm so far, nanoseconds.
    pub(crate) fn cpu_ns(&self, arm: usize) -> u64 {
        self.arms[arm].workers().into_iter().map(cpu_ns).sum()
    }
}

/// Name of the host of an arm.
fn name(arm: usize) -> &'static str {
    ["s1", "s2", "s3"][arm]
}

/// Bytes of a file of the page, by its place: 10 KB in the mean.
pub(crate) fn size_bytes(place: usize) -> usize {
    [
        400, 1000, 2000, 3000, 5000, 6600, 9000, 13_000, 20_000, 40_000,
    ][place % 10]
}

/// The server of an arm's files.
fn files(protocol: Protocol) -> Server {
    let (options, more) = match protocol {
        Protocol::H1 => ("ssl", ""),
        Protocol::Spdy => ("ssl spdy", ""),
        Protocol::H2 => ("ssl", "http2 on;"),
    };
    let conf =
        format!("access_log off; server {{ listen 0.0.0.0:%%PORT%% {options}; {more} {SITE} }}");
    let mut builder = secure(Server::http_with("worker_processes 1;", &conf));
    for place in 0..10 {
        builder = builder.bytes(&format!("html/{place}.png"), &vec![b'x'; size_bytes(place)]);
    }
    started(builder)
}

/// The server of pages: one for each arm, with the first files of all.
fn page(count: usize, arms: &[Server]) -> Server {
    let conf = format!("access_log off; server {{ listen 0.0.0.0:%%PORT%% ssl; {SITE} }}");
    let mut builder = secure(Server::http_with("worker_processes 1;", &conf));
    for (arm, server) in arms.iter().enumerate() {
        let base = format!("https://{}.test:{}", name(arm), server.port());
        let image = |place: usize| format!("<img src=\"{base}/{}.png?{place}\">\n", place % 10);
        let images: String = (0..count).map(image).collect();
        let text = format!("<!doctype html>\n<title>A page</title>\n{images}");
        builder = builder.file(&format!("html/{}.html", name(arm)), &text);
    }
    started(builder)
}

fn secure(builder: firstbyte_tests::Builder) -> firstbyte_tests::Builder {
    let names = ["www.test", "s1.test", "s2.test", "s3.test"].map(str::to_owned);
    let key = rcgen::generate_simple_self_signed(names).expect("a key");
    builder
        .bytes("run/leaf.pem", key.cert.pem().as_bytes())
        .bytes("run/leaf.key", key.signing_key.serialize_pem().as_bytes())
}

fn started(builder: firstbyte_tests::Builder) -> Server {
    let server = builder.start();
    wait_until("the worker runs", || server.workers().len() == 1);
    server
}

/// CPU time of a process, nanoseconds. Source: proc(5).
fn cpu_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let times = tasks.into_iter().flatten().flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    times.sum()
}

const SITE: &str = "
    ssl_certificate %%DIR%%/run/leaf.pem;
    ssl_certificate_key %%DIR%%/run/leaf.key;
    keepalive_requests 10000;
    root %%DIR%%/html;";
