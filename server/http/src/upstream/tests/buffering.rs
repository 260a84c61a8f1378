//! Reading ahead of the client, and not reading on.

use server_base::files::{ENOSPC, FileError};
use server_upstream::request::{Failure, WINDOW_BYTES};

use super::super::response_buffer::HOLD_MS;
use super::Site;
use crate::exchange::{Exchange, State};
use crate::testing::servers::Passing;

/// A response that has begun; 4 buffers of 10 bytes, and a file of at most `file` bytes.
fn begun(file: u64) -> (Site, Exchange) {
    let mut passing = Passing::new();
    passing.conf.buffering.buffers = (4, 10);
    passing.conf.buffering.temp_file_write_size = 16;
    passing.conf.buffering.max_temp_file_size = file;
    let mut site = Site::new(passing);
    let x = respond(&mut site);
    (site, x)
}

/// A response that was held back a while ago, with 40 bytes that the client has taken.
fn held(file: u64) -> (Site, Exchange) {
    let (mut site, mut x) = begun(file);
    come(&mut site, &mut x, 40);
    assert_eq!(site.pull(&mut x).0.len(), 40);
    site.world.pass(HOLD_MS);
    (site, x)
}

fn respond(site: &mut Site) -> Exchange {
    let mut x = site.get("/up/a");
    site.call().head(200, &[]);
    site.wake(&mut x);
    assert_eq!(x.progress.state, State::Responding);
    x
}

/// A piece comes while the client takes nothing.
fn come(site: &mut Site, x: &mut Exchange, bytes: usize) {
    site.call().bytes(vec![b'x'; bytes]);
    site.wake(x);
}

#[test]
fn memory_is_limited_where_there_is_no_file() {
    let (mut site, mut x) = begun(0);
    assert_eq!(site.call().window(), 40);
    come(&mut site, &mut x, 39);
    assert_eq!(site.call().window(), 1);
    come(&mut site, &mut x, 1);
    assert_eq!(site.call().window(), 0, "the server is not read");
    assert_eq!(site.pull(&mut x).0.len(), 40);
    assert_eq!(site.call().window(), 40);
}

/// The client has stopped with `unsent_bytes` in its queue.
fn stall(site: &mut Site, x: &mut Exchange, unsent_bytes: u64) {
    x.stalled(unsent_bytes, &mut site.world.cx());
}

#[test]
fn what_waits_in_the_clients_queue_counts_while_it_takes_nothing() {
    let (mut site, mut x) = begun(0);
    assert_eq!(site.pull(&mut x).1, "later");
    for (unsent, window) in [(1, 39), (39, 1), (40, 0), (41, 0)] {
        stall(&mut site, &mut x, unsent);
        assert_eq!(site.call().window(), window, "{unsent}");
    }
    stall(&mut site, &mut x, 30);
    come(&mut site, &mut x, 6);
    assert_eq!(site.call().window(), 4);
    assert_eq!(site.pull(&mut x).0.len(), 6, "it takes some again");
    assert_eq!(site.call().window(), 40);
}

#[test]
fn a_client_that_stops_has_no_more_read_for_it_than_buffers_hold() {
    let (mut site, mut x) = held(1000);
    assert_eq!(site.pull(&mut x).1, "later");
    assert_eq!(site.call().window(), WINDOW_BYTES, "it waits for more");
    stall(&mut site, &mut x, 60_000);
    assert_eq!(site.call().window(), 40, "the file takes the rest");
    come(&mut site, &mut x, 40);
    come(&mut site, &mut x, 16);
    assert_eq!(site.world.files.temps.len(), 1);
    assert_eq!(site.call().window(), 24);
}

#[test]
fn without_buffering_nothing_is_read_for_a_client_that_stops() {
    let mut passing = Passing::new();
    passing.conf.buffering.reads_ahead = false;
    let mut site = Site::new(passing);
    let mut x = respond(&mut site);
    assert_eq!(site.pull(&mut x).1, "later");
    assert_eq!(site.call().window(), 32 << 10);
    stall(&mut site, &mut x, 1);
    assert_eq!(site.call().window(), 0);
    assert_eq!(site.pull(&mut x).1, "later");
    assert_eq!(site.call().window(), 32 << 10);
}

