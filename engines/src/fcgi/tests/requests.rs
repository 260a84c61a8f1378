//! Requests as records.

use super::*;
use crate::client::SendError;
use crate::http::{Chunk, FileRange};
use std::rc::Rc;

/// The records that were sent: type, content, padding.
fn records(bytes: &[u8]) -> Vec<(u8, Vec<u8>, usize)> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while let [1, of, 0, 1, high, low, padding, 0, behind @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let padding = usize::from(*padding);
        assert!(behind[len..len + padding].iter().all(|byte| *byte == 0));
        all.push((*of, behind[..len].to_vec(), padding));
        rest = &behind[len + padding..];
    }
    assert!(rest.is_empty(), "{rest:?}");
    all
}

fn body(body: BodyLength) -> RequestOptions {
    RequestOptions {
        body,
        ..options(false)
    }
}

/// A client after the records before a body.
fn asked_for(length: BodyLength) -> Client {
    asked_with("POST", body(length))
}

#[test]
fn a_request_without_a_body_is_five_records() {
    let mut client = Client::new();
    let params = params(&[("A", "bc"), ("LONG", &"x".repeat(128)), ("", "")]);
    assert_eq!(client.request(&params, options(true)), Ok(1));
    let mut content = b"\x01\x02Abc\x04\x80\x00\x00\x80LONG".to_vec();
    content.extend_from_slice(&[b'x'; 128]);
    content.extend_from_slice(&[0, 0]);
    let padding = content.len().next_multiple_of(8) - content.len();
    assert_eq!(
        records(&sent(&mut client)),
        [
            (1, vec![0, 1, 1, 0, 0, 0, 0, 0], 0),
            (4, content, padding),
            (4, vec![], 0),
            (5, vec![], 0),
        ]
    );
}

#[test]
fn keep_conn_is_asked_for_where_it_is_wanted() {
    for keep in [false, true] {
        let mut client = Client::new();
        assert_eq!(client.request(&params(&[]), options(keep)), Ok(1));
        let begin = vec![0, 1, u8::from(keep), 0, 0, 0, 0, 0];
        let expected = [(1, begin, 0), (4, vec![], 0), (5, vec![], 0)];
        assert_eq!(records(&sent(&mut client)), expected);
    }
}

#[test]
fn lengths_of_one_byte_end_at_127() {
    let mut client = Client::new();
    let value = "v".repeat(127);
    let pair = params(&[("n", &value)]);
    assert_eq!(client.request(&pair, options(true)), Ok(1));
    assert!(sent(&mut client)[24..].starts_with(b"\x01\x7fnv"));
}

#[test]
fn parameters_fill_a_record_before_there_is_another() {
    // A length of one byte for the name, of four for the value.
    for (value_bytes, count) in [(65535 - 6 - 4, 1), (65535 - 6 - 3, 2)] {
        let value = "v".repeat(value_bytes);
        let mut client = Client::new();
        let pair = params(&[("n", &value), ("o", "p")]);
        assert_eq!(client.request(&pair, options(true)), Ok(1));
        let sent = records(&sent(&mut client));
        let of_params: Vec<_> = sent.iter().filter(|record| record.0 == 4).collect();
        assert_eq!(of_params.len(), count + 1, "and the empty one");
        let all: usize = of_params.iter().map(|record| record.1.len()).sum();
        assert_eq!(all, 6 + value_bytes + 4);
        assert!(count == 1 || of_params[1].1 == b"\x01\x01op");
    }
}

#[test]
fn a_parameter_longer_than_a_record_is_refused() {
    let mut client = Client::new();
    let longest = "v".repeat(65535 - 6);
    let pair = params(&[("n", &longest)]);
    assert_eq!(client.request(&pair, options(true)), Ok(1));
    let mut client = Client::new();
    let pair = params(&[("a", "b"), ("n", &format!("{longest}v"))]);
    let refused = client.request(&pair, options(true));
    assert_eq!(refused, Err(SendError::ParametersTooLarge));
    assert_eq!(sent(&mut client), b"", "nothing is sent of it");
    assert!(client.is_reusable());
}

