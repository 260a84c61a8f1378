//! Messages byte by byte: sent, accepted and refused ones.

use super::super::message::Reply as Parsed;
use super::super::{Frames, Name, POINTERS_MAX, TEXT_BYTES_MAX};
use super::*;

fn refused(message: &[u8]) -> String {
    refused_as(Transport::Udp, message)
}

fn refused_as(transport: Transport, message: &[u8]) -> String {
    match Parsed::parse(message, transport).and_then(|reply| reply.records().map(drop)) {
        Ok(()) => "taken".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

/// A response to a question for `a.b`, type A.
fn response() -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
    bytes.extend(b"\x01a\x01b\x00\x00\x01\x00\x01");
    bytes
}

/// With one answer; its owner has these bytes.
fn with_owner(owner: &[u8]) -> Vec<u8> {
    let mut bytes = response();
    bytes[7] = 1;
    bytes.extend_from_slice(owner);
    bytes.extend(b"\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01");
    bytes
}

#[test]
fn a_query_is_a_question_that_wants_recursion() {
    let mut lab = Lab::v4(1);
    lab.ask("WWW.Example.com.");
    let query = lab.sent_one();
    let expected = b"\x10\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
        \x03www\x07example\x03com\x00\x00\x01\x00\x01";
    assert_eq!(query.message, expected);
    assert_eq!(query.route.transport, Transport::Udp);
}

#[test]
fn addresses_are_asked_for_by_their_own_names() {
    for (address, name) in [
        ("192.0.2.10", "10.2.0.192.in-addr.arpa"),
        (
            "2001:db8::1f",
            "f.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        ),
    ] {
        let address = address.parse().expect("an address");
        assert_eq!(Name::of_address(address).to_string(), name);
    }
}

#[test]
fn names_have_labels_of_1_to_63_bytes_and_255_bytes_in_all() {
    let label = "a".repeat(63);
    let longest = [label.as_str(); 4].join(".");
    assert_eq!(longest.len(), TEXT_BYTES_MAX);
    assert!(Name::parse(longest.as_bytes()).is_some());
    assert!(Name::parse(format!("{longest}.").as_bytes()).is_some());
    for wrong in [
        format!("{longest}a"),
        format!("{label}a"),
        String::new(),
        ".".to_owned(),
        "a..b".to_owned(),
        ".a".to_owned(),
    ] {
        assert_eq!(Name::parse(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn a_name_shows_no_byte_that_a_log_should_not_have() {
    let name = Name::parse(b"a\n_-1\xff\\.b").expect("a name");
    assert_eq!(name.to_string(), "a\\010_-1\\255\\092.b");
}

#[test]
fn every_cut_of_a_response_is_refused() {
    let whole = with_owner(b"\xc0\x0c");
    assert_eq!(refused(&whole), "taken");
    for end in 0..whole.len() {
        let said = refused(&whole[..end]);
        let expected = ["short DNS response", "name is out of DNS response"];
        assert!(expected.contains(&said.as_str()), "{end}: {said}");
    }
}

#[test]
fn headers_are_checked() {
    let with = |at: usize, byte: u8| {
        let mut bytes = response();
        bytes[at] = byte;
        bytes
    };
    for (message, said) in [
        (with(2, 0x01), "invalid UDP DNS response 4660 fl:0180"),
        (with(2, 0x89), "invalid UDP DNS response 4660 fl:8980"),
        (with(3, 0xc0), "invalid UDP DNS response 4660 fl:81C0"),
        (with(3, 0x81), "DNS error (1: Format error), query id:4660"),
        (with(3, 0x86), "DNS error (6: Unknown error), query id:4660"),
        (with(5, 0), "invalid number of questions in DNS response"),
        (with(5, 2), "invalid number of questions in DNS response"),
        (with(12, 0), "zero-length domain name in DNS response"),
        (
            with(12, 0xc0),
            "unexpected compression pointer in DNS response",
        ),
        (
            with(12, 0x40),
            "unexpected compression pointer in DNS response",
        ),
        (with(18, 2), "unknown query type 2 in DNS response"),
        (with(20, 3), "unknown query class 3 in DNS response"),
        (with(7, 1), "short DNS response"),
        (with(6, 0xff), "short DNS response"),
    ] {
        assert_eq!(refused(&message), said);
    }
    assert_eq!(refused(&response()), "taken");
}

#[test]
fn a_truncated_response_is_for_datagrams() {
    let mut bytes = response();
    bytes[2] |= 2;
    assert_eq!(refused(&bytes), "taken");
    let said = refused_as(Transport::Tcp, &bytes);
    assert_eq!(said, "invalid TCP DNS response 4660 fl:8380");
}

#[test]
fn pointers_lead_back_and_nowhere_else() {
    // The owner is at 21.
    for (owner, said) in [
        (&b"\xc0\x0c"[..], "taken"),
        (b"\xc0\x0e", "taken"),
        (b"\x01c\xc0\x0c", "taken"),
        // To itself, to its own beginning, ahead, into the header.
        (b"\xc0\x15", "compression pointers loop in DNS response"),
        (
            b"\x01c\xc0\x15",
            "compression pointers loop in DNS response",
        ),
        (b"\xc0\x20", "compression pointers loop in DNS response"),
        (b"\xc0\x0b", "compression pointers loop in DNS response"),
        (b"\xff\xff", "compression pointers loop in DNS response"),
        (b"\x40", "invalid label type in DNS response"),
        (b"\x80", "invalid label type in DNS response"),
        (b"\x3f", "name is out of DNS response"),
    ] {
        assert_eq!(refused(&with_owner(owner)), said, "{owner:02x?}");
    }
}

#[test]
fn two_pointers_that_lead_to_each_other_end() {
    let mut bytes = with_owner(b"\xc0\x0c");
    bytes[7] = 2;
    // The data of the first record is at 33: a pointer to 35, which holds a pointer back to 33.
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&[0xc0, 35, 0xc0, 33]);
    bytes.extend(b"\xc0\x23\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01");
    assert_eq!(refused(&bytes), "compression pointers loop in DNS response");
}

#[test]
fn the_number_of_pointers_is_limited() {
    // A chain of pointers in the data of a record: each leads to the one before, the first to the question.
    let chain = |pointers: usize| {
        let mut bytes = response();
        bytes[7] = 2;
        bytes.extend(b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x05");
        // The name begins with a pointer itself.
        let inside = pointers - 1;
        bytes.extend(((inside * 2) as u16).to_be_bytes());
        let mut target = 12;
        for _ in 0..inside {
            let here = bytes.len();
            bytes.extend((0xc000 | target as u16).to_be_bytes());
            target = here;
        }
        bytes.extend((0xc000 | target as u16).to_be_bytes());
        bytes.extend(b"\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01");
        bytes
    };
    assert_eq!(refused(&chain(POINTERS_MAX)), "taken");
    let said = refused(&chain(POINTERS_MAX + 1));
    assert_eq!(said, "compression pointers loop in DNS response");
}

#[test]
fn overlong_names_are_refused() {
    let label = |length: u8| {
        let mut label = vec![length];
        label.resize(usize::from(length) + 1, b'x');
        label
    };
    let longest = [label(63), label(63), label(63), label(63)].concat();
    let with = |labels: &[u8], end: &[u8]| refused(&with_owner(&[labels, end].concat()));
    assert_eq!(with(&longest, b"\x00"), "taken");
    assert_eq!(
        with(&[&longest[..], b"\x01x"].concat(), b"\x00"),
        "too long name in DNS response"
    );
    // Bytes behind a pointer count.
    assert_eq!(with(&longest, b"\xc0\x0e"), "too long name in DNS response");
}

#[test]
fn frames_are_messages_wherever_they_are_cut() {
    let stream = b"\x00\x03abc\x00\x00\x00\x01d";
    for step in 1..=stream.len() {
        let mut frames = Frames::default();
        let mut messages = Vec::new();
        for piece in stream.chunks(step) {
            frames.receive(piece);
            while let Some(message) = frames.message() {
                messages.push(message.to_vec());
            }
        }
        assert_eq!(messages, [&b"abc"[..], b"", b"d"], "in pieces of {step}");
    }
}
