//! HTTP/1, client role: the same bytes, whole, cut, and in owned buffers, give the same events. An exchange ends once,
//! states are consistent, nothing panics, and the output is one request for every reader.
//!
//! The first four bytes choose the limit of heads, the delivery of bodies, the cuts of the rest, and whether the end is
//! whole. The rest is turns, separated by 0xff. A turn has a byte that chooses the request, if there is space for one;
//! one of its bits adds fields of any bytes up to 0xfe. Then come the server's bytes.
#![no_main]

use engines::client::{Bodies, MAX_INTERIM};
use engines::h1::{Client, ClientEvent, Conn, Event, RequestOptions, Settings};
use engines::http::{BodyLength, Chunk, Fault, Fields, OutputQueue};
use firstbyte_fuzz::joined::{join, receive};
use libfuzzer_sys::fuzz_target;
use std::rc::Rc;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let turns: Vec<Turn> = rest.split(|byte| *byte == 0xff).map(Turn::new).collect();
    let [bodies, others] = match mode & 1 {
        0 => [Bodies::Delivered, Bodies::Counted],
        _ => [Bodies::Counted, Bodies::Delivered],
    };
    let peer = |bodies| Peer::new(limits, bodies, mode);
    let mut whole = peer(bodies).run(&turns, |bytes| vec![bytes]);
    let step = usize::from(step % 61) + 1;
    let cut = peer(bodies).run(&turns, |bytes| bytes.chunks(step).collect());
    assert_eq!(whole, cut, "cut into pieces of {step}");
    // Receive in buffers, which are filled completely or not.
    let capacity = [step, 2 * step + 1][usize::from(at & 1)];
    let mut buffered = peer(bodies);
    buffered.buffer_bytes = Some(capacity);
    let buffered = buffered.run(&turns, |bytes| bytes.chunks(step).collect());
    assert_eq!(whole, buffered, "pieces of {step} in buffers of {capacity}");
    let mut halves = peer(bodies);
    halves.buffer_bytes = Some(0);
    let halves = halves.run(&turns, |bytes| {
        let (front, back) = bytes.split_at(bytes.len() * usize::from(at) / 256);
        vec![front, back]
    });
    assert_eq!(whole, halves, "cut at {at} of 256");
    // The delivery of bodies changes only the events of bodies.
    let mut other = peer(others).run(&turns, |bytes| vec![bytes]);
    for story in [&mut whole, &mut other] {
        story.events.retain(|event| !is_of_body(event));
    }
    assert_eq!(whole, other, "told and counted");
});