#[test]
fn no_file_is_made_for_a_short_pause() {
    let (mut site, mut x) = begun(1000);
    come(&mut site, &mut x, 40);
    assert_eq!(site.call().window(), 0, "the server is not read");
    let due_ms = site.world.clock.mono_ms + HOLD_MS;
    assert_eq!(site.call().wake_at_ms(), Some(due_ms));
    assert_eq!(site.pull(&mut x).0.len(), 40);
    assert_eq!(site.call().window(), WINDOW_BYTES, "it was a burst");
    come(&mut site, &mut x, 40);
    site.world.pass(HOLD_MS - 1);
    site.call().wake_if_due(site.world.clock.mono_ms);
    site.wake(&mut x);
    assert_eq!(site.call().window(), 0);
    assert_eq!(site.call().wake_at_ms(), Some(due_ms));
    site.world.pass(1);
    assert!(site.world.files.temps.is_empty());
    site.call().wake_if_due(site.world.clock.mono_ms);
    assert_eq!(site.call().wake_at_ms(), None);
    site.wake(&mut x);
    assert_eq!(site.call().window(), 16, "the server is read again");
    come(&mut site, &mut x, 16);
    assert_eq!(site.world.files.temps.len(), 1);
    site.pull(&mut x);
    come(&mut site, &mut x, 40);
    assert_eq!(site.call().window(), 16, "the file is there");
}

#[test]
fn what_is_beyond_memory_goes_to_a_file_and_nothing_gets_lost() {
    let (mut site, mut x) = held(1000);
    assert_eq!(site.call().window(), WINDOW_BYTES, "nobody holds it back");
    site.call().data("0123456789012345678901234567890123456789");
    site.wake(&mut x);
    assert!(site.world.files.temps.is_empty(), "it fits");
    assert_eq!(site.call().window(), 16);
    site.call().data("abc");
    site.wake(&mut x);
    assert_eq!(site.world.files.temps.len(), 1);
    let said = site.world.said();
    assert!(said.contains("[warn]"), "{said}");
    let text =
        "an upstream response is buffered to a temporary file /temp/1 while reading upstream";
    assert!(said.contains(text), "{said}");
    assert_eq!(site.pull(&mut x), ("[0+40]abc".to_owned(), "later"));
    assert_eq!(site.value(&mut x, "upstream_response_length"), "83");
}

#[test]
fn pieces_that_follow_each_other_in_the_file_are_one() {
    let (mut site, mut x) = held(1000);
    for _ in 0..5 {
        come(&mut site, &mut x, 40);
    }
    assert_eq!(site.world.files.temps.len(), 1);
    let last = "x".repeat(40);
    assert_eq!(site.pull(&mut x), (format!("[0+160]{last}"), "later"));
}

#[test]
fn the_file_is_limited() {
    // At the limit the file takes the part in memory; one byte below, it does not.
    for (most, window) in [(40, 16), (39, 0)] {
        let (mut site, mut x) = held(most);
        come(&mut site, &mut x, 40);
        assert_eq!(site.call().window(), window, "{most}");
    }
    let (mut site, mut x) = held(40);
    come(&mut site, &mut x, 40);
    come(&mut site, &mut x, 40);
    assert_eq!(site.call().window(), 0, "memory and file are full");
    assert_eq!(site.pull(&mut x).0.len(), "[0+40]".len() + 40);
    assert_eq!(site.call().window(), WINDOW_BYTES, "memory is free again");
}

