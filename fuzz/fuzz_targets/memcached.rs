//! memcached, client role: events are the same for whole, cut and owned buffers, and a part of a value is never
//! reported as the whole.
//!
//! A request is one line with the key. If other bytes follow a response, it is reported whole or not at all.
#![no_main]

use engines::client::SendError;
use engines::http::ResponseHead;
use engines::memcached::Client;
use firstbyte_fuzz::keepalive_peer::{self, KeepaliveClient};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| keepalive_peer::run::<Memcached>(input));

const KEYS: [&[u8]; 8] = [
    b"k",
    b"/a%20b",
    b"VALUE",
    b"",
    b"a b",
    b"a\r\nb",
    b"k",
    b"\x7f\xfe",
];

fn line(key: &[u8]) -> Vec<u8> {
    [b"get ", key, b"\r\n"].concat()
}

struct Memcached {
    client: Client,
    line_bytes: usize,
    /// Expected output.
    lines: Vec<u8>,
}

impl KeepaliveClient for Memcached {
    type Protocol = engines::memcached::Memcached;

    fn connection(&mut self) -> &mut Client {
        &mut self.client
    }

    fn receive_eof(&mut self) {
        self.client.receive_eof();
    }

    fn check_invariants(&self) {
        self.client.check_invariants();
    }

    const NOTE_BYTES: usize = 64;

    fn new(limits: u8) -> Self {
        Self {
            client: Client::new(),
            line_bytes: [4096, 32, 1, usize::from(limits)][usize::from(limits & 3)],
            lines: Vec::new(),
        }
    }

    fn request(&mut self, choice: u8) -> Result<u32, SendError> {
        let key = KEYS[usize::from(choice & 7)];
        let stream = self.client.request(key, self.line_bytes)?;
        assert!(!matches!(choice & 7, 3..6), "a key that is none");
        self.lines = line(key);
        Ok(stream)
    }

    /// Pipelines up to three requests for the next keys. Invalid keys are refused.
    fn pipeline(&mut self, choice: u8) -> u32 {
        let mut count = 0;
        for more in 1..=choice >> 3 & 3 {
            let number = (choice & 7).wrapping_add(more) & 7;
            let key = KEYS[usize::from(number)];
            if self.client.pipeline(key).is_ok() {
                assert!(!matches!(number, 3..6), "a key that is none");
                self.lines.extend(line(key));
                count += 1;
            }
        }
        count
    }

    fn end_turn(&mut self, _: u8) {}

    fn check_sent(&mut self, sent: &[u8]) {
        assert!(sent.is_empty() || sent == self.lines);
    }

    /// In one mode every byte 0xfe is a line end, since most inputs have few line ends.
    fn server_bytes(mode: u8, bytes: &[u8]) -> Vec<u8> {
        let ends = mode & 2 != 0;
        let of = |byte: &u8| match byte {
            0xfe if ends => b"\r\n".to_vec(),
            byte => vec![*byte],
        };
        bytes.iter().flat_map(of).collect()
    }

    fn has_body(&self, head: &ResponseHead) -> bool {
        assert!(matches!(head.status, 200 | 404));
        true
    }
}
