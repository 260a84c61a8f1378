//! Tests of the queue of samples: order, limits, the end of the worker.

use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;

use engines::http::{Protocol, Version};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use server_base::experiment::Name;
use server_base::samples::{Handshake, Record};

use server_http::stats::Counted;

use super::*;

fn sample(requests: u32) -> ConnectionSample {
    ConnectionSample {
        closed_ms: 1,
        duration_ms: 2,
        client: Ipv4Addr::LOCALHOST.into(),
        via_proxy: false,
        version: Version::Http11,
        tls: 0,
        handshake: Handshake::None,
        handshake_us: None,
        first_byte_us: None,
        min_rtt_us: None,
        rtt_us: 3,
        retransmits: 0,
        bytes_sent: 0,
        bytes_received: 0,
        requests,
        stalls: [0; 3],
        statuses: [0; 4],
    }
}

/// A queue with its channel, and the other end.
fn attached() -> (Arc<SampleQueue>, UnixStream, File) {
    let flags = SocketFlags::CLOEXEC;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (ours, theirs) = pair.expect("a pair");
    let figures = sys::process::memory_file("figures").expect("memory");
    let kept = File::from(figures.try_clone().expect("a descriptor"));
    let queue: Arc<SampleQueue> = Arc::default();
    let channel = SampleChannel {
        socket: ours,
        figures,
    };
    queue.attach(Some(channel)).expect("a thread starts");
    (queue, theirs.into(), kept)
}

/// Numbers of requests of the samples in the next message.
fn received(socket: &mut UnixStream) -> Vec<u32> {
    let mut message = [0; 2 * MESSAGE_BYTES];
    let length = socket.read(&mut message).expect("a message");
    let read = |record| Record::decode(record).expect("a known format");
    let samples = Records(&message[..length]).filter_map(|record| match read(record) {
        Record::Sample(sample) => Some(sample.requests),
        Record::Arm(connection) => Some(connection.requests),
        _ => None,
    });
    samples.collect()
}

/// The next numbers of open connections.
fn next_open(socket: &mut UnixStream) -> OpenCounts {
    loop {
        let mut message = [0; 2 * MESSAGE_BYTES];
        let length = socket.read(&mut message).expect("a message");
        if let Some(Record::Open(open)) = Record::decode(&message[..length]) {
            return open;
        }
    }
}

fn arm(requests: u32) -> ArmConnection {
    let name = Name::new(b"a").expect("a name");
    ArmConnection {
        closed_ms: 1,
        experiment: name,
        arm: name,
        version: Version::Http2,
        duration_ms: 2,
        requests,
        promised: 3,
        sent: 3,
        truncated: 0,
        aborted: 0,
        cpu_us: None,
        handshake_us: None,
        first_byte_us: None,
    }
}

/// Records of two lengths do not fill a message: each message has whole ones.
#[test]
fn messages_have_whole_records() {
    let (queue, mut theirs, _) = attached();
    for n in 0..1000 {
        match n % 3 {
            0 => queue.arm(&arm(n)),
            _ => queue.record(&sample(n)),
        }
    }
    let mut all = Vec::new();
    while all.len() < 1000 {
        all.extend(received(&mut theirs));
    }
    assert!(all.into_iter().eq(0..1000));
}

#[test]
fn messages_are_cut_at_records() {
    let (short, long) = (sample(1).encode(), arm(1).encode());
    let room = MESSAGE_BYTES / RECORD_BYTES;
    let samples = short.repeat(room);
    assert_eq!(message_bytes(&samples), MESSAGE_BYTES);
    let more = [&samples[..], &short].concat();
    assert_eq!(message_bytes(&more), MESSAGE_BYTES);
    // The long record would cross the end.
    let mixed = [&samples[RECORD_BYTES..], &long].concat();
    assert_eq!(message_bytes(&mixed), MESSAGE_BYTES - RECORD_BYTES);
    let mixed = [&samples[2 * RECORD_BYTES..], &long].concat();
    assert_eq!(message_bytes(&mixed), MESSAGE_BYTES);
    assert_eq!(message_bytes(&[]), 0);
}

