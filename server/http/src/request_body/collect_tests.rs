//! A body read whole: in memory or in a file, and its limits of size and time.

use std::os::unix::fs::FileExt;
use std::rc::Rc;

use engines::http::BodyLength;
use server_base::errlog::Level;
use server_base::files::{FileError, Keep};

use super::super::stream;
use super::{CollectOptions, Collected, InFile, collect};
use crate::exchange::{DetachedRequest, Exchange, State, Wait};
use crate::testing::{START_MS, World, refused};

/// A request with a handler that collects the body each time it is run.
struct Reading {
    world: World,
    x: Exchange,
    plan: CollectOptions,
}

impl Reading {
    /// With these settings and the field that announces the body; the handler has not run yet.
    fn new(server: &str, length: &str) -> Self {
        let world = World::new(server);
        let x = world.exchange(&format!("POST /a HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n"));
        let plan = CollectOptions::of(x.route.core_loc());
        Self { world, x, plan }
    }

    /// The handler has run.
    fn begun(server: &str, length: &str) -> Self {
        let mut reading = Self::new(server, length);
        assert_eq!(reading.ask(), Collected::Wait);
        reading
    }

    fn ask(&mut self) -> Collected {
        collect(&mut self.x, &mut self.world.cx(), &self.plan)
    }

    fn piece(&mut self, bytes: &[u8]) -> &mut Self {
        self.x.deliver_body(bytes.to_vec(), &mut self.world.cx());
        self
    }

    fn end(&mut self) -> Collected {
        self.x.end_body(&mut self.world.cx());
        self.ask()
    }

