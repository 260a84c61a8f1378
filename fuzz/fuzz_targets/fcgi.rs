//! FastCGI, client role: events are the same for whole, cut and owned buffers, a part of a body is never reported as
//! the whole, and the output is the requests in records.
//!
//! One bit of the mode frames the server's bytes as records: a byte chooses the type and the padding, another one is
//! the length of the content.
#![no_main]

use engines::client::SendError;
use engines::fcgi::{Client, RequestOptions, STDERR_BYTES};
use engines::http::{BodyLength, Chunk, Fields, ResponseHead};
use firstbyte_fuzz::keepalive_peer::{self, KeepaliveClient};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| keepalive_peer::run::<FastCgi>(input));

struct FastCgi {
    client: Client,
    head_bytes: usize,
    is_head: bool,
    keep: bool,
    /// Expected bytes of each stream, and whether they are complete.
    params: Vec<u8>,
    stdin: Vec<u8>,
    left: Option<usize>,
    ended: bool,
    /// Number of bytes sent of them.
    sent: [Vec<u8>; 2],
    closed: [bool; 2],
}

impl KeepaliveClient for FastCgi {
    type Protocol = engines::fcgi::FastCgi;

    fn connection(&mut self) -> &mut Client {
        &mut self.client
    }

    fn receive_eof(&mut self) {
        self.client.receive_eof();
    }

    fn check_invariants(&self) {
        self.client.check_invariants();
    }

    const NOTE_BYTES: usize = STDERR_BYTES;

    fn new(limits: u8) -> Self {
        Self {
            client: Client::new(),
            head_bytes: [64 << 10, 128, 64, usize::from(limits)][usize::from(limits & 3)],
            is_head: false,
            keep: false,
            params: Vec::new(),
            stdin: Vec::new(),
            left: Some(0),
            ended: true,
            sent: Default::default(),
            closed: [true; 2],
        }
    }

    fn request(&mut self, choice: u8) -> Result<u32, SendError> {
        let method: &[u8] = [&b"GET"[..], b"HEAD", b"POST", b"PUT"][usize::from(choice & 3)];
        let (body, left) = match choice & 3 {
            2 => (BodyLength::Length(5), Some(5)),
            3 => (BodyLength::Unknown, None),
            _ => (BodyLength::None, Some(0)),
        };
        let mut params = Fields::default();
        params.push(b"REQUEST_METHOD", method);
        let mut pairs = [&[14, method.len() as u8][..], b"REQUEST_METHOD", method].concat();
        if choice & 4 != 0 {
            params.push(b"", &[b'x'; 200]);
            pairs.extend([0, 0x80, 0, 0, 200]);
            pairs.extend([b'x'; 200]);
        }
        let keep = choice & 8 == 0;
        let options = RequestOptions {
            head_bytes: self.head_bytes,
            keep,
            body,
        };
        let stream = self.client.request(&params, options)?;
        (self.is_head, self.keep) = (method == b"HEAD", keep);
        (self.params, self.stdin) = (pairs, Vec::new());
        (self.left, self.ended) = (left, left == Some(0));
        (self.sent, self.closed) = (Default::default(), [false; 2]);
        self.client.send(Chunk::Flush);
        if !self.ended {
            self.send(b"bod");
        }
        Ok(stream)
    }

    fn end_turn(&mut self, choice: u8) {
        match choice >> 5 {
            1 => self.send(b"y!"),
            2 => self.send(b"y, longer"),
            3 => {
                self.client.end();
                self.ended = true;
            }
            _ => {}
        }
    }

    fn check_sent(&mut self, mut sent: &[u8]) {
        while let [1, of, 0, 1, high, low, padding, 0, rest @ ..] = sent {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            let (content, rest) = rest.split_at(len);
            let at = match of {
                1 => {
                    assert_eq!(content, [0, 1, u8::from(self.keep), 0, 0, 0, 0, 0]);
                    usize::MAX
                }
                4 => 0,
                5 => 1,
                of => panic!("a record of type {of}"),
            };
            if at < 2 {
                assert!(!self.closed[at], "something behind the end");
                self.closed[at] = len == 0;
                self.sent[at].extend_from_slice(content);
            }
            sent = &rest[usize::from(*padding)..];
        }
        assert!(sent.is_empty(), "{sent:?}");
        if !self.client.is_closed() {
            assert_eq!(self.sent, [&self.params[..], &self.stdin]);
            assert_eq!(self.closed, [true, self.ended]);
        }
    }

    fn server_bytes(mode: u8, bytes: &[u8]) -> Vec<u8> {
        if mode & 2 == 0 {
            return bytes.to_vec();
        }
        let (mut rest, mut records) = (bytes, Vec::new());
        while let [kind, len, behind @ ..] = rest {
            let padding = kind >> 4;
            let (of, len) = match kind & 15 {
                0..8 => (6, *len),
                8..11 => (7, *len),
                11..15 => (3, 8),
                _ => (*len, 0),
            };
            let (content, behind) = behind.split_at(behind.len().min(len.into()));
            records.extend([1, of, 0, 1, 0, len, padding, 0]);
            records.extend_from_slice(content);
            // A short END_REQUEST of the input is completed as success.
            let missing = if of == 3 { 8 - content.len() } else { 0 };
            records.extend(std::iter::repeat_n(0, missing + usize::from(padding)));
            rest = behind;
        }
        records
    }

    fn has_body(&self, head: &ResponseHead) -> bool {
        !self.is_head && !matches!(head.status, 204 | 304)
    }
}

impl FastCgi {
    fn send(&mut self, bytes: &'static [u8]) {
        self.client.send(Chunk::Static(bytes));
        if self.ended {
            return;
        }
        let len = self.left.map_or(bytes.len(), |left| left.min(bytes.len()));
        self.stdin.extend_from_slice(&bytes[..len]);
        if let Some(left) = &mut self.left {
            *left -= len;
        }
    }
}
