//! The example of docs/map.md: its log is read whole, and has no client's address.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lab::map::log::{Field, Input, Job, read, warnings};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/map/access.log.gz")
}

#[test]
fn example_log_is_read_without_warnings() {
    let seen = Mutex::new(Vec::new());
    let countries = |address: IpAddr| {
        seen.lock().expect("no thread panics").push(address);
        Some(*b"DE")
    };
    let job = Job {
        inputs: vec![Input {
            path: Some(example()),
            formats: None,
        }],
        client: Field::default(),
        threads: 1,
        follows: false,
        countries: &countries,
    };
    let report = read(&job, &mut |_| true).expect("the log is read");
    assert_eq!(warnings(&report), Vec::<String>::new());
    assert_eq!(report.detected[0].1, "min_rtt");
    let germany = &report.map.countries[b"DE"];
    assert_eq!(germany.rtt.count(), 4000, "one sample a connection");
    assert!(germany.requests > germany.rtt.count());
    let seen = seen.into_inner().expect("no thread panics");
    assert!(seen.len() > 1000, "{} addresses", seen.len());
    for address in seen {
        let is_network = match address {
            IpAddr::V4(address) => address.octets()[3] == 0,
            IpAddr::V6(address) => address.segments()[3..].iter().all(|part| *part == 0),
        };
        assert!(is_network, "{address} is an address of a client");
    }
}

#[test]
fn example_log_is_small() {
    let packed = std::fs::read(example()).expect("the log");
    assert!(packed.len() < 100_000, "{}", packed.len());
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
    unpacked.read_to_string(&mut text).expect("gzip of text");
    assert!(text.lines().count() > 4000);
}
