//! Tests of records: each is read back, and others are refused.

use super::*;

fn sample(client: &str) -> ConnectionSample {
    ConnectionSample {
        closed_ms: 1_796_000_000_123,
        duration_ms: 61_000,
        client: client.parse().expect("an address"),
        via_proxy: true,
        version: Version::Http2,
        tls: 0x0304,
        handshake: Handshake::Early,
        handshake_us: Some(51_000),
        first_byte_us: None,
        min_rtt_us: Some(UNKNOWN - 1),
        rtt_us: 50_400,
        retransmits: 3,
        bytes_sent: u64::MAX,
        bytes_received: 700,
        requests: 12,
        stalls: [1, 2, u16::MAX],
        statuses: [9, 2, 1, 0],
    }
}

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("a name")
}

fn visit() -> Visit {
    let mut values = [None; VISIT_METRICS];
    values[0] = Some(0);
    values[VISIT_METRICS - 1] = Some(UNKNOWN - 1);
    Visit {
        at_ms: 1_796_000_000_123,
        user: u64::MAX,
        view: 7,
        experiment: name(&"e".repeat(NAME_BYTES_MAX)),
        arm: name(&"a".repeat(NAME_BYTES_MAX)),
        values,
        files: 100,
        files_failed: 2,
        files_truncated: u32::MAX,
        file_bytes: u64::MAX - 1,
        is_failed: true,
    }
}

fn connection() -> ArmConnection {
    ArmConnection {
        closed_ms: 1_796_000_000_123,
        experiment: name("spdy"),
        arm: name("control"),
        version: Version::Spdy31,
        duration_ms: 61_000,
        requests: 12,
        promised: u64::MAX,
        sent: u64::MAX - 1,
        truncated: 1,
        aborted: 2,
        cpu_us: Some(0),
        handshake_us: None,
        first_byte_us: Some(UNKNOWN - 1),
    }
}

fn open() -> ArmOpen {
    ArmOpen {
        at_ms: 1_796_000_000_123,
        experiment: name("spdy"),
        arm: name("fast"),
        connections: u32::MAX,
        memory_bytes: u64::MAX,
    }
}

#[test]
fn records_are_read_back() {
    for client in ["192.0.2.7", "2001:db8::7", "::1", "0.0.0.0"] {
        let sample = sample(client);
        let read = Record::decode(&sample.encode());
        assert_eq!(read, Some(Record::Sample(sample)));
    }
    let counts = OpenCounts {
        at_ms: u64::MAX - 1,
        counts: [1, 0, u32::MAX, 7],
    };
    let read = Record::decode(&counts.encode());
    assert_eq!(read, Some(Record::Open(counts)));
    let before = Visit {
        arm: Name::EMPTY,
        is_failed: false,
        ..visit()
    };
    for visit in [visit(), before] {
        assert_eq!(Record::decode(&visit.encode()), Some(Record::Visit(visit)));
    }
    let read = Record::decode(&connection().encode());
    assert_eq!(read, Some(Record::Arm(connection())));
    let read = Record::decode(&open().encode());
    assert_eq!(read, Some(Record::ArmOpen(open())));
}

#[test]
fn record_fills_its_bytes() {
    let mut sample = sample("2001:db8::7");
    sample.statuses[3] = u32::MAX;
    let record = sample.encode();
    assert_eq!(record[RECORD_BYTES - 4..], [0xff; 4]);
}

#[test]
fn records_of_another_format_are_refused() {
    let sample = sample("192.0.2.7").encode();
    for (at, value) in [(0, 0), (0, 1), (0, 4), (0, 7), (1, 250), (2, 4)] {
        let mut record = sample;
        record[at] = value;
        assert_eq!(Record::decode(&record), None, "{at}: {value}");
    }
    let visit = visit().encode();
    // A name with a quote, and an experiment without a name.
    for (at, length, value) in [(0, 1, 2), (40, 1, b'\''), (40, 32, 0), (72, 1, 0)] {
        let mut record = visit;
        record[at..at + length].fill(value);
        assert_eq!(Record::decode(&record), None, "{at}: {value}");
    }
    let connection = connection().encode();
    for (at, length, value) in [(1, 1, 250), (32, 32, 0), (64, 32, 0)] {
        let mut record = connection;
        record[at..at + length].fill(value);
        assert_eq!(Record::decode(&record), None, "{at}: {value}");
    }
    let mut record = open().encode();
    record[56..88].fill(0);
    assert_eq!(Record::decode(&record), None);
    for length in [0, 1, ARM_RECORD_BYTES - 1] {
        assert_eq!(Record::decode(&visit[..length]), None, "{length}");
    }
}

#[test]
fn messages_are_walked_by_formats() {
    let (visit, sample) = (visit(), sample("::1"));
    let message = [
        &sample.encode()[..],
        &visit.encode(),
        &open().encode(),
        &sample.encode(),
    ]
    .concat();
    let read: Vec<_> = Records(&message).map(Record::decode).collect();
    let expected = [
        Record::Sample(sample),
        Record::Visit(visit),
        Record::ArmOpen(open()),
        Record::Sample(sample),
    ];
    assert_eq!(read, expected.map(Some));
    // A message that is cut loses its last record.
    for (length, count) in [
        (RECORD_BYTES - 1, 0),
        (RECORD_BYTES, 1),
        (message.len() - 1, 3),
    ] {
        assert_eq!(Records(&message[..length]).count(), count, "{length}");
    }
    let mut unknown = message;
    unknown[RECORD_BYTES] = 0xff;
    assert_eq!(Records(&unknown).count(), 1);
}
