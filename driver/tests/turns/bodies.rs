//! Request bodies over HTTP/1: sent with the head or after it, awaited, broken, or unread.

use super::site::{TestConnection, body, get, log_entries, logged, statuses};

fn post(target: &str, fields: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")
}

#[test]
fn a_body_is_the_same_however_it_is_cut() {
    let head = post("/body", "Content-Length: 5");
    let chunked = post("/body", "Transfer-Encoding: chunked");
    for (head, rest) in [
        (head, "hello"),
        (chunked, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    ] {
        let all = format!("{head}{rest}");
        for at in 0..all.len() {
            let mut talk = TestConnection::new("");
            let first = talk.send(&all[..at]);
            assert_eq!(first, "", "nothing is answered before the body is whole");
            let got = talk.send(&all[at..]);
            assert_eq!(
                (statuses(&got), body(&got)),
                (vec!["200"], "5 bytes"),
                "{at}"
            );
            let log_entries = log_entries();
            assert_eq!(log_entries.len(), 1);
            assert_eq!(
                log_entries[0].request_bytes,
                all.len() as u64,
                "cut at {at}"
            );
            assert_eq!(log_entries[0].bytes_sent, got.len() as u64);
            assert!(talk.is_open());
        }
    }
}

#[test]
fn bodies_of_pipelined_requests_are_told_apart() {
    let first = format!("{}hello", post("/body", "Content-Length: 5"));
    let second = format!(
        "{}3\r\nabc\r\n0\r\n\r\n",
        post("/body", "Transfer-Encoding: chunked")
    );
    let mut talk = TestConnection::new("");
    let got = talk.send(format!("{first}{second}{}", get("/third")));
    assert_eq!(statuses(&got), ["200", "200", "200"]);
    assert!(got.contains("5 bytes") && got.contains("3 bytes") && got.ends_with("/third"));
    let sizes: Vec<u64> = log_entries()
        .iter()
        .map(|entry| entry.request_bytes)
        .collect();
    assert_eq!(
        sizes,
        [first.len(), second.len(), get("/third").len()].map(|n| n as u64)
    );
}

#[test]
fn an_expectation_gets_one_100_continue() {
    let head = post("/body", "Content-Length: 5\r\nExpect: 100-continue");
    let mut talk = TestConnection::new("");
    assert_eq!(talk.send(&head), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(talk.send("he"), "");
    assert_eq!(talk.pass(100), "");
    let got = talk.send("llo");
    assert_eq!((statuses(&got), body(&got)), (vec!["200"], "5 bytes"));
    let entry = log_entries().remove(0);
    let sent = "HTTP/1.1 100 Continue\r\n\r\n".len() + got.len();
    assert_eq!((entry.bytes_sent, entry.completed), (sent as u64, true));
}

#[test]
fn a_body_sent_early_gets_no_100_continue() {
    let head = post("/body", "Content-Length: 5\r\nExpect: 100-continue");
    let mut talk = TestConnection::new("");
    let got = talk.send(format!("{head}hello"));
    assert_eq!(statuses(&got), ["200"]);
    let none = post("/text", "Content-Length: 0\r\nExpect: 100-continue");
    assert_eq!(statuses(&talk.send(none)), ["200"]);
}

#[test]
fn a_handler_without_need_for_the_body_sends_no_100_continue() {
    let mut talk = TestConnection::new("");
    let head = post("/wait/300", "Content-Length: 5\r\nExpect: 100-continue");
    assert_eq!(talk.send(head), "");
    let plain = talk.pass(300);
    assert_eq!(statuses(&plain), ["200"], "nothing is sent ahead of it");
    let mut unexpected = TestConnection::new("");
    assert_eq!(unexpected.send(post("/body", "Content-Length: 5")), "");
}

#[test]
fn an_error_does_not_ask_for_the_body() {
    let mut talk = TestConnection::new("client_max_body_size 4;");
    let got = talk.send(post("/body", "Content-Length: 5\r\nExpect: 100-continue"));
    assert_eq!(statuses(&got), ["413"]);
}

#[test]
fn an_unwanted_body_is_read_past() {
    let mut talk = TestConnection::new("");
    let got = talk.send(post("/text", "Content-Length: 5"));
    assert_eq!(
        (statuses(&got), body(&got)),
        (vec!["200"], "/text"),
        "it is not waited for"
    );
    assert_eq!(talk.send("he"), "");
    let next = talk.send(format!("llo{}", get("/next")));
    assert_eq!((statuses(&next), body(&next)), (vec!["200"], "/next"));
    assert!(talk.is_open());
}

#[test]
fn the_end_of_a_body_may_come_while_its_response_is_on_its_way() {
    let mut talk = TestConnection::deaf("", 1000);
    talk.send(post("/pieces/100/1000", "Content-Length: 5"));
    talk.send("hello");
    talk.send(get("/next"));
    let rest = talk.listen();
    assert!(rest.ends_with("\r\n\r\n/next"), "{}", rest.len());
    assert_eq!(logged(), [200, 200]);
}

#[test]
fn a_body_that_breaks_while_it_is_waited_for_is_answered() {
    let chunked = post("/body", "Transfer-Encoding: chunked");
    for (first, second) in [("", "zz\r\n"), ("2\r\nhe\r\n", "zz\r\n"), ("zz\r\n", "")] {
        let mut talk = TestConnection::new("");
        let mut got = talk.send(format!("{chunked}{first}"));
        got += &talk.send(second);
        assert_eq!(statuses(&got), ["400"], "{first:?} {second:?}");
        assert_eq!(logged(), [400]);
        assert!(!talk.is_open(), "the next request cannot be found");
    }
}

#[test]
fn a_body_that_breaks_behind_its_response_ends_the_connection_and_nothing_else() {
    let chunked = post("/text", "Transfer-Encoding: chunked");
    // With a limit the response would wait for the body.
    let mut talk = TestConnection::new("client_max_body_size 0;");
    assert_eq!(statuses(&talk.send(&chunked)), ["200"]);
    assert_eq!(talk.send(format!("zz\r\n{}", get("/next"))), "");
    assert!(!talk.is_open());
    assert_eq!(logged(), [200]);
}

#[test]
fn a_body_that_breaks_while_its_response_is_on_its_way_lets_that_leave() {
    let mut talk = TestConnection::deaf("client_max_body_size 0;", 1000);
    talk.send(post("/pieces/100/1000", "Transfer-Encoding: chunked"));
    talk.send("2\r\nhe\r\n");
    talk.send("zz\r\n");
    let before = talk.wire(|wire| wire.sent().len());
    let rest = talk.listen();
    let all = before + rest.len();
    let log_entries = log_entries();
    assert_eq!(
        (log_entries[0].status, log_entries[0].completed),
        (200, true)
    );
    assert_eq!(log_entries[0].bytes_sent, all as u64);
    assert!(all > 100_000 && !talk.is_open());
}

#[test]
fn hints_leave_with_the_first_wait_and_once() {
    let mut talk = TestConnection::new("");
    let hints = talk.send(get("/hint/500"));
    assert_eq!(hints, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    assert_eq!(talk.pass(499), "");
    let got = talk.pass(1);
    assert_eq!((statuses(&got), body(&got)), (vec!["200"], "hinted"));
    let entry = log_entries().remove(0);
    let head = got.len() - "hinted".len();
    assert_eq!(entry.header_bytes, (hints.len() + head) as u64);
    assert_eq!(entry.bytes_sent, (hints.len() + got.len()) as u64);
    let at_once = talk.send(get("/hint/0"));
    assert_eq!(statuses(&at_once), ["103", "200"]);
}

#[test]
fn a_response_after_hints_of_another_is_counted_from_its_own_begin() {
    let mut talk = TestConnection::new("");
    let hints = talk.send(get("/hint/500") + &get("/next"));
    let both = talk.pass(500);
    assert_eq!(statuses(&both), ["200", "200"]);
    let second = both.rfind("HTTP/1.1").map_or(0, |at| both.len() - at);
    let sent: Vec<u64> = log_entries().iter().map(|entry| entry.bytes_sent).collect();
    let first = hints.len() + both.len() - second;
    assert_eq!(sent, [first as u64, second as u64]);
}
