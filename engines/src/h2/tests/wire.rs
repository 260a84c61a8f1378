//! Frames and events as lines of text.

use super::*;
use crate::http::{Front, OutputQueue};

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything the engine has to send.
pub(super) fn transmitted(conn: &mut Conn) -> Vec<u8> {
    let mut gather = OutputQueue::default();
    conn.transmit(&mut gather);
    let mut out = Vec::new();
    while let Some(Front::Bytes(bytes)) = gather.front() {
        out.extend_from_slice(bytes);
        let len = bytes.len() as u64;
        gather.advance(len);
    }
    out
}

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
            let shown = match payload.len() {
                0 => "-".to_owned(),
                1..=16 => text(payload),
                n => n.to_string(),
            };
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

/// An event as a line.
pub(super) fn event_line(event: &Event) -> String {
    match event {
        Event::Head { stream, head } => {
            let line = text(head.bytes(head.line));
            match head.fault {
                Some(fault) => format!("{stream} {line} {fault:?}"),
                None => format!("{stream} {line}"),
            }
        }
        Event::Data { stream, bytes } => match bytes.len() {
            0..=16 => format!("{stream} data {}", text(bytes)),
            n => format!("{stream} data {n}"),
        },
        Event::Trailers { stream, fields } => {
            let fields: String = fields
                .fields
                .iter()
                .map(|f| {
                    let (name, value) = (fields.bytes(f.name), fields.bytes(f.value));
                    format!(" {}={}", text(name), text(value))
                })
                .collect();
            format!("{stream} trailers{fields}")
        }
        Event::BodyEnd(stream) => format!("{stream} end"),
        Event::BodyFault(stream, fault) => format!("{stream} {fault:?}"),
        Event::Reset { stream, .. } => format!("{stream} reset"),
        Event::Failed(error) => format!("{error:?}"),
        Event::Eof => "eof".to_owned(),
    }
}
