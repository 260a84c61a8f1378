//! HTTP/1, server role: the same bytes, whole and cut, give the same events, states are consistent, and nothing panics.
//!
//! The first three bytes choose limits, the times of responses, and the cuts of the rest; the rest is the peer's bytes.
#![no_main]

use engines::h1::{Conn, Event, Next, Phase, Settings};
use engines::http::{BodyLength, Chunk, OutputQueue, RequestHead, ResponseHead};
use libfuzzer_sys::fuzz_target;
use std::rc::Rc;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step], bytes)) = input.split_first_chunk::<3>() else {
        return;
    };
    let settings = Rc::new(settings(limits));
    let early = mode & 1 != 0;
    let whole = Peer::new(&settings, early).run([bytes].into_iter());
    let step = usize::from(step % 61) + 1;
    let cut = Peer::new(&settings, early).run(bytes.chunks(step));
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(mode >> 1) / 128;
    let halves = Peer::new(&settings, early).run([&bytes[..at], &bytes[at..]].into_iter());
    assert_eq!(whole, halves, "cut at {at}");
});

fn settings(limits: u8) -> Settings {
    let defaults = Settings::default();
    Settings {
        header_buffer_bytes: if limits & 1 == 0 { 1024 } else { 32 },
        large_header_buffers: if limits & 2 == 0 { (4, 8192) } else { (2, 64) },
        max_headers: if limits & 4 == 0 { 1000 } else { 3 },
        ignore_invalid_headers: limits & 8 == 0,
        underscores_in_headers: limits & 16 != 0,
        allow_http09: limits & 32 == 0,
        held_bytes: if limits & 64 == 0 { 64 << 10 } else { 16 },
        ..defaults
    }
}

/// Events and output, without parts that may depend on timing.
#[derive(Debug, PartialEq)]
struct Story {
    heads: Vec<Head>,
    data: Vec<u8>,
    ends: Vec<String>,
    sent: Vec<u8>,
    kept: bool,
}

/// A head without the parts that depend on the received length of a broken line.
#[derive(Debug, PartialEq)]
struct Head {
    target: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    rest: String,
}

struct Peer {
    conn: Conn,
    early: bool,
    next: Option<Next>,
    heads: Vec<Head>,
    data: Vec<u8>,
    ends: Vec<String>,
}

impl Peer {
    fn new(settings: &Rc<Settings>, early: bool) -> Self {
        let conn = Conn::new(Rc::clone(settings));
        Self {
            conn,
            early,
            next: None,
            heads: Vec::new(),
            data: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.conn.receive(piece);
            self.pump();
        }
        self.conn.receive_eof();
        self.pump();
        let mut sent = sent(&mut self.conn);
        if self.early {
            // Events of a body may follow the end of its request. A fault in it may be found before or after the
            // response.
            self.data.clear();
            self.ends.clear();
            let text = String::from_utf8_lossy(&sent);
            sent = text
                .replace("Connection: close", "Connection: keep-alive")
                .into_bytes();
        }
        let kept = self.next == Some(Next::KeepAlive);
        Story {
            heads: self.heads,
            data: self.data,
            ends: self.ends,
            sent,
            kept,
        }
    }

    fn pump(&mut self) {
        self.conn.check_invariants();
        while let Some(event) = self.conn.event() {
            let due = match event {
                Event::Head(head) => {
                    let due = self.early || head.fault.is_some() || head.body == BodyLength::None;
                    self.heads.push(describe(&head));
                    self.conn.recycle(head);
                    due
                }
                Event::Data(data) => {
                    self.data.extend_from_slice(&data);
                    false
                }
                other => {
                    self.ends.push(format!("{} {other:?}", self.data.len()));
                    matches!(other, Event::BodyEnd | Event::BodyFault(_))
                }
            };
            if due {
                self.answer();
            }
            self.conn.check_invariants();
        }
        // If all events are taken, the engine must accept input, however few bytes it may hold.
        let receiving = matches!(self.conn.phase(), Phase::Idle | Phase::Head | Phase::Body);
        assert!(
            !receiving || self.conn.input_ended() || self.conn.wants_input(),
            "an engine that holds nothing is full"
        );
    }

    fn answer(&mut self) {
        match self.next {
            Some(Next::Close | Next::Linger) => return,
            Some(Next::AwaitBody) => {}
            None | Some(Next::KeepAlive) => {
                let unknown = self.heads.len() % 2 == 0;
                let body = if unknown {
                    BodyLength::Unknown
                } else {
                    BodyLength::Length(2)
                };
                let mut head = ResponseHead {
                    status: 200,
                    body,
                    keep_alive: true,
                    ..ResponseHead::default()
                };
                if !unknown {
                    head.push(b"Content-Length", b"2");
                }
                self.conn.send_head(&head);
                self.conn.send_data(Chunk::Static(b"ok"));
                self.conn.send_end(None);
            }
        }
        self.next = Some(self.conn.finish());
    }
}

fn describe(head: &RequestHead) -> Head {
    let fields = head.fields.iter();
    let rest = format!(
        "{:?} {:?} {:?} {:?} {} {} {} {}",
        head.method,
        head.version,
        head.body,
        head.fault,
        head.size_bytes,
        head.close,
        head.keep_alive,
        head.expect_continue,
    );
    Head {
        target: head.bytes(head.target).to_vec(),
        fields: fields
            .map(|field| {
                (
                    head.bytes(field.name).to_vec(),
                    head.bytes(field.value).to_vec(),
                )
            })
            .collect(),
        rest,
    }
}

fn sent(conn: &mut Conn) -> Vec<u8> {
    let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
    conn.transmit(&mut queue);
    queue.drain_bytes(&mut out);
    out
}
