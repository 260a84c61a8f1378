//! Files and headers of every kind, whole and damaged: they have the same segments, or a sentence about the missing part.

use super::script::{CLIENT, Script, classic, ipv4, pcap, pcapng};
use super::{MS, REQUEST, capture, respond_late, stalls, withheld};
use crate::capture::packet::{LINK_ETHERNET, LINK_LOOP, LINK_NULL, LINK_RAW, LINK_SLL, LINK_SLL2};
use crate::capture::stall;
use crate::capture::*;

#[test]
fn all_files_say_the_same() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    let expected = stalls(&script);
    assert_eq!(expected.len(), 1);
    let packets = &script.packets;
    let files = [
        classic(0xa1b2_c3d4, LINK_RAW, packets, u32::to_be_bytes),
        classic(0xa1b2_3c4d, LINK_RAW, packets, u32::to_le_bytes),
        classic(0xa1b2_3c4d, LINK_RAW, packets, u32::to_be_bytes),
        pcapng(LINK_RAW as u16, 6, packets, false),
        pcapng(LINK_RAW as u16, 6, packets, true),
        pcapng(LINK_RAW as u16, 9, packets, false),
        pcapng(LINK_RAW as u16, 0x80 | 30, packets, true),
    ];
    for (n, file) in files.iter().enumerate() {
        let capture = read(&file[..]).expect("it is a capture");
        assert_eq!(capture.notes, [""; 0], "{n}");
        let found = stall::of(&capture).found;
        assert_eq!(found.len(), 1, "{n}");
        // A clock of 2^30 units a second rounds.
        assert!(
            (found[0].lost_ms - expected[0].lost_ms).abs() < 0.002,
            "{n}"
        );
        assert_eq!(found[0].next_packet, expected[0].next_packet);
    }
}

#[test]
fn all_links_carry_the_same() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    let heads: [(i32, Vec<u8>); 7] = [
        (LINK_NULL, vec![2, 0, 0, 0]),
        (LINK_LOOP, vec![0, 0, 0, 2]),
        (LINK_ETHERNET, [&[0; 12][..], &[8, 0]].concat()),
        (
            LINK_ETHERNET,
            [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat(),
        ),
        (
            LINK_ETHERNET,
            [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat(),
        ),
        (LINK_SLL, [&[0; 14][..], &[8, 0]].concat()),
        (LINK_SLL2, [&[8, 0][..], &[0; 18]].concat()),
    ];
    for (link, head) in heads {
        let framed = |(at, packet): &(u64, Vec<u8>)| {
            // Ethernet pads short packets, and a capture has the padding.
            (*at, [&head[..], packet, &[0; 6]].concat())
        };
        let packets: Vec<_> = script.packets.iter().map(framed).collect();
        let capture = read(&pcap(link, &packets)[..]).expect("it is a capture");
        assert_eq!(stall::of(&capture).found, stalls(&script), "{link}");
    }
}

#[test]
fn ipv6_is_read_behind_its_extension_headers() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    let convert = |(at, packet): &(u64, Vec<u8>)| {
        let tcp = &packet[20..];
        // Hop-by-hop, an atomic fragment, destination options.
        let extensions = [
            44, 0, 1, 4, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 9, 6, 0, 1, 4, 0, 0, 0, 0,
        ];
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend(((tcp.len() + extensions.len()) as u16).to_be_bytes());
        ip.extend([0, 64]);
        for last in [packet[15], packet[19]] {
            ip.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        ip.extend(extensions);
        ip.extend_from_slice(tcp);
        (*at, ip)
    };
    let packets: Vec<_> = script.packets.iter().map(convert).collect();
    let capture = read(&pcap(LINK_RAW, &packets)[..]).expect("it is a capture");
    assert_eq!(capture.flows[0].server.to_string(), "[2001:db8::2]:80");
    assert_eq!(stall::of(&capture).found, stalls(&script));
}

#[test]
fn streams_are_put_in_order() {
    let mut script = Script::open(0, 50 * MS);
    script.data(CLIENT, &REQUEST[..10]);
    script.data(CLIENT, &REQUEST[10..20]);
    script.data(CLIENT, &REQUEST[20..]);
    script.again(CLIENT, &REQUEST[5..]);
    script.packets.swap(3, 5);
    let capture = capture(&script);
    assert_eq!(capture.flows[0].from_client.bytes, REQUEST);
    let new: Vec<bool> = capture.flows[0].segments[3..]
        .iter()
        .map(|one| one.is_new)
        .collect();
    assert_eq!(new, [true, false, false, false]);
    // The stream ends at a gap.
    script.packets.drain(4..);
    let capture = read(&script.file()[..]).expect("it is a capture");
    assert_eq!(capture.flows[0].from_client.bytes, b"");
}

#[test]
fn ports_that_are_used_again_are_another_connection() {
    let mut script = withheld(0, 50 * MS, 40 * MS, 100);
    let mut again = Script::new();
    again.at_us = script.at_us + MS;
    // Another sequence number than the first one's.
    again.data(CLIENT, b"x");
    again.packets.clear();
    again.shake(0, 50 * MS);
    respond_late(&mut again, 0, 50 * MS, 40 * MS, 100);
    script.packets.extend(again.packets);
    let capture = capture(&script);
    assert_eq!(capture.flows.len(), 2);
    assert_eq!(stall::of(&capture).found.len(), 2);
}

#[test]
fn damaged_files_are_read_as_far_as_they_go() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    for whole in [
        script.file(),
        pcapng(LINK_RAW as u16, 6, &script.packets, false),
    ] {
        for length in 0..whole.len() {
            match read(&whole[..length]) {
                Ok(capture) => assert!(capture.packets < script.packets.len() as u64),
                Err(sentence) => assert!(sentence.contains("capture"), "{sentence}"),
            }
        }
        let cut = read(&whole[..whole.len() - 1]).expect("it is a capture");
        let last = script.packets.len() - 1;
        assert_eq!(
            cut.notes,
            [format!(
                "the capture ends after packet {last}: the file is cut off"
            )]
        );
    }
    assert_eq!(
        read(&b"<html><body>no"[..]).err().as_deref(),
        Some("the file is no capture: it is neither pcap nor pcapng")
    );
    assert_eq!(
        read(&b""[..]).err().as_deref(),
        Some("the file is too short to be a capture")
    );
    assert_eq!(
        read(&pcap(LINK_RAW, &[])[..]).err().as_deref(),
        Some("the capture has 0 packets, and none of TCP")
    );
    let wifi = pcap(105, &script.packets);
    let sentence = read(&wifi[..]).err().unwrap_or_default();
    assert!(sentence.contains("an unknown link type"), "{sentence}");
}