#[test]
fn a_full_disk_loses_nothing() {
    for call in ["open()", "pwrite()"] {
        let (mut site, mut x) = held(1000);
        match call {
            "open()" => {
                site.world.files.fault = Some(FileError {
                    errno: ENOSPC,
                    call: "open()",
                });
            }
            _ => site.world.files.is_full = true,
        }
        come(&mut site, &mut x, 40);
        come(&mut site, &mut x, 8);
        let said = site.world.said();
        assert!(said.contains("[crit]") && said.contains(call), "{said}");
        assert!(said.contains("No space left on device"), "{said}");
        assert_eq!(
            site.call().window(),
            0,
            "no more is read than there is room for"
        );
        assert_eq!(site.pull(&mut x).0.len(), 48);
        assert!(site.call().window() > 0);
        site.call().data("rest").end();
        assert_eq!(site.pull(&mut x), ("rest".to_owned(), "end"));
    }
}

#[test]
fn without_buffering_one_buffer_is_read() {
    let mut passing = Passing::new();
    passing.conf.buffering.reads_ahead = false;
    passing.conf.buffering.head_bytes = Some(100);
    let mut site = Site::new(passing);
    let mut x = respond(&mut site);
    assert_eq!(site.call().window(), 100);
    come(&mut site, &mut x, 100);
    assert_eq!(site.call().window(), 0);
    assert!(site.world.files.temps.is_empty());
    assert_eq!(site.pull(&mut x).0.len(), 100);
    assert_eq!(site.call().window(), 100);
}

#[test]
fn a_response_says_whether_it_is_buffered() {
    for (buffering, says, ignored, window) in [
        (true, "no", 0, 100),
        (false, "Yes", 0, WINDOW_BYTES),
        (true, "no", 1 << 3, WINDOW_BYTES),
        (true, "maybe", 0, WINDOW_BYTES),
    ] {
        let mut passing = Passing::new();
        passing.conf.buffering.reads_ahead = buffering;
        passing.conf.buffering.head_bytes = Some(100);
        passing.conf.fields.ignored.0 = ignored;
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        site.call()
            .head(200, &[&format!("X-Accel-Buffering: {says}")]);
        site.wake(&mut x);
        assert_eq!(site.call().window(), window, "{says}");
    }
}

#[test]
fn a_response_that_breaks_off_never_looks_complete() {
    let (mut site, mut x) = begun(0);
    site.call().data("half");
    site.call().fail(Failure::Closed);
    assert_eq!(site.pull(&mut x), ("half".to_owned(), "broken"));
    let said = site.world.said();
    assert!(
        said.contains("upstream prematurely closed connection while reading upstream"),
        "{said}"
    );
    assert_eq!(site.value(&mut x, "upstream_status"), "200");
}

#[test]
fn a_rate_holds_the_server_back() {
    let mut passing = Passing::new();
    passing.conf.buffering.limit_rate.0 = Some(crate::value::Value::text(b"1000"));
    let mut site = Site::new(passing);
    let mut x = respond(&mut site);
    assert_eq!(site.call().window(), 1000, "the first second's");
    come(&mut site, &mut x, 1000);
    assert_eq!(site.pull(&mut x).0.len(), 1000);
    assert_eq!(site.call().window(), 0);
    let due_ms = x.progress.pull_wait.expect("it waits").until_ms;
    let wait_ms = due_ms - site.world.clock.mono_ms;
    assert!((1..=101).contains(&wait_ms), "{wait_ms}");
    site.world.pass(wait_ms);
    assert_eq!(site.pull(&mut x), (String::new(), "later"));
    assert!(site.call().window() > 0);
}

#[test]
fn a_body_that_nobody_wants_gives_the_attempt_up() {
    let (site, mut x) = begun(0);
    assert!(!site.call().is_given_up());
    x.drop_body();
    assert!(site.call().is_given_up());
}

#[test]
fn what_comes_with_a_head_is_limited_too() {
    for (buffering, rate, size, window) in [
        (true, None, None, WINDOW_BYTES),
        (true, Some(b"9"), None, 4096),
        (false, None, Some(100), 100),
    ] {
        let mut passing = Passing::new();
        passing.conf.buffering.reads_ahead = buffering;
        passing.conf.buffering.head_bytes = size;
        passing.conf.buffering.limit_rate.0 = rate.map(|rate| crate::value::Value::text(rate));
        let mut site = Site::new(passing);
        site.get("/up/a");
        assert_eq!(site.call().window(), window);
    }
}
