//! `first_byte_sampling` over loopback: variables of a response's first byte, of which responses, and when.
//!
//! Late first bytes need a path that makes them: `link/tests/stalls.rs`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::tls_client::{self, Tls};
use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::{Builder, Client, H2Client, Server, Signal, process, wait_until};
use rustix::net::sockopt;

/// Responses that are in time.
const CLEAN: usize = 1000;

/// A request for the file of 10 bytes.
const REQUEST: &[u8] = b"GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n";

fn site(sampling: &str) -> Builder {
    Server::http(&format!(
        "log_format s '$server_protocol $request_time $first_byte_time $first_byte_sent_time $first_byte_acked_time [$first_byte_stall]';
         access_log %%DIR%%/s.log s; {sampling} http2 on; keepalive_requests 100000;
         server {{ listen 127.0.0.1:%%PORT%%; listen unix:%%DIR%%/s.sock; root %%DIR%%/html;
           location = /metrics {{ metrics; first_byte_sampling off; access_log off; }}
           location /off/ {{ first_byte_sampling off; alias %%DIR%%/html/; }}
           location /nagle/ {{ tcp_nodelay off; alias %%DIR%%/html/; }}
           location /ends/ {{ keepalive_timeout 0; alias %%DIR%%/html/; }} }}"
    ))
    .file("html/f.txt", "0123456789")
}

/// The value of a sample of the metrics.
fn value(server: &Server, sample: &str) -> f64 {
    let page = server.get("/metrics").text();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {sample} in\n{page}"));
    line.parse().expect("a number")
}

fn stalls(server: &Server) -> f64 {
    let of = |cause| {
        let sample = format!("firstbyte_first_byte_stalls_total{{cause=\"{cause}\"}}");
        value(server, &sample)
    };
    of("delayed_ack") + of("retransmit") + of("window")
}

fn sampled(server: &Server) -> f64 {
    let of = |connection| {
        let sample = format!("firstbyte_first_byte_samples_total{{connection=\"{connection}\"}}");
        value(server, &sample)
    };
    of("idle") + of("busy")
}

/// Waits for this many lines of the log and returns their words.
fn log(server: &Server, lines: usize) -> Vec<Vec<String>> {
    let read = || server.dir().read("s.log");
    wait_until("all lines are logged", || read().lines().count() == lines);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    read().lines().map(words).collect()
}

fn seconds(word: &str) -> f64 {
    assert_eq!(
        word.split_once('.').map(|(_, micros)| micros.len()),
        Some(6)
    );
    word.parse().expect("seconds")
}

/// Sends this many requests on one connection. Its kernel acknowledges immediately, whatever the load of the machine.
fn ask(server: &Server, times: usize) {
    let mut answers = connect(server);
    for _ in 0..times {
        sockopt::set_tcp_quickack(answers.get_ref(), true).expect("a TCP socket");
        answers.get_mut().write_all(REQUEST).expect("connected");
        read_response(&mut answers);
    }
}

/// A connection with TCP_NODELAY.
fn connect(server: &Server) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let limit = Some(Duration::from_secs(10));
    stream.set_read_timeout(limit).expect("not zero");
    BufReader::new(stream)
}

/// Reads the response to [`REQUEST`].
fn read_response(answers: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        let bytes = answers.read_line(&mut line).expect("an answer comes");
        assert!(bytes > 0, "the connection stays open");
    }
    answers.read_exact(&mut [0; 10]).expect("its body comes");
}

#[test]
fn responses_in_time_are_no_stalls() {
    let server = site("first_byte_sampling 100%;").start();
    let worst = worst_stall_while(|| ask(&server, CLEAN));
    if worst > STALL_MOST {
        return inconclusive(&format!("threads were kept waiting for {worst:?}"));
    }
    let acked = "firstbyte_first_byte_acked_seconds_count";
    wait_until("all are acknowledged", || {
        value(&server, acked) == CLEAN as f64
    });
    let idle = "firstbyte_first_byte_samples_total{connection=\"idle\"}";
    assert_eq!(value(&server, idle), CLEAN as f64);
    let sent = "firstbyte_first_byte_sent_seconds_count";
    assert_eq!(value(&server, sent), CLEAN as f64);
    assert_eq!(stalls(&server), 0.0);
    for line in log(&server, CLEAN) {
        let [given, left, acked] = [2, 3, 4].map(|at| seconds(&line[at]));
        assert!(0.0 < given && 0.0 < left && left <= acked, "{line:?}");
        assert_eq!(line[5], "[]");
    }
}

