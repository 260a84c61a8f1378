//! A client with a kept connection, FastCGI or memcached, and a server that sends any bytes: it sends requests in turn,
//! reads, and checks the engine's promises. The fuzz targets `fcgi` and `memcached` define the protocol.
//!
//! The first four bytes choose the limit of heads, the handling of closed connections, and the cuts of the rest. The
//! rest is turns, separated by 0xff: a byte that chooses the request, if there is space for one, then the server's
//! bytes.

use std::fmt::Debug;

use engines::client::{Connection, Event, Protocol, SendError};
use engines::http::{BodyLength, OutputQueue, ResponseHead};

use crate::joined::{join, receive};

/// Operations that differ between the protocols.
pub trait KeepaliveClient {
    type Protocol: Protocol<ProtocolError: Debug + PartialEq>;

    fn connection(&mut self) -> &mut Connection<Self::Protocol>;

    /// Makes a connection with limits chosen by a byte.
    fn new(limits: u8) -> Self;

    fn request(&mut self, choice: u8) -> Result<u32, SendError>;

    /// Sends further requests after a begun one; returns their number.
    fn pipeline(&mut self, _: u8) -> u32 {
        0
    }

    /// Ends the turn, and perhaps the request.
    fn end_turn(&mut self, choice: u8);

    /// Checks the output since the last call.
    fn check_sent(&mut self, sent: &[u8]);

    /// Bytes of the server in a turn.
    fn server_bytes(mode: u8, bytes: &[u8]) -> Vec<u8>;

    /// Whether a response with this head to the last request has a body.
    fn has_body(&self, head: &ResponseHead) -> bool;

    /// Maximum number of bytes of notes in one exchange.
    const NOTE_BYTES: usize;

    fn receive_eof(&mut self);
    fn check_invariants(&self);
}

type ErrorOf<S> = <<S as KeepaliveClient>::Protocol as Protocol>::ProtocolError;

/// Checks that events do not depend on whether bytes come whole, cut, or in owned buffers.
pub fn run<S: KeepaliveClient>(input: &[u8]) {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let turn = |bytes: &[u8]| {
        let (choice, bytes) = bytes.split_first().unwrap_or((&0, &[]));
        (*choice, S::server_bytes(mode, bytes))
    };
    let turns: Vec<(u8, Vec<u8>)> = rest.split(|byte| *byte == 0xff).map(turn).collect();
    let whole = Peer::<S>::new(limits, mode, None).run(&turns, |bytes| vec![bytes]);
    let step = usize::from(step % 61) + 1;
    let cut = Peer::<S>::new(limits, mode, None).run(&turns, |bytes| bytes.chunks(step).collect());
    assert_eq!(whole, cut, "cut into pieces of {step}");
    for capacity in [step, 2 * step + 1] {
        let peer = Peer::<S>::new(limits, mode, Some(capacity));
        let buffered = peer.run(&turns, |bytes| bytes.chunks(step).collect());
        assert_eq!(whole, buffered, "pieces of {step} in buffers of {capacity}");
    }
    let halves = Peer::<S>::new(limits, mode, Some(0)).run(&turns, |bytes| {
        let (front, back) = bytes.split_at(bytes.len() * usize::from(at) / 256);
        vec![front, back]
    });
    assert_eq!(whole, halves, "cut at {at} of 256");
}

#[derive(Debug, PartialEq)]
struct Story<E> {
    /// The division of data depends on the cuts of the input, so data is joined.
    events: Vec<Event<E>>,
    sent: Vec<u8>,
    reusable: bool,
    closed: bool,
}

struct Peer<S: KeepaliveClient> {
    client: S,
    /// Bytes are received in buffers of this capacity.
    buffer_bytes: Option<usize>,
    resets: bool,
    events: Vec<Event<ErrorOf<S>>>,
    sent: Vec<u8>,
    /// The last sent request.
    asked: u32,
    /// The exchange in progress; `progress` is its state.
    stream: u32,
    progress: Progress,
    body_bytes: u64,
    length: Option<u64>,
    note_bytes: usize,
}

#[derive(Debug, PartialEq, PartialOrd)]
enum Progress {
    Requested,
    Head,
    Ended,
    /// The connection reports nothing more.
    Over,
}

impl<S: KeepaliveClient> Peer<S> {
    fn new(limits: u8, mode: u8, buffer_bytes: Option<usize>) -> Self {
        Self {
            client: S::new(limits),
            buffer_bytes,
            resets: mode & 1 != 0,
            events: Vec::new(),
            sent: Vec::new(),
            asked: 0,
            stream: 0,
            progress: Progress::Ended,
            body_bytes: 0,
            length: None,
            note_bytes: 0,
        }
    }

