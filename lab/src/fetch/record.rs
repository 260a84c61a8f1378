//! Record of a connection below its responses: reads, TLS records, the handshake.

use std::net::SocketAddr;
use std::time::Duration;

use rustls::ProtocolVersion;

use crate::client::Protocol;

/// All that happened on a connection; times are nanoseconds of the monotonic clock.
#[derive(Clone, Debug)]
pub struct ConnectionRecord {
    /// The server's address.
    pub address: SocketAddr,
    /// When TCP began to connect, and when it was connected; the latter 0 until then.
    pub opened: (u64, u64),
    /// The TLS handshake, once it is complete.
    pub handshake: Option<Handshake>,
    /// The protocol that is spoken, once it is known.
    pub protocol: Option<Protocol>,
    /// Each read, in order.
    pub reads: Vec<Read>,
    /// Each TLS record of the server, in order.
    pub tls_records: Vec<TlsRecord>,
    /// Received TLS 1.3 session tickets.
    pub tickets: u32,
    /// Shortest round trip measured by the kernel, if available.
    pub min_rtt: Option<Duration>,
    /// Received segments with data at the end of the last response, if the kernel reports them.
    pub data_segments: Option<u32>,
    /// Bytes that were sent, those of TLS included.
    pub sent_bytes: u64,
    /// Bytes that were received, those of TLS included.
    pub received_bytes: u64,
    /// When the server closed its side.
    pub closed: Option<u64>,
}

/// A TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// When it began: TCP was connected, or with early data the first request was there.
    pub from: u64,
    /// Time of the read that completed it.
    pub to: u64,
    /// The version.
    pub version: ProtocolVersion,
    /// Protocol selected by ALPN; `None` if the server selected none.
    pub alpn: Option<String>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Whether the server requested another ClientHello, which costs a round trip.
    pub retried: bool,
    /// Whether early data was sent.
    pub early_data_sent: bool,
    /// Whether the server took it.
    pub early_data_accepted: bool,
    /// The server's certificates, DER, its own first; of a resumed session those that were sent when it began.
    pub certificates: Vec<Vec<u8>>,
    /// Bytes from the server up to the record that completed the handshake, with heads of records.
    pub received_bytes: u64,
}

/// One read of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// When it returned.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A TLS record of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsRecord {
    /// Time of the read that completed it.
    pub at: u64,
    /// Its bytes, with its head of 5.
    pub bytes: u64,
    /// Its outer type (RFC 8446 section 5.1): 20 change_cipher_spec, 21 alert, 22 handshake, 23 application_data.
    pub content_type: u8,
}

impl ConnectionRecord {
    pub(super) fn new(address: SocketAddr, now_ns: u64) -> Self {
        Self {
            address,
            opened: (now_ns, 0),
            handshake: None,
            protocol: None,
            reads: Vec::new(),
            tls_records: Vec::new(),
            tickets: 0,
            min_rtt: None,
            data_segments: None,
            sent_bytes: 0,
            received_bytes: 0,
            closed: None,
        }
    }

    /// Returns the duration of the TCP handshake, nanoseconds; 0 without one.
    #[must_use]
    pub fn connect_ns(&self) -> u64 {
        self.opened.1.saturating_sub(self.opened.0)
    }

    /// The least round trip, nanoseconds: the kernel's, which counts in microseconds, else the time to connect.
    #[must_use]
    pub fn round_trip_ns(&self) -> u64 {
        let kernel = self.min_rtt.map(|rtt| rtt.as_nanos() as u64);
        kernel.unwrap_or_else(|| self.connect_ns())
    }
}

impl Handshake {
    /// How long it took, nanoseconds.
    #[must_use]
    pub fn took_ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// Boundaries of TLS records in received bytes.
#[derive(Debug, Default)]
pub(super) struct RecordBoundaries {
    head: [u8; HEAD_BYTES],
    /// Received bytes of the head, and missing bytes of the record after it.
    head_len: usize,
    left: usize,
}

impl RecordBoundaries {
    /// Advances to the end of a record. Returns the number of bytes, and the type and length of the record if it ended.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> (usize, Option<(u8, u64)>) {
        let of_head = (HEAD_BYTES - self.head_len).min(bytes.len());
        self.head[self.head_len..self.head_len + of_head].copy_from_slice(&bytes[..of_head]);
        if self.head_len < HEAD_BYTES {
            self.head_len += of_head;
            if self.head_len < HEAD_BYTES {
                return (of_head, None);
            }
            self.left = self.length();
        }
        let of_body = self.left.min(bytes.len() - of_head);
        self.left -= of_body;
        let ended = (self.left == 0).then(|| {
            self.head_len = 0;
            (self.head[0], (HEAD_BYTES + self.length()) as u64)
        });
        (of_head + of_body, ended)
    }

    fn length(&self) -> usize {
        usize::from(u16::from_be_bytes([self.head[3], self.head[4]]))
    }
}

/// The head of a record (RFC 8446 section 5.1).
const HEAD_BYTES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_however_they_are_cut() {
        let stream = [
            &[22, 3, 3, 0, 2, 1, 2][..],
            &[20, 3, 3, 0, 0],
            &[23, 3, 3, 1, 0],
            &[7; 256],
            &[21, 3, 3, 0, 9, 1],
        ]
        .concat();
        for step in [1, 2, 3, 5, 6, 100, stream.len()] {
            let (mut boundaries, mut found) = (RecordBoundaries::default(), Vec::new());
            for piece in stream.chunks(step) {
                let mut at = 0;
                while at < piece.len() {
                    let (used, ended) = boundaries.advance(&piece[at..]);
                    assert!(used > 0);
                    at += used;
                    found.extend(ended);
                }
            }
            assert_eq!(found, [(22, 7), (20, 5), (23, 261)], "in pieces of {step}");
        }
    }
}
