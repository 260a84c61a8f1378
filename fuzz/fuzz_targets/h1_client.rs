//! HTTP/1, client role: the same bytes, whole and cut, tell the same story, an exchange ends once, the connection never
//! contradicts itself, and nothing panics.
//!
//! The first four bytes choose limits, what becomes of bodies, how the rest is cut and whether the end is whole. The rest
//! is turns, told apart by 0xff: a byte that chooses the request, if there is room for one, then what the server sends.
#![no_main]

use engines::client::{Bodies, MAX_INTERIM};
use engines::h1::{Client, ClientEvent, Settings};
use engines::http::Fields;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let turns: Vec<Turn> = rest.split(|byte| *byte == 0xff).map(Turn::new).collect();
    let bodies = [Bodies::Told, Bodies::Counted][usize::from(mode & 1)];
    let peer = |bodies| Peer::new(settings(limits), bodies, mode);
    let whole = peer(bodies).run(&turns, |bytes| vec![bytes]);
    let step = usize::from(step % 61) + 1;
    let cut = peer(bodies).run(&turns, |bytes| bytes.chunks(step).collect());
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let halves = peer(bodies).run(&turns, |bytes| {
        let (front, back) = bytes.split_at(bytes.len() * usize::from(at) / 256);
        vec![front, back]
    });
    assert_eq!(whole, halves, "cut at {at} of 256");
    // What becomes of bodies changes nothing else.
    let [told, counted] = [Bodies::Told, Bodies::Counted].map(|bodies| {
        let mut story = peer(bodies).run(&turns, |bytes| vec![bytes]);
        story.events.retain(|line| !is_of_body(line));
        story
    });
    assert_eq!(told, counted, "told and counted");
});

fn settings(limits: u8) -> Settings {
    Settings {
        header_buffer_bytes: if limits & 1 == 0 { 1024 } else { 32 },
        large_header_buffers: if limits & 2 == 0 { (4, 8192) } else { (2, 64) },
        max_headers: if limits & 4 == 0 { 1000 } else { 3 },
        ignore_invalid_headers: limits & 8 == 0,
        underscores_in_headers: limits & 16 != 0,
        ..Settings::default()
    }
}

/// What the server sends, and the request it comes after.
struct Turn {
    choice: u8,
    bytes: Vec<u8>,
}

