//! Messages about malformed requests for the error log, in nginx's words.

use super::error::ProtocolError;
use super::frame::{self, FrameHead};

/// A pseudo-field of a request: its name begins with a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pseudo {
    Method,
    Scheme,
    Path,
    Authority,
    Protocol,
}

impl Pseudo {
    /// Its name in messages, as nginx writes it.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Method => ":method",
            Self::Scheme => ":scheme",
            Self::Path => ":path",
            Self::Authority => "\":authority\"",
            Self::Protocol => ":protocol",
        }
    }
}

/// The message about an error of a connection, with the frame at fault; `last` is the highest number of a stream.
#[cold]
pub(super) fn connection(error: ProtocolError, head: FrameHead, last: u32) -> String {
    let kind = match head.kind {
        frame::DATA => "DATA",
        frame::HEADERS => "HEADERS",
        frame::PRIORITY => "PRIORITY",
        frame::RST_STREAM => "RST_STREAM",
        frame::SETTINGS => "SETTINGS",
        frame::PING => "PING",
        frame::GOAWAY => "GOAWAY",
        frame::WINDOW_UPDATE => "WINDOW_UPDATE",
        frame::CONTINUATION => "CONTINUATION",
        _ => return error.to_string(),
    };
    let (len, stream) = (head.len, head.stream);
    match error {
        ProtocolError::FrameSize => {
            format!("client sent {kind} frame with incorrect length {len}")
        }
        ProtocolError::WrongStream => {
            format!("client sent {kind} frame with incorrect identifier")
        }
        ProtocolError::BrokenHeaderBlock if head.kind == frame::CONTINUATION => {
            "client sent unexpected CONTINUATION frame".to_owned()
        }
        ProtocolError::BadStreamNumber if head.kind == frame::HEADERS => format!(
            "client sent HEADERS frame with incorrect identifier {stream}, the last was {last}"
        ),
        _ => error.to_string(),
    }
}

/// The message about the field that makes a request malformed; `regular`: a field without colon came before.
#[cold]
pub(super) fn malformed(name: &[u8], value: &[u8], regular: bool) -> Vec<u8> {
    let (own, pseudo) = match name {
        [b':', rest @ ..] => (rest, true),
        _ => (name, false),
    };
    let is_bad = |byte: &u8| matches!(byte, b'A'..=b'Z' | b':' | 0..=b' ' | 0x7f);
    if own.iter().any(is_bad) {
        return [b"client sent invalid header name: \"", name, b"\""].concat();
    }
    if pseudo && regular {
        return OUT_OF_ORDER.to_vec();
    }
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    let is_padded = matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if value.iter().any(is_control) || (is_padded && !pseudo) {
        let parts = [b"client sent header \"", name, b"\" with invalid value: \""];
        return [&parts.concat(), value, b"\""].concat();
    }
    if pseudo {
        return [b"client sent unknown pseudo-header \"", name, b"\""].concat();
    }
    let shown = match name {
        b"te" => return b"client sent invalid \"TE\" header".to_vec(),
        b"connection" => "Connection",
        b"keep-alive" => "Keep-Alive",
        b"proxy-connection" => "Proxy-Connection",
        b"transfer-encoding" => "Transfer-Encoding",
        _ => "Upgrade",
    };
    format!("client sent \"{shown}\" header").into_bytes()
}

/// The message about a pseudo-field that came twice, or after other fields.
#[cold]
pub(super) fn repeated(pseudo: Pseudo, regular: bool) -> Vec<u8> {
    if regular {
        return OUT_OF_ORDER.to_vec();
    }
    format!("client sent duplicate {} header", pseudo.shown()).into_bytes()
}

/// The message about an invalid value of a pseudo-field.
#[cold]
pub(super) fn invalid(pseudo: Pseudo, value: &[u8]) -> Vec<u8> {
    let name = pseudo.shown();
    if value.is_empty() {
        return format!("client sent empty {name} header").into_bytes();
    }
    let start = match pseudo {
        Pseudo::Method => "client sent invalid method: \"".to_owned(),
        _ => format!("client sent invalid {name} header: \""),
    };
    [start.as_bytes(), value, b"\""].concat()
}

const OUT_OF_ORDER: &[u8] = b"client sent out of order pseudo-headers";
