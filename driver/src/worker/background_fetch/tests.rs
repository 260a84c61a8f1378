//! Background fetches from servers of their own on loopback sockets.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::time::Duration;

use server_base::background_fetch::{Endpoint, FetchRequest};
use server_base::errlog::Sink;
use server_http::{LoadOptions, load};
use sys::poll::Events;

use super::*;

/// Asks for a text and accepts "yes!"; how each attempt ended is noted.
struct Fetch {
    to: Endpoint,
    request: FetchRequest,
    ends: Mutex<Vec<bool>>,
}

impl Fetch {
    fn endpoint_of(host: &str, addresses: Vec<SocketAddr>) -> Endpoint {
        Endpoint {
            host: host.to_owned(),
            port: addresses.first().map_or(0, SocketAddr::port),
            addresses,
            servers: None,
            resolver_timeout_ms: 30_000,
            timeout_ms: 30_000,
            peer: "peer",
            action: "asking".to_owned(),
            purpose: ", for a test".to_owned(),
        }
    }

    fn of(to: Endpoint) -> Arc<Self> {
        Arc::new(Self::new(to))
    }

    fn new(to: Endpoint) -> Self {
        Self {
            to,
            request: FetchRequest {
                host: "peer.test".to_owned(),
                target: "/ask".to_owned(),
                media_type: "text/plain",
                response_bytes_max: 1000,
            },
            ends: Mutex::default(),
        }
    }

    fn ends(&self) -> Vec<bool> {
        self.ends.lock().expect("no panic before").clone()
    }
}

impl BackgroundFetch for Fetch {
    fn endpoint(&self) -> &Endpoint {
        &self.to
    }

    fn request(&self) -> &FetchRequest {
        &self.request
    }

    fn first_in_ms(&self, _: i64) -> u64 {
        0
    }

    fn accept(&self, body: &[u8], _: i64) -> Result<(), String> {
        match body {
            b"yes!" => Ok(()),
            _ => Err("the peer says no".to_owned()),
        }
    }

    fn ended(&self, succeeded: bool, _: i64) -> u64 {
        self.ends.lock().expect("no panic before").push(succeeded);
        3_600_000
    }
}

/// A configuration without anything.
fn empty() -> Arc<Http> {
    let source = conf::Memory::default().with_file("/c", "events {} http {}");
    let options = LoadOptions {
        conf_path: "/c".into(),
        prefix: "/".into(),
        globals: None,
        error_log: None,
        access_log: "/dev/null".into(),
    };
    let loaded = load(source, &options, server_modules::MODULES);
    let cycle = loaded.ok().expect("it is a configuration");
    cycle.http.expect("it has this block")
}

/// A server that acts so on each connection once a request was received.
fn peer(act: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accept");
            let mut request = [0; REQUEST.len()];
            stream.read_exact(&mut request).expect("a request");
            assert_eq!(&request, REQUEST);
            act(stream);
        }
    });
    address
}

/// A server that responds with this body, which ends with the connection.
fn says(body: &'static str) -> SocketAddr {
    sends(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}"
    ))
}

/// A server that sends this byte by byte, for any request.
fn sends(response: String) -> SocketAddr {
    peer(move |mut stream| {
        for byte in response.as_bytes() {
            stream.set_nodelay(true).expect("an option");
            // A client that has enough may be gone.
            let _ = stream.write_all(&[*byte]);
        }
    })
}

/// The request of [`Fetch`].
const REQUEST: &[u8; 38] = b"GET /ask HTTP/1.0\r\nHost: peer.test\r\n\r\n";

/// A port without a listener as long as the socket lives.
fn nobody() -> (SocketAddr, std::os::fd::OwnedFd) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    bind(&bound, &any).expect("bind");
    let name = getsockname(&bound).expect("a name");
    (name.try_into().expect("an address"), bound)
}

