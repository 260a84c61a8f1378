//! First and last bytes over an emulated link of 50 ms: nothing the server sends waits for an acknowledgement.
//!
//! Bodies of many sizes, twelve requests on each connection, with acknowledgements that come 200 ms and 40 ms late.
//! `link::sweep` says what is judged. A further protocol is a further `Peer` beside `h1`. `LINK_ROUNDS` is how often
//! all of it is done (1; `make test-all` does more), `LINK_TABLE=1` prints the figures.
//! Each test is skipped, and says so, where there can be no link (see `link::available`).

mod h1;
mod withholding;

use std::time::Duration;

use firstbyte_tests::{Builder, Server};
use link::sweep::{Peer, SIZES, Sweep};
use link::{Direction, Link, Options, RoundTrips, available};

const MS: Duration = Duration::from_millis(1);

/// How often a sweep is begun anew because the link was late.
const ATTEMPTS: usize = 3;

/// The sizes that fit a segment or some; a last piece that waits can be told for sure.
const SMALL: [usize; 5] = [1, 100, 1024, 1461, 4096];

fn rounds() -> usize {
    let rounds = std::env::var("LINK_ROUNDS").ok();
    rounds.map_or(1, |text| text.parse().expect("LINK_ROUNDS is a number"))
}

fn holding(hold: Duration, trace: bool) -> Option<Link> {
    available(Link::new(Options {
        client_ack_hold: Some(hold),
        trace,
        ..Options::default()
    }))
}

/// A server with a file of each size, named by it.
fn site() -> Builder {
    let files = "server { listen %%PORT%%; root %%DIR%%/html; }";
    SIZES.iter().fold(Server::http(files), |builder, &size| {
        builder.bytes(&format!("html/{size}"), &vec![b'x'; size])
    })
}

/// Runs a sweep until the link was on time for it, and judges all that was valid on the way.
fn judge(what: &str, link: &Link, sweep: &Sweep, peer: &mut (impl Peer + Send)) {
    let shows = std::env::var_os("LINK_TABLE").is_some();
    for _ in 0..ATTEMPTS {
        let outcome = sweep.run(link, peer).expect("the server answers");
        let samples = sweep.rounds * sweep.sizes.len() * sweep.requests;
        assert_eq!(outcome.samples.len(), samples);
        let (table, lateness) = (outcome.table(), link.lateness());
        if shows {
            eprintln!("{what}, {lateness:?}\n{table}");
        }
        let findings = outcome.findings();
        assert!(
            findings.is_empty(),
            "{what}:\n{}\n{table}\n{lateness:?}",
            findings.join("\n")
        );
        if outcome.is_conclusive() {
            return;
        }
    }
    panic!(
        "{what}: the machine was too busy for the link to be on time: {:?}",
        link.lateness()
    );
}

/// Runs the whole sweep against the binary under test.
fn sweep(hold: Duration) {
    let Some(link) = holding(hold, true) else {
        return;
    };
    let server = link.in_server(|| site().start());
    let mut peer = h1::H1::new((link.server_address(), server.port()).into());
    let sweep = Sweep {
        rounds: rounds(),
        ..Sweep::default()
    };
    judge(
        &format!("HTTP/1.1, acknowledgements held for {hold:?}"),
        &link,
        &sweep,
        &mut peer,
    );
}

#[test]
fn http_1_waits_for_no_acknowledgement_held_for_200_ms() {
    sweep(200 * MS);
}

#[test]
fn http_1_waits_for_no_acknowledgement_held_for_40_ms() {
    sweep(40 * MS);
}

#[test]
fn body_of_the_first_window_leaves_in_one_flight() {
    let Some(link) = holding(200 * MS, true) else {
        return;
    };
    let server = link.in_server(|| site().start());
    let mut peer = h1::H1::new((link.server_address(), server.port()).into());
    for size in SMALL {
        link.in_client(|| {
            peer.connect().expect("the server accepts");
            for _ in 0..3 {
                peer.request(size).expect("the server answers");
            }
        });
    }
    let trace = link.take_trace();
    assert_eq!(trace.lost, 0);
    // The requests and the data between them, in the order of delivery at their receivers.
    let mut entries = trace.entries;
    entries.retain(|entry| {
        entry
            .segment
            .is_some_and(|segment| segment.payload_bytes > 0)
    });
    let is_response = |direction| direction == Direction::ToClient;
    let flights = entries.chunk_by(|a, b| is_response(a.direction) == is_response(b.direction));
    let mut responses = 0;
    for flight in flights.filter(|flight| is_response(flight[0].direction)) {
        let spread = flight[flight.len() - 1].came - flight[0].came;
        assert!(
            spread < 20 * MS,
            "a piece left {spread:?} after the first: {flight:#?}"
        );
        responses += 1;
    }
    assert_eq!(responses, SMALL.len() * 3);
}

/// The sweep that the server passes, against a server made to fail it.
fn sweep_of_a_withholding_server(hold: Duration, sizes: &[usize]) {
    let Some(link) = holding(hold, false) else {
        return;
    };
    let server = link.in_server(|| withholding::serve(link.server_address(), sizes.len()));
    let mut peer = h1::H1::new(server.address());
    let sweep = Sweep {
        sizes: sizes.to_vec(),
        requests: 2,
        rounds: 1,
    };
    let outcome = sweep.run(&link, &mut peer).expect("the server answers");
    drop(peer);
    server.join();
    let findings = outcome.findings();
    for size in sizes {
        for request in 1..=sweep.requests {
            let what = format!("{size} bytes, request {request}: the last byte");
            let found = findings.iter().any(|finding| finding.starts_with(&what));
            assert!(found, "{what} is not in\n{}", findings.join("\n"));
        }
    }
    // With more than one segment under way, Linux sends what it kept as its probe for a lost tail (RFC 8985 section
    // 7) before an acknowledgement that is held for long comes.
    let waited = 2 * link.round_trip() + hold;
    let mut single = outcome
        .samples
        .iter()
        .filter(|sample| sample.body_bytes <= 1024);
    assert!(
        single.all(|sample| sample.last >= waited),
        "{}",
        outcome.table()
    );
}

#[test]
fn sweep_finds_a_last_piece_that_waits_200_ms() {
    sweep_of_a_withholding_server(200 * MS, &SMALL);
}

#[test]
fn sweep_finds_a_last_piece_that_waits_40_ms() {
    sweep_of_a_withholding_server(40 * MS, &SMALL);
}

#[test]
fn http_1_answers_after_two_round_trips_of_a_new_connection() {
    let Some(link) = holding(200 * MS, false) else {
        return;
    };
    let server = link.in_server(|| site().start());
    let mut peer = h1::H1::new((link.server_address(), server.port()).into());
    let (connected, counted) = RoundTrips::of(&link, || peer.connect());
    connected.expect("the server accepts");
    assert_eq!(counted.whole(), Some(1), "{counted:?}");
    let (answered, counted) = RoundTrips::of(&link, || {
        peer.connect()?;
        peer.request(100)
    });
    answered.expect("the server answers");
    assert_eq!(counted.whole(), Some(2), "{counted:?}");
}
