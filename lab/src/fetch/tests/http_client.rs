//! The client of the store: which failures are known to have executed nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use firstbyte_tests::port::Port;
use flate2::read::GzDecoder;
use store::{HttpRequest, HttpResponse, Transport, TransportError};

use super::server::{Answer, PATIENCE, Secure, head, scripted, serve, serve_with};
use crate::client::trust::Trust;
use crate::client::{Protocol, Url};
use crate::fetch::{HttpClient, HttpClientSettings};

const SHORT: Duration = Duration::from_millis(300);
const SECRET: &str = "s3cret";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn settings(scheme: &str, address: SocketAddr) -> HttpClientSettings {
    let url = format!("{scheme}://localhost:{}/", address.port());
    let mut settings = HttpClientSettings::new(&Url::parse(&url).expect("a URL"));
    settings.connect_timeout = PATIENCE;
    settings.timeout = PATIENCE;
    settings
}

fn client(address: SocketAddr) -> HttpClient {
    HttpClient::new(settings("http", address))
}

fn post<'a>(headers: &'a [(&'a str, &'a str)], body: &'a [u8]) -> HttpRequest<'a> {
    HttpRequest {
        method: "POST",
        target: "/?query=INSERT%20x",
        headers,
        body,
    }
}

/// Sends a request with credentials, and verifies that no error has them.
fn send(client: &mut HttpClient) -> Result<HttpResponse, TransportError> {
    let headers = [
        ("X-ClickHouse-User", "u"),
        ("X-ClickHouse-Key", SECRET),
        ("Authorization", "Basic czNjcmV0"),
    ];
    let result = client.send(&post(&headers, b"body"));
    if let Err(error) = &result {
        let text = format!("{error} {error:?} {client:?}");
        assert!(
            !text.contains(SECRET) && !text.contains("czNjcmV0"),
            "{text}"
        );
    }
    result
}

fn unknown(result: Result<HttpResponse, TransportError>) -> String {
    match result {
        Err(TransportError::Unknown(reason)) => reason,
        other => panic!("it may have been executed: {other:?}"),
    }
}

fn not_sent(result: Result<HttpResponse, TransportError>) -> String {
    match result {
        Err(TransportError::NotSent(reason)) => reason,
        other => panic!("nothing was sent: {other:?}"),
    }
}

/// Reads a request; returns its head, empty at the end of the stream, and its body.
fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let head = head(stream);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    let whole = stream.read_exact(&mut body);
    (head, whole.map(|()| body).unwrap_or_default())
}

/// Starts a server and counts its connections. The script gets the number of its connection, from 1.
fn numbered(
    script: impl Fn(TcpStream, usize) + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&count);
    let address = scripted(move |stream| script(stream, own.fetch_add(1, Ordering::SeqCst) + 1));
    (address, count)
}

/// Starts a server with one answer to all requests, and counts its connections.
fn answering(answer: impl Into<Vec<u8>>) -> (SocketAddr, Arc<AtomicUsize>) {
    let answer = answer.into();
    numbered(
        move |mut stream, _| {
            while !request(&mut stream).0.is_empty() && stream.write_all(&answer).is_ok() {}
        },
    )
}

/// Starts a server that answers one request with these bytes and closes.
fn closing(answer: &'static [u8]) -> SocketAddr {
    scripted(move |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(answer);
    })
}

