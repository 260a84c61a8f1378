//! Seeds of the fuzz target `capture`: small files of every kind that the rules have something to say about.
//!
//! `CAPTURE_SEEDS=1 cargo test -p firstbyte-lab seeds` writes them to `fuzz/seeds/capture`.

use std::fs;
use std::path::Path;

use super::script::{CLIENT, SERVER, Script, classic, pcap, pcapng};
use super::{record, tls, withheld};
use crate::capture::frames;
use crate::capture::packet::{LINK_ETHERNET, LINK_RAW, LINK_SLL2};
use crate::capture::tcp::Header;

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let stall = withheld(0, 50_000, 40_000, 100).packets;
    let framed = |head: &[u8]| -> Vec<(u64, Vec<u8>)> {
        let frame = |(at, packet): &(u64, Vec<u8>)| (*at, [head, packet].concat());
        stall.iter().map(frame).collect()
    };
    let mut again = Script::new();
    again.send(CLIENT, Header::SYN, b"");
    again.at_us += 1_000_000;
    // A SYN with another sequence number would start another connection.
    let (_, syn) = again.packets[0].clone();
    again.packets.push((again.at_us, syn));
    let mut old = tls(200, 0x0303, true);
    old.data(SERVER, &record(23, &[0; 20]));
    let streams = streams();
    vec![
        ("stall_http2", pcap(LINK_RAW, &streams.packets)),
        ("stall_pcap", pcap(LINK_RAW, &stall)),
        (
            "stall_pcap_big_nanoseconds",
            classic(0xa1b2_3c4d, LINK_RAW, &stall, u32::to_be_bytes),
        ),
        ("stall_pcapng", pcapng(LINK_RAW as u16, 6, &stall, false)),
        (
            "stall_pcapng_big",
            pcapng(LINK_RAW as u16, 0x9e, &stall, true),
        ),
        (
            "stall_vlan",
            pcap(
                LINK_ETHERNET,
                &framed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0]),
            ),
        ),
        (
            "stall_cooked",
            pcap(
                LINK_SLL2,
                &framed(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            ),
        ),
        ("syn_again", pcap(LINK_RAW, &again.packets)),
        ("tls12", pcap(LINK_RAW, &old.packets)),
        ("tls13", pcap(LINK_RAW, &tls(200, 0x0304, true).packets)),
    ]
}

/// A stall within a stream of HTTP/2.
fn streams() -> Script {
    let mut streams = Script::open(0, 50_000);
    streams.data(CLIENT, &frames::tests::request());
    let data = frames::tests::frame(0, 1, 1, b"0123456789");
    streams.data(SERVER, &data[..18]);
    streams.at_us += 40_000;
    streams.ack(CLIENT);
    streams.at_us += 50_000;
    streams.data(SERVER, &data[18..]);
    streams
}

#[test]
fn seeds_are_those_in_the_tree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/capture");
    let is_written = std::env::var_os("CAPTURE_SEEDS").is_some();
    for (name, bytes) in seeds() {
        let path = folder.join(name);
        if is_written {
            fs::create_dir_all(&folder).expect("the tree can be written");
            fs::write(&path, &bytes).expect("the tree can be written");
        }
        let known = fs::read(&path).unwrap_or_default();
        assert!(
            known == bytes,
            "{}: CAPTURE_SEEDS=1 writes it anew",
            path.display()
        );
        let sizes = bytes.len() < 2048;
        assert!(sizes, "{name}: {} bytes", bytes.len());
    }
}
