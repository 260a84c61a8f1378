//! Request and response bodies at the same time: a handler passes them to a server in pieces.

use server_http::exchange::HINTS_MAX;
use server_http::request_body::HELD_BYTES;

use super::frames::{
    ACK, CANCEL, DATA, END_STREAM, INTERNAL_ERROR, RESET, Received, SETTINGS, frame,
};
use super::proxy_handler::{CUT_BYTES, set_room, taken, wake};
use super::site::{TestConnection, body, get, log_entries, logged, statuses};
use super::streams::{Client, head};

fn post(target: &str, fields: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")
}

fn chunked(target: &str) -> String {
    post(target, "Transfer-Encoding: chunked")
}

fn talk(server: &str) -> TestConnection {
    set_room(u64::MAX);
    taken();
    TestConnection::new(server)
}

fn client(server: &str) -> Client {
    set_room(u64::MAX);
    taken();
    Client::new(server)
}

#[test]
fn a_response_begins_before_the_body_and_goes_on_with_it() {
    let mut talk = talk("");
    assert_eq!(statuses(&talk.send(chunked("/pass/echo"))), ["200"]);
    for piece in ["2\r\nhe\r\n", "3\r\nllo\r\n", "0\r\n\r\n"] {
        assert_eq!(
            talk.send(piece),
            piece,
            "it leaves in the turn in which it came"
        );
        assert_eq!(talk.pass(1), "");
    }
    let entry = log_entries().remove(0);
    let sent = chunked("/pass/echo").len() + 20;
    assert_eq!(
        (entry.status, entry.completed, entry.request_bytes),
        (200, true, sent as u64)
    );
    assert_eq!(
        statuses(&talk.send(get("/next"))),
        ["200"],
        "the connection is kept"
    );
}