#[test]
fn requests_share_a_connection_and_have_the_callers_fields() {
    let (sender, requests) = channel();
    let (address, count) = numbered(move |mut stream, _| {
        loop {
            let request = request(&mut stream);
            if request.0.is_empty() {
                return;
            }
            let _ = sender.send(request);
            let chunked =
                b"HTTP/1.1 500 E\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
            let _ = stream.write_all(chunked);
        }
    });
    let mut client = client(address);
    for _ in 0..3 {
        let response = send(&mut client).expect("a response");
        assert_eq!((response.status, &response.body[..]), (500, &b"ok"[..]));
        let field = ("X-A".to_owned(), "b".to_owned());
        assert!(response.headers.contains(&field));
        let (head, body) = requests.recv_timeout(PATIENCE).expect("a request");
        assert!(
            head.starts_with("POST /?query=INSERT%20x HTTP/1.1\r\n"),
            "{head}"
        );
        let head = head.to_ascii_lowercase();
        for field in [
            &format!("host: localhost:{}\r\n", address.port())[..],
            "x-clickhouse-key: s3cret\r\n",
            "authorization: basic cznjcmv0\r\n",
            "content-length: 4\r\n",
            "user-agent: firstbyte/",
        ] {
            assert!(head.contains(field), "{field} in {head}");
        }
        assert_eq!(body, b"body");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn refused_connections_have_sent_nothing() {
    let closed = Port::reserve();
    let address = SocketAddr::from(([127, 0, 0, 1], closed.number()));
    let reason = not_sent(send(&mut client(address)));
    assert!(reason.ends_with(": refused"), "{reason}");
}

#[test]
fn fields_with_line_breaks_are_not_sent() {
    let (address, count) = answering(OK);
    let mut client = client(address);
    let value = format!("{SECRET}\r\nX-Other: 1");
    let reason = not_sent(client.send(&post(&[("X-ClickHouse-Key", &value)], b"")));
    assert!(reason.contains("line break") && !reason.contains(SECRET));
    let mut spaced = post(&[], b"");
    spaced.target = "/?query=a b";
    not_sent(client.send(&spaced));
    // The client is usable again.
    send(&mut client).expect("a response");
    assert!(count.load(Ordering::SeqCst) > 0);
}

/// RFC 9112 section 9.3.1: the server closed before the request.
#[test]
fn kept_connection_that_the_server_closed_is_replaced() {
    for reset in [false, true] {
        let step = Arc::new(Barrier::new(2));
        let own = Arc::clone(&step);
        let (address, count) = numbered(move |mut stream, number| {
            request(&mut stream);
            let _ = stream.write_all(OK);
            if number > 1 {
                return;
            }
            if reset {
                // A reset discards unread bytes.
                own.wait();
                let _ = sys::socket::set_linger_reset(&stream);
            }
            drop(stream);
            own.wait();
        });
        let mut client = client(address);
        send(&mut client).expect("a response");
        if reset {
            step.wait();
        }
        step.wait();
        send(&mut client).expect("a response on another connection");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn reset_after_the_request_leaves_the_outcome_open() {
    for before in [0, 1] {
        let (address, count) = numbered(move |mut stream, _| {
            for _ in 0..before {
                request(&mut stream);
                let _ = stream.write_all(OK);
            }
            request(&mut stream);
            let _ = sys::socket::set_linger_reset(&stream);
        });
        let mut client = client(address);
        for _ in 0..before {
            send(&mut client).expect("a response");
        }
        unknown(send(&mut client));
        // It was not sent again.
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn parts_of_responses_are_no_responses() {
    for part in [
        &b""[..],
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
        // A close in place of a length may be that of a server that was killed.
        b"HTTP/1.1 200 OK\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhalf",
        b"nonsense",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        let text = String::from_utf8_lossy(part);
        let result = send(&mut client(closing(part)));
        assert!(
            matches!(result, Err(TransportError::Unknown(_))),
            "{text}: {result:?}"
        );
    }
}

#[test]
fn interim_responses_are_skipped() {
    let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-B: c\r\n\r\n";
    let (address, count) = answering([interim, OK].concat());
    let mut client = client(address);
    for _ in 0..2 {
        let response = send(&mut client).expect("a response");
        assert_eq!((response.status, &response.body[..]), (200, &b"ok"[..]));
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn redirects_are_errors_and_not_followed() {
    let (other, count) = answering(OK);
    for status in [301, 302, 303, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} R\r\nLocation: http://{other}/\r\nContent-Length: 0\r\n\r\n"
        );
        let (address, _) = answering(answer);
        let reason = unknown(send(&mut client(address)));
        assert_eq!(reason, format!("the server redirects (status {status})"));
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn responses_are_limited() {
    const LIMIT: usize = 100_000;
    for (more, fits) in [(0, true), (1, false)] {
        let answers = move |_: &str| Answer::new(200, &[], vec![b'x'; LIMIT + more]);
        let mut settings = settings("http", serve_with(Protocol::H1, None, answers));
        settings.response_bytes = LIMIT;
        let result = HttpClient::new(settings).send(&HttpRequest {
            method: "GET",
            ..post(&[], b"")
        });
        match fits {
            true => assert_eq!(result.expect("it fits").body.len(), LIMIT),
            false => assert_eq!(unknown(result), "the response is larger than 100000 bytes"),
        }
    }
    // A body without end ends at the limit, not with the time.
    let address = scripted(|mut stream| {
        request(&mut stream);
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&b"4\r\nabcd\r\n".repeat(1000));
        }
    });
    let mut settings = settings("http", address);
    settings.response_bytes = LIMIT;
    let reason = unknown(send(&mut HttpClient::new(settings)));
    assert!(reason.contains("larger than"), "{reason}");
}

#[test]
fn slow_servers_are_given_up() {
    // A byte of the head at a time: each read brings something.
    let drip = scripted(|mut stream| {
        request(&mut stream);
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nX-A: ");
        while sent.is_ok() {
            std::thread::park_timeout(Duration::from_millis(10));
            sent = stream.write_all(b"a");
        }
    });
    let mut slow = settings("http", drip);
    slow.timeout = SHORT;
    let start = Instant::now();
    let reason = unknown(send(&mut HttpClient::new(slow)));
    assert!(start.elapsed() >= SHORT && reason.contains("within 0.3 s"));
    // No word of TLS: nothing of the request was sent.
    let silent = scripted(|mut stream| _ = std::io::copy(&mut stream, &mut std::io::sink()));
    let mut slow = settings("https", silent);
    slow.connect_timeout = SHORT;
    let start = Instant::now();
    let reason = not_sent(send(&mut HttpClient::new(slow)));
    assert!(reason.contains("TLS handshake"), "{reason}");
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn certificates_are_verified_by_authority_and_name() {
    let (secure, other) = (Secure::new(0), Secure::new(0));
    let address = serve(Protocol::H1, Some(&secure));
    let mut settings = settings("https", address);
    settings.trust = secure.trust();
    let response = send(&mut HttpClient::new(settings.clone())).expect("a response");
    assert_eq!(response.body, b"/?query=INSERT%20x");
    let mut wrong_name = settings.clone();
    wrong_name.url = Url::parse(&format!("https://{address}/")).expect("a URL");
    let reason = not_sent(send(&mut HttpClient::new(wrong_name)));
    assert!(reason.contains("NotValidForName"), "{reason}");
    assert!(!reason.contains("--insecure"), "{reason}");
    for trust in [other.trust(), Trust::system(), Trust::Browsers] {
        let mut wrong = settings.clone();
        wrong.trust = trust;
        let reason = not_sent(send(&mut HttpClient::new(wrong)));
        assert!(reason.starts_with("tls: "), "{reason}");
    }
    let mut no_tls = settings;
    no_tls.url = Url::parse(&format!("http://localhost:{}/", address.port())).expect("a URL");
    send(&mut HttpClient::new(no_tls)).expect_err("it is TLS");
}

#[test]
fn large_bodies_are_compressed_on_request() {
    let (sender, requests) = channel();
    let address = scripted(move |mut stream| {
        loop {
            let request = request(&mut stream);
            if request.0.is_empty() {
                return;
            }
            let _ = (stream.write_all(OK), sender.send(request));
        }
    });
    let mut settings = settings("http", address);
    for gzip in [false, true] {
        settings.gzip = gzip;
        let mut client = HttpClient::new(settings.clone());
        let form = [("Content-Type", "Multipart/form-data; boundary=x")];
        for (length, fields, is_large) in [
            (1023, &[][..], false),
            (1024, &[], true),
            (3 << 20, &[], true),
            (1024, &form, false),
        ] {
            let body = vec![b'a'; length];
            client.send(&post(fields, &body)).expect("a response");
            let (head, sent) = requests.recv_timeout(PATIENCE).expect("a request");
            let is_packed = head
                .to_ascii_lowercase()
                .contains("content-encoding: gzip\r\n");
            assert_eq!(is_packed, gzip && is_large, "{length}");
            let mut text = Vec::new();
            match is_packed {
                true => _ = GzDecoder::new(&sent[..]).read_to_end(&mut text),
                false => text = sent,
            }
            assert!(text == body, "{length}");
        }
    }
}

#[test]
fn connections_are_left_before_the_server_closes_them() {
    for (answer, connections) in [
        ("", 1),
        ("Keep-Alive: timeout=100\r\n", 1),
        // The margin of a second is all of it.
        ("Keep-Alive: max=5, timeout=1\r\n", 2),
        ("Connection: close\r\n", 2),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{answer}\r\n");
        let (address, count) = answering(answer.clone());
        let mut client = client(address);
        for _ in 0..2 {
            send(&mut client).expect("a response");
        }
        assert_eq!(count.load(Ordering::SeqCst), connections, "{answer}");
    }
}

#[test]
fn connection_with_unasked_bytes_is_not_used_again() {
    let (address, count) = answering([OK, b"HTTP/1.1 200 OK\r\n"].concat());
    let mut client = client(address);
    for _ in 0..2 {
        assert_eq!(send(&mut client).expect("a response").body, b"ok");
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// The record of a connection grows with its exchanges.
#[test]
fn exchanges_of_a_connection_are_limited() {
    let (address, count) = answering(OK);
    let mut client = client(address);
    for (exchanges, connections) in [(1000, 1), (1, 2)] {
        for _ in 0..exchanges {
            send(&mut client).expect("a response");
        }
        assert_eq!(count.load(Ordering::SeqCst), connections);
    }
}
