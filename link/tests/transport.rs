//! TCP_INFO of a connection over the emulated link: the least round-trip time is that of the path, independent of the
//! client's acknowledgements, and the smoothed one is not.
//!
//! Skipped with a message if links are not possible (see `support::available`). `LINK_TABLE=1` prints the figures.

mod support;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use firstbyte_tests::Server;
use link::{Link, Options};
use support::available;

/// Requests of the connection with checked figures.
const JUDGED: [usize; 5] = [1, 2, 4, 8, 12];

/// Hold of the client's acknowledgements, and its pause between requests: each response's acknowledgement is held for
/// the whole time.
const HOLD: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(300);

/// Timeout of a response.
const LIMIT: Duration = Duration::from_secs(10);

/// Attempts to make the connection while the link is on time.
const ATTEMPTS: usize = 5;

/// Waits for `pause`, in which no byte may come.
fn nothing_comes_within(pause: Duration, answers: &mut BufReader<TcpStream>) {
    let stream = answers.get_ref();
    stream.set_read_timeout(Some(pause)).expect("not zero");
    let error = answers.fill_buf().expect_err("nothing was asked for");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let stream = answers.get_ref();
    stream.set_read_timeout(Some(LIMIT)).expect("not zero");
}

/// Least and smoothed round-trip time in microseconds, as each response of one connection reports them.
fn figures(stream: TcpStream, requests: usize) -> Vec<(u32, u32)> {
    let mut answers = BufReader::new(stream);
    let ask = |_| {
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        answers.get_mut().write_all(request).expect("connected");
        let mut length = 0;
        loop {
            let mut line = String::new();
            answers.read_line(&mut line).expect("an answer comes");
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        answers.read_exact(&mut body).expect("a body comes");
        let body = String::from_utf8(body).expect("text");
        let (least, smoothed) = body.split_once(' ').expect("two numbers");
        let number = |text: &str| text.parse().expect("a number");
        nothing_comes_within(PAUSE, &mut answers);
        (number(least), number(smoothed))
    };
    (0..requests).map(ask).collect()
}

#[test]
fn least_round_trip_time_is_that_of_the_path_while_acknowledgements_are_held() {
    let Some(link) = available(Link::new(Options {
        client_ack_hold: Some(HOLD),
        ..Options::default()
    })) else {
        return;
    };
    let site = "server { listen %%PORT%%;
        location / { return 200 '$tcpinfo_min_rtt $tcpinfo_rtt'; } }";
    let server = link.in_server(|| Server::http(site).start());
    let path_us = u32::try_from(link.round_trip().as_micros()).expect("50 ms");
    let near = |us: u32| us.abs_diff(path_us) * 100 <= path_us * 2;
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let figures = link.in_client(|| {
            let address = (link.server_address(), server.port());
            let stream = TcpStream::connect(address).expect("the server accepts");
            stream.set_nodelay(true).expect("a TCP socket");
            stream.set_read_timeout(Some(LIMIT)).expect("not zero");
            figures(stream, JUDGED[JUDGED.len() - 1])
        });
        let judged: Vec<_> = JUDGED.iter().map(|n| (*n, figures[n - 1])).collect();
        if std::env::var_os("LINK_TABLE").is_some() {
            eprintln!("request, (min_rtt, rtt) in microseconds: {judged:?}");
        }
        let (_, smoothed) = figures[figures.len() - 1];
        assert!(
            smoothed > 2 * path_us,
            "no acknowledgement was held: {judged:?}"
        );
        if judged.iter().all(|(_, (least, _))| near(*least)) {
            return;
        }
        seen.push(judged);
    }
    panic!("not within 2 % of {path_us}: {seen:?}");
}
