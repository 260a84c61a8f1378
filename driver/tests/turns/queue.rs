//! Contents of one write and limits of the queue: pipelined responses, large bodies, rates.

use driver::worker::state::serving::{PIPELINE_DEPTH, QUEUE_BYTES};

use super::site::{TestConnection, begun, get, log_entries, statuses};

#[test]
fn pipelined_responses_leave_in_one_write_up_to_a_number() {
    for (requests, sends) in [
        (1, 1),
        (2, 1),
        (PIPELINE_DEPTH, 1),
        (PIPELINE_DEPTH + 1, 2),
        (2 * PIPELINE_DEPTH, 2),
    ] {
        let mut talk = TestConnection::new("");
        let got = talk.send(get("/text").repeat(requests));
        assert_eq!(statuses(&got).len(), requests);
        assert_eq!(talk.sends(), sends, "{requests} requests");
        assert_eq!(log_entries().len(), requests);
    }
}

#[test]
fn pipelined_responses_leave_in_one_write_up_to_a_size() {
    // Two of them with their heads exceed the queue; one does not.
    let target = format!("/pieces/1/{}", QUEUE_BYTES / 2);
    let mut talk = TestConnection::new("");
    let got = talk.send(get(&target).repeat(4));
    assert_eq!(statuses(&got).len(), 4);
    assert_eq!(talk.sends(), 2);
}

/// Returns the number of bytes of a response besides its body, which has `bytes` bytes.
fn other_bytes(target: &str, bytes: u64) -> u64 {
    let got = TestConnection::new("").send(get(&format!("{target}{bytes}")));
    got.len() as u64 - bytes
}

#[test]
fn what_waits_ends_at_a_size_and_not_a_byte_before() {
    // The end of a chunked body fills the queue.
    let rest = QUEUE_BYTES - other_bytes("/late/0/", QUEUE_BYTES - 1000);
    for (bytes, requests) in [(rest - 1, 2), (rest, 1)] {
        let mut talk = TestConnection::deaf("", 1);
        talk.send(get(&format!("/late/0/{bytes}")) + &get("/a"));
        assert_eq!(begun(), requests, "a request behind {bytes} bytes");
    }
    let rest = QUEUE_BYTES - other_bytes("/pieces/1/", 2 * QUEUE_BYTES);
    for (bytes, sends) in [(rest - 1, 1), (rest, 2)] {
        let mut talk = TestConnection::new("");
        talk.send(get(&format!("/pieces/2/{bytes}")));
        assert_eq!(talk.sends(), sends, "a piece behind {bytes} bytes");
    }
}

#[test]
fn no_request_is_begun_while_much_waits_for_the_client() {
    let target = format!("/pieces/1/{}", QUEUE_BYTES / 2);
    let mut talk = TestConnection::deaf("", 1);
    talk.send(get(&target).repeat(4));
    assert_eq!(begun(), 2);
    let mut small = TestConnection::deaf("", 1);
    small.send(get("/a").repeat(PIPELINE_DEPTH + 9));
    assert_eq!(begun(), PIPELINE_DEPTH);
}

#[test]
fn small_pieces_leave_at_once_or_not_as_the_location_says() {
    let mut talk = TestConnection::new("location /cork { tcp_nodelay off; }");
    for (target, at_once) in [
        ("/a", true),
        ("/cork", false),
        ("/cork", false),
        ("/a", true),
    ] {
        talk.send(get(target));
        assert_eq!(talk.wire(|wire| wire.nodelay), at_once, "{target}");
    }
}

#[test]
fn no_request_is_served_behind_one_that_ends_the_connection() {
    let last = "GET /text HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut talk = TestConnection::new("");
    let got = talk.send(format!("{}{last}{}", get("/first"), get("/third")));
    assert_eq!(statuses(&got), ["200", "200"]);
    assert!(!talk.is_open());
    assert_eq!(log_entries().len(), 2);
}

/// The first second's bytes include the head. Each further second allows the same number.
#[test]
fn a_rate_counts_from_the_begin_of_its_own_response() {
    let mut talk = TestConnection::new("location /pieces/ { limit_rate 2000; }");
    let first = get("/a") + &get("/b") + &get("/pieces/1/9000");
    let got = talk.send(first);
    let from = got.rfind("HTTP/1.1").unwrap_or(0);
    let mut so_far = got.len() - from;
    // The first piece is sent with its head, which counts from then on.
    assert!((2000..=2200).contains(&so_far), "{so_far}");
    for second in 2..=4 {
        so_far += talk.pass(1000).len();
        assert!(
            (2000 * second - 2..=2000 * second + 2).contains(&so_far),
            "{so_far}"
        );
    }
}

#[test]
fn the_sent_bytes_of_each_response_are_logged() {
    let mut talk = TestConnection::new("");
    let got = talk.send(get("/a") + &get("/bb") + &get("/pieces/100/1000"));
    let mut ends: Vec<usize> = got.match_indices("HTTP/1.1 ").map(|(at, _)| at).collect();
    ends.push(got.len());
    let sent: Vec<u64> = log_entries().iter().map(|entry| entry.bytes_sent).collect();
    let sizes: Vec<u64> = ends
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u64)
        .collect();
    assert_eq!(sent, sizes);
}

#[test]
fn the_head_is_counted_without_the_body() {
    let mut talk = TestConnection::new("");
    let got = talk.send(get("/a"));
    assert_eq!(log_entries()[0].header_bytes, (got.len() - 2) as u64);
    let again = talk.send(get("/a") + &get("/b"));
    let sizes: Vec<u64> = log_entries()
        .iter()
        .map(|entry| entry.header_bytes)
        .collect();
    assert_eq!(sizes, [(again.len() / 2 - 2) as u64; 2]);
}
