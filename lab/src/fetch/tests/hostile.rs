//! Servers that answer nonsense, never, too much or half.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use firstbyte_tests::port::Port;
use sys::poll::{Events, Interest, Poller};

use super::server::{PATIENCE, Secure, dial, get, head, scripted};
use crate::client::Protocol;
use crate::fetch::{Connection, Core, Failure, FailureCause, MAX_RECEIVED_BYTES};

const SHORT: Duration = Duration::from_millis(300);

/// Returns the failure of a request to a server, and its duration.
fn failure(
    script: impl Fn(TcpStream) + Send + Sync + 'static,
    protocol: Protocol,
    timeout: Duration,
) -> (Failure, Duration) {
    let mut dial = dial(scripted(script), &[protocol], None);
    dial.timeout = timeout;
    let start = Instant::now();
    let mut connection = Connection::open(&dial).expect("it listens");
    let failure = connection
        .exchange(&get(&dial, "/"))
        .expect_err("no good response");
    assert!(!connection.is_open());
    (failure, start.elapsed())
}

/// Keeps a connection open without sending until the client closes it.
fn keep(mut stream: TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// Once the client has spoken, sends a beginning, then the same for ever.
fn endless(first: &'static [u8], then: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync {
    move |mut stream| {
        // A server that writes before the request causes another failure.
        let _ = stream.read(&mut [0]);
        let mut sent = stream.write_all(first);
        let then = then.repeat(1 + (16 << 10) / then.len());
        while sent.is_ok() {
            sent = stream.write_all(&then);
        }
    }
}

#[test]
fn silence_ends_when_the_time_is_up() {
    let (failure, took) = failure(keep, Protocol::H1, SHORT);
    assert_eq!(
        (failure.cause, &failure.message[..]),
        (FailureCause::Timeout, "no response within 0.3 s")
    );
    assert!(failure.partial.is_none() && took >= SHORT);
    let secure = Secure::new(0);
    let mut dial = dial(scripted(keep), &[Protocol::H2], Some(&secure));
    dial.timeout = SHORT;
    let failure = Connection::open(&dial).err().expect("no handshake");
    assert_eq!(failure.cause, FailureCause::Timeout);
    assert!(failure.message.contains("TLS handshake"), "{failure}");
}

#[test]
fn bodies_without_end_end_with_the_time_or_the_limit() {
    let chunk = b"4\r\nabcd\r\n";
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (failure, _) = failure(endless(head, chunk), Protocol::H1, SHORT);
    assert!(
        matches!(failure.cause, FailureCause::Timeout | FailureCause::Limit),
        "{failure}"
    );
    let partial = failure.partial.expect("the head came");
    assert!(partial.body_bytes > 0 && partial.status == 200);
}

#[test]
fn heads_without_end_are_refused() {
    let (failure, _) = failure(
        endless(b"HTTP/1.1 200 OK\r\n", b"X-A: bcdefghijklmnop\r\n"),
        Protocol::H1,
        PATIENCE,
    );
    assert_eq!(failure.message, "server sent too big header");
    let (failure, _) = super::hostile::failure(
        endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        Protocol::H1,
        PATIENCE,
    );
    assert_eq!(failure.message, "server sent too many interim responses");
}

#[test]
fn nonsense_is_refused() {
    for protocol in Protocol::ALL {
        let nonsense = |mut stream: TcpStream| {
            let _ = stream.read(&mut [0]);
            let _ = stream.write_all(&[0xff; 100]);
            keep(stream);
        };
        let (failure, _) = failure(nonsense, protocol, PATIENCE);
        assert_eq!(failure.cause, FailureCause::Protocol, "{failure}");
        assert!(failure.message.starts_with("server "), "{failure}");
    }
    let secure = Secure::new(0);
    let no_tls = scripted(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        keep(stream);
    });
    let dial = dial(no_tls, &[Protocol::H1], Some(&secure));
    let failure = Connection::open(&dial).err().expect("no TLS");
    assert_eq!(failure.cause, FailureCause::Tls, "{failure}");
}

