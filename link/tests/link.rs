//! The emulated link follows its options, reports its lateness, and leaves nothing behind.
//!
//! Each test is skipped with a message if links are not possible (see `support::available`).

#[path = "first_byte/round_trips.rs"]
mod round_trips;
mod support;
mod sweep;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use firstbyte_tests::wait_until;
use link::{Direction, Link, Options, Rate, RouteOptions, Verdict};
use round_trips::RoundTrips;
use support::{available, available_or};
use sweep::median;

const MS: Duration = Duration::from_millis(1);

/// A server in the link's namespace that has one connection.
fn serve(
    link: &Link,
    with: impl FnOnce(TcpStream) -> io::Result<()> + Send + 'static,
) -> (SocketAddr, JoinHandle<io::Result<()>>) {
    link.in_server(|| {
        let listener = TcpListener::bind((link.server_address(), 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept()?;
            with(stream)
        });
        (address, thread)
    })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_nodelay(true).expect("a TCP socket");
    let limit = Some(Duration::from_secs(10));
    stream.set_read_timeout(limit).expect("not zero");
    stream
}

fn end(server: JoinHandle<io::Result<()>>) {
    let result = server.join().expect("the server's thread did not panic");
    result.expect("the server served");
}

/// Answers each byte with a byte.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

/// The times of this many exchanges of a byte.
fn ping_pong(address: SocketAddr, times: usize) -> Vec<(Instant, Instant)> {
    let mut stream = connect(address);
    let exchange = |_| {
        let sent = Instant::now();
        stream.write_all(b"x").expect("the connection stands");
        stream.read_exact(&mut [0]).expect("an answer comes");
        (sent, Instant::now())
    };
    (0..times).map(exchange).collect()
}

#[test]
fn round_trip_is_the_set_one() {
    for one_way in [25 * MS, 5 * MS] {
        let options = Options {
            one_way,
            ..Options::default()
        };
        let Some(link) = available(Link::new(options)) else {
            return;
        };
        let (address, server) = serve(&link, echo);
        let samples = link.in_client(|| ping_pong(address, 30));
        end(server);
        let times: Vec<Duration> = samples.iter().map(|(sent, got)| *got - *sent).collect();
        assert!(times.iter().all(|time| *time >= 2 * one_way), "{times:?}");
        let median = median(&times);
        assert!(median < 2 * one_way + 2 * MS, "{median:?} of {times:?}");
    }
}

/// Time from a request to the arrival of the second of two small writes of the server.
fn time_of_two_writes(link: &Link, nodelay: bool) -> Duration {
    let (address, server) = serve(link, move |mut stream| {
        stream.set_nodelay(nodelay)?;
        stream.read_exact(&mut [0])?;
        stream.write_all(b"1")?;
        stream.write_all(b"2")?;
        // Until the client ends, or its end would take the acknowledgement along.
        stream.read(&mut [0]).map(|_| ())
    });
    let taken = link.in_client(|| {
        let mut stream = connect(address);
        let sent = Instant::now();
        stream.write_all(b"?").expect("the connection stands");
        stream.read_exact(&mut [0; 2]).expect("both bytes come");
        sent.elapsed()
    });
    end(server);
    taken
}

#[test]
fn sender_that_waits_for_an_acknowledgement_is_seen_to_wait() {
    for hold in [200 * MS, 40 * MS] {
        let options = Options {
            client_ack_hold: Some(hold),
            ..Options::default()
        };
        let Some(link) = available(Link::new(options)) else {
            return;
        };
        let waited = time_of_two_writes(&link, false);
        // The acknowledgement leaves with the first byte's arrival, after the hold.
        let expected = 2 * link.round_trip() + hold;
        assert!(
            waited >= expected && waited < expected + 20 * MS,
            "{waited:?} for {hold:?}"
        );
        let did_not = time_of_two_writes(&link, true);
        assert!(
            did_not < link.round_trip() + 20 * MS,
            "{did_not:?} for {hold:?}"
        );
    }
}

#[test]
fn without_a_hold_a_waiting_sender_waits_for_the_round_trip_alone() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    let waited = time_of_two_writes(&link, false);
    let expected = 2 * link.round_trip();
    assert!(
        waited >= expected && waited < expected + 20 * MS,
        "{waited:?}"
    );
}

/// How many segments a namespace has sent again.
fn retransmitted() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("/proc is mounted");
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "RetransSegs");
    found
        .and_then(|(_, value)| value.parse().ok())
        .expect("the kernel counts them")
}

/// Sends this many bytes from the server; how long the client took to have them.
fn bulk(link: &Link, bytes: usize) -> Duration {
    let byte_at = |at: usize| (at % 251) as u8;
    let (address, server) = serve(link, move |mut stream| {
        let body: Vec<u8> = (0..bytes).map(byte_at).collect();
        stream.write_all(&body)
    });
    let (taken, body) = link.in_client(|| {
        let mut stream = connect(address);
        let begun = Instant::now();
        let mut body = Vec::new();
        stream.read_to_end(&mut body).expect("all comes");
        (begun.elapsed(), body)
    });
    end(server);
    assert_eq!(body.len(), bytes);
    assert!(
        body.iter()
            .enumerate()
            .all(|(at, byte)| *byte == byte_at(at))
    );
    taken
}