/// A client that delays its acknowledgements acknowledges a response together with its next request. This completes the
/// sample of the response before the next one is written, even if several clients are ready at once.
#[test]
fn acknowledgements_that_come_with_requests_complete_samples() {
    let server = site("first_byte_sampling 100%;").start();
    let [worker] = server.workers()[..] else {
        panic!("one worker")
    };
    let mut clients = [(); 3].map(|()| connect(&server));
    let rounds = 20;
    for _ in 0..rounds {
        // A resumed worker finds all requests.
        assert!(process::signal(worker, Signal::STOP));
        for client in &mut clients {
            client.get_mut().write_all(REQUEST).expect("connected");
            sockopt::set_tcp_quickack(client.get_ref(), false).expect("a TCP socket");
        }
        assert!(process::signal(worker, Signal::CONT));
        clients.iter_mut().for_each(read_response);
    }
    assert_eq!(sampled(&server), (rounds * clients.len()) as f64);
}

#[test]
fn each_protocol_is_sampled() {
    let leaf = tls_client::site("a");
    let ssl = "first_byte_sampling 100%; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
        server { listen 127.0.0.1:%%PORT2%% ssl; root %%DIR%%/html; }";
    let server = site(ssl)
        .file("c.pem", &leaf.certificate)
        .file("k.pem", &leaf.key)
        .start();
    ask(&server, 2);
    let mut h2 = H2Client::connect(server.port());
    assert_eq!(h2.fetch("/f.txt").text(), "0123456789");
    assert_eq!(h2.fetch("/f.txt").text(), "0123456789");
    drop(h2);
    let answer = Tls::new().get(server.port_number(2), "a", "/f.txt");
    assert_eq!(answer.body, "0123456789");
    let lines = log(&server, 5);
    let of = |protocol| lines.iter().filter(|line| line[0] == protocol).count();
    assert_eq!((of("HTTP/1.1"), of("HTTP/2.0")), (3, 2));
    for line in lines {
        assert!(seconds(&line[3]) > 0.0, "{line:?}");
    }
    assert_eq!(sampled(&server), 5.0);
}

#[test]
fn what_cannot_be_sampled_is_served_and_logged_as_ever() {
    let server = site("first_byte_sampling 100%;").start();
    let mut client = server.client();
    for path in ["/off/f.txt", "/nagle/f.txt"] {
        assert_eq!(client.get(path).text(), "0123456789");
    }
    let mut local = Client::connect_unix(&server.path("s.sock"));
    assert_eq!(local.get("/f.txt").text(), "0123456789");
    for line in log(&server, 3) {
        assert_eq!(line[3..], ["-", "-", "[-]"], "{line:?}");
    }
    assert_eq!(sampled(&server), 0.0);
}

#[test]
fn a_connection_that_closes_with_its_response_is_logged_at_once() {
    let server = site("first_byte_sampling 100%;").start();
    let mut client = server.client();
    assert_eq!(client.get("/ends/f.txt").text(), "0123456789");
    assert!(client.closed());
    let line = log(&server, 1).remove(0);
    assert!(seconds(&line[3]) > 0.0, "{line:?}");
}

#[test]
fn pipelined_responses_are_whole_and_the_first_of_them_is_sampled() {
    let server = site("first_byte_sampling 100%;").start();
    let mut client = server.client();
    let request = "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(request.repeat(3));
    for _ in 0..3 {
        assert_eq!(client.response().text(), "0123456789");
    }
    drop(client);
    let lines = log(&server, 3);
    let told = lines.iter().filter(|line| line[3] != "-").count();
    assert_eq!((told, sampled(&server)), (1, 1.0), "{lines:?}");
}

#[test]
fn some_are_sampled_of_many_and_none_without_it() {
    let server = site("first_byte_sampling 10%;").start();
    ask(&server, CLEAN);
    // Ten standard deviations are 95.
    let found = sampled(&server);
    assert!((5.0..=195.0).contains(&found), "{found}");
    let server = site("").start();
    ask(&server, 10);
    assert_eq!(sampled(&server), 0.0);
    for line in log(&server, 10) {
        assert_eq!(line[3..], ["-", "-", "[-]"], "{line:?}");
    }
}

#[test]
fn a_trailer_tells_what_is_known_by_then() {
    let server = Server::http(
        "first_byte_sampling 100%; server_timing on; gzip on; gzip_min_length 1; gzip_types *; gzip_comp_level 1;
         server { listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html; limit_rate 2000; add_trailer X-Own own; }",
    )
    .bytes("html/f.txt", &noise())
    .start();
    let fields = ["Accept-Encoding: gzip", "TE: trailers"];
    let answer = server.client().get_with("/f.txt", &fields);
    let value = answer
        .trailers
        .iter()
        .find_map(|(name, value)| (name == "Server-Timing").then_some(value))
        .expect("a trailer");
    let names: Vec<&str> = value
        .split(", ")
        .filter_map(|part| Some(part.split_once(';')?.0))
        .collect();
    assert_eq!(names[..2], ["total", "sent"], "{value}");
}

/// Bytes that do not compress.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(4000).collect()
}

/// A client that is kept waiting for longer acknowledges late.
const STALL_MOST: Duration = Duration::from_millis(20);