#[test]
fn a_body_that_is_passed_on_is_the_same_however_it_is_cut() {
    for target in ["/pass/echo", "/pass/first"] {
        for (head, rest) in [
            (post(target, "Content-Length: 5"), "hello"),
            (chunked(target), "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        ] {
            let all = format!("{head}{rest}{}", get("/next"));
            for at in 0..all.len() {
                let mut talk = talk("");
                let mut got = talk.send(&all[..at]);
                got += &talk.send(&all[at..]);
                assert_eq!(statuses(&got), ["200", "200"], "{target} cut at {at}");
                let first = body(&got).split("HTTP/1.1").next().unwrap_or_default();
                let letters = first.chars().filter(|c| c.is_ascii_lowercase());
                assert_eq!(letters.collect::<String>(), "hello", "{target} cut at {at}");
                let length = (head.len() + rest.len()) as u64;
                assert_eq!(
                    log_entries()[0].request_bytes,
                    length,
                    "{target} cut at {at}"
                );
            }
        }
    }
}

#[test]
fn an_expectation_gets_one_100_continue_before_the_response() {
    for target in ["/pass/echo", "/pass/first"] {
        let mut talk = talk("");
        let head = post(target, "Content-Length: 5\r\nExpect: 100-continue");
        let mut got = talk.send(head);
        assert!(got.starts_with("HTTP/1.1 100 Continue\r\n\r\n"), "{got}");
        got += &talk.send("he");
        got += &talk.send("llo");
        assert_eq!(statuses(&got), ["100", "200"], "{target}");
    }
    let mut never = talk("");
    assert_eq!(
        never.send(post(
            "/pass/never",
            "Content-Length: 5\r\nExpect: 100-continue"
        )),
        ""
    );
}

/// Input of a client with an unconsumed body is bounded in every state of the exchange.
#[test]
fn a_client_is_not_read_while_its_body_is_not_consumed() {
    const LEN: usize = 1 << 20;
    for target in ["/pass/echo", "/pass/never", "/pass/first"] {
        let mut talk = talk("");
        set_room(0);
        talk.send(post(target, &format!("Content-Length: {LEN}")));
        talk.send(vec![b'x'; LEN]);
        let read = talk.wire(|wire| wire.taken());
        assert!(read < HELD_BYTES as usize + (200 << 10), "{target}: {read}");
        assert_eq!(taken().0, 0);
        if target == "/pass/never" {
            continue;
        }
        set_room(100 << 10);
        talk.turn();
        let some = taken().0 as usize;
        assert!((100 << 10..200 << 10).contains(&some), "{some}");
        set_room(u64::MAX);
        let got = talk.turn();
        assert_eq!(taken().0 as usize, LEN - some);
        assert!(got.ends_with("\r\n0\r\n\r\n"));
        assert_eq!(logged(), [200]);
    }
}

#[test]
fn a_stream_is_let_send_as_much_as_is_taken() {
    let mut client = client("");
    set_room(0);
    let request = client.frames.post(1, "/pass/echo");
    client.send(&request);
    for _ in 0..4 {
        client.send(&frame(DATA, 0, 1, &[b'x'; 16_384]));
    }
    assert_eq!(
        (taken().0, client.talk.is_open()),
        (0, true),
        "all that it may send"
    );
    assert_eq!(client.frames.grants(1), 0, "and it may not send more");
    set_room(u64::MAX);
    let bytes = |received: Vec<Received>| -> usize {
        let sizes = received.iter().map(|received| match received {
            Received::Data(1, len) => *len,
            _ => 0,
        });
        sizes.sum()
    };
    assert_eq!(bytes(client.turn()), 65_535, "the window of the client");
    assert_eq!(taken().0, HELD_BYTES);
    assert_eq!(client.frames.grants(1), 65_536);
    let over = [b'x'; 16_384];
    for _ in 0..4 {
        client.send(&frame(DATA, 0, 1, &over));
    }
    let received = client.send(&frame(DATA, 0, 1, &over));
    assert_eq!(received, [], "what was given back may be sent");
}

#[test]
fn the_first_that_is_taken_opens_the_window_of_a_stream() {
    let mut client = client("http2_body_preread_size 0;");
    client.send(&frame(SETTINGS, ACK, 0, b""));
    let request = client.frames.post(1, "/pass/echo");
    client.send(&request);
    assert_eq!(
        client.frames.grants(1),
        HELD_BYTES,
        "nothing could come unasked"
    );
    let received = client.send(&frame(DATA, END_STREAM, 1, b"hello"));
    assert_eq!(received, [Received::Data(1, 5), Received::End(1)]);
}

#[test]
fn both_directions_of_a_stream_go_on_at_the_same_time() {
    let mut client = client("");
    let request = client.frames.post(1, "/pass/echo");
    assert_eq!(client.send(&request), [head(1)]);
    for piece in [&b"he"[..], b"llo"] {
        let received = client.send(&frame(DATA, 0, 1, piece));
        assert_eq!(received, [Received::Data(1, piece.len())]);
    }
    assert_eq!(client.get(3, "/other").first(), Some(&head(3)));
    let received = client.send(&frame(DATA, END_STREAM, 1, b""));
    assert_eq!(received, [Received::End(1)]);
    assert_eq!(logged(), [200, 200]);
}

#[test]
fn a_chunked_body_ends_at_the_size_that_is_allowed() {
    for (size, status) in [(4, "200"), (5, "413")] {
        let mut talk = talk("client_max_body_size 4;");
        talk.send(chunked("/pass/first"));
        let got = talk.send(format!("{size}\r\n{}\r\n0\r\n\r\n", "x".repeat(size)));
        assert_eq!(statuses(&got), [status]);
    }
    let mut talk = talk("client_max_body_size 4;");
    let mut got = talk.send(chunked("/pass/echo"));
    got += &talk.send("4\r\nxxxx\r\n");
    got += &talk.send("1\r\nx\r\n");
    assert!(got.ends_with("4\r\nxxxx\r\n"), "{got}");
    assert!(
        !talk.is_open()
            && talk
                .error_log()
                .contains("too large chunked body: 4+1 bytes")
    );
    assert_eq!(logged(), [200]);
}

#[test]
fn a_client_that_is_waited_for_too_long_is_given_up() {
    let server = "client_body_timeout 3s;";
    let mut waiting = talk(server);
    waiting.send(chunked("/pass/first"));
    assert_eq!(
        (waiting.pass(2999), waiting.is_open()),
        (String::new(), true)
    );
    assert_eq!((waiting.pass(1), waiting.is_open()), (String::new(), false));
    assert_eq!(logged(), [408]);
    let mut responding = talk(server);
    responding.send(chunked("/pass/echo"));
    responding.pass(2999);
    assert_eq!(responding.send("1\r\nx\r\n"), "1\r\nx\r\n");
    responding.pass(2999);
    assert!(responding.is_open());
    assert_eq!(
        (responding.pass(1), responding.is_open()),
        (String::new(), false)
    );
    assert!(responding.error_log().contains("client timed out"));
    assert_eq!(logged(), [200]);
}

#[test]
fn a_client_has_its_time_for_what_it_is_waited_for() {
    let mut talk = talk("client_body_timeout 3s;");
    set_room(0);
    talk.send(chunked("/pass/echo"));
    talk.pass(100_000);
    talk.send("1\r\nx\r\n");
    talk.pass(100_000);
    assert!(talk.is_open(), "it is the server that takes its time");
    set_room(u64::MAX);
    assert_eq!(talk.turn(), "1\r\nx\r\n");
    talk.pass(2999);
    assert!(talk.is_open());
    talk.pass(1);
    assert!(!talk.is_open());
}

#[test]
fn a_body_that_breaks_is_answered_or_breaks_the_response_off() {
    let mut waiting = talk("");
    set_room(0);
    waiting.send(chunked("/pass/first"));
    assert_eq!(statuses(&waiting.send("2\r\nhe\r\nzz\r\n")), ["400"]);
    let mut responding = talk("");
    responding.send(chunked("/pass/echo"));
    assert_eq!(responding.send("2\r\nhe\r\n"), "2\r\nhe\r\n");
    assert_eq!(responding.send("zz\r\n"), "", "no end that looks like one");
    assert!(!responding.is_open());
    let entry = &log_entries()[0];
    assert_eq!((entry.status, entry.completed), (200, false));
    let mut stream = client("");
    let request = stream.frames.post_with(1, "/pass/echo", "5");
    stream.send(&request);
    assert_eq!(
        stream.send(&frame(DATA, 0, 1, b"he")),
        [Received::Data(1, 2)]
    );
    let received = stream.send(&frame(DATA, END_STREAM, 1, b"l"));
    assert_eq!(received, [Received::Reset(1, INTERNAL_ERROR)]);
    assert_eq!(
        stream.get(3, "/other").first(),
        Some(&head(3)),
        "the others go on"
    );
    assert!(!log_entries()[0].completed);
}

#[test]
fn pieces_before_the_break_of_a_response_are_sent() {
    let mut talk = talk("");
    let got = talk.send(get("/pass/broken"));
    assert_eq!(body(&got), "5\r\nwhole\r\n");
    assert!(!talk.is_open());
    let none = self::talk("").send(get("/pass/broken/none"));
    assert_eq!((statuses(&none), body(&none)), (vec!["200"], ""));
    let mut stream = client("");
    let received = stream.get(1, "/pass/broken");
    let broken = [
        head(1),
        Received::Data(1, 5),
        Received::Reset(1, INTERNAL_ERROR),
    ];
    assert_eq!(received, broken);
    let entry = log_entries().remove(0);
    assert_eq!((entry.completed, entry.status), (false, 200));
    stream.get(3, "/text");
    assert_eq!(logged(), [200], "the others go on");
}

#[test]
fn a_response_may_end_before_the_body_of_its_request() {
    let mut talk = talk("");
    let got = talk.send(format!("{}he", post("/pass/short", "Content-Length: 5")));
    assert_eq!(body(&got), "5\r\nshort\r\n0\r\n\r\n");
    assert_eq!(logged(), [200]);
    let next = talk.send(format!("llo{}", get("/next")));
    assert_eq!(statuses(&next), ["200"], "the rest is read past");
    let mut large = talk_with_large_rest();
    assert_eq!(logged(), [200]);
    assert_eq!(statuses(&large.send(get("/next"))), ["200"]);
    let mut stream = client("");
    let request = stream.frames.post(1, "/pass/short");
    let received = stream.send(&request);
    assert!(received.contains(&Received::End(1)), "{received:?}");
}

/// A client that has sent much more than the buffer holds, with an unconsumed body.
fn talk_with_large_rest() -> TestConnection {
    let mut talk = talk("");
    talk.push(post("/pass/short", "Content-Length: 500000"));
    talk.push(vec![b'x'; 500_000]);
    assert_eq!(body(&talk.turn()), "5\r\nshort\r\n0\r\n\r\n");
    talk
}

/// A client may read nothing before it has sent everything.
#[test]
fn the_rest_of_a_body_is_read_past_while_a_large_response_leaves() {
    const LEN: usize = 500_000;
    set_room(u64::MAX);
    let mut talk = TestConnection::deaf("", 1000);
    talk.send(post("/pass/cut", &format!("Content-Length: {LEN}")));
    let head = talk.wire(|wire| wire.taken());
    for _ in 0..10 {
        talk.send(vec![b'x'; LEN / 10]);
    }
    assert_eq!(talk.wire(|wire| wire.taken()), head + LEN);
    let got = talk.listen();
    assert!(got.len() > CUT_BYTES - 1000 && got.ends_with("\r\n0\r\n\r\n"));
    assert_eq!(logged(), [200]);
    assert_eq!(statuses(&talk.send(get("/next"))), ["200"]);
    let mut client = Client::deaf("", 1 << 20);
    let request = client.frames.post(1, "/pass/cut");
    client.send(&request);
    for _ in 0..5 {
        client.send(&frame(DATA, 0, 1, &[b'x'; 16_000]));
    }
    assert!(client.frames.grants(1) > 0, "and may be sent");
    assert!(client.talk.is_open());
}

#[test]
fn a_client_that_leaves_ends_its_request_to_the_server() {
    for target in ["/pass/never", "/pass/never/ignore"] {
        let mut talk = talk("");
        talk.send(get(target));
        talk.end();
        let ignores = target.ends_with("ignore");
        assert_eq!(talk.is_closed(), !ignores, "{target}");
        assert_eq!(logged(), if ignores { vec![] } else { vec![499] });
    }
    let mut responding = talk("");
    responding.send(chunked("/pass/echo"));
    responding.send("2\r\nhe\r\n");
    responding.end();
    assert!(responding.is_closed());
    assert!(
        responding
            .error_log()
            .contains("client prematurely closed connection")
    );
    let entry = log_entries().remove(0);
    assert_eq!((entry.status, entry.completed), (200, false));
    let mut waiting = talk("");
    set_room(0);
    waiting.send(format!("{}2\r\nhe\r\n", chunked("/pass/first")));
    waiting.end();
    assert!(waiting.is_closed());
    assert_eq!(logged(), [400]);
}

#[test]
fn a_client_that_leaves_may_be_ignored() {
    set_room(u64::MAX);
    let mut talk = talk("");
    set_room(0);
    talk.push(post("/pass/first/ignore", "Content-Length: 5"));
    talk.push("hello");
    talk.end();
    assert!(!talk.is_closed());
    set_room(u64::MAX);
    assert_eq!(body(&talk.turn()), "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(logged(), [200]);
    assert!(talk.is_closed());
}

#[test]
fn a_stream_that_is_reset_ends_in_both_directions() {
    let mut client = client("");
    let request = client.frames.post(1, "/pass/echo");
    client.send(&request);
    client.send(&frame(DATA, 0, 1, b"he"));
    client.send(&frame(RESET, 0, 1, &CANCEL.to_be_bytes()));
    assert!(!log_entries()[0].completed);
    wake();
    assert_eq!(client.turn(), []);
}

#[test]
fn a_handler_is_told_of_arrivals_while_its_client_reads_nothing() {
    set_room(u64::MAX);
    let mut talk = TestConnection::deaf("", 1000);
    talk.send(chunked("/pass/echo"));
    let piece = format!("{:x}\r\n{}\r\n", 16_384, "x".repeat(16_384));
    for _ in 0..20 {
        talk.send(&piece);
    }
    taken();
    talk.send("1\r\ny\r\n");
    assert_eq!(taken(), (1, 1), "the body");
    wake();
    talk.turn();
    assert_eq!(taken(), (0, 1), "a wake");
    talk.send("0\r\n\r\n");
    assert!(talk.listen().ends_with("1\r\ny\r\n0\r\n\r\n"));
    let mut client = Client::deaf("", 1 << 20);
    let request = client.frames.post(1, "/pass/echo");
    client.send(&request);
    for _ in 0..8 {
        client.send(&frame(DATA, 0, 1, &[b'x'; 16_000]));
    }
    assert_eq!(taken().0, 128_000, "more than the client takes");
    wake();
    client.turn();
    assert_eq!(taken(), (0, 1));
}

#[test]
fn wakes_for_nothing_do_no_harm() {
    let mut talk = talk("");
    wake();
    talk.send(chunked("/pass/echo"));
    for _ in 0..3 {
        wake();
        assert_eq!(talk.turn(), "");
    }
    assert_eq!(talk.send("0\r\n\r\n"), "0\r\n\r\n");
    wake();
    assert_eq!(talk.turn(), "");
    assert_eq!(statuses(&talk.send(get("/text"))), ["200"]);
}

#[test]
fn interim_responses_leave_at_each_wake() {
    let mut talk = talk("");
    let first = talk.send(get("/pass/hints/2"));
    let two = "HTTP/1.1 103 Early Hints\r\nLink: </0>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </1>\r\n\r\n";
    assert_eq!(first, two);
    wake();
    assert_eq!(talk.turn(), two);
    let mut client = client("");
    let hint = Received::Head(1, "103".to_owned());
    assert_eq!(client.get(1, "/pass/hints/2"), [hint.clone(), hint.clone()]);
    wake();
    assert_eq!(client.turn(), [hint.clone(), hint]);
}

#[test]
fn so_many_interim_responses_wait() {
    for (number, left) in [(HINTS_MAX, HINTS_MAX), (HINTS_MAX + 1, HINTS_MAX)] {
        let got = talk("").send(get(&format!("/pass/hints/{number}")));
        assert_eq!(statuses(&got).len(), left);
    }
    // Nothing is added to a full queue.
    let mut talk = TestConnection::deaf("", 1000);
    let filler = format!("/late/0/{}", 60 << 10);
    talk.send(get(&filler) + &get("/pass/hints/16"));
    for _ in 0..1000 {
        wake();
        talk.turn();
    }
    let got = talk.listen();
    assert!(got.len() < 80 << 10, "{}", got.len());
}