#[test]
fn samples_arrive_in_order_and_together() {
    let (queue, mut theirs, _) = attached();
    for n in 0..300 {
        queue.record(&sample(n));
    }
    let mut all = Vec::new();
    while all.len() < 300 {
        let message = received(&mut theirs);
        assert!(message.len() <= MESSAGE_BYTES / RECORD_BYTES);
        all.extend(message);
    }
    assert!(all.into_iter().eq(0..300));
}

#[test]
fn end_sends_all_at_once() {
    let (queue, mut theirs, _) = attached();
    queue.record(&sample(7));
    queue.flush(true);
    assert!(queue.state().records.is_empty());
    let mut message = received(&mut theirs);
    while message.is_empty() {
        // Numbers of open connections.
        message = received(&mut theirs);
    }
    assert_eq!(message, [7]);
}

#[test]
fn samples_that_nobody_takes_are_counted_at_the_end() {
    let queue: Arc<SampleQueue> = Arc::default();
    let (ours, _theirs) = UnixStream::pair().expect("a pair");
    queue.state().channel = Some(Arc::new(SampleChannel {
        socket: ours.into(),
        figures: sys::process::memory_file("figures").expect("memory"),
    }));
    for n in 0..6 {
        queue.record(&sample(n));
    }
    // A record counts once, at any length.
    queue.arm(&arm(6));
    let before = meters::sums().events(Event::SampleDropped);
    queue.flush(true);
    assert!(meters::sums().events(Event::SampleDropped) >= before + 7);
    assert!(queue.state().records.is_empty());
}

#[test]
fn queue_takes_its_limit_and_no_more() {
    let queue = SampleQueue::default();
    let room = QUEUE_BYTES / RECORD_BYTES;
    // A channel without a thread: nothing is taken out.
    let (ours, _theirs) = UnixStream::pair().expect("a pair");
    queue.state().channel = Some(Arc::new(SampleChannel {
        socket: ours.into(),
        figures: sys::process::memory_file("figures").expect("memory"),
    }));
    let dropped = || meters::sums().events(Event::SampleDropped);
    let before = dropped();
    for n in 0..room - 1 {
        queue.record(&sample(n as u32));
    }
    assert_eq!(queue.state().records.len(), (room - 1) * RECORD_BYTES);
    // The longer record does not fit.
    queue.arm(&arm(0));
    let before = before + 1;
    assert_eq!(
        (queue.state().records.len(), dropped()),
        ((room - 1) * RECORD_BYTES, before)
    );
    queue.record(&sample(0));
    assert_eq!(
        (queue.state().records.len(), dropped()),
        (room * RECORD_BYTES, before)
    );
    queue.record(&sample(0));
    assert_eq!(
        (queue.state().records.len(), dropped()),
        (room * RECORD_BYTES, before + 1)
    );
}

#[test]
fn open_connections_are_sent_once_a_second() {
    let (_queue, mut theirs, _) = attached();
    let before_ms = sys::clock::wall_us() / 1000;
    // Other tests of this process have none of this protocol.
    let mut open = Counted::accepted();
    open.speak(Protocol::Http3);
    let first = next_open(&mut theirs);
    let begin = Instant::now();
    let second = next_open(&mut theirs);
    // Sending may have been late for the first.
    assert!(begin.elapsed() > Duration::from_millis(500));
    assert!(first.at_ms >= before_ms && second.at_ms > first.at_ms);
    assert_eq!(second.counts[Protocol::Http3 as usize], 1);
    drop(open);
    assert_eq!(next_open(&mut theirs).counts[Protocol::Http3 as usize], 0);
}

#[test]
fn figures_of_the_store_are_published() {
    let (queue, mut theirs, figures) = attached();
    let written = StoreFigures {
        written: 5,
        dropped: 6,
        failed_writes: 7,
        is_failing: true,
        ..StoreFigures::default()
    };
    figures.write_all_at(&written.encode(), 0).expect("memory");
    queue.record(&sample(1));
    received(&mut theirs);
    queue.flush(true);
    let until = Instant::now() + Duration::from_secs(10);
    while StoreFigures::published() != Some(written) {
        assert!(Instant::now() < until, "they are not published");
        thread::yield_now();
    }
}
