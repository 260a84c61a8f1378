//! Kills at random moments of many fills: no response is served short or damaged after them.
//!
//! Each body is known from its path. The test kills the server after a random number of bytes of a random client.
//! `LAB_LONG=1` makes 1,000 fills a round. The seed is printed. Source: RFC 9111 section 3.3.

use std::time::SystemTime;

use firstbyte_tests::backend::{Backend, Step, answer, chunk, send};
use firstbyte_tests::client::request;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Client, Server};

use crate::cache_server::{MINUTE, cached_for_many, status_of};

const ROUNDS: usize = 20;
/// Bytes of the longest body.
const BODY_MAX: usize = 200_000;
/// Maximum pause before each piece of a body, milliseconds.
const PAUSE_MAX_MS: u64 = 3;

/// Fills in each round.
fn fills() -> usize {
    match std::env::var_os("LAB_LONG") {
        Some(_) => 1000,
        None => 50,
    }
}

/// Returns numbers that depend on a path alone.
fn numbers_of(path: &str) -> fastrand::Rng {
    let bytes = path.bytes();
    let seed = bytes.fold(7, |seed: u64, byte| {
        seed.wrapping_mul(1_000_003).wrapping_add(u64::from(byte))
    });
    fastrand::Rng::with_seed(seed)
}

/// Returns the body of a path: its length and its bytes are of that path alone.
fn body_of(path: &str) -> Vec<u8> {
    let mut rng = numbers_of(path);
    let scale = 1 << rng.usize(0..18);
    let len = rng.usize(0..BODY_MAX).min(scale);
    let line = format!("<{path} {len}>");
    let mut body = line.repeat(len / line.len() + 1).into_bytes();
    body.truncate(len);
    body
}

/// Returns the steps of a response in pieces, with one of the three framings.
fn script(path: &str) -> Vec<Step> {
    let (mut rng, body) = (numbers_of(path), body_of(path));
    let cut = rng.usize(0..=body.len());
    let pieces = [&body[..cut], &body[cut..]];
    let framing = rng.usize(0..3);
    let line = match framing {
        0 => "Transfer-Encoding: chunked\r\n".to_owned(),
        1 => format!("Content-Length: {}\r\n", body.len()),
        _ => "Connection: close\r\n".to_owned(),
    };
    let mut steps = vec![send(format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n{line}\r\n"
    ))];
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        steps.push(Step::Wait(rng.u64(0..=PAUSE_MAX_MS)));
        steps.push(match framing {
            0 => chunk(piece),
            _ => send(piece),
        });
    }
    match framing {
        0 => steps.push(chunk("")),
        1 => {}
        _ => steps.push(Step::Close),
    }
    steps
}

/// Begins all fills and kills the server in the middle of them.
fn kill_in_fills(server: &mut Server, paths: &[String], rng: &mut fastrand::Rng) {
    let mut clients: Vec<Client> = paths
        .iter()
        .map(|path| {
            let mut client = server.client();
            client.send(request("GET", path, &[]));
            client
        })
        .collect();
    // In some rounds no response has begun.
    if rng.u8(0..5) > 0 {
        let at = rng.usize(0..clients.len());
        assert!(clients[at].has_bytes_within(DEADLINE), "{}", paths[at]);
        let received = rng.usize(0..=body_of(&paths[at]).len());
        clients[at].bytes(received);
    }
    server.kill();
}

#[test]
fn kills_in_many_fills_leave_no_damaged_responses() {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = since.map_or(0, |time| time.subsec_nanos()).into();
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let backend = Backend::answering(|r| match r.target() {
        "/first" => answer("200 OK", MINUTE, "first"),
        target => script(target),
    });
    let mut server = cached_for_many(&backend, "proxy_cache_lock on;").start();
    let (mut hits, mut others) = (0, 0);
    for round in 0..ROUNDS {
        let paths: Vec<String> = (0..fills()).map(|n| format!("/{round}/{n}")).collect();
        kill_in_fills(&mut server, &paths, &mut rng);
        server.launch(false);
        assert_eq!(server.get("/first").text(), "first");
        for path in &paths {
            let answer = server.get(path);
            let status = status_of(&answer);
            assert_eq!(answer.status, 200, "{path} {status}");
            assert!(answer.body == body_of(path), "{path} {status}");
            match status {
                "HIT" => hits += 1,
                _ => others += 1,
            }
        }
    }
    println!("{hits} responses were stored before a kill, {others} were not");
    assert!(hits > 0 && others > 0, "{hits} {others}");
    // Entries of earlier rounds have survived several kills.
    for number in (0..ROUNDS * fills()).step_by(10) {
        let path = format!("/{}/{}", number / fills(), number % fills());
        assert!(server.get(&path).body == body_of(&path), "{path}");
    }
}