#[test]
fn ten_megabytes_arrive_without_loss() {
    for client_ack_hold in [None, Some(40 * MS)] {
        let options = Options {
            client_ack_hold,
            ..Options::default()
        };
        let Some(link) = available(Link::new(options)) else {
            return;
        };
        let taken = bulk(&link, 10_000_000);
        let counters = link.counters();
        assert_eq!(counters.dropped(), 0, "{counters:?}");
        assert!(counters.bytes() > 10_000_000, "{counters:?}");
        assert_eq!(link.in_server(retransmitted), 0, "in {taken:?}");
        // The round trips of slow start, and a machine's time to carry it.
        assert!(taken < Duration::from_secs(5), "{taken:?}");
    }
}

#[test]
fn rate_is_the_set_one() {
    let options = Options {
        down: Rate::from_bits(8_000_000),
        queue_packets: 1000,
        one_way: 5 * MS,
        ..Options::default()
    };
    let Some(link) = available(Link::new(options)) else {
        return;
    };
    let taken = bulk(&link, 500_000);
    // Heads of packets are 52 of 1500 bytes.
    assert!(taken >= 500 * MS && taken < 700 * MS, "{taken:?}");
    assert_eq!(link.counters().dropped(), 0);
}

#[test]
fn trace_has_every_packet_and_its_times() {
    let options = Options {
        client_ack_hold: Some(40 * MS),
        trace: true,
        ..Options::default()
    };
    let Some(link) = available(Link::new(options)) else {
        return;
    };
    let (address, server) = serve(&link, echo);
    let samples = link.in_client(|| ping_pong(address, 3));
    end(server);
    let trace = link.take_trace();
    assert_eq!(trace.lost, 0);
    let delivered = trace
        .entries
        .iter()
        .filter(|entry| entry.verdict == Verdict::Delivered);
    let mut answers = delivered.clone().filter(|entry| {
        let with_data = entry
            .segment
            .is_some_and(|segment| segment.payload_bytes == 1);
        entry.direction == Direction::ToClient && with_data
    });
    for (sent, got) in samples {
        let answer = answers.next().expect("each answer is traced");
        assert_eq!(answer.due - answer.came, link.options().one_way);
        assert!(sent < answer.came && answer.left <= got);
        assert!(answer.due <= answer.left);
    }
    // Two of the three acknowledgements left with the next byte.
    let superseded = trace
        .entries
        .iter()
        .filter(|entry| entry.verdict == Verdict::Superseded);
    assert!(superseded.count() >= 2, "{trace:#?}");
}

#[test]
fn lateness_is_recorded() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    assert_eq!(link.lateness().packets, 0);
    let (address, server) = serve(&link, echo);
    let before = Instant::now();
    let samples = link.in_client(|| ping_pong(address, 10));
    end(server);
    let (lateness, counters) = (link.lateness(), link.counters());
    // The last packets of the connection may come between the two looks.
    assert!(lateness.packets <= counters.packets());
    assert!(lateness.packets >= 20, "{lateness:?}");
    assert!(
        lateness.median <= lateness.p99 && lateness.p99 <= lateness.worst,
        "{lateness:?}"
    );
    // Nothing is delivered in no time; and the worst of all is the worst of its time.
    assert!(lateness.worst > Duration::ZERO, "{lateness:?}");
    let worst = link.worst_between(before, Instant::now());
    assert!(
        worst >= lateness.worst || lateness.worst < MS,
        "{worst:?} of {lateness:?}"
    );
    assert!(link.is_void(before, Instant::now(), Duration::ZERO) == (worst > Duration::ZERO));
    assert!(!link.is_void(before, Instant::now(), Duration::MAX));
    assert_eq!(link.samples(), (2, u64::from(worst > Duration::ZERO)));
    // Judged together, samples have the results of single judgements.
    let limit = lateness.median;
    let alone = samples
        .iter()
        .map(|(sent, got)| link.worst_between(*sent, *got) > limit);
    assert_eq!(link.are_void(&samples, limit), alone.collect::<Vec<_>>());
    assert_eq!(link.samples().0, 2 + samples.len() as u64);
    let each = samples
        .iter()
        .map(|(sent, got)| link.worst_between(*sent, *got));
    assert!(each.max().unwrap_or_default() <= worst);
}

#[test]
fn round_trips_of_a_handshake_are_counted() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    for (exchanges, expected) in [(0, 1), (2, 3)] {
        let handshake = || {
            let (address, server) = serve(&link, echo);
            ping_pong(address, exchanges);
            server
        };
        RoundTrips::assert(&link, "a handshake", expected, handshake, end);
    }
}