#[test]
fn a_body_goes_between_records() {
    let mut client = asked_for(BodyLength::Length(11));
    client.send(Chunk::Static(b"hello "));
    client.send(Chunk::Flush);
    assert_eq!(records(&sent(&mut client)), [(5, b"hello ".to_vec(), 2)]);
    client.send(Chunk::Owned(b"world".to_vec()));
    assert_eq!(
        records(&sent(&mut client)),
        [(5, b"world".to_vec(), 3)],
        "more of it would be too much"
    );
    client.end();
    assert_eq!(records(&sent(&mut client)), [(5, vec![], 0)]);
    client.end();
    assert_eq!(sent(&mut client), b"");
}

#[test]
fn a_body_of_unknown_length_ends_when_it_is_said() {
    let mut client = asked_for(BodyLength::Unknown);
    client.send(Chunk::Static(b"12345678"));
    assert_eq!(records(&sent(&mut client)), [(5, b"12345678".to_vec(), 0)]);
    client.end();
    client.end();
    assert_eq!(records(&sent(&mut client)), [(5, vec![], 0)]);
}

#[test]
fn a_large_piece_is_several_records() {
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let kinds = [
        Chunk::Owned(bytes.clone()),
        Chunk::from(Rc::<[u8]>::from(&bytes[..])),
    ];
    for chunk in kinds {
        let mut client = asked_for(BodyLength::Length(200_000));
        client.send(chunk);
        client.end();
        let sent = records(&sent(&mut client));
        let lengths: Vec<usize> = sent.iter().map(|record| record.1.len()).collect();
        assert_eq!(lengths, [65528, 65528, 65528, 200_000 - 3 * 65528, 0]);
        let all: Vec<u8> = sent.into_iter().flat_map(|record| record.1).collect();
        assert_eq!(all, bytes);
    }
}

#[test]
fn pieces_are_not_copied() {
    let bytes = vec![b'x'; 65528];
    let at = bytes.as_ptr();
    let mut client = asked_for(BodyLength::Unknown);
    client.send(Chunk::Owned(bytes));
    let mut queue = OutputQueue::default();
    client.transmit(&mut queue);
    queue.advance(8);
    match queue.front() {
        Some(crate::http::Front::Bytes(front)) => assert_eq!(front.as_ptr(), at),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_range_of_a_file_goes_between_records() {
    let file = std::io::pipe().expect("a pipe stands for a file").0;
    let mut client = asked_for(BodyLength::Length(70_001));
    client.send(Chunk::File(FileRange {
        file: Rc::new(file.into()),
        offset: 5,
        len: 70_001,
    }));
    client.end();
    let mut queue = OutputQueue::default();
    client.transmit(&mut queue);
    let mut seen = Vec::new();
    while let Some(front) = queue.front() {
        let len = match front {
            crate::http::Front::Bytes(bytes) => {
                seen.push(format!("{bytes:?}"));
                bytes.len() as u64
            }
            crate::http::Front::File(range) => {
                seen.push(format!("{}+{}", range.offset, range.len));
                range.len
            }
        };
        queue.advance(len);
    }
    let expected = [
        "[1, 5, 0, 1, 255, 248, 0, 0]",
        "5+65528",
        "[1, 5, 0, 1, 17, 121, 7, 0]",
        "65533+4473",
        "[0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1, 0, 0, 0, 0]",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn more_of_a_body_than_announced_is_not_sent() {
    let mut client = asked_for(BodyLength::Length(3));
    client.send(Chunk::Static(b"abcd"));
    assert_eq!(records(&sent(&mut client)), [(5, b"abc".to_vec(), 5)]);
    client.send(Chunk::Static(b"e"));
    assert_eq!(sent(&mut client), b"");
    client.end();
    assert_eq!(records(&sent(&mut client)), [(5, vec![], 0)]);
}

#[test]
fn a_body_of_no_bytes_ends_when_it_is_said() {
    let mut client = asked_for(BodyLength::Length(0));
    assert_eq!(sent(&mut client), b"");
    client.end();
    assert_eq!(records(&sent(&mut client)), [(5, vec![], 0)]);
}

#[test]
fn one_request_at_a_time() {
    let mut client = asked();
    assert_eq!(
        client.request(&params(&[]), options(true)),
        Err(SendError::Busy)
    );
}
