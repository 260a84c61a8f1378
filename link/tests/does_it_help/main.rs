//! Static files over HTTP/1.1, SPDY/3.1 and HTTP/2, each from a host of its own, by visitors behind links.
//!
//! `FIRSTBYTE_UPDATE=1` measures all cells and writes the tables and pictures of docs/does-it-help.md, which has the command.
//! `DOES_IT_HELP_BLOCKS` sets the number of visits of each arm in a cell. Without it, one cell with few visits shows that all arms
//! load the page over their protocol.

mod figures;
mod picture;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod visitor;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use figures::Cell;
use firstbyte_tests::busy::inconclusive;
use lab::client::Protocol;
use link::Options;
use visitor::{Block, Visitor};

/// Arms of the experiment; the first is the control.
const ARMS: [Protocol; 3] = [Protocol::H1, Protocol::Spdy, Protocol::H2];
/// Round-trip times, milliseconds.
const ROUND_TRIPS_MS: [u64; 3] = [5, 50, 200];
/// Losses in each direction.
const LOSSES: [&str; 2] = ["0%", "1%"];
/// Files that a visitor has to load: all of the page, or those that a returning visitor lacks.
const FILES: [usize; 2] = [100, 6];
/// Visits of each arm in a cell, unless `DOES_IT_HELP_BLOCKS` has another number.
const BLOCKS: usize = 200;
/// Visitors at a time, by round-trip time: the CPU is the limit of short links.
const VISITORS: [usize; 3] = [4, 16, 32];

/// Conditions of a cell.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    round_trip: Duration,
    loss: &'static str,
    files: usize,
    seed: u64,
}

impl Conditions {
    fn link(&self, visitor: usize) -> Options {
        Options {
            one_way: self.round_trip / 2,
            loss: self.loss.parse().expect("a share"),
            seed: self.seed + visitor as u64,
            ..Options::default()
        }
    }

    /// Lateness of a packet that makes a block void. A share of the round trip is far below differences of arms.
    fn late(&self) -> Duration {
        Duration::from_millis(2) + self.round_trip / 20
    }
}

/// Measures a cell; `None` if the machine cannot have links.
fn measure(conditions: Conditions, visitors: usize, blocks: usize) -> Option<Cell> {
    let machine = figures::machine_busy();
    let began = Instant::now();
    let visitors: Option<Vec<Visitor>> = (0..visitors)
        .map(|number| Visitor::new(conditions, number))
        .collect();
    let visitors = visitors?;
    let share = blocks.div_ceil(visitors.len());
    let found: Vec<Vec<Block>> = thread::scope(|scope| {
        let all: Vec<_> = visitors
            .iter()
            .map(|visitor| scope.spawn(move || visitor.blocks(share)))
            .collect();
        let joined = all.into_iter().map(|one| one.join().expect("visits"));
        joined.collect()
    });
    let cell = Cell::of(&conditions, &visitors, found.concat());
    println!("{}", cell.line(began.elapsed(), machine));
    Some(cell)
}

#[test]
fn all_arms_load_the_page_over_their_protocol() {
    let conditions = Conditions {
        round_trip: Duration::from_millis(20),
        loss: "0%",
        files: 100,
        seed: 1,
    };
    let Some(cell) = measure(conditions, 1, 2) else {
        return;
    };
    assert_eq!(cell.arms.len(), ARMS.len());
    let [h1, spdy, h2] = &cell.arms[..] else {
        panic!("three arms: {cell:?}");
    };
    assert_eq!(h1.connections.value, 6.0);
    assert_eq!((spdy.connections.value, h2.connections.value), (1.0, 1.0));
    // Page and files take six round trips at least: for TCP, TLS and a request to each host.
    for arm in &cell.arms {
        assert!(arm.mean.value >= 120.0, "{arm:?}");
        assert!(arm.cpu_ms > 0.0, "{arm:?}");
    }
    // Seventeen requests follow each other on each connection of HTTP/1.1.
    if cell.void == 0 {
        assert!(h1.mean.value > h2.mean.value + 80.0, "{cell:?}");
        assert!(h1.mean.value > spdy.mean.value + 80.0, "{cell:?}");
    } else {
        inconclusive("HTTP/1.1 beside SPDY and HTTP/2: the link was late");
    }
    let table = tables::tables(&[cell]);
    assert!(table.contains("| 20 ms | 0% | SPDY/3.1 |"), "{table}");
}

#[test]
fn the_document_is_measured_anew() {
    if std::env::var_os("FIRSTBYTE_UPDATE").is_none() {
        return;
    }
    let blocks = std::env::var("DOES_IT_HELP_BLOCKS").ok();
    let blocks = blocks.map_or(BLOCKS, |text| text.parse().expect("a number"));
    let mut cells = Vec::new();
    let mut seed = 48_000;
    for files in FILES {
        for (round_trip_ms, visitors) in ROUND_TRIPS_MS.into_iter().zip(VISITORS) {
            for loss in LOSSES {
                seed += 1000;
                let conditions = Conditions {
                    round_trip: Duration::from_millis(round_trip_ms),
                    loss,
                    files,
                    seed,
                };
                match measure(conditions, visitors, blocks) {
                    Some(cell) => cells.push(cell),
                    None => return,
                }
            }
        }
    }
    for files in FILES {
        let of_page: Vec<&Cell> = cells.iter().filter(|cell| cell.files == files).collect();
        let file = docs().join(format!("pictures/does-it-help-{files}.svg"));
        fs::write(&file, picture::differences(files, &of_page)).expect("it is written");
    }
    let file = docs().join("does-it-help.md");
    let text = fs::read_to_string(&file).expect("the document");
    let text = tables::replaced(&text, &tables::tables(&cells));
    fs::write(&file, text).expect("it is written");
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}
