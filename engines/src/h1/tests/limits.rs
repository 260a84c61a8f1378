//! Limits of heads, at the limit and one past it; after nginx's
//! http_header_buffers.t and http_max_headers.t.

use super::*;

fn settings(first: usize, large: (u32, usize)) -> Settings {
    Settings {
        header_buffer_bytes: first,
        large_header_buffers: large,
        ..Settings::default()
    }
}

/// The fault of `input`, the same whole and byte by byte.
fn fault_under(input: &str, settings: &Settings) -> Option<Fault> {
    let whole = fault_with(input.as_bytes(), settings.clone());
    let mut conn = conn_with(settings.clone());
    for byte in input.as_bytes() {
        conn.receive(&[*byte]);
        conn.check_invariants();
    }
    assert_eq!(next_head(&mut conn).fault, whole, "{input:?}");
    whole
}

fn long_header() -> String {
    format!("X-Foo: {}\r\n", "1234567890".repeat(20))
}

#[test]
fn a_long_line_takes_a_large_buffer() {
    let limits = settings(128, (5, 256));
    let header = format!("GET / HTTP/1.0\r\nHost: foo\r\n{}\r\n", long_header());
    assert_eq!(fault_under(&header, &limits), None);
    let line = format!(
        "GET /foo{} HTTP/1.0\r\nHost: foo\r\n\r\n",
        "1234567890".repeat(20)
    );
    assert_eq!(fault_under(&line, &limits), None);
}

#[test]
fn five_large_buffers_hold_five_long_headers() {
    let limits = settings(128, (5, 256));
    let input = |count| format!("GET / HTTP/1.0\r\n{}\r\n", long_header().repeat(count));
    assert_eq!(fault_under(&input(5), &limits), None);
    assert_eq!(fault_under(&input(6), &limits), Some(Fault::HeaderTooLarge));
}

#[test]
fn every_pipelined_request_has_fresh_buffers() {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
        long_header().repeat(5)
    );
    let mut conn = conn_with(settings(128, (5, 256)));
    conn.receive(request.repeat(3).as_bytes());
    for _ in 0..3 {
        assert_eq!(next_head(&mut conn).fault, None);
        assert_eq!(answer_ok(&mut conn), Next::KeepAlive);
    }
}

#[test]
fn a_request_line_ends_within_a_large_buffer() {
    let limits = settings(128, (4, 256));
    let line = |len: usize| {
        let frame = "GET / HTTP/1.0\r\n".len();
        format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(len - frame))
    };
    assert_eq!(fault_under(&line(256), &limits), None);
    assert_eq!(fault_under(&line(257), &limits), Some(Fault::UriTooLong));
    assert_eq!(Fault::UriTooLong.status(), 414);
}

#[test]
fn a_header_line_ends_within_a_large_buffer() {
    let limits = settings(128, (4, 256));
    let input = |len: usize| format!("GET / HTTP/1.0\r\nA: {}\r\n\r\n", "a".repeat(len - 5));
    assert_eq!(fault_under(&input(256), &limits), None);
    assert_eq!(
        fault_under(&input(257), &limits),
        Some(Fault::HeaderTooLarge)
    );
}

#[test]
fn the_defaults_refuse_16_kb_of_method_uri_or_header() {
    let limits = Settings::default();
    let long = "A".repeat(16 * 1024);
    assert_eq!(
        fault_under(&"A".repeat(10 * 1024), &limits),
        Some(Fault::MethodTooLong)
    );
    assert_eq!(Fault::MethodTooLong.status(), 414);
    assert_eq!(
        fault_under(&format!("GET /{long} HTTP/1.1\r\n"), &limits),
        Some(Fault::UriTooLong)
    );
    let header = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {long}\r\n\r\n");
    assert_eq!(fault_under(&header, &limits), Some(Fault::HeaderTooLarge));
    assert_eq!(Fault::HeaderTooLarge.status(), 494);
}

/// A bad byte within the limit is reported; one beyond is never seen.
#[test]
fn a_bad_byte_counts_if_it_comes_before_the_limit() {
    let limits = settings(64, (1, 64));
    let line = |at: usize| format!("GET /{}\x01{}", "a".repeat(at - 5), "a".repeat(99));
    assert_eq!(fault_under(&line(63), &limits), Some(Fault::BadRequestLine));
    assert_eq!(fault_under(&line(64), &limits), Some(Fault::UriTooLong));
}

#[test]
fn max_headers_counts_lines_that_are_kept() {
    let limits = Settings {
        max_headers: 5,
        ..Settings::default()
    };
    let input = |count| {
        format!(
            "GET / HTTP/1.0\r\n{}\r\n",
            "X: y\r\nx_dropped: z\r\n".repeat(count)
        )
    };
    assert_eq!(fault_under(&input(5), &limits), None);
    assert_eq!(fault_under(&input(6), &limits), Some(Fault::TooManyHeaders));
    let many = format!("GET / HTTP/1.0\r\n{}\r\n", "a:b\r\n".repeat(1001));
    assert_eq!(
        fault_under(&many, &Settings::default()),
        Some(Fault::TooManyHeaders)
    );
}

#[test]
fn empty_lines_before_a_request_never_fill_a_buffer() {
    let input = format!("{}{GET}", "\r\n".repeat(5000));
    assert_eq!(fault_under(&input, &settings(128, (1, 256))), None);
}

#[test]
fn pipelined_bytes_are_held_up_to_a_limit() {
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.receive(&vec![b'x'; super::super::PIPELINE_BUFFER_BYTES - 1]);
    assert!(conn.wants_input());
    conn.receive(b"x");
    assert!(!conn.wants_input());
}

#[test]
fn body_data_nobody_takes_stops_the_reading() {
    let mut conn = after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    next_head(&mut conn);
    conn.receive(&vec![b'x'; super::super::PIPELINE_BUFFER_BYTES]);
    assert!(!conn.wants_input());
    assert!(matches!(conn.event(), Some(Event::Data(_))));
    assert!(conn.wants_input());
}
