//! Responses on the wire.

use super::*;

/// Output for one request with `response` and the body "data".
fn exchange(request: &str, response: &ResponseHead) -> (String, Next) {
    let mut conn = after(request);
    next_head(&mut conn);
    let head_bytes = conn.send_head(response);
    conn.send_data(Chunk::Owned(b"da".to_vec()));
    conn.send_data(Chunk::Static(b""));
    conn.send_data(Chunk::from(Rc::<[u8]>::from(&b"ta"[..])));
    conn.send_end(None);
    let next = conn.finish();
    let sent = sent(&mut conn);
    let end_of_head = sent.find("\r\n\r\n").map_or(0, |at| at + 4);
    assert_eq!(head_bytes, end_of_head as u64);
    (sent, next)
}

fn response(status: u16, body: BodyLength) -> ResponseHead {
    ResponseHead {
        status,
        body,
        keep_alive: true,
        ..ResponseHead::default()
    }
}

fn body_of(sent: &str) -> &str {
    sent.split_once("\r\n\r\n").map_or(sent, |(_, body)| body)
}

#[test]
fn a_body_of_unknown_length_is_chunked_in_http11() {
    let (sent, next) = exchange(GET, &response(200, BodyLength::Unknown));
    assert!(sent.contains("Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n"));
    assert_eq!(body_of(&sent), "2\r\nda\r\n2\r\nta\r\n0\r\n\r\n");
    assert_eq!(next, Next::KeepAlive);
}

#[test]
fn a_body_of_unknown_length_ends_with_the_connection_in_http10() {
    let request = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (sent, next) = exchange(request, &response(200, BodyLength::Unknown));
    assert_eq!(sent, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata");
    assert_eq!(next, Next::Close);
}

#[test]
fn chunking_can_be_forbidden() {
    let mut head = response(200, BodyLength::Unknown);
    head.forbid_chunked = true;
    let (sent, next) = exchange(GET, &head);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata");
    assert_eq!(next, Next::Close);
}

#[test]
fn http09_gets_the_body_alone() {
    for body in [BodyLength::Unknown, BodyLength::Length(4)] {
        let (sent, next) = exchange("GET /\r\n", &response(200, body));
        assert_eq!((sent.as_str(), next), ("data", Next::Close));
    }
}

/// RFC 9110 section 6.4.1.
#[test]
fn head_204_and_304_have_no_body() {
    let head_request = GET.replace("GET", "HEAD");
    for (request, status) in [(head_request.as_str(), 200), (GET, 204), (GET, 304)] {
        let (sent, next) = exchange(request, &response(status, BodyLength::Unknown));
        assert_eq!(body_of(&sent), "", "{status}");
        assert!(!sent.contains("Transfer-Encoding"));
        assert_eq!(next, Next::KeepAlive);
    }
    let mut with_length = response(200, BodyLength::Length(4));
    with_length.push(b"Content-Length", b"4");
    let (sent, _) = exchange(&head_request, &with_length);
    assert!(sent.contains("Content-Length: 4\r\n"));
}

/// Without it the peer would wait for the end of the connection.
#[test]
fn a_response_without_a_body_says_so() {
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.send_head(&response(302, BodyLength::None));
    conn.send_end(None);
    assert_eq!(conn.finish(), Next::KeepAlive);
    assert_eq!(
        sent(&mut conn),
        "HTTP/1.1 302 Moved Temporarily\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
    );
}

/// The peer must not take the bytes behind it for the next response.
#[test]
fn a_body_of_the_wrong_length_ends_the_connection() {
    let (sent, next) = exchange(GET, &response(200, BodyLength::Length(3)));
    assert_eq!(body_of(&sent), "dat");
    assert_eq!(next, Next::Close);
    let (sent, next) = exchange(GET, &response(200, BodyLength::Length(5)));
    assert_eq!(body_of(&sent), "data");
    assert_eq!(next, Next::Close);
}

#[test]
fn trailers_are_sent_only_in_a_chunked_body() {
    let mut trailers = ResponseHead::default();
    trailers.push(b"X-Sum", b"1");
    for (body, wanted) in [
        (BodyLength::Unknown, "0\r\nX-Sum: 1\r\n\r\n"),
        (BodyLength::Length(0), ""),
    ] {
        let mut conn = after(GET);
        next_head(&mut conn);
        conn.send_head(&response(200, body));
        conn.send_end(Some(&trailers));
        assert_eq!(body_of(&sent(&mut conn)), wanted);
    }
}

#[test]
fn interim_responses_come_before_the_head_and_not_to_http10() {
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.send_interim(100, None);
    conn.send_head(&ok_head());
    conn.send_interim(103, None);
    let sent_11 = sent(&mut conn);
    assert!(sent_11.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
    assert!(!sent_11.contains("103"));
    let mut conn = after("GET / HTTP/1.0\r\n\r\n");
    next_head(&mut conn);
    conn.send_interim(100, None);
    assert_eq!(sent(&mut conn), "");
}

#[test]
fn the_server_may_end_persistence() {
    let mut head = ok_head();
    head.keep_alive = false;
    let mut conn = after(GET);
    next_head(&mut conn);
    conn.send_head(&head);
    conn.send_data(Chunk::Static(b"ok"));
    conn.send_end(None);
    assert_eq!(conn.finish(), Next::Close);
    assert!(sent(&mut conn).contains("Connection: close\r\n"));
}