    /// The text in the file.
    fn written(&self) -> String {
        let file = self.x.body_file().expect("there is a file");
        let mut text = vec![0; 1000];
        let handle = std::fs::File::from(file.file.try_clone().expect("a descriptor"));
        let n = handle.read_at(&mut text, 0).expect("it can be read");
        assert_eq!(n as u64, file.len);
        String::from_utf8_lossy(&text[..n]).into_owned()
    }
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

#[test]
fn a_body_moves_to_a_file_one_byte_above_the_buffer() {
    let mut at = Reading::begun("client_body_buffer_size 8;", CHUNKED);
    at.piece(b"1234").piece(b"5678");
    assert_eq!(at.end(), Collected::Done);
    assert_eq!(at.x.body_bytes(), Some(&b"12345678"[..]));
    let mut above = Reading::begun("client_body_buffer_size 8;", CHUNKED);
    above.piece(b"1234").piece(b"5678").piece(b"9");
    assert_eq!(above.written(), "123456789");
    above.piece(b"0");
    assert_eq!(above.end(), Collected::Done);
    assert_eq!(
        (above.written().as_str(), above.x.body_bytes()),
        ("1234567890", None)
    );
    assert_eq!(above.world.files.temps.len(), 1, "one file");
}

/// As in nginx: `buffer + buffer / 4` is too long.
#[test]
fn an_announced_body_a_little_longer_than_the_buffer_stays_in_memory() {
    for (length, in_memory) in [(9, true), (10, false), (11, false)] {
        let mut reading = Reading::begun(
            "client_body_buffer_size 8;",
            &format!("Content-Length: {length}"),
        );
        reading.piece(&vec![b'x'; length]);
        assert_eq!(reading.end(), Collected::Done);
        assert_eq!(reading.x.body_bytes().is_some(), in_memory, "{length}");
    }
}

#[test]
fn a_body_without_a_length_is_refused_one_byte_above_the_limit() {
    let mut at = Reading::begun("client_max_body_size 8;", CHUNKED);
    at.piece(b"1234").piece(b"5678");
    assert_eq!(at.end(), Collected::Done);
    let mut above = Reading::begun("client_max_body_size 8;", CHUNKED);
    above.piece(b"12345").piece(b"6789");
    assert!(above.x.is_body_due(), "the handler is told before the end");
    assert_eq!(above.ask(), Collected::Status(413));
    assert!(above.x.input.too_large);
    let said = above.world.said();
    assert!(
        said.contains("client intended to send too large chunked body: 5+4 bytes"),
        "{said}"
    );
    above.piece(b"0");
    assert_eq!(above.end(), Collected::Status(413), "whatever comes then");
    assert_eq!(
        (above.world.said().as_str(), above.x.body_bytes()),
        ("", None)
    );
    let mut all = Reading::begun("client_max_body_size 0;", CHUNKED);
    all.piece(&[b'x'; 5000]);
    assert_eq!(all.end(), Collected::Done, "0 is no limit");
}

/// It was compared when the location was found; the location of an error page may have another limit.
#[test]
fn an_announced_body_is_not_counted_again() {
    let mut reading = Reading::begun("client_max_body_size 8;", "Content-Length: 9");
    reading.piece(b"123456789");
    assert_eq!(reading.end(), Collected::Done);
    assert!(!reading.x.input.too_large);
}

#[test]
fn what_came_before_anybody_asked_counts() {
    let mut reading = Reading::new("client_max_body_size 8000;", CHUNKED);
    reading.piece(&[b'x'; 5000]).piece(&[b'x'; 3001]);
    assert_eq!(reading.ask(), Collected::Status(413));
    assert!(reading.world.said().contains("body: 5000+3001 bytes"));
    let mut whole = Reading::new("client_body_buffer_size 4;", CHUNKED);
    whole.piece(b"12345");
    assert_eq!(whole.end(), Collected::Done);
    assert_eq!(whole.written(), "12345");
}

#[test]
fn the_location_says_how_files_are_made_and_logged() {
    for (value, in_file, level) in [
        ("off", InFile::Off, Level::Warn),
        ("clean", InFile::Clean, Level::Notice),
        ("on", InFile::On, Level::Notice),
    ] {
        let reading = Reading::new(&format!("client_body_in_file_only {value};"), CHUNKED);
        assert_eq!(
            (reading.plan.in_file, reading.plan.log),
            (in_file, Some(level))
        );
    }
    for (value, keep, level) in [
        ("off", Keep::Nameless, "[warn]"),
        ("clean", Keep::WhileUsed, "[notice]"),
        ("on", Keep::Always, "[notice]"),
    ] {
        let server = format!("client_body_buffer_size 4; client_body_in_file_only {value};");
        let mut reading = Reading::begun(&server, CHUNKED);
        reading.piece(b"12345");
        assert_eq!(reading.world.files.temps, [(0o600, keep)]);
        let said = reading.world.said();
        assert!(
            said.contains("a client request body is buffered to a temporary file /temp/1"),
            "{said}"
        );
        assert!(said.contains(level), "{said}");
    }
    let mut silent = Reading::new("client_body_buffer_size 4;", CHUNKED);
    silent.plan = CollectOptions {
        mode: 0o644,
        log: None,
        ..silent.plan
    };
    silent.ask();
    silent.piece(b"12345");
    assert_eq!(silent.world.said(), "");
    assert_eq!(silent.world.files.temps, [(0o644, Keep::Nameless)]);
}

#[test]
fn client_body_in_file_only_puts_small_and_empty_bodies_into_files_at_their_end() {
    let mut small = Reading::begun("client_body_in_file_only clean;", CHUNKED);
    small.piece(b"12");
    assert!(small.x.body_file().is_none());
    assert_eq!(small.end(), Collected::Done);
    assert_eq!(
        (small.written().as_str(), small.x.body_bytes()),
        ("12", None)
    );
    let mut empty = Reading::new("client_body_in_file_only on;", "Content-Length: 0");
    assert_eq!(empty.ask(), Collected::Done);
    assert_eq!(empty.written(), "");
    let mut off = Reading::begun("", CHUNKED);
    off.piece(b"12");
    assert_eq!(off.end(), Collected::Done);
    assert!(off.x.body_file().is_none());
}

#[test]
fn a_file_that_cannot_be_made_is_500_and_the_log_names_it() {
    let fault = FileError {
        errno: server_base::files::EACCES,
        call: "open()",
    };
    let mut reading = Reading::begun(
        "client_body_buffer_size 4; client_body_temp_path /t;",
        CHUNKED,
    );
    reading.world.files.fault = Some(fault);
    reading.piece(b"12345");
    assert_eq!(reading.ask(), Collected::Status(500));
    let said = reading.world.said();
    assert!(
        said.contains("[crit]")
            && said.contains("open() \"/temp/1\" failed (13: Permission denied)"),
        "{said}"
    );
    let mut at_end = Reading::begun("client_body_in_file_only on;", CHUNKED);
    at_end.world.files.fault = Some(fault);
    at_end.piece(b"1");
    assert_eq!(at_end.end(), Collected::Status(500), "not done");
    assert_eq!(at_end.x.body_bytes(), None);
}

#[test]
fn a_full_disk_is_500_and_the_log_names_the_file() {
    let mut reading = Reading::begun("client_body_buffer_size 4;", CHUNKED);
    reading.world.files.is_full = true;
    reading.piece(b"12345");
    assert!(reading.x.is_body_due());
    assert_eq!(reading.ask(), Collected::Status(500));
    let said = reading.world.said();
    assert!(
        said.contains("pwrite() \"/temp/1\" failed (28: No space left on device)"),
        "{said}"
    );
    assert!(reading.x.body_file().is_none(), "it is let go of");
    reading.piece(b"6");
    assert_eq!(reading.end(), Collected::Status(500));
    assert_eq!(reading.world.said(), "", "said once");
}

#[test]
fn a_client_that_stays_silent_is_closed_upon() {
    let mut reading = Reading::begun("client_body_timeout 10s;", CHUNKED);
    reading.world.pass(9999);
    assert_eq!(reading.ask(), Collected::Wait);
    assert_eq!(
        reading.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 10_000)),
        "asking gives it no time"
    );
    reading.world.pass(1);
    assert_eq!(reading.ask(), Collected::Status(408));
    assert!(reading.world.said().contains("client timed out"));
}