    fn run<'a>(
        mut self,
        turns: &'a [(u8, Vec<u8>)],
        cut: impl Fn(&'a [u8]) -> Vec<&'a [u8]>,
    ) -> Story<ErrorOf<S>> {
        for (choice, bytes) in turns {
            self.send_request(*choice);
            for piece in cut(bytes) {
                receive(self.client.connection(), piece, self.buffer_bytes);
                self.listen();
            }
            match choice >> 5 {
                7 => {
                    self.client.connection().cancel();
                    if self.progress < Progress::Ended {
                        assert!(self.client.connection().is_closed());
                        self.progress = Progress::Over;
                    }
                }
                _ => self.client.end_turn(*choice),
            }
            self.transmit();
            self.listen();
        }
        self.client.receive_eof();
        self.listen();
        assert!(self.progress >= Progress::Ended, "an exchange has no end");
        Story {
            reusable: self.client.connection().is_reusable(),
            closed: self.client.connection().is_closed(),
            events: self.events,
            sent: self.sent,
        }
    }

    fn send_request(&mut self, choice: u8) {
        if self.resets && self.client.connection().is_closed() {
            self.client.connection().reset();
            (self.asked, self.stream, self.progress) = (0, 0, Progress::Ended);
        }
        let could = self.client.connection().is_reusable();
        let result = self.client.request(choice);
        self.client.check_invariants();
        assert!(result.is_err() || could, "a request without room");
        let Ok(stream) = result else { return };
        assert!(stream == self.stream + 1 && self.progress == Progress::Ended);
        assert!(!self.client.connection().has_answer());
        self.asked = stream + self.client.pipeline(choice);
        self.client.check_invariants();
        self.await_answer(stream);
        self.transmit();
    }

    fn await_answer(&mut self, stream: u32) {
        (self.stream, self.progress) = (stream, Progress::Requested);
        (self.body_bytes, self.note_bytes, self.length) = (0, 0, None);
    }

    fn transmit(&mut self) {
        let (mut queue, from) = (OutputQueue::default(), self.sent.len());
        self.client.connection().transmit(&mut queue);
        queue.drain_bytes(&mut self.sent);
        self.client.check_sent(&self.sent[from..]);
    }

    fn listen(&mut self) {
        self.client.check_invariants();
        while let Some(event) = self.client.connection().event() {
            self.check_event(&event);
            if let Event::Head { head, .. } = &event {
                self.client.connection().recycle(head.clone());
            }
            join(&mut self.events, event);
        }
        let is_followed = self.stream < self.asked;
        assert!(
            !is_followed || self.progress != Progress::Head,
            "a part of an answer with others behind it"
        );
    }

    /// Checks the order of events, and that they belong to the exchange in progress. A body that ends as complete must
    /// be complete.
    fn check_event(&mut self, event: &Event<ErrorOf<S>>) {
        assert_ne!(self.progress, Progress::Over, "{event:?} after the end");
        let (stream, from, to) = match event {
            Event::Head { stream, head, .. } => {
                assert!((200..1000).contains(&head.status));
                if let (BodyLength::Length(bytes), true) = (head.body, self.client.has_body(head)) {
                    self.length = Some(bytes);
                }
                (*stream, Progress::Requested, Progress::Head)
            }
            Event::Data { stream, bytes } => {
                assert!(!bytes.is_empty(), "data is some");
                self.body_bytes += bytes.len() as u64;
                (*stream, Progress::Head, Progress::Head)
            }
            Event::Note { stream, text } => {
                self.note_bytes += text.len();
                assert!(self.note_bytes <= S::NOTE_BYTES && !text.is_empty());
                assert_eq!(*stream, self.stream);
                return assert!(self.progress < Progress::Ended);
            }
            Event::End { stream, body_bytes } => {
                assert_eq!(*body_bytes, self.body_bytes, "what was told");
                let announced = self.length.unwrap_or(*body_bytes);
                assert_eq!(*body_bytes, announced, "a part ends as the whole");
                (*stream, Progress::Head, Progress::Ended)
            }
            Event::Eof => (self.stream, Progress::Ended, Progress::Over),
            Event::Failed(_) => {
                self.progress = Progress::Over;
                return assert!(self.client.connection().is_closed());
            }
            other => panic!("{other:?} does not exist here"),
        };
        assert_eq!((stream, &self.progress), (self.stream, &from), "{event:?}");
        match to == Progress::Ended && self.stream < self.asked {
            true => self.await_answer(stream + 1),
            false => self.progress = to,
        }
    }
}
