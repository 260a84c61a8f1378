//! Frames as lines of text.

use super::*;
use crate::mux::tests::data_text;

fn number(bytes: &[u8]) -> u32 {
    frame::number(bytes).expect("four bytes")
}

pub(super) fn code_name(code: u32) -> &'static str {
    match code {
        NO_ERROR => "NO_ERROR",
        PROTOCOL_ERROR => "PROTOCOL_ERROR",
        INTERNAL_ERROR => "INTERNAL_ERROR",
        FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
        STREAM_CLOSED => "STREAM_CLOSED",
        FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
        REFUSED_STREAM => "REFUSED_STREAM",
        CANCEL => "CANCEL",
        COMPRESSION_ERROR => "COMPRESSION_ERROR",
        ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
        _ => "?",
    }
}

/// A frame other than HEADERS and CONTINUATION.
pub(super) fn frame_line(head: FrameHead, payload: &[u8]) -> String {
    let id = head.stream;
    let ack = if head.has(frame::ACK) { " ACK" } else { "" };
    match head.kind {
        frame::DATA => {
            let shown = data_text(payload);
            let end = if head.has(frame::END_STREAM) {
                " END"
            } else {
                ""
            };
            format!("{id} DATA {shown}{end}")
        }
        frame::RST_STREAM => format!("{id} RST {}", code_name(number(payload))),
        frame::SETTINGS => {
            let (settings, rest) = payload.as_chunks::<6>();
            assert!(rest.is_empty());
            let pairs: String = settings
                .iter()
                .map(|s| format!(" {}={}", u16::from_be_bytes([s[0], s[1]]), number(&s[2..])))
                .collect();
            format!("SETTINGS{ack}{pairs}")
        }
        frame::PING => format!("PING{ack} {}", text(payload)),
        frame::GOAWAY => {
            let code = code_name(number(&payload[4..]));
            format!("GOAWAY {} {code}", number(payload))
        }
        frame::WINDOW_UPDATE => format!("{id} WINDOW {}", number(payload)),
        other => panic!("a server does not send frames of type {other}"),
    }
}