/// Runs fetches until each has ended; returns what was logged.
#[track_caller]
fn run(all: &[Arc<Fetch>]) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("firstbyte-fetches-{}-{n}.log", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::create(&path).expect("a file");
    let log = ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Info)]);
    let poller = Poller::new().expect("a poller");
    let fetches: Vec<_> = all
        .iter()
        .map(|fetch| Arc::clone(fetch) as Arc<dyn BackgroundFetch>)
        .collect();
    let mut fetches = BackgroundFetches::of(&fetches, &empty(), 1, 10);
    let mut events = Events::with_capacity(8);
    let began = Instant::now();
    fetches.run_due(&poller, &log);
    while all.iter().any(|fetch| fetch.ends().is_empty()) {
        assert!(began.elapsed() < Duration::from_secs(30), "it never ends");
        let wait_ms = fetches.wait_ms(10_000);
        poller.wait(&mut events, Some(wait_ms)).expect("wait");
        fetches.run_due(&poller, &log);
        for n in 0..events.len() {
            fetches.ready(events.at(n), &poller, &log);
            let connections = fetches.connections.as_ref();
            let is_woken = connections.is_some_and(Connections::is_woken);
            assert!(!is_woken, "a wake that no event repeats was handled");
        }
    }
    assert_eq!(fetches.in_progress(), 0);
    assert!(fetches.wait_ms(u64::MAX) > 3_000_000, "the pause begins");
    let text = std::fs::read_to_string(&path).expect("a log");
    std::fs::remove_file(&path).expect("it is there");
    text
}

#[test]
fn response_in_pieces_ends_a_fetch_successfully() {
    let fetch = Fetch::of(Fetch::endpoint_of("127.0.0.1", vec![says("yes!")]));
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!((fetch.ends(), log.as_str()), (vec![true], ""));
}

#[test]
fn response_that_is_not_accepted_ends_a_fetch_and_is_logged() {
    let to = says("no");
    let fetch = Fetch::of(Fetch::endpoint_of("127.0.0.1", vec![to, says("yes!")]));
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!(fetch.ends(), [false]);
    let line = format!("the peer says no while asking, peer: {to}, for a test\n");
    assert!(log.contains("[error]") && log.ends_with(&line), "{log}");
}

#[test]
fn next_address_is_tried_after_one_without_a_response() {
    let (closed, _kept) = nobody();
    let short = peer(drop);
    let addresses = vec![closed, sends("what?".to_owned()), short, says("yes!")];
    let fetch = Fetch::of(Fetch::endpoint_of("127.0.0.1", addresses));
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!(fetch.ends(), [true]);
    for line in [
        format!("connect() failed (111: Connection refused) while asking, peer: {closed}"),
        "peer sent invalid response while asking".to_owned(),
        format!("peer prematurely closed connection while asking, peer: {short}"),
    ] {
        assert!(log.contains(&line), "{line}: {log}");
    }
}

#[test]
fn a_body_larger_than_a_mailbox_is_read_without_further_events() {
    let body: &str = "yes!".repeat(1 << 20).leak();
    let to = peer(move |mut stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
        let response = [head, body].concat();
        stream.write_all(response.as_bytes()).expect("all is read");
    });
    let mut fetch = Fetch::new(Fetch::endpoint_of("127.0.0.1", vec![to]));
    fetch.request.response_bytes_max = 1 << 23;
    let log = run(&[Arc::new(fetch)]);
    assert!(log.contains("the peer says no"), "it is whole: {log}");
}

#[test]
fn a_request_that_cannot_be_sent_ends_a_fetch() {
    let to = says("yes!");
    let mut fetch = Fetch::new(Fetch::endpoint_of("127.0.0.1", vec![to]));
    fetch.request.target = "/ x".to_owned();
    let fetch = Arc::new(fetch);
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!(fetch.ends(), [false]);
    assert!(
        log.contains("the request cannot be sent while asking"),
        "{log}"
    );
}

#[test]
fn silent_server_is_given_up_in_time() {
    let silent = peer(|mut stream| {
        // Until the other side gives up.
        let _ = stream.read(&mut [0]);
    });
    let fetch = Fetch::of(Endpoint {
        timeout_ms: 30,
        ..Fetch::endpoint_of("127.0.0.1", vec![silent, silent])
    });
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!(fetch.ends(), [false]);
    let line = format!(
        "peer timed out (110: Connection timed out) while asking, peer: {silent}, for a test"
    );
    assert_eq!(log.matches(&line).count(), 2, "{log}");
}

#[test]
fn many_fetches_take_turns() {
    let to = says("yes!");
    let fetch = |_| Fetch::of(Fetch::endpoint_of("127.0.0.1", vec![to]));
    let all: Vec<_> = (0..IN_PROGRESS_MAX * 2 + 1).map(fetch).collect();
    run(&all);
    assert!(all.iter().all(|fetch| fetch.ends() == [true]));
}