#[test]
fn a_deadline_is_for_the_whole_body() {
    let mut reading = Reading::begun(
        "client_body_timeout 10s; client_body_deadline 15s;",
        CHUNKED,
    );
    assert_eq!(
        reading.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 10_000))
    );
    reading.world.pass(9000);
    reading.piece(b"1");
    assert_eq!(reading.ask(), Collected::Wait);
    assert_eq!(
        reading.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 15_000))
    );
    reading.world.pass(6000);
    reading.piece(b"2");
    assert_eq!(reading.ask(), Collected::Status(408));
    assert!(reading.world.said().contains("client_body_deadline"));
    let mut whole = Reading::begun("client_body_deadline 1s;", CHUNKED);
    whole.world.pass(1000);
    assert_eq!(whole.end(), Collected::Done, "what is there is there");
}

#[test]
fn a_minimum_rate_leaves_its_grace_and_then_what_the_bytes_buy() {
    let mut reading = Reading::begun("client_body_min_rate 1000 grace=2s;", CHUNKED);
    assert_eq!(
        reading.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 2000))
    );
    reading.world.pass(1500);
    reading.piece(&[b'x'; 700]);
    assert_eq!(
        reading.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 2700))
    );
    reading.world.pass(1200);
    assert_eq!(reading.ask(), Collected::Status(408));
    assert!(
        reading
            .world
            .said()
            .contains("slower than client_body_min_rate")
    );
    let mut usual = Reading::begun("client_body_min_rate 1000;", CHUNKED);
    assert_eq!(
        usual.x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 10_000)),
        "the grace where none is said"
    );
    usual.world.pass(9_999);
    assert_eq!(usual.ask(), Collected::Wait);
}

#[test]
fn a_minimum_rate_is_a_size_and_a_grace_above_zero() {
    for (words, why) in [
        ("fast", "invalid value"),
        ("1k grace=0", "invalid parameter \"grace=0\""),
        ("1k grace=", "invalid parameter \"grace=\""),
        ("1k grace=never", "invalid parameter \"grace=never\""),
        ("1k 10s", "invalid parameter \"10s\""),
    ] {
        let said = refused(&format!("client_body_min_rate {words};"), &[]);
        assert!(said.contains(why), "{words}: {said}");
    }
}

#[test]
fn the_plan_of_the_first_who_asks_counts() {
    let mut reading = Reading::begun("", CHUNKED);
    reading.plan.in_file = InFile::On;
    assert_eq!(reading.ask(), Collected::Wait);
    reading.piece(b"12");
    assert_eq!(reading.end(), Collected::Done);
    assert_eq!(reading.x.body_bytes(), Some(&b"12"[..]));
}