#[test]
fn frames_without_end_are_refused() {
    // SETTINGS, then PINGs.
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let ping = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";
    let (failure, _) = failure(endless(settings, ping), Protocol::H2, PATIENCE);
    assert!(
        matches!(failure.cause, FailureCause::Protocol | FailureCause::Closed),
        "{failure}"
    );
}

#[test]
fn ends_in_the_middle_are_told_with_what_has_come() {
    let (failure, _) = failure(
        |mut stream| {
            head(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        },
        Protocol::H1,
        PATIENCE,
    );
    assert_eq!(failure.cause, FailureCause::Closed);
    assert_eq!(failure.message, "server prematurely closed connection");
    assert_eq!(
        failure.partial.map(|partial| partial.body),
        Some(b"abc".to_vec())
    );
    let (failure, _) =
        super::hostile::failure(|mut stream| _ = head(&mut stream), Protocol::H1, PATIENCE);
    assert!(failure.partial.is_none() && failure.cause == FailureCause::Closed);
    let secure = Secure::new(0);
    let dial = dial(scripted(drop), &[Protocol::H1], Some(&secure));
    let failure = Connection::open(&dial).err().expect("no handshake");
    assert!(
        matches!(failure.cause, FailureCause::Tls | FailureCause::Closed),
        "{failure}"
    );
}

#[test]
fn closed_port_is_told_at_once() {
    let closed = Port::reserve();
    let address = SocketAddr::from(([127, 0, 0, 1], closed.number()));
    let failure = Connection::open(&dial(address, &[Protocol::H1], None));
    let failure = failure.err().expect("nobody listens");
    assert_eq!(failure.cause, FailureCause::Connect);
    assert_eq!(
        failure.message,
        format!("cannot connect to {address}: refused")
    );
}

#[test]
fn no_more_is_received_than_the_limit() {
    // One body that reaches the limit exactly, and one with a byte more.
    for (more, fits) in [(0, true), (1, false)] {
        let script = move |mut stream: TcpStream| {
            head(&mut stream);
            let mut length = MAX_RECEIVED_BYTES + more;
            let head = |length: u64| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            length -= head(length).len() as u64;
            let mut sent = stream.write_all(head(length).as_bytes());
            let piece = vec![b'x'; 1 << 20];
            while length > 0 && sent.is_ok() {
                let len = length.min(piece.len() as u64);
                sent = stream.write_all(&piece[..len as usize]);
                length -= len;
            }
            keep(stream);
        };
        let mut dial = dial(scripted(script), &[Protocol::H1], None);
        dial.timeout = 10 * PATIENCE;
        let mut connection = Connection::open(&dial).expect("it listens");
        match connection.exchange(&get(&dial, "/")) {
            Ok(_) => assert!(fits),
            Err(failure) => {
                assert!(!fits, "{failure}");
                assert_eq!(failure.cause, FailureCause::Limit);
                assert!(failure.message.contains("256 MiB"), "{failure}");
            }
        }
    }
}

#[test]
fn what_comes_before_the_connection_is_noticed_is_read() {
    let (written, wait) = std::sync::mpsc::channel();
    let address = scripted(move |mut stream| {
        let _ = stream.write_all(b"SSH-2.0-x\r\n");
        let _ = written.send(());
        keep(stream);
    });
    let dial = dial(address, &[Protocol::H1], None);
    let mut core = Core::dial(&dial).expect("it listens");
    wait.recv_timeout(PATIENCE).expect("the server has spoken");
    let poller = Poller::new().expect("epoll");
    let socket = core.socket().expect("it is open");
    poller.add(socket, 0, Interest::Connection).expect("epoll");
    let mut events = Events::with_capacity(1);
    let deadline = Instant::now() + PATIENCE;
    while !core.is_closed() && Instant::now() < deadline {
        poller.wait(&mut events, Some(100)).expect("epoll");
        for ready in events.iter() {
            core.ready(Some(ready), &mut [0; 4096]);
        }
    }
    assert!(core.is_closed(), "nothing was read");
}