#[test]
fn an_address_from_the_configuration_is_used_with_a_warning() {
    let fetch = Fetch::of(Fetch::endpoint_of("peer.test", vec![says("yes!")]));
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!(fetch.ends(), [true]);
    assert!(log.contains("[warn]"), "{log}");
    assert!(log.contains("no resolver defined to resolve peer.test while asking"));
}

/// A name server that answers with 127.0.0.1, or with a code.
fn name_server(code: u8) -> Arc<NameServers> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut query = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut query).expect("a query");
            let mut reply = query[..length].to_vec();
            (reply[2], reply[3]) = (0x81, 0x80 | code);
            if code == 0 {
                reply[7] = 1;
                reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            }
            socket.send_to(&reply, asker).expect("send");
        }
    });
    Arc::new(NameServers {
        servers: vec![address],
        valid_ms: None,
        ipv4: true,
        ipv6: false,
        status: None,
    })
}

#[test]
fn names_are_resolved_each_time() {
    let to = says("yes!");
    let fetch = Fetch::of(Endpoint {
        port: to.port(),
        servers: Some(name_server(0)),
        ..Fetch::endpoint_of("peer.test", Vec::new())
    });
    let log = run(&[Arc::clone(&fetch)]);
    assert_eq!((fetch.ends(), log.as_str()), (vec![true], ""));
}

#[test]
fn unknown_name_ends_a_fetch() {
    let servers = name_server(3);
    let fetch = || {
        Fetch::of(Endpoint {
            servers: Some(Arc::clone(&servers)),
            ..Fetch::endpoint_of("peer.test", Vec::new())
        })
    };
    let all = [fetch(), fetch()];
    let log = run(&all);
    assert!(all.iter().all(|fetch| fetch.ends() == [false]));
    let line = "peer.test could not be resolved (3: Host not found) while asking, for a test";
    assert_eq!(log.matches(line).count(), 2, "{log}");
}

/// The message about a response, if it is not accepted.
fn refusal(response: &str) -> String {
    let to = sends(response.to_owned());
    let log = run(&[Fetch::of(Fetch::endpoint_of("127.0.0.1", vec![to]))]);
    let (_, text) = log.split_once("peer ").unwrap_or_default();
    let (text, _) = text.split_once(" while asking").unwrap_or_default();
    text.to_owned()
}

#[test]
fn bodies_end_by_length_or_with_the_connection() {
    for response in [
        "HTTP/1.0 200\nX:\ncontent-type:Text/Plain \n\nyes!",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes!",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes! and more",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nyes!",
        &of_length(1000),
    ] {
        assert_eq!(refusal(response), "", "{response}");
    }
}

/// A response of this many bytes.
fn of_length(bytes: usize) -> String {
    let response = |pad: &str| format!("HTTP/1.1 200 OK\r\nX: {pad}\r\n\r\nyes!");
    response(&"x".repeat(bytes - response("").len()))
}

#[test]
fn responses_of_no_use_are_named() {
    let long = "x".repeat(1001);
    let invalid = "sent invalid response";
    for (response, text) in [
        ("SSH-2.0-x\r\n", invalid),
        ("http/1.1 200 OK\r\n\r\n", invalid),
        ("HTTP/1.1 20 OK\r\n\r\n", invalid),
        ("HTTP/1.1 2000 OK\r\n\r\n", invalid),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", invalid),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\n\r\n", invalid),
        ("HTTP/1.1 200 OK\r\n: a\r\n\r\n", invalid),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", invalid),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            invalid,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            invalid,
        ),
        (
            "HTTP/1.1 301 Moved\r\nLocation: http://x/\r\n\r\n",
            "sent status 301",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\tx\r\n\r\nyes!",
            "sent invalid \"Content-Type\" header: \"text/html\\tx\"",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
            "sent more than 1000 bytes",
        ),
        (&of_length(1001), "sent more than 1000 bytes"),
        (
            &format!("HTTP/1.1 200 OK\r\n\r\n{long}"),
            "sent more than 1000 bytes",
        ),
        (
            &format!("HTTP/1.1 200 OK\r\nX: {long}"),
            "sent more than 1000 bytes",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nyes!",
            "prematurely closed connection",
        ),
        ("HTTP/1.1 200 OK\r\n", "prematurely closed connection"),
        ("", "prematurely closed connection"),
    ] {
        assert_eq!(refusal(response), text, "{response}");
    }
}