/// Takes a piece as a handler does that passes it on.
fn pass_on(reading: &mut Reading) {
    let x = &mut reading.x;
    while let stream::Piece::Chunk(_) = stream::take(x, &mut reading.world.cx()) {}
}

#[test]
fn what_another_location_has_passed_on_is_collected_with_the_rest() {
    for passed in ["", "ab", "abcd"] {
        for length in [CHUNKED, "Content-Length: 6"] {
            let mut reading = Reading::new("client_body_buffer_size 4;", length);
            reading.piece(passed.as_bytes());
            pass_on(&mut reading);
            assert_eq!(reading.ask(), Collected::Wait, "{passed}");
            reading.piece(&b"abcdef"[passed.len()..]);
            assert_eq!(reading.end(), Collected::Done);
            assert_eq!(reading.x.body_bytes(), None, "it is larger than a buffer");
            assert_eq!(reading.written(), "abcdef");
            assert_eq!(reading.x.body_used(), 6, "each byte is told once");
        }
    }
}

#[test]
fn what_was_passed_on_and_is_not_kept_cannot_be_collected() {
    let mut reading = Reading::new("client_body_buffer_size 4;", CHUNKED);
    reading.piece(b"abcde");
    pass_on(&mut reading);
    assert_eq!(reading.ask(), Collected::Status(500));
    assert_eq!(reading.end(), Collected::Status(500));
    let said = reading.world.said();
    assert!(
        said.contains("already passed on and is not stored"),
        "{said}"
    );
}

/// A detached request of the exchange, with its body.
fn copy(reading: &mut Reading) -> Exchange {
    let Reading { world, x, .. } = reading;
    let request = DetachedRequest::child_of(x, &world.cx(), b"/copy", b"");
    let request = request.unwrap_or_else(|_| panic!("it is the first"));
    *request.with_body_of(x).exchange
}

#[test]
fn a_body_in_memory_is_shared_and_stays_whole() {
    let mut reading = Reading::begun("", CHUNKED);
    reading.piece(b"abc");
    assert_eq!(reading.end(), Collected::Done);
    let copies = [copy(&mut reading), copy(&mut reading)];
    assert_eq!(reading.ask(), Collected::Done);
    let own = reading.x.shared_body().expect("it was shared");
    for copy in &copies {
        assert!(Rc::ptr_eq(own, copy.shared_body().expect("it has it")));
        assert_eq!(
            (copy.body_bytes(), copy.body_size()),
            (Some(&b"abc"[..]), Some(3))
        );
        assert_eq!(copy.head.body, BodyLength::Unknown);
    }
    assert_eq!(reading.x.body_bytes(), Some(&b"abc"[..]));
    let mut copy = copies.into_iter().next().expect("there are two");
    drop(reading.x.input.body.take());
    assert_eq!(copy.body_bytes(), Some(&b"abc"[..]));
    let plan = reading.plan;
    let again = collect(&mut copy, &mut reading.world.cx(), &plan);
    assert_eq!(again, Collected::Done, "it is not read once more");
}

#[test]
fn a_body_in_a_file_is_shared() {
    let mut reading = Reading::begun("client_body_buffer_size 2;", CHUNKED);
    reading.piece(b"abc");
    assert_eq!(reading.end(), Collected::Done);
    let copy = copy(&mut reading);
    let (own, theirs) = (reading.x.body_file(), copy.body_file());
    let (own, theirs) = (
        own.expect("it is in a file"),
        theirs.expect("it is in a file"),
    );
    assert!(Rc::ptr_eq(&own.file, &theirs.file));
    assert_eq!((theirs.len, copy.body_bytes()), (3, None));
}

#[test]
fn a_body_that_is_not_whole_is_not_shared() {
    let mut reading = Reading::begun("client_max_body_size 3;", CHUNKED);
    reading.piece(b"abc");
    for _ in 0..2 {
        let copy = copy(&mut reading);
        assert!(copy.input.body.is_none());
        assert_eq!(copy.head.body, BodyLength::None);
        reading.piece(b"d");
        assert_eq!(reading.ask(), Collected::Status(413));
    }
    let mut nothing = Reading::new("", CHUNKED);
    assert!(
        copy(&mut nothing).input.body.is_none(),
        "nobody collects it"
    );
}
