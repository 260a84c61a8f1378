//! One request after the other: pipelining, persistence, closing.

use super::*;
use crate::h1::Phase;

#[test]
fn pipelined_requests_are_told_one_by_one() {
    let mut conn = after(&format!("{}{GET}", GET.replace("GET /", "GET /first")));
    let first = next_head(&mut conn);
    assert_eq!(first.bytes(first.target), b"/first");
    assert_eq!(conn.event(), None);
    conn.recycle(first);
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    let second = next_head(&mut conn);
    assert_eq!(second.bytes(second.target), b"/");
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    assert_eq!(conn.event(), None);
    assert_eq!(conn.phase(), Phase::Idle);
    assert_eq!(sent(&mut conn).matches("200 OK").count(), 2);
}

#[test]
fn a_bad_request_behind_a_good_one_does_not_spoil_it() {
    let mut conn = after(&format!("{GET}get / HTTP/1.1\r\n\r\n{GET}"));
    assert_eq!(next_head(&mut conn).fault, None);
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    assert_eq!(next_head(&mut conn).fault, Some(Fault::BadMethod));
    assert_eq!(answer_ok(&mut conn), Next::Linger);
    assert_eq!(conn.event(), None, "what follows the fault is not read");
    let sent = sent(&mut conn);
    assert!(
        sent.contains("Connection: keep-alive\r\n")
            && sent.ends_with("Connection: close\r\n\r\nok")
    );
}

#[test]
fn phases_follow_the_bytes() {
    let mut conn = conn();
    assert_eq!(conn.phase(), Phase::Idle);
    conn.receive(b"\r\n");
    assert_eq!(conn.phase(), Phase::Head, "a byte has been seen");
    conn.receive(b"GET / HTTP/1.1\r\nHo");
    assert_eq!(conn.phase(), Phase::Head);
    conn.receive(b"st: h\r\n\r\n");
    assert_eq!(conn.phase(), Phase::Respond);
    next_head(&mut conn);
    answer_ok(&mut conn);
    assert_eq!(conn.phase(), Phase::Idle);
}

#[test]
fn http10_is_kept_only_if_it_asks() {
    let mut conn = after("GET / HTTP/1.0\r\n\r\n");
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::Close);
    assert!(sent(&mut conn).contains("Connection: close\r\n"));
    let mut conn = after("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    assert!(sent(&mut conn).contains("Connection: keep-alive\r\n"));
}

/// Closing with unread bytes would reset the connection and take the response
/// with it (RFC 9112 section 9.6).
#[test]
fn closing_lingers_while_the_peer_still_sends() {
    let close = GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let mut conn = after(&close);
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::Close);

    let mut conn = after(&format!("{close}{GET}"));
    next_head(&mut conn);
    assert_eq!(
        answer_ok(&mut conn),
        Next::Linger,
        "a pipelined request is held"
    );

    let mut conn = after(&close.replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\n"));
    next_head(&mut conn);
    assert_eq!(
        answer_ok(&mut conn),
        Next::Linger,
        "the body is not complete"
    );
}

#[test]
fn a_body_that_nobody_read_is_awaited() {
    let mut conn = after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n01");
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::AwaitBody);
    assert_eq!(conn.event(), None);
    assert_eq!(conn.phase(), Phase::Body);
    assert_eq!(conn.finish(), Next::AwaitBody);
    conn.receive(format!("234{GET}").as_bytes());
    assert_eq!(conn.event(), Some(Event::BodyEnd));
    assert_eq!(conn.finish(), Next::KeepAlive);
    next_head(&mut conn);
}

#[test]
fn an_awaited_body_that_breaks_off_closes() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut conn = after(request);
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::AwaitBody);
    conn.receive(b"XX");
    assert_eq!(conn.event(), Some(Event::BodyFault(Fault::BadChunk)));
    assert_eq!(conn.finish(), Next::Linger);

    let mut conn = after(request);
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::AwaitBody);
    conn.receive_eof();
    assert_eq!(conn.event(), Some(Event::Eof));
    assert_eq!(conn.finish(), Next::Close);
}

#[test]
fn shutdown_makes_the_current_response_the_last() {
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.close_after();
    assert_eq!(answer_ok(&mut conn), Next::Close);
    assert!(sent(&mut conn).contains("Connection: close\r\n"));

    let mut conn = after(GET);
    next_head(&mut conn);
    conn.send_head(&ok_head());
    conn.close_after();
    conn.send_data(Chunk::Static(b"ok"));
    conn.send_end(None);
    assert_eq!(
        conn.finish(),
        Next::Close,
        "also when the head has promised more"
    );
}

#[test]
fn an_exchange_given_up_closes() {
    let mut conn = after(GET);
    next_head(&mut conn);
    assert_eq!(conn.finish(), Next::Close, "no response at all");
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.send_head(&ok_head());
    assert_eq!(conn.finish(), Next::Close, "half a response");
    assert_eq!(conn.finish(), Next::Close, "and it stays closed");
    conn.check_invariants();
}

/// A peer may close its side after its last request and still wants answers.
#[test]
fn requests_before_the_end_of_input_are_answered() {
    let mut conn = after(&GET.repeat(2));
    conn.receive_eof();
    next_head(&mut conn);
    assert_eq!(conn.event(), None, "the end is told between requests");
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::Close);
}

#[test]
fn the_end_of_input_between_requests_and_in_a_head_is_told_once() {
    for input in ["", "GET / HT"] {
        let mut conn = after(input);
        conn.receive_eof();
        assert_eq!(conn.event(), Some(Event::Eof), "{input:?}");
        assert_eq!(conn.event(), None);
    }
}

#[test]
fn a_reset_connection_remembers_nothing() {
    let mut conn = after(&format!("{GET}{GET}"));
    next_head(&mut conn);
    conn.send_head(&ok_head());
    conn.close_after();
    conn.receive_eof();
    conn.reset(Rc::new(Settings::default()));
    assert_eq!(conn.phase(), Phase::Idle);
    assert!(!conn.has_buffered());
    assert_eq!(sent(&mut conn), "");
    conn.receive(GET.as_bytes());
    next_head(&mut conn);
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
}