/// The network namespaces that this process's threads are in, and those it holds.
fn namespaces_in_use() -> Vec<String> {
    let entries = |folder: &str| {
        let entries = std::fs::read_dir(folder).expect("/proc is mounted");
        entries.flatten().map(|entry| entry.path())
    };
    let threads = entries("/proc/self/task").map(|task| task.join("ns/net"));
    threads
        .chain(entries("/proc/self/fd"))
        // Threads end and descriptors are closed meanwhile, by other tests.
        .filter_map(|path| std::fs::read_link(path).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.starts_with("net:["))
        .collect()
}

#[test]
fn nothing_is_left_behind() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    let ids = link.namespaces().expect("they are open");
    let shown = ids.map(|id| format!("net:[{id}]"));
    let mut child = link
        .spawn_server(
            Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::null()),
        )
        .expect("cat starts");
    let inside = std::fs::read_link(format!("/proc/{}/ns/net", child.id())).expect("it runs");
    assert_eq!(inside.to_string_lossy(), shown[1]);
    let in_use = namespaces_in_use();
    assert!(
        shown.iter().all(|name| in_use.contains(name)),
        "{shown:?} of {in_use:?}"
    );
    drop(child.stdin.take());
    child.wait().expect("cat ends with its input");
    drop(link);
    // A joined thread leaves /proc a moment later, and the kernel reuses free numbers: another test's link may have
    // this one for a while.
    wait_until("no namespace of the link is held", || {
        let in_use = namespaces_in_use();
        !shown.iter().any(|name| in_use.contains(name))
    });
    // Devices of a link exist in its namespaces alone; only a named one could outlive it.
    let devices = std::fs::read_to_string("/proc/net/dev").expect("/proc is mounted");
    assert!(!devices.contains("link0:"), "{devices}");
}

#[test]
fn namespaces_go_with_a_panic_inside() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        link.in_client(|| std::panic::resume_unwind(Box::new("inside")));
    }));
    let panic = caught.expect_err("it went through");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"inside"));
    assert_eq!(link.in_client(|| 7), 7);
}

#[test]
fn where_there_can_be_no_link_tests_are_skipped() {
    let no_link = io::Error::new(ErrorKind::Unsupported, "only in a test of this line");
    let mut reported = String::new();
    let link = available_or(Err(no_link), |why| reported = why.into());
    assert!(
        link.is_none() && reported.ends_with(": only in a test of this line"),
        "{reported}"
    );
    let failed = std::panic::catch_unwind(|| available(Err(io::Error::other("broken"))).is_none());
    assert!(failed.is_err(), "a failure is none");
    let bad = Options {
        mtu: 0,
        ..Options::default()
    };
    let error = Link::new(bad).expect_err("no MTU is 0");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// A body of 28 segments comes in two flights with a first window of ten (10, 20), in four with one of two (2, 4, 8, 16).
#[test]
fn servers_first_window_is_that_of_the_route() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    let took = || {
        let (address, server) = serve(&link, |mut stream| {
            stream.set_nodelay(true)?;
            stream.read_exact(&mut [0])?;
            stream.write_all(&[b'x'; 28 * 1448])?;
            stream.read(&mut [0]).map(|_| ())
        });
        let taken = link.in_client(|| {
            let mut stream = connect(address);
            let sent = Instant::now();
            stream.write_all(b"?").expect("the connection stands");
            let mut body = vec![0; 28 * 1448];
            stream.read_exact(&mut body).expect("the body comes");
            sent.elapsed()
        });
        end(server);
        (taken.as_secs_f64() / link.round_trip().as_secs_f64()) as u32
    };
    // A machine with other work makes flights longer, and never shorter.
    let is_usual = || (0..5).any(|_| took() < 4);
    assert!(is_usual());
    let mut route = RouteOptions {
        initial_window: Some(2),
        congestion_control: Some("reno".to_owned()),
    };
    link.set_route(&route).expect("the kernel takes it");
    let narrow = took();
    assert!(narrow >= 4, "{narrow}");
    link.set_route(&RouteOptions::default())
        .expect("the kernel takes it back");
    assert!(is_usual());
    route.congestion_control = Some("none of these".to_owned());
    let refused = link.set_route(&route).expect_err("there is none");
    assert!(refused.to_string().contains("ip: "), "{refused}");
}

#[test]
fn sysctls_and_offloads_are_those_of_the_servers_network() {
    let Some(link) = available(Link::new(Options::default())) else {
        return;
    };
    let name = "net.ipv4.tcp_slow_start_after_idle";
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle");
    let here = read().expect("it is there");
    for value in ["0\n", "1\n"] {
        if let Err(error) = link.set_sysctl(name, value) {
            // Mounted read-only in some containers.
            assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{error}");
            break;
        }
        assert_eq!(link.in_server(read).expect("it is there"), value);
        assert_eq!(link.in_client(read).expect("it is there"), "1\n");
        assert_eq!(read().expect("it is there"), here);
    }
    assert!(link.set_sysctl("net.ipv4.nonesuch", "1").is_err());
    for is_on in [false, true] {
        let set = link.set_segmentation_offload(is_on);
        set.expect("whoever made a device may change it");
        let gso = link.in_server(|| sys::device::offloads("link0").gso);
        assert_eq!(gso, Some(is_on));
    }
}
