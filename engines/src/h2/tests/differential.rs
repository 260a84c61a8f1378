//! Events and output do not depend on how the input is cut.

use super::*;
use crate::mux::tests::differential::differential_tests;

/// Connections that are worth cutting.
fn corpus() -> Vec<Vec<u8>> {
    let mut encoder = Peer::new();
    let mut block = |fields: &[(&str, &str)]| encoder.block_of(fields);
    let get = block(&with_path("GET", "/a"));
    let own = block(
        &[
            &with_path("POST", "/b"),
            &[("x-own", "1"), ("content-length", "3")][..],
        ]
        .concat(),
    );
    let trailers = block(&[("x-sum", "9")]);
    let settings = frame_of(frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0]);
    let whole = frame::END_HEADERS | frame::END_STREAM;
    let request = frame_of(frame::HEADERS, whole, 1, &get);
    let (front, back) = get.split_at(2);
    let cut = [
        frame_of(frame::HEADERS, frame::END_STREAM, 1, front),
        frame_of(frame::CONTINUATION, 0, 1, &[]),
        frame_of(frame::CONTINUATION, frame::END_HEADERS, 1, back),
    ]
    .concat();
    let upload = [
        frame_of(frame::HEADERS, frame::END_HEADERS, 3, &own),
        frame_of(frame::DATA, frame::PADDED, 3, b"\x02ab.."),
        frame_of(frame::DATA, 0, 3, b"c"),
        frame_of(frame::HEADERS, whole, 3, &trailers),
    ]
    .concat();
    let wrong = [
        frame_of(frame::HEADERS, frame::END_HEADERS, 3, &own),
        frame_of(frame::DATA, 0, 3, b"abcd"),
        frame_of(frame::DATA, frame::END_STREAM, 3, b"e"),
    ]
    .concat();
    let control = [
        frame_of(frame::PING, 0, 0, b"SEE-THIS"),
        frame_of(frame::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]),
        frame_of(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]),
        frame_of(frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=0"),
        frame_of(frame::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
    ]
    .concat();
    let bad = frame_of(frame::WINDOW_UPDATE, 0, 0, &[0; 4]);
    let push = frame_of(frame::PUSH_PROMISE, 0, 1, &[0; 4]);
    let with_preface = |parts: &[&[u8]]| [&PREFACE[..], &settings, &parts.concat()].concat();
    vec![
        with_preface(&[&request]),
        with_preface(&[&cut]),
        with_preface(&[&request, &upload]),
        with_preface(&[&request, &wrong]),
        with_preface(&[&request, &control]),
        with_preface(&[&request, &bad, &request]),
        with_preface(&[&push]),
        [&PREFACE[..20], b"nonsense"].concat(),
    ]
}

differential_tests!(PREFACE.len(), 2);
