//! Every error and its result: the end of the connection with its code, or of the stream.
//!
//! Source: RFC 9113 sections 5.1, 5.4, 6.

use super::*;
use crate::hpack::Fault;

/// Reaction of a connection with requests in progress on streams 1 (with a body) and 3 (without), and stream 5 closed, to a
/// frame.
fn after(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Vec<String>, ProtocolError> {
    let mut peer = Peer::new();
    peer.post(1, &[])
        .get(3, "/")
        .get(5, "/")
        .answer(5, &[])
        .told();
    peer.events();
    peer.frame(kind, flags, stream, payload);
    outcome(&mut peer)
}

/// Events of streams, or the failure of the connection, with its code.
fn outcome(peer: &mut Peer) -> Result<Vec<String>, ProtocolError> {
    let mut failed = None;
    while let Some(event) = peer.conn.event() {
        if let Event::Failed(error) = event {
            failed = Some(error);
        }
    }
    let told = peer.told();
    let Some(error) = failed else {
        return Ok(told);
    };
    let code = wire::code_name(error.code());
    let last = told.last().expect("a GOAWAY");
    assert!(
        last.starts_with("GOAWAY ") && last.ends_with(code),
        "{last} for {error:?}"
    );
    Err(error)
}

fn reset(stream: u32, code: u32) -> Result<Vec<String>, ProtocolError> {
    Ok(vec![format!("{stream} RST {}", wire::code_name(code))])
}

#[test]
fn other_bytes_than_the_preface() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
    ] {
        let mut peer = Peer::silent(Settings::default());
        peer.receive(bytes);
        assert_eq!(outcome(&mut peer), Err(ProtocolError::BadPreface));
    }
}

#[test]
fn lengths_that_no_frame_of_the_kind_has() {
    let size = Err(ProtocolError::FrameSize);
    assert_eq!(after(frame::DATA, 0, 1, &[0; 16_385]), size);
    assert_eq!(after(frame::HEADERS, 0, 7, &[0; 16_385]), size);
    assert_eq!(after(0xff, 0, 0, &[0; 16_385]), size);
    assert_eq!(after(frame::RST_STREAM, 0, 1, &[0; 3]), size);
    assert_eq!(after(frame::RST_STREAM, 0, 1, &[0; 5]), size);
    assert_eq!(after(frame::SETTINGS, 0, 0, &[0; 5]), size);
    assert_eq!(after(frame::SETTINGS, frame::ACK, 0, &[0; 6]), size);
    assert_eq!(after(frame::PING, 0, 0, &[0; 7]), size);
    assert_eq!(after(frame::PING, frame::ACK, 0, &[0; 9]), size);
    assert_eq!(after(frame::GOAWAY, 0, 0, &[0; 7]), size);
    assert_eq!(after(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 1]), size);
    assert_eq!(after(frame::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 0, 1]), size);
    assert_eq!(after(frame::PRIORITY_UPDATE, 0, 0, &[0, 0, 1]), size);
    assert_eq!(after(frame::HEADERS, frame::HAS_PRIORITY, 7, &[0; 4]), size);
    assert_eq!(after(frame::HEADERS, frame::HAS_PRIORITY, 7, &[0; 3]), size);
    assert_eq!(after(frame::PRIORITY, 0, 5, &[0; 4]), size);
    assert_eq!(after(frame::PRIORITY, 0, 99, &[0; 6]), size);
    assert_eq!(
        after(frame::PRIORITY, 0, 3, &[0; 4]),
        reset(3, FRAME_SIZE_ERROR)
    );
}

#[test]
fn frames_on_the_wrong_side_of_stream_0() {
    let wrong = Err(ProtocolError::WrongStream);
    let block = [0x82];
    assert_eq!(after(frame::DATA, 0, 0, b"x"), wrong);
    assert_eq!(after(frame::HEADERS, frame::END_HEADERS, 0, &block), wrong);
    assert_eq!(after(frame::PRIORITY, 0, 0, &[0; 5]), wrong);
    assert_eq!(after(frame::RST_STREAM, 0, 0, &[0; 4]), wrong);
    assert_eq!(after(frame::SETTINGS, 0, 1, &[]), wrong);
    assert_eq!(after(frame::PING, 0, 1, &[0; 8]), wrong);
    assert_eq!(after(frame::GOAWAY, 0, 1, &[0; 8]), wrong);
    assert_eq!(after(frame::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1]), wrong);
    assert_eq!(after(frame::PRIORITY_UPDATE, 0, 0, &[0; 4]), wrong);
    assert_eq!(after(frame::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 2]), wrong);
}

