//! ClientHello and ServerHello: versions, and whether the server sent a HelloRetryRequest.
//!
//! Source: RFC 8446 section 4.1, RFC 5246 section 7.4.1.

use super::records::{HANDSHAKE, HEAD_BYTES};
use super::stream::Stream;

/// A ServerHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    /// The version that was chosen.
    pub(super) version: u16,
    /// Whether it is a HelloRetryRequest.
    pub(super) is_retry: bool,
    pub(super) random: [u8; 32],
    /// The number of the cipher suite.
    pub(super) suite: u16,
}

/// A ClientHello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub(super) offers_tls13: bool,
    pub(super) has_early_data: bool,
    pub(super) has_pre_shared_key: bool,
    pub(super) random: [u8; 32],
}

/// The first message of the server's payload, if it is a ServerHello.
pub(super) fn server(stream: &Stream) -> Option<ServerHello> {
    let body = first_message(&stream.bytes, SERVER_HELLO)?;
    let mut reader = Reader(&body);
    let legacy = reader.u16()?;
    let random = *reader.take(32)?.first_chunk()?;
    let is_retry = random == RETRY_RANDOM;
    reader.vector8()?;
    let suite = reader.u16()?;
    reader.take(1)?;
    let mut version = legacy;
    each_extension(&mut reader, |kind, value| {
        if let (SUPPORTED_VERSIONS, [high, low]) = (kind, value) {
            version = u16::from_be_bytes([*high, *low]);
        }
    });
    Some(ServerHello {
        version,
        is_retry,
        random,
        suite,
    })
}

/// The first message of the client's payload, if it is a ClientHello.
pub(super) fn client(stream: &Stream) -> Option<ClientHello> {
    let body = first_message(&stream.bytes, CLIENT_HELLO)?;
    let mut reader = Reader(&body);
    reader.take(2)?;
    let random = *reader.take(32)?.first_chunk()?;
    reader.vector8()?;
    reader.vector16()?;
    reader.vector8()?;
    let mut hello = ClientHello {
        random,
        ..ClientHello::default()
    };
    each_extension(&mut reader, |kind, value| match kind {
        SUPPORTED_VERSIONS => {
            let versions = value.get(1..).unwrap_or_default();
            hello.offers_tls13 = versions
                .chunks_exact(2)
                .any(|one| one == TLS13.to_be_bytes());
        }
        EARLY_DATA => hello.has_early_data = true,
        PRE_SHARED_KEY => hello.has_pre_shared_key = true,
        _ => {}
    });
    Some(hello)
}

/// The body of the first handshake message of this type; it may lie in several records.
fn first_message(bytes: &[u8], kind: u8) -> Option<Vec<u8>> {
    let mut message: Vec<u8> = Vec::new();
    let mut at = 0;
    loop {
        let [HANDSHAKE, 3, _, high, low] = bytes.get(at..at + HEAD_BYTES)? else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let content = bytes.get(at + HEAD_BYTES..at + HEAD_BYTES + length)?;
        message.extend_from_slice(content);
        at += HEAD_BYTES + length;
        if let [first, a, b, c, body @ ..] = message.as_slice() {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *first != kind || length > MESSAGE_BYTES_MAX {
                return None;
            }
            if let Some(body) = body.get(..length) {
                return Some(body.to_vec());
            }
        } else if length == 0 {
            return None;
        }
    }
}

fn each_extension(reader: &mut Reader<'_>, mut each: impl FnMut(u16, &[u8])) {
    let Some(all) = reader.vector16() else {
        return;
    };
    let mut all = Reader(all);
    while let (Some(kind), Some(value)) = (all.u16(), all.vector16()) {
        each(kind, value);
    }
}

/// Reads from the front; `None` if too few bytes are left.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let two = self.take(2)?;
        Some(u16::from_be_bytes([two[0], two[1]]))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

/// TLS 1.3 on the wire.
pub(super) const TLS13: u16 = 0x0304;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
/// No hello is longer, with keys of any kind.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The random of a HelloRetryRequest (RFC 8446 section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
