//! Request bodies: reported, discarded, truncated.

use super::*;
use crate::h1::Phase;

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_body_with_a_length_is_told_as_it_comes() {
    let mut conn = after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n01234");
    assert_eq!(next_head(&mut conn).body, BodyLength::Length(10));
    assert_eq!(conn.event(), Some(Event::Data(b"01234".to_vec())));
    assert_eq!(conn.event(), None);
    assert_eq!(conn.phase(), Phase::Body);
    conn.receive(b"56789GET ");
    assert_eq!(conn.event(), Some(Event::Data(b"56789".to_vec())));
    assert_eq!(conn.event(), Some(Event::BodyEnd));
    assert_eq!(conn.event(), None);
    assert_eq!(conn.phase(), Phase::Respond);
    assert!(conn.body_done() && conn.has_buffered());
}

#[test]
fn an_empty_body_ends_at_once_and_no_body_has_no_events() {
    let mut conn = after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    next_head(&mut conn);
    assert_eq!(conn.event(), Some(Event::BodyEnd));
    let mut conn = after(GET);
    next_head(&mut conn);
    assert_eq!(conn.event(), None);
    assert!(conn.body_done());
}

#[test]
fn a_chunked_body_gives_data_trailers_and_end() {
    let mut conn = after(CHUNKED);
    assert_eq!(next_head(&mut conn).body, BodyLength::Unknown);
    conn.receive(b"4\r\nSEE-\r\n4\r\nTHIS\r\n0\r\nX-Sum:\t1 \t\r\n\r\n");
    assert_eq!(conn.event(), Some(Event::Data(b"SEE-THIS".to_vec())));
    let Some(Event::Trailers(trailers)) = conn.event() else {
        panic!("trailers are due")
    };
    assert_eq!(trailers.named(b"x-sum").next(), Some(&b"1"[..]));
    assert_eq!(conn.event(), Some(Event::BodyEnd));
    assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
}

/// nginx's body_chunked.t: "runaway chunk".
#[test]
fn broken_chunks_are_a_fault_and_the_end_of_the_connection() {
    let mut conn = after(CHUNKED);
    next_head(&mut conn);
    conn.receive(b"4\r\nSEE-THIS\r\n0\r\n\r\n");
    assert_eq!(conn.event(), Some(Event::Data(b"SEE-".to_vec())));
    assert_eq!(conn.event(), Some(Event::BodyFault(Fault::BadChunk)));
    assert_eq!(conn.event(), None);
    assert!(!conn.body_done() && !conn.wants_input());
    assert_eq!(answer_ok(&mut conn), Next::Linger);
    assert!(sent(&mut conn).contains("Connection: close\r\n"));
    conn.check_invariants();
}

#[test]
fn a_discarded_body_gives_only_its_end() {
    let mut conn = after(&format!("{CHUNKED}4\r\nSEE-\r\n"));
    next_head(&mut conn);
    conn.discard_body();
    assert_eq!(conn.event(), None);
    conn.receive(b"4\r\nTHIS\r\n0\r\nA: b\r\n\r\n");
    conn.check_invariants();
    assert_eq!(conn.event(), Some(Event::BodyEnd));
    assert_eq!(conn.event(), None);
}

#[test]
fn a_discarded_body_is_still_checked() {
    let mut conn = after(CHUNKED);
    next_head(&mut conn);
    conn.discard_body();
    conn.receive(b"x");
    assert_eq!(conn.event(), Some(Event::BodyFault(Fault::BadChunk)));
}

#[test]
fn the_end_of_input_within_a_body_is_told() {
    let mut conn = after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0");
    next_head(&mut conn);
    conn.receive_eof();
    assert_eq!(conn.event(), Some(Event::Data(b"0".to_vec())));
    assert_eq!(conn.event(), Some(Event::Eof));
    assert_eq!(conn.event(), None);
    assert_eq!(conn.finish(), Next::Close);
}

/// Dropping the fields of a discarded trailer section does not lift its limit.
#[test]
fn a_discarded_trailer_section_keeps_its_limits() {
    let mut conn = conn_with(Settings {
        max_headers: 2,
        ..Settings::default()
    });
    conn.receive(CHUNKED.as_bytes());
    next_head(&mut conn);
    conn.discard_body();
    conn.receive(b"0\r\n");
    for _ in 0..2 {
        conn.receive(b"A: b\r\n");
        assert_eq!(conn.event(), None);
    }
    conn.receive(b"A: b\r\n");
    assert_eq!(conn.event(), Some(Event::BodyFault(Fault::TrailerTooLarge)));
}

/// RFC 9110 section 7.8: after 101 the connection belongs to another protocol.
#[test]
fn after_101_all_bytes_are_data() {
    let mut conn = after(&format!(
        "{}early",
        GET.replace("\r\n\r\n", "\r\nUpgrade: websocket\r\n\r\n")
    ));
    next_head(&mut conn);
    assert_eq!(conn.event(), None);
    let mut response = ResponseHead {
        status: 101,
        keep_alive: true,
        ..ResponseHead::default()
    };
    response.push(b"Upgrade", b"websocket");
    conn.send_head(&response);
    assert_eq!(conn.event(), Some(Event::Data(b"early".to_vec())));
    conn.receive(b"frame");
    assert_eq!(conn.event(), Some(Event::Data(b"frame".to_vec())));
    conn.send_data(Chunk::Static(b"back"));
    assert_eq!(
        sent(&mut conn),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nback"
    );
    conn.receive_eof();
    assert_eq!(conn.event(), Some(Event::Eof));
    assert_eq!(conn.finish(), Next::Close);
}