impl Turn {
    fn new(short: &[u8]) -> Self {
        let (choice, bytes) = short.split_first().unwrap_or((&0, &[]));
        // Enough for more interim responses than are taken.
        let times = if choice & 0x80 == 0 {
            1
        } else {
            MAX_INTERIM as usize + 1
        };
        Self {
            choice: *choice,
            bytes: bytes.repeat(times),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
    room: usize,
    closed: bool,
}

struct Peer {
    client: Client,
    whole_end: bool,
    events: Vec<String>,
    /// Bytes of the last line, if that is about data.
    data: Vec<u8>,
    /// The exchange that is under way, and how far it is.
    stream: u32,
    progress: Progress,
    interim: u32,
}

#[derive(Debug, PartialEq, PartialOrd)]
enum Progress {
    Asked,
    Head,
    Ended,
    /// Nothing more is told of the connection.
    Over,
}

impl Peer {
    fn new(settings: Settings, bodies: Bodies, mode: u8) -> Self {
        Self {
            client: Client::new(settings, bodies, mode & 2 == 0),
            whole_end: mode & 4 == 0,
            events: Vec::new(),
            data: Vec::new(),
            stream: 0,
            progress: Progress::Ended,
            interim: 0,
        }
    }

    fn run<'a>(mut self, turns: &'a [Turn], cut: impl Fn(&'a [u8]) -> Vec<&'a [u8]>) -> Story {
        for turn in turns {
            self.ask(turn.choice);
            for piece in cut(&turn.bytes) {
                self.client.receive(piece);
                self.listen();
            }
            self.go_on(turn.choice);
            self.listen();
        }
        self.client.receive_eof(self.whole_end);
        self.listen();
        self.told_data();
        let mut sent = Vec::new();
        self.client.transmit(&mut sent);
        Story {
            room: self.client.room(),
            closed: self.client.is_closed(),
            events: self.events,
            sent,
        }
    }

    /// Sends a request, if one can be sent.
    fn ask(&mut self, choice: u8) {
        let (method, more, ended): (&[u8], &[(&[u8], &[u8])], bool) = match choice & 7 {
            0 => (b"GET", &[], true),
            1 => (b"HEAD", &[], true),
            2 => (b"POST", &[(b"content-length", b"5")], false),
            3 => (b"PUT", &[], false),
            4 => (b"GET", &[(b"upgrade", b"x")], true),
            5 => (b"CONNECT", &[], true),
            6 => (b"GET", &[(b"connection", b"close")], true),
            _ => (b"GET", &[(b"x", b"a\nb")], true),
        };
        let control: [(&[u8], &[u8]); 3] = [
            (b":method", method),
            (b":path", b"/"),
            (b":authority", b"h"),
        ];
        let room = self.client.room();
        let result = self.client.request([&control[..], more].concat(), ended);
        self.client.check_invariants();
        assert!(result.is_err() || room == 1, "a request without room");
        let Ok(stream) = result else { return };
        self.told_data();
        assert!(stream == self.stream + 1 && self.progress == Progress::Ended);
        (self.stream, self.progress, self.interim) = (stream, Progress::Asked, 0);
        if !ended {
            self.client.send(stream, b"bod", false);
        }
    }

    /// The turn has ended: the request may, too, or is given up.
    fn go_on(&mut self, choice: u8) {
        let stream = self.stream;
        match choice >> 3 & 7 {
            0 => self.client.send(stream, b"y!", true),
            1 => self.client.send(stream, b"y, longer", false),
            2 => {
                let mut trailers = Fields::default();
                trailers.push(b"x-sum", b"1");
                trailers.push(b"content-length", b"1");
                self.client.send_trailers(stream, &trailers);
            }
            3 => {
                self.client.cancel(stream);
                if self.progress < Progress::Ended {
                    assert!(self.client.is_closed());
                    self.progress = Progress::Over;
                }
            }
            4 => self.client.send(stream, b"", true),
            _ => {}
        }
        self.client.check_invariants();
    }

    fn listen(&mut self) {
        self.client.check_invariants();
        while let Some(event) = self.client.event() {
            self.judge(&event);
            match event {
                ClientEvent::Data { bytes, .. } => self.data.extend_from_slice(&bytes),
                other => {
                    self.told_data();
                    self.events.push(format!("{other:?}"));
                    if let ClientEvent::Head { head, .. } | ClientEvent::Interim { head, .. } =
                        other
                    {
                        self.client.recycle(head);
                    }
                }
            }
        }
    }

    /// How data is divided depends on how it comes.
    fn told_data(&mut self) {
        if !self.data.is_empty() {
            let bytes = std::mem::take(&mut self.data);
            self.events.push(format!("Data {bytes:?}"));
        }
    }

    /// Events come in their order, and about the exchange that is under way.
    fn judge(&mut self, event: &ClientEvent) {
        assert_ne!(self.progress, Progress::Over, "{event:?} after the end");
        let (stream, from, to) = match event {
            ClientEvent::Interim { stream, .. } => {
                self.interim += 1;
                assert!(self.interim <= MAX_INTERIM);
                (*stream, Progress::Asked, Progress::Asked)
            }
            ClientEvent::Head { stream, .. } => (*stream, Progress::Asked, Progress::Head),
            ClientEvent::Upgraded(stream)
            | ClientEvent::Data { stream, .. }
            | ClientEvent::Trailers { stream, .. } => (*stream, Progress::Head, Progress::Head),
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

fn is_of_body(line: &str) -> bool {
    line.starts_with("Data") || line.starts_with("Trailers")
}