#[test]
fn header_block_that_is_interrupted() {
    let mut peer = Peer::new();
    peer.frame(frame::HEADERS, 0, 1, &[0x82]);
    peer.frame(frame::PING, 0, 0, &[0; 8]);
    assert_eq!(outcome(&mut peer), Err(ProtocolError::BrokenHeaderBlock));
    let mut peer = Peer::new();
    peer.frame(frame::HEADERS, 0, 1, &[0x82]);
    peer.frame(frame::CONTINUATION, frame::END_HEADERS, 3, &[]);
    assert_eq!(outcome(&mut peer), Err(ProtocolError::BrokenHeaderBlock));
    let stray = after(frame::CONTINUATION, frame::END_HEADERS, 3, &[]);
    assert_eq!(stray, Err(ProtocolError::BrokenHeaderBlock));
    let whole = after(frame::CONTINUATION, frame::END_HEADERS, 5, &[]);
    assert_eq!(whole, Err(ProtocolError::BrokenHeaderBlock));
}

#[test]
fn header_blocks_that_are_no_hpack() {
    let of = |block: &[u8]| {
        after(
            frame::HEADERS,
            frame::END_HEADERS | frame::END_STREAM,
            7,
            block,
        )
    };
    assert_eq!(
        of(&[0x80]),
        Err(ProtocolError::Compression(Fault::BadIndex))
    );
    assert_eq!(
        of(&[0x41, 0x81, 0xff]),
        Err(ProtocolError::Compression(Fault::BadHuffman))
    );
    assert_eq!(
        of(&[0x3f, 0xe2, 0x1f]),
        Err(ProtocolError::Compression(Fault::BadTableSize))
    );
    let long = [0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(of(&long), Err(ProtocolError::Compression(Fault::TooLong)));
    assert_eq!(
        ProtocolError::Compression(Fault::TooLong).code(),
        COMPRESSION_ERROR
    );
    // As in nginx: the frame is too small for the field that it begins.
    assert_eq!(
        of(&[0x42, 0xff]),
        Err(ProtocolError::Compression(Fault::Truncated))
    );
    assert_eq!(
        ProtocolError::Compression(Fault::Truncated).code(),
        FRAME_SIZE_ERROR
    );
    // A field without a name.
    assert_eq!(
        of(&[0x82, 0x40, 0x00, 0x01, b'x']),
        Err(ProtocolError::EmptyFieldName)
    );
}

#[test]
fn blocks_that_are_dropped_are_decoded_all_the_same() {
    // On a stream that the client has closed.
    let block = after(
        frame::HEADERS,
        frame::END_HEADERS | frame::END_STREAM,
        3,
        &[0x80],
    );
    assert_eq!(block, Err(ProtocolError::Compression(Fault::BadIndex)));
}

#[test]
fn padding_that_is_longer_than_the_frame() {
    let padding = Err(ProtocolError::BadPadding);
    assert_eq!(after(frame::DATA, frame::PADDED, 1, &[]), padding);
    assert_eq!(after(frame::DATA, frame::PADDED, 1, &[3, 0, 0]), padding);
    assert_eq!(after(frame::HEADERS, frame::PADDED, 7, &[3, 0, 0]), padding);
    assert_eq!(after(frame::DATA, frame::PADDED, 1, &[2, 0, 0]), Ok(vec![]));
}

#[test]
fn numbers_of_streams_that_were_never_opened() {
    let number = Err(ProtocolError::BadStreamNumber);
    let flags = frame::END_HEADERS | frame::END_STREAM;
    assert_eq!(after(frame::DATA, 0, 7, b"x"), number);
    assert_eq!(after(frame::DATA, 0, 2, b"x"), number);
    assert_eq!(after(frame::RST_STREAM, 0, 7, &[0; 4]), number);
    assert_eq!(after(frame::WINDOW_UPDATE, 0, 7, &[0, 0, 0, 1]), number);
    assert_eq!(after(frame::HEADERS, flags, 2, &[0x82]), number);
    assert_eq!(after(frame::HEADERS, flags, 8, &[0x82]), number);
    // Going back.
    assert_eq!(after(frame::HEADERS, flags, 5, &[0x82]), number);
    let mut peer = Peer::new();
    peer.get(3, "/").get(1, "/");
    assert_eq!(outcome(&mut peer), number);
}

#[test]
fn frames_on_streams_that_the_client_has_closed() {
    let closed = reset(3, STREAM_CLOSED);
    assert_eq!(after(frame::DATA, 0, 3, b"x"), closed);
    assert_eq!(
        after(frame::HEADERS, frame::END_HEADERS, 3, &[0x82]),
        closed
    );
    assert_eq!(
        after(frame::DATA, 0, 5, b"x"),
        Err(ProtocolError::ClosedStream)
    );
}

#[test]
fn settings_out_of_their_range() {
    let of = |id: u16, value: u32| {
        let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        after(frame::SETTINGS, 0, 0, &payload)
    };
    let taken = Ok(vec!["SETTINGS ACK".to_owned()]);
    assert_eq!(of(2, 2), Err(ProtocolError::BadSetting));
    assert_eq!(of(2, 1), taken);
    assert_eq!(of(5, (1 << 14) - 1), Err(ProtocolError::BadSetting));
    assert_eq!(of(5, 1 << 24), Err(ProtocolError::BadSetting));
    assert_eq!(of(5, (1 << 24) - 1), taken);
    assert_eq!(of(5, 1 << 14), taken);
    assert_eq!(of(8, 2), Err(ProtocolError::BadSetting));
    assert_eq!(of(9, 2), Err(ProtocolError::BadSetting));
    assert_eq!(of(4, 1 << 31), Err(ProtocolError::WindowOverflow));
    assert_eq!(of(4, (1 << 31) - 1), taken);
}

#[test]
fn windows_that_grow_by_nothing_or_too_much() {
    let update = |stream, by: u32| after(frame::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let most = (1 << 31) - 1 - 65_535;
    assert_eq!(update(0, 0), Err(ProtocolError::ZeroWindowUpdate));
    assert_eq!(update(3, 0), Err(ProtocolError::ZeroWindowUpdate));
    assert_eq!(update(99, 0), Err(ProtocolError::ZeroWindowUpdate));
    assert_eq!(update(0, most), Ok(vec![]));
    assert_eq!(update(0, most + 1), Err(ProtocolError::WindowOverflow));
    assert_eq!(update(3, most), Ok(vec![]));
    assert_eq!(update(3, most + 1), reset(3, FLOW_CONTROL_ERROR));
    // By a setting (RFC 9113 section 6.9.2).
    let mut peer = Peer::new();
    peer.get(1, "/").window(1, 1).setting(4, (1 << 31) - 1);
    assert_eq!(outcome(&mut peer), Err(ProtocolError::WindowOverflow));
}

#[test]
fn more_data_than_the_connection_allows() {
    let mut peer = Peer::new();
    peer.post(1, &[]);
    peer.conn.recv_window.left_bytes = 3;
    peer.data(1, b"four", false);
    assert_eq!(outcome(&mut peer), Err(ProtocolError::WindowExceeded));
}

#[test]
fn push_from_a_client() {
    let push = Err(ProtocolError::PushFromClient);
    assert_eq!(after(frame::PUSH_PROMISE, 0, 3, &[0, 0, 0, 2]), push);
    // Its head is enough.
    let mut peer = Peer::new();
    peer.receive(&frame_of(frame::PUSH_PROMISE, 0, 1, &[0; 4])[..9]);
    assert_eq!(outcome(&mut peer), push);
}

#[test]
fn stream_that_depends_on_itself() {
    let block = [&3_u32.to_be_bytes()[..], &[0]].concat();
    assert_eq!(
        after(frame::PRIORITY, 0, 3, &block),
        reset(3, PROTOCOL_ERROR)
    );
    let block = [&5_u32.to_be_bytes()[..], &[0]].concat();
    assert_eq!(after(frame::PRIORITY, 0, 5, &block), Ok(vec![]));
    let block = [&7_u32.to_be_bytes()[..], &[0, 0x82]].concat();
    assert_eq!(
        after(frame::PRIORITY, 0, 7, &block[..5]),
        Err(ProtocolError::WrongStream)
    );
    let flags = frame::END_HEADERS | frame::END_STREAM | frame::HAS_PRIORITY;
    assert_eq!(
        after(frame::HEADERS, flags, 7, &block),
        reset(7, PROTOCOL_ERROR)
    );
}

#[test]
fn misdeeds_have_their_words() {
    assert_eq!(ProtocolError::Flood.to_string(), "http2 flood detected");
    assert_eq!(ProtocolError::HeaderFlood.code(), ENHANCE_YOUR_CALM);
    assert_eq!(ProtocolError::Flood.code(), ENHANCE_YOUR_CALM);
    assert_eq!(ProtocolError::ClosedStream.code(), STREAM_CLOSED);
    assert_eq!(ProtocolError::WindowExceeded.code(), FLOW_CONTROL_ERROR);
}
