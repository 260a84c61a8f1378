//! Captures in which packets appear more than once: they have the findings of one copy, and a note.

use super::script::{CLIENT, SERVER, Script, pcap};
use super::{MS, REQUEST, stalls, withheld};
use crate::capture::copies::{COPY_NS, IDENTIFICATION_NS, POINTS_MAX};
use crate::capture::packet::{LINK_ETHERNET, LINK_RAW, LINK_SLL2};
use crate::capture::stall;
use crate::capture::*;

type Packets = Vec<(u64, Vec<u8>)>;

/// Captured between client and server.
fn script() -> Script {
    withheld(5 * MS, 45 * MS, 40 * MS, 100)
}

fn read_as(link: i32, packets: &Packets) -> Capture {
    read(&pcap(link, packets)[..]).expect("it is a capture")
}

/// The packets with identifications that count up from this one; 0 leaves them without.
fn identified(script: &Script, first: u16) -> Packets {
    let mut packets = script.packets.clone();
    for (n, (_, packet)) in packets.iter_mut().enumerate().filter(|_| first > 0) {
        packet[4..6].copy_from_slice(&(first + n as u16).to_be_bytes());
    }
    packets
}

/// Each packet with each of these headers, 20 us apart; packets of the server pass the interfaces in reverse order.
fn at_each(packets: &Packets, heads: &[Vec<u8>]) -> Packets {
    let mut all = Vec::new();
    for (at, packet) in packets {
        let is_of_server = packet[15] == 2;
        for n in 0..heads.len() {
            let head = match is_of_server {
                true => &heads[heads.len() - 1 - n],
                false => &heads[n],
            };
            all.push((at + 20 * n as u64, [&head[..], packet].concat()));
        }
    }
    all
}

fn sll2(interface: u8) -> Vec<u8> {
    [&[8, 0, 0, 0, 0, 0, 0, interface][..], &[0; 12]].concat()
}

/// Asserts that the capture has only the script's stall, and these notes.
#[track_caller]
fn has_the_stall(link: i32, packets: &Packets, notes: &[&str]) {
    let script = script();
    let capture = read_as(link, packets);
    let found = stall::of(&capture).found;
    assert_eq!(found.len(), 1, "{:?}", capture.notes);
    let expected = &stalls(&script)[0];
    assert!((found[0].lost_ms - expected.lost_ms).abs() < 0.1);
    assert_eq!(found[0].request_line, expected.request_line);
    assert_eq!(capture.flows[0].segments.len(), script.packets.len());
    assert_eq!(capture.notes, notes);
}

#[test]
fn copies_at_other_interfaces_and_vlans_are_left_out() {
    let script = script();
    let ethernet = [&[0; 12][..], &[8, 0]].concat();
    let vlan = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
    for identification in [0, 700] {
        let packets = identified(&script, identification);
        for (link, heads) in [
            (LINK_SLL2, vec![sll2(2), sll2(5)]),
            (LINK_SLL2, vec![sll2(2), sll2(5), sll2(9)]),
            (LINK_ETHERNET, vec![ethernet.clone(), vlan.clone()]),
        ] {
            let left_out = (heads.len() - 1) * packets.len();
            let note = format!(
                "{left_out} packets are copies, captured at another interface or VLAN: each connection is analyzed at one of them"
            );
            has_the_stall(link, &at_each(&packets, &heads), &[&note]);
        }
    }
}

/// A mirror port sends each packet at its way in and at its way out.
#[test]
fn copies_at_one_interface_are_left_out_while_they_are_copies() {
    let script = script();
    let note = format!(
        "{0} packets are copies: each is analyzed once",
        script.packets.len()
    );
    let again = |identification: u16, after_ns: u64| {
        let mut packets = identified(&script, identification);
        let copies = packets.clone().into_iter();
        packets.extend(copies.map(|(at, packet)| (at + after_ns / 1000, packet)));
        packets.sort_by_key(|(at, _)| *at);
        packets
    };
    for (identification, most_ns) in [(0, COPY_NS), (700, IDENTIFICATION_NS)] {
        has_the_stall(LINK_RAW, &again(identification, most_ns), &[&note]);
        let beyond = read_as(LINK_RAW, &again(identification, most_ns + 1000));
        assert_eq!(beyond.flows[0].segments.len(), 2 * script.packets.len());
        assert_eq!(beyond.notes, [""; 0]);
    }
}

