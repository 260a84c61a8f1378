//! A response with the time of its parts.

use engines::http::ResponseHead;

/// A response without interim responses and trailers; times are nanoseconds of the monotonic clock, 0 if not reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// When the request was handed to the connection.
    pub asked: u64,
    /// When the last of its bytes went to the kernel.
    pub sent: u64,
    /// Time of the read that completed the head.
    pub head: u64,
    /// When the first byte of the body arrived; `None` without a body.
    pub first_body: Option<u64>,
    /// When the response was complete.
    pub end: u64,
    /// The server answered over HTTP/1.0.
    pub is_http10: bool,
    /// The status.
    pub status: u16,
    /// Fields in their order, with names as received.
    pub fields: Vec<(String, String)>,
    /// Transferred bytes of the head, compressed if the protocol compresses heads.
    pub head_bytes: u64,
    /// Bytes of the names and values in the head; with HTTP/1.1 of the whole head.
    pub head_text_bytes: u64,
    /// Bytes of the body as they were transferred, without the framing of their protocol.
    pub body_bytes: u64,
    /// The body; without a limit of the connection, at most [`MAX_BODY_BYTES`] of it.
    pub body: Vec<u8>,
    /// Parts of the body and their times.
    pub pieces: Vec<Piece>,
    /// The number of the exchange on its connection.
    pub stream: u32,
}

/// A part of a body received by one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Time of the read.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl Response {
    /// Whether the server announces the end of the connection: by a field, or by its version (RFC 9112 section 9.3).
    #[must_use]
    pub fn announces_close(&self) -> bool {
        let connection = self.field("connection").unwrap_or_default();
        let has = |option: &str| {
            let mut words = connection.split(',');
            words.any(|word| word.trim().eq_ignore_ascii_case(option))
        };
        has("close") || (self.is_http10 && !has("keep-alive"))
    }

    /// Returns the value of the first field with this name; names are case-insensitive.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the `Location` of a redirect that a client follows with a GET (RFC 9110 section 15.4).
    #[must_use]
    pub fn redirect(&self) -> Option<&str> {
        let is_one = matches!(self.status, 301 | 302 | 303 | 307 | 308);
        self.field("location").filter(|_| is_one)
    }

    /// Adds bytes of the body; at most `kept_bytes` of the whole body are kept.
    pub(super) fn push(&mut self, bytes: &[u8], at: u64, kept_bytes: usize) {
        self.first_body.get_or_insert(at);
        self.body_bytes += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(last) if last.at == at => last.bytes += bytes.len() as u64,
            _ => self.pieces.push(Piece {
                at,
                bytes: bytes.len() as u64,
            }),
        }
        let room = kept_bytes - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Fields of a head as text.
pub(super) fn fields(head: &ResponseHead) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = head
        .fields
        .iter()
        .map(|field| (text(head.bytes(field.name)), text(head.bytes(field.value))));
    pairs.collect()
}

/// Most kept bytes of a body; further ones are only counted.
pub const MAX_BODY_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_body_is_kept_than_the_limit() {
        let mut response = Response::default();
        response.push(&vec![b'a'; MAX_BODY_BYTES - 1], 1, MAX_BODY_BYTES);
        response.push(b"b", 1, MAX_BODY_BYTES);
        assert_eq!(response.body.len(), MAX_BODY_BYTES);
        response.push(b"c", 2, MAX_BODY_BYTES);
        assert_eq!(response.body.len(), MAX_BODY_BYTES);
        assert_eq!(response.body.last(), Some(&b'b'));
        assert_eq!(response.body_bytes, MAX_BODY_BYTES as u64 + 1);
        let pieces: Vec<_> = response
            .pieces
            .iter()
            .map(|one| (one.at, one.bytes))
            .collect();
        assert_eq!(pieces, [(1, MAX_BODY_BYTES as u64), (2, 1)]);
        assert_eq!(response.first_body, Some(1));
    }
}
