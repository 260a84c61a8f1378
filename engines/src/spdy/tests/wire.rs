//! Frames as lines of text.

use super::super::frame::{FrameHead, FrameKind, HEAD_BYTES, one, two};
use super::super::pairs;
use super::*;
use crate::mux::tests::data_text;

fn code_name(code: u32) -> &'static str {
    match code {
        OK => "OK",
        PROTOCOL_ERROR => "PROTOCOL_ERROR",
        INVALID_STREAM => "INVALID_STREAM",
        REFUSED_STREAM => "REFUSED_STREAM",
        CANCEL => "CANCEL",
        INTERNAL_ERROR => "INTERNAL_ERROR",
        FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
        STREAM_ALREADY_CLOSED => "STREAM_ALREADY_CLOSED",
        _ => "?",
    }
}

/// Whole frames, one a line.
pub(super) fn frame_lines(bytes: &[u8], inflater: &mut Inflater) -> Vec<String> {
    let mut rest = bytes;
    let mut lines = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let head = FrameHead::parse(head);
        let (payload, after) = after.split_at(head.len);
        rest = after;
        lines.push(frame_line(head, payload, inflater));
    }
    assert!(rest.is_empty(), "a part of a frame was transmitted");
    lines
}

fn frame_line(head: FrameHead, payload: &[u8], inflater: &mut Inflater) -> String {
    let end = if head.has(frame::FIN) { " END" } else { "" };
    let kind = match head.kind {
        FrameKind::Data(id) => {
            let shown = data_text(payload);
            return format!("{id} DATA {shown}{end}");
        }
        FrameKind::Control(kind) => kind,
        FrameKind::OtherVersion => panic!("a frame of another version"),
    };
    let pair = || two(payload).expect("two numbers");
    match kind {
        frame::SYN_REPLY | frame::HEADERS => {
            let id = one(&payload[..4]).expect("a number");
            let name = if kind == frame::HEADERS {
                "HEADERS"
            } else {
                "REPLY"
            };
            let fields = block_line(&payload[4..], inflater);
            format!("{id} {name}{fields}{end}")
        }
        frame::RST_STREAM => format!("{} RST {}", pair().0, code_name(pair().1)),
        frame::SETTINGS => {
            assert_eq!(head.flags, frame::CLEAR_SETTINGS);
            let (entries, rest) = payload[4..].as_chunks::<8>();
            assert!(rest.is_empty() && entries.len() == payload[3].into());
            let pairs = entries.iter().map(|entry| {
                let (id, value) = two(entry).expect("two numbers");
                format!(" {id}={value}")
            });
            format!("SETTINGS{}", pairs.collect::<String>())
        }
        frame::PING => format!("PING {}", one(payload).expect("a number")),
        frame::GOAWAY => format!("GOAWAY {} {}", pair().0, code_name(pair().1)),
        frame::WINDOW_UPDATE => format!("{} WINDOW {}", pair().0, pair().1),
        other => panic!("a server does not send frames of type {other}"),
    }
}

fn block_line(block: &[u8], inflater: &mut Inflater) -> String {
    let mut inflated = Vec::new();
    let read = inflater.block(block, 1 << 20, 1 << 20, &mut inflated);
    read.expect("the engine writes what zlib reads");
    let mut line = String::new();
    pairs::each(&inflated, |name, value| {
        let value = text(value).replace('\0', "|");
        match name {
            b":status" => line.push_str(&format!(" {value}")),
            b":version" => assert_eq!(value, "HTTP/1.1"),
            _ => line.push_str(&format!(" {}={value}", text(name))),
        }
    })
    .expect("a whole block");
    line
}
