//! A connection with one request and a CGI response: the fuzz targets `scgi` and `uwsgi` define how the request is
//! written, and read it again.
//!
//! The first four bytes choose the request, the limit of heads, the cuts of the rest, and whether the end is whole. Up
//! to 0xff follow parameters, names and values separated by 0xfd; then the server's bytes.

use engines::cgi::{Client, Event, RequestOptions};
use engines::client::SendError;
use engines::http::{BodyLength, Chunk, Fields, OutputQueue};

use crate::joined::{join, receive};

/// Encoding of the request.
pub trait Format {
    fn request(
        client: &mut Client,
        params: &Fields,
        choice: u8,
        options: RequestOptions,
    ) -> Result<u32, SendError>;

    /// Parses the output strictly. Returns the parameters, and the bytes after them.
    fn read(sent: &[u8], choice: u8) -> (Vec<(Vec<u8>, Vec<u8>)>, Vec<u8>);
}

/// Runs one input.
pub fn run<F: Format>(input: &[u8]) {
    let Some((&[choice, limit, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let end = memchr::memchr(0xff, rest).unwrap_or(0);
    let params = params(&rest[..end], choice);
    let response = rest.get(end + 1..).unwrap_or_default();
    let peer = || Peer::new::<F>(&params, choice, limit);
    let Some(whole) = peer() else { return };
    let whole = whole.run([response].into_iter(), None);
    let step = usize::from(step % 61) + 1;
    let cut = |buffer| {
        let peer = peer().expect("it was sent before");
        peer.run(response.chunks(step), buffer)
    };
    assert_eq!(whole, cut(None), "cut into pieces of {step}");
    let capacity = [step, 2 * step + 1][usize::from(at & 1)];
    assert_eq!(
        whole,
        cut(Some(capacity)),
        "pieces of {step} in buffers of {capacity}"
    );
    let (front, back) = response.split_at(response.len() * usize::from(at) / 256);
    let halves = peer().expect("it was sent before");
    let halves = halves.run([front, back].into_iter(), Some(0));
    assert_eq!(whole, halves, "cut at {at} of 256");
}

/// Returns the parameters of an input, after those of every request.
fn params(text: &[u8], choice: u8) -> Fields {
    let mut params = Fields::default();
    params.push(b"CONTENT_LENGTH", b"7");
    let method: &[u8] = if choice & 1 == 0 { b"GET" } else { b"HEAD" };
    params.push(b"REQUEST_METHOD", method);
    let words: Vec<&[u8]> = text.split(|byte| *byte == 0xfd).collect();
    for pair in words.chunks_exact(2) {
        params.push(pair[0], pair[1]);
    }
    params
}

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<Event>,
    body_bytes: u64,
}

struct Peer {
    client: Client,
    whole_end: bool,
    events: Vec<Event>,
    body_bytes: u64,
    progress: Progress,
}

#[derive(Debug, PartialEq)]
enum Progress {
    Requested,
    Head,
    Over,
}

impl Peer {
    /// Makes a connection that has sent its request; `None` if the request cannot be sent.
    fn new<F: Format>(params: &Fields, choice: u8, limit: u8) -> Option<Self> {
        let body = match choice >> 1 & 3 {
            0 | 1 => BodyLength::None,
            2 => BodyLength::Length(7),
            _ => BodyLength::Unknown,
        };
        let options = RequestOptions {
            body,
            upgrade: choice & 8 != 0,
            head_bytes: [64 << 10, 64, usize::from(limit) + 1][usize::from(limit % 3)],
        };
        let mut client = Client::new();
        let result = F::request(&mut client, params, choice, options);
        client.check_invariants();
        if body != BodyLength::None {
            client.send(Chunk::Flush);
            client.send(Chunk::Static(b"bo"));
            client.send(Chunk::Static(b"dy\0--"));
        }
        if choice & 16 != 0 {
            client.end();
            client.send(Chunk::Static(b"late"));
        }
        let (mut queue, mut sent) = (OutputQueue::default(), Vec::new());
        client.transmit(&mut queue);
        queue.drain_bytes(&mut sent);
        if result.is_err() {
            assert!(sent.is_empty(), "something is sent of what is refused");
            return None;
        }
        let (read, behind) = F::read(&sent, choice);
        let of = |span| params.bytes(span).to_vec();
        let asked = params.fields.iter().map(|p| (of(p.name), of(p.value)));
        assert_eq!(read, asked.collect::<Vec<_>>());
        let said: &[u8] = if body == BodyLength::None {
            b""
        } else {
            b"body\0--"
        };
        assert_eq!(behind, said, "the body as it is");
        Some(Self {
            client,
            whole_end: choice & 32 == 0,
            events: Vec::new(),
            body_bytes: 0,
            progress: Progress::Requested,
        })
    }

    fn run<'a>(
        mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        buffer_bytes: Option<usize>,
    ) -> Story {
        for piece in pieces {
            receive(&mut self.client, piece, buffer_bytes);
            self.listen();
        }
        self.client.receive_eof(self.whole_end);
        self.listen();
        assert_eq!(self.progress, Progress::Over, "an exchange ends");
        assert!(!self.client.is_reusable());
        Story {
            events: self.events,
            body_bytes: self.body_bytes,
        }
    }

    fn listen(&mut self) {
        self.client.check_invariants();
        while let Some(event) = self.client.event() {
            self.check_event(&event);
            if let Event::Head { head, .. } = &event {
                self.client.recycle(head.clone());
            }
            join(&mut self.events, event);
        }
    }

    /// Checks the order of events.
    fn check_event(&mut self, event: &Event) {
        match event {
            Event::Head { head, .. } => {
                assert_eq!(self.progress, Progress::Requested, "{event:?}");
                assert!((200..1000).contains(&head.status) || head.status == 101);
                let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
                for field in &head.fields {
                    let (name, value) = (head.bytes(field.name), head.bytes(field.value));
                    assert!(!name.eq_ignore_ascii_case(b"transfer-encoding"));
                    assert!(!name.iter().chain(value).any(bad), "a line ends early");
                }
                self.progress = Progress::Head;
            }
            Event::Upgraded(1) => assert_eq!(self.progress, Progress::Head),
            Event::Data { bytes, .. } => {
                assert_eq!(self.progress, Progress::Head, "{event:?}");
                assert!(!bytes.is_empty(), "data is some");
                self.body_bytes += bytes.len() as u64;
            }
            Event::End { body_bytes, .. } => {
                assert_eq!(self.progress, Progress::Head, "{event:?}");
                assert_eq!(*body_bytes, self.body_bytes);
                self.progress = Progress::Over;
            }
            Event::Failed(error) => {
                assert_ne!(self.progress, Progress::Over, "{error:?} after the end");
                self.progress = Progress::Over;
            }
            other => panic!("{other:?} does not exist here"),
        }
    }
}