/// Bytes of the server, and the request before them.
struct Turn {
    choice: u8,
    /// Names and values alternate.
    fields: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Turn {
    fn new(short: &[u8]) -> Self {
        let (choice, mut bytes) = short.split_first().unwrap_or((&0, &[]));
        let mut fields = Vec::new();
        if choice & 0x40 != 0 {
            let end = memchr::memchr(0xfe, bytes).unwrap_or(0);
            let all = bytes[..end].split(|byte| *byte == 0xfd);
            fields = all.map(<[u8]>::to_vec).collect();
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
        // Enough repetitions to exceed the limit of interim responses, but only for short inputs, since they cost time.
        let times = if choice & 0x80 == 0 || bytes.len() > 48 {
            1
        } else {
            MAX_INTERIM as usize + 1
        };
        Self {
            choice: *choice,
            fields,
            bytes: bytes.repeat(times),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<ClientEvent>,
    sent: Vec<u8>,
    reusable: bool,
    closed: bool,
}

struct Peer {
    client: Client,
    head_bytes: usize,
    /// Bytes are received in buffers of this capacity.
    buffer_bytes: Option<usize>,
    resets: bool,
    whole_end: bool,
    /// The division of data depends on the cuts of the input, so data is joined.
    events: Vec<ClientEvent>,
    /// All sent bytes, and the start of the last request.
    sent: Vec<u8>,
    begun_at: usize,
    /// The exchange in progress, and its state.
    stream: u32,
    progress: Progress,
    interim: u32,
    is_tunnel: bool,
}

#[derive(Debug, PartialEq, PartialOrd)]
enum Progress {
    Requested,
    Head,
    Ended,
    /// The connection reports nothing more.
    Over,
}

impl Peer {
    fn new(limits: u8, bodies: Bodies, mode: u8) -> Self {
        Self {
            client: Client::new(bodies),
            head_bytes: [64 << 10, 128, 64, usize::from(limits)][usize::from(limits & 3)],
            buffer_bytes: None,
            resets: mode & 2 != 0,
            whole_end: mode & 4 == 0,
            events: Vec::new(),
            sent: Vec::new(),
            begun_at: 0,
            stream: 0,
            progress: Progress::Ended,
            interim: 0,
            is_tunnel: false,
        }
    }

    fn run<'a>(mut self, turns: &'a [Turn], cut: impl Fn(&'a [u8]) -> Vec<&'a [u8]>) -> Story {
        for turn in turns {
            self.send_request(turn);
            for piece in cut(&turn.bytes) {
                receive(&mut self.client, piece, self.buffer_bytes);
                self.listen();
            }
            self.end_turn(turn.choice);
            self.listen();
        }
        self.client.receive_eof(self.whole_end);
        self.listen();
        self.transmit();
        self.check_sent();
        Story {
            reusable: self.client.is_reusable(),
            closed: self.client.is_closed(),
            events: self.events,
            sent: self.sent,
        }
    }

    /// Sends a request, if one can be sent.
    fn send_request(&mut self, turn: &Turn) {
        self.transmit();
        if self.resets && self.client.is_closed() {
            self.check_sent();
            self.client.reset();
            (self.stream, self.progress, self.is_tunnel) = (0, Progress::Ended, false);
        }
        let (length, chunked) = (&b"Content-Length"[..], &b"Transfer-Encoding"[..]);
        let (method, more, body): (&[u8], &[(&[u8], &[u8])], _) = match turn.choice & 7 {
            0 => (b"GET", &[], BodyLength::None),
            1 => (b"HEAD", &[], BodyLength::None),
            2 => (b"POST", &[(length, b"5")], BodyLength::Length(5)),
            3 => (b"PUT", &[(chunked, b"chunked")], BodyLength::Unknown),
            4 => (b"GET", &[(b"Upgrade", b"x")], BodyLength::None),
            5 => (b"CONNECT", &[], BodyLength::None),
            6 => (b"GET", &[(b"Connection", b"close")], BodyLength::None),
            _ => (b"POST", &[(length, b"7")], BodyLength::Length(5)),
        };
        let path: &[u8] = if method == b"CONNECT" { b"h:1" } else { b"/" };
        let line = [(&b":method"[..], method), (b":path", path), (b"Host", b"h")];
        let mut fields = [&line[..], more].concat();
        let pairs = turn.fields.chunks_exact(2);
        fields.extend(pairs.map(|pair| (&pair[0][..], &pair[1][..])));
        let options = RequestOptions {
            http10: turn.choice & 0xc0 == 0xc0,
            body,
            upgrade: matches!(turn.choice & 7, 4 | 5),
            head_bytes: self.head_bytes,
        };
        let could = self.client.is_reusable();
        let result = self.client.request(fields.iter().copied(), options);
        self.client.check_invariants();
        assert!(result.is_err() || could, "a request without room");
        let Ok(stream) = result else { return };
        assert!(!self.client.has_answer() && self.client.sent_bytes() == 0);
        self.check_sent();
        assert!(stream == self.stream + 1 && self.progress == Progress::Ended);
        (self.stream, self.progress, self.interim) = (stream, Progress::Requested, 0);
        self.transmit();
        self.check_head(&fields, options.http10);
        self.client.send(Chunk::Flush);
        if body != BodyLength::None {
            self.client.send(Chunk::Static(b"bod"));
        }
    }

    /// Checks that the head equals the requested one, byte for byte.
    fn check_head(&mut self, fields: &[(&[u8], &[u8])], http10: bool) {
        let minor = if http10 { b'0' } else { b'1' };
        let (method, path) = (fields[0].1, fields[1].1);
        let mut wanted = [method, b" ", path, b" HTTP/1.", &[minor], b"\r\n"].concat();
        for (name, value) in &fields[2..] {
            wanted.extend_from_slice(&[name, &b": "[..], value, b"\r\n"].concat());
            let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
            assert!(!name.iter().chain(*value).any(bad), "a line ends early");
        }
        wanted.extend_from_slice(b"\r\n");
        assert!(self.sent[self.begun_at..].starts_with(&wanted));
    }

    /// Checks the output with the server role: at most one request, and no framing error.
    fn check_sent(&mut self) {
        let sent = &self.sent[self.begun_at..];
        self.begun_at = self.sent.len();
        if self.is_tunnel {
            return;
        }
        let settings = Settings {
            large_header_buffers: (1, 64 << 10),
            ignore_invalid_headers: false,
            underscores_in_headers: true,
            ..Settings::default()
        };
        let mut server = Conn::new(Rc::new(settings));
        server.receive(sent);
        let mut over = false;
        while let Some(event) = server.event() {
            let fault = match event {
                Event::Head(head) => head.fault,
                Event::BodyFault(fault) => Some(fault),
                _ => None,
            };
            over |= fault.is_some();
            assert!(
                !matches!(
                    fault,
                    Some(
                        Fault::BadRequestLine
                            | Fault::BadContentLength
                            | Fault::DuplicateContentLength
                            | Fault::LengthAndEncoding
                            | Fault::EncodingInHttp10
                            | Fault::UnknownEncoding
                            | Fault::DuplicateEncoding
                            | Fault::BadChunk
                            | Fault::BadTrailer
                    )
                ),
                "{fault:?} in {:?}",
                String::from_utf8_lossy(sent)
            );
        }
        assert!(over || !server.has_buffered(), "two requests were sent");
    }

    /// Ends the turn. The request may end, too, or is cancelled.
    fn end_turn(&mut self, choice: u8) {
        match choice >> 3 & 7 {
            0 => {
                self.client.send(Chunk::Static(b"y!"));
                self.client.end(None);
            }
            1 => self.client.send(Chunk::Static(b"y, longer")),
            2 => {
                let mut trailers = Fields::default();
                trailers.push(b"x-sum", b"1");
                trailers.push(b"content-length", b"1");
                self.client.end(Some(&trailers));
            }
            3 => {
                self.client.cancel();
                if self.progress < Progress::Ended {
                    assert!(self.client.is_closed());
                    self.progress = Progress::Over;
                }
            }
            4 => self.client.end(None),
            _ => {}
        }
        self.client.check_invariants();
    }

    fn transmit(&mut self) {
        let mut queue = OutputQueue::default();
        self.client.transmit(&mut queue);
        queue.drain_bytes(&mut self.sent);
    }

    fn listen(&mut self) {
        self.client.check_invariants();
        while let Some(event) = self.client.event() {
            self.check_event(&event);
            if let ClientEvent::Head { head, .. } | ClientEvent::Interim { head, .. } = &event {
                self.client.recycle(head.clone());
            }
            join(&mut self.events, event);
        }
    }

    /// Checks the order of events, and that they belong to the exchange in progress.
    fn check_event(&mut self, event: &ClientEvent) {
        assert_ne!(self.progress, Progress::Over, "{event:?} after the end");
        assert!(self.stream == 0 || self.client.has_answer() || is_end(event));
        let (stream, from, to) = match event {
            ClientEvent::Interim { stream, .. } => {
                self.interim += 1;
                assert!(self.interim <= MAX_INTERIM);
                (*stream, Progress::Requested, Progress::Requested)
            }
            ClientEvent::Head { stream, head, .. } => {
                assert!((100..1000).contains(&head.status));
                (*stream, Progress::Requested, Progress::Head)
            }
            ClientEvent::Upgraded(stream) => {
                self.is_tunnel = true;
                (*stream, Progress::Head, Progress::Head)
            }
            ClientEvent::Data { stream, bytes } => {
                assert!(!bytes.is_empty(), "data is some");
                (*stream, Progress::Head, Progress::Head)
            }
            ClientEvent::Trailers { stream, .. } => (*stream, Progress::Head, Progress::Head),
            ClientEvent::End { stream, .. } => (*stream, Progress::Head, Progress::Ended),
            ClientEvent::Eof => (self.stream, Progress::Ended, Progress::Over),
            ClientEvent::Failed(_) => {
                self.progress = Progress::Over;
                return assert!(self.client.is_closed());
            }
            other => panic!("{other:?} does not exist here"),
        };
        assert_eq!((stream, &self.progress), (self.stream, &from), "{event:?}");
        self.progress = to;
    }
}

fn is_of_body(event: &ClientEvent) -> bool {
    matches!(
        event,
        ClientEvent::Data { .. } | ClientEvent::Trailers { .. }
    )
}

fn is_end(event: &ClientEvent) -> bool {
    matches!(event, ClientEvent::Eof | ClientEvent::Failed(_))
}