#[test]
fn a_block_shorter_than_its_frame_ends_the_capture() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    for is_big in [false, true] {
        for (length, is_damaged) in [(10_u32, true), (12, false)] {
            let mut file = pcapng(LINK_RAW as u16, 6, &script.packets, is_big);
            // A block with information about a process.
            for number in [0x8000_0001, length, length] {
                let bytes: [u8; 4] = if is_big {
                    u32::to_be_bytes(number)
                } else {
                    u32::to_le_bytes(number)
                };
                file.extend(bytes);
            }
            let capture = read(&file[..]).expect("it is a capture");
            assert_eq!(stall::of(&capture).found.len(), 1);
            let damaged = capture
                .notes
                .iter()
                .any(|note| note.contains("what follows is damaged"));
            assert!(damaged || !is_damaged, "{:?}", capture.notes);
        }
    }
}

#[test]
fn a_packet_larger_than_any_ends_the_capture() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    for (bytes, is_read) in [
        (file::BLOCK_BYTES_MAX / 4, true),
        (file::BLOCK_BYTES_MAX, false),
    ] {
        let mut packets = script.packets.clone();
        packets.push((script.at_us, vec![0; bytes]));
        let capture = read(&pcap(LINK_RAW, &packets)[..]).expect("it is a capture");
        assert_eq!(capture.notes.is_empty(), is_read, "{:?}", capture.notes);
        assert_eq!(stall::of(&capture).found.len(), 1);
    }
}

#[test]
fn fragments_are_counted() {
    let mut script = withheld(0, 50 * MS, 40 * MS, 100);
    let mut fragment = ipv4([10, 0, 0, 1], [10, 0, 0, 2], &[0; 40]);
    fragment[6] = 0x20;
    script.packets.push((script.at_us, fragment));
    assert_eq!(capture(&script).notes, ["1 fragments of IP were left out"]);
}
