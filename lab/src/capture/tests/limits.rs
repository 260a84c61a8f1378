//! Limits: nothing is dropped at the limit; one past it, the rest is dropped with a note.

use super::script::{CLIENT, SERVER, Script, pcap, pcapng};
use crate::capture::collect::{Capture, LIMITS, Limits, read_within};
use crate::capture::file::INTERFACES_MAX;
use crate::capture::packet::{EXTENSIONS_MAX, Found, LINK_ETHERNET, LINK_RAW, TAGS_MAX, find};
use crate::capture::read;

fn within(packets: &[(u64, Vec<u8>)], limits: Limits) -> Capture {
    read_within(&pcap(LINK_RAW, packets)[..], limits).expect("it is a capture")
}

#[test]
fn connections_are_bounded() {
    let packets = |count: u16| -> Vec<(u64, Vec<u8>)> {
        let opened = |n| {
            let mut script = Script::from_port(10_000 + n);
            script.shake(0, 10);
            script.packets
        };
        (0..count).flat_map(opened).collect()
    };
    let limits = Limits { flows: 3, ..LIMITS };
    let at = within(&packets(3), limits);
    assert_eq!((at.flows.len(), at.notes.len()), (3, 0));
    let past = within(&packets(4), limits);
    assert_eq!(past.flows.len(), 3);
    assert_eq!(
        past.notes,
        ["3 packets are of connections beyond the first 3"]
    );
}

#[test]
fn segments_are_bounded() {
    let mut script = Script::open(0, 10);
    script.data(CLIENT, b"x");
    let limits = Limits {
        segments: 4,
        ..LIMITS
    };
    let at = within(&script.packets, limits);
    assert_eq!((at.flows[0].segments.len(), at.notes.len()), (4, 0));
    script.data(CLIENT, b"x");
    let past = within(&script.packets, limits);
    assert_eq!(past.flows[0].segments.len(), 4);
    assert_eq!(
        past.notes,
        ["only the first 4 packets were read: the capture has more than 4 TCP packets"]
    );
}

#[test]
fn contents_are_bounded() {
    let mut script = Script::open(0, 10);
    script.data(CLIENT, &[b'x'; 60]);
    script.data(SERVER, &[b'x'; 40]);
    for limits in [
        Limits {
            flow_bytes: 100,
            ..LIMITS
        },
        Limits {
            kept_bytes: 100,
            ..LIMITS
        },
    ] {
        assert_eq!(within(&script.packets, limits).notes, [""; 0]);
        let mut past = Script::open(0, 10);
        past.data(CLIENT, &[b'x'; 60]);
        past.data(SERVER, &[b'x'; 41]);
        let capture = within(&past.packets, limits);
        assert!(capture.notes[0].starts_with("contents of 1 packets were not kept"));
        // The segment itself counts.
        assert_eq!(capture.flows[0].segments.len(), 5);
        assert_eq!(capture.flows[0].from_server.bytes, b"");
    }
}

#[test]
fn headers_are_bounded() {
    let script = Script::open(0, 10);
    let (_, packet) = &script.packets[0];
    for (tags, is_read) in [(TAGS_MAX, true), (TAGS_MAX + 1, false)] {
        let tags = [0x81, 0, 0, 5].repeat(tags);
        let frame = [&[0; 12][..], &tags, &[8, 0], packet].concat();
        let found = find(LINK_ETHERNET, &frame, frame.len());
        assert_eq!(matches!(found, Found::Tcp(_)), is_read);
    }
    for (extensions, is_read) in [
        (EXTENSIONS_MAX - 1, true),
        (EXTENSIONS_MAX, true),
        (EXTENSIONS_MAX + 1, false),
    ] {
        let mut ip = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
        ip.extend([1; 32]);
        for n in 1..=extensions {
            ip.extend([if n == extensions { 6 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
        }
        ip.extend_from_slice(&packet[20..]);
        let found = find(LINK_RAW, &ip, ip.len());
        assert_eq!(matches!(found, Found::Tcp(_)), is_read, "{extensions}");
    }
}

#[test]
fn interfaces_are_bounded() {
    let script = Script::open(0, 10);
    for (count, is_read) in [(INTERFACES_MAX, true), (INTERFACES_MAX + 1, false)] {
        let file = pcapng(LINK_RAW as u16, 6, &script.packets[..1], false);
        let (head, rest) = file.split_at(28);
        let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
        let (interface, packet) = rest.split_at(length);
        let mut packet = packet.to_vec();
        packet[8..12].copy_from_slice(&(count as u32 - 1).to_le_bytes());
        let file = [head, &interface.repeat(count), &packet].concat();
        assert_eq!(read(&file[..]).is_ok(), is_read);
    }
}