#[test]
fn segments_that_are_sent_again_are_no_copies() {
    let mut script = script();
    script.again(SERVER, b"x");
    script.ack(CLIENT);
    // Few of a connection, without identifications, and then with others.
    for identification in [0, 700] {
        let capture = read_as(LINK_RAW, &identified(&script, identification));
        assert_eq!(capture.flows[0].segments.len(), script.packets.len());
        assert_eq!(capture.notes, [""; 0]);
    }
}

/// Two cards that share the load see each packet once.
#[test]
fn interfaces_that_share_a_connection_are_judged_together() {
    let script = script();
    let packets = script.packets.iter().enumerate();
    let packets = packets.map(|(n, (at, packet))| {
        let head = sll2(2 + u8::from(n % 3 == 0));
        (*at, [&head[..], packet].concat())
    });
    has_the_stall(LINK_SLL2, &packets.collect(), &[]);
}

/// A virtual card carries long segments, which the real one cuts.
#[test]
fn interfaces_with_segments_of_other_lengths_are_copies() {
    let whole = [b'x'; 2920];
    let mut long = Script::open(0, 50 * MS);
    let mut cut = Script::open(0, 50 * MS);
    for script in [&mut long, &mut cut] {
        script.data(CLIENT, REQUEST);
        script.wait(50 * MS);
    }
    long.data(SERVER, &whole);
    cut.data(SERVER, &whole[..1460]);
    cut.data(SERVER, &whole[1460..]);
    let framed = |script: &Script, interface: u8| {
        let packets = script.packets.clone().into_iter();
        let packets =
            packets.map(move |(at, packet)| (at, [&sll2(interface)[..], &packet].concat()));
        packets.collect::<Packets>()
    };
    let both = [framed(&long, 2), framed(&cut, 5)].concat();
    let capture = read_as(LINK_SLL2, &both);
    assert_eq!(capture.flows[0].segments.len(), cut.packets.len());
    assert!(
        capture.flows[0]
            .segments
            .iter()
            .all(|one| one.bytes <= 1460)
    );
}

#[test]
fn interfaces_of_a_connection_are_bounded() {
    let packets = script().packets;
    let heads = |count: u8| (0..count).map(sll2).collect::<Vec<_>>();
    for count in [POINTS_MAX as u8, POINTS_MAX as u8 + 1] {
        let capture = read_as(LINK_SLL2, &at_each(&packets, &heads(count)));
        assert_eq!(capture.flows[0].segments.len(), packets.len());
    }
}

/// Docker publishes a port: the packets to the host go to the container with another address.
#[test]
fn connections_on_both_sides_of_a_nat_are_judged_once() {
    let script = script();
    let mut packets = script.packets.clone();
    for (at, packet) in &script.packets {
        let mut translated = packet.clone();
        for address in [12, 16] {
            if translated[address..address + 4] == [10, 0, 0, 2] {
                translated[address..address + 4].copy_from_slice(&[172, 17, 0, 2]);
            }
        }
        packets.push((at + 20, translated));
    }
    packets.sort_by_key(|(at, _)| *at);
    let note = "1 connections were captured on both sides of a NAT: each is analyzed once";
    has_the_stall(LINK_RAW, &packets, &[note]);
}

#[test]
fn packets_that_are_cut_are_noted() {
    let script = script();
    let notes = |most: usize| {
        let mut file = script.file();
        let mut cut = file[..24].to_vec();
        file.drain(..24);
        for (_, packet) in &script.packets {
            let (head, rest) = file.split_at(16);
            let kept = packet.len().min(most);
            cut.extend(&head[..8]);
            cut.extend((kept as u32).to_le_bytes());
            cut.extend(&head[12..]);
            cut.extend(&rest[..kept]);
            file = rest[packet.len()..].to_vec();
        }
        read(&cut[..]).map(|capture| (capture.notes, capture.flows[0].is_segment_size_known))
    };
    // The SYNs have 8 bytes of options.
    assert_eq!(notes(20 + 20 + 400), Ok((vec![], true)));
    let payload = "1 packets are cut within their payload, so that handshakes and requests may be unknown: capture with tcpdump -s 0";
    assert_eq!(notes(20 + 20 + 399), Ok((vec![payload.to_owned()], true)));
    let (found, is_known) = notes(20 + 20 + 7).expect("there is TCP");
    assert!(
        found[0].starts_with("2 packets are cut within their TCP options"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("2 packets are cut within their payload"),
        "{found:?}"
    );
    assert!(!is_known, "the sizes are in the options");
    let why = notes(20 + 19).expect_err("there is no header of TCP");
    assert!(
        why.contains("8 packets are cut within their headers"),
        "{why}"
    );
    let why = notes(19).expect_err("there is no header of IP");
    assert!(
        why.contains("8 packets are cut within their headers"),
        "{why}"
    );
}
