//! A server of streams, HTTP/2 or SPDY, with a client that sends any bytes: it responds to each request, at once or
//! after its end, and checks the engine's promises. The fuzz targets `h2` and `spdy` define the differences.

use engines::http::{BodyLength, Chunk, OutputQueue, RequestHead, ResponseHead};
use engines::mux::server::{Conn, Protocol};
use engines::mux::{Event, SendAction, SendOptions};

/// Operations that differ between the protocols.
pub trait StreamServer {
    type Protocol: Protocol;

    /// Code of RST_STREAM for a stream that was not begun.
    const REFUSED_STREAM: u32;

    fn drain(conn: &mut Conn<Self::Protocol>);

    fn end(conn: &mut Conn<Self::Protocol>);

    fn give_up_block(conn: &mut Conn<Self::Protocol>);

    fn consumed(conn: &mut Conn<Self::Protocol>, stream: u32, bytes: u64);

    /// Drops state that can be rebuilt.
    fn rest(_: &mut Conn<Self::Protocol>) {}

    /// Promises another response with this one.
    fn push(_: &mut Conn<Self::Protocol>, _stream: u32, _head: &RequestHead) {}

    /// Sends an interim response.
    fn send_interim(_: &mut Conn<Self::Protocol>, _stream: u32) {}

    /// Adds the fields of a response to its head; `requests` is the number so far.
    fn fill(head: &mut ResponseHead, requests: u8);
}

/// Checks that events and output do not depend on the cuts of the input. Returns the output.
pub fn sent_by_all<S: StreamServer>(
    connect: impl Fn() -> Conn<S::Protocol>,
    mode: u8,
    bytes: &[u8],
    step: u8,
) -> Vec<u8> {
    let peer = || Peer::<S>::new(connect(), mode);
    let whole = peer().run([bytes].into_iter(), false);
    let step = usize::from(step % 61) + 1;
    // All state that can be rebuilt is dropped between the pieces.
    let cut = peer().run(bytes.chunks(step), true);
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(mode >> 1) / 128;
    let halves = peer().run([&bytes[..at], &bytes[at..]].into_iter(), false);
    assert_eq!(whole, halves, "cut at {at}");
    peer().run_early(bytes.chunks(step));
    whole.sent
}

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
    over: bool,
}

struct Peer<S: StreamServer> {
    conn: Conn<S::Protocol>,
    mode: u8,
    events: Vec<String>,
    sent: Vec<u8>,
    /// Number of requests so far. It determines each response.
    requests: u8,
    turns: u8,
    now_ms: u64,
}

impl<S: StreamServer> Peer<S> {
    fn new(conn: Conn<S::Protocol>, mode: u8) -> Self {
        Self {
            conn,
            mode,
            events: Vec::new(),
            sent: Vec::new(),
            requests: 0,
            turns: 0,
            now_ms: 0,
        }
    }

    /// Receives all input before it responds. With `rests` the connection drops spare state meanwhile.
    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>, rests: bool) -> Story {
        for piece in pieces {
            self.conn.receive(piece);
            self.conn.check_invariants();
            if rests {
                S::rest(&mut self.conn);
            }
        }
        self.conn.receive_eof();
        self.deliver();
        self.pump(u64::MAX);
        let over = self.conn.is_over();
        Story {
            events: self.events,
            sent: self.sent,
            over,
        }
    }

    /// Responds between pieces of input, and ends the connection in the middle.
    fn run_early<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        self.conn.tick(self.now_ms);
        for piece in pieces {
            self.conn.receive(piece);
            self.conn.check_invariants();
            self.deliver();
            self.turns = self.turns.wrapping_add(1);
            match self.turns ^ self.mode {
                0x11 => S::drain(&mut self.conn),
                0x12 => S::end(&mut self.conn),
                0x13 => self.conn.end_after(3),
                0x14 => S::give_up_block(&mut self.conn),
                0x15 => {
                    self.now_ms += 1000;
                    self.conn.tick(self.now_ms);
                }
                0x16 => self.conn.reset(1, S::REFUSED_STREAM),
                0x17 => S::rest(&mut self.conn),
                _ => {}
            }
            self.conn.check_invariants();
            self.pump(1 + u64::from(self.turns) * 7);
        }
        self.conn.receive_eof();
        self.deliver();
        self.pump(u64::MAX);
    }

    fn deliver(&mut self) {
        while let Some(event) = self.conn.event() {
            self.events.push(format!("{event:?}"));
            match &event {
                Event::Head { stream, head } => {
                    if head.fault.is_none() {
                        S::push(&mut self.conn, *stream, head);
                    }
                    let status = if head.fault.is_some() { 400 } else { 200 };
                    self.answer(*stream, status);
                }
                Event::Data { stream, bytes } => {
                    S::consumed(&mut self.conn, *stream, bytes.len() as u64);
                }
                _ => {}
            }
            self.conn.check_invariants();
        }
    }

    fn answer(&mut self, stream: u32, status: u16) {
        self.requests = self.requests.wrapping_add(1);
        let mut head = ResponseHead {
            status,
            body: BodyLength::Unknown,
            ..ResponseHead::default()
        };
        S::fill(&mut head, self.requests);
        if self.requests % 3 == 0 {
            self.conn.discard_body(stream);
            S::send_interim(&mut self.conn, stream);
        }
        let plan = SendOptions {
            trailers: self.requests % 4 == 0,
            chunk_bytes: 1 + usize::from(self.mode),
        };
        self.conn.send_head(stream, &head, plan);
    }

    fn pump(&mut self, room: u64) {
        loop {
            match self.conn.advance(room, 1) {
                SendAction::Nothing => break,
                SendAction::Sent { .. } => {}
                SendAction::Body(stream) => self.feed(stream),
            }
            self.conn.check_invariants();
        }
        let mut queue = OutputQueue::default();
        self.conn.transmit(&mut queue);
        queue.drain_bytes(&mut self.sent);
    }

    /// Sends about 300 bytes for each body.
    fn feed(&mut self, stream: u32) {
        if self.conn.sent_bytes(stream) < 300 {
            let piece = vec![b'x'; 1 + usize::from(self.mode) + stream as usize % 7];
            self.conn.send_data(stream, Chunk::Owned(piece));
        } else if stream % 4 == 3 {
            let mut trailers = ResponseHead::default();
            trailers.push(b"x-sum", b"1");
            self.conn.send_end(stream, Some(&trailers));
        } else {
            self.conn.send_end(stream, None);
        }
    }
}

/// Defines the operations common to all servers.
#[macro_export]
macro_rules! steps {
    () => {
        fn drain(
            conn: &mut engines::mux::server::Conn<
                <Self as $crate::server_peer::StreamServer>::Protocol,
            >,
        ) {
            conn.drain();
        }
        fn end(
            conn: &mut engines::mux::server::Conn<
                <Self as $crate::server_peer::StreamServer>::Protocol,
            >,
        ) {
            conn.end();
        }
        fn give_up_block(
            conn: &mut engines::mux::server::Conn<
                <Self as $crate::server_peer::StreamServer>::Protocol,
            >,
        ) {
            conn.give_up_block();
        }
        fn consumed(
            conn: &mut engines::mux::server::Conn<
                <Self as $crate::server_peer::StreamServer>::Protocol,
            >,
            stream: u32,
            bytes: u64,
        ) {
            conn.consumed(stream, bytes);
        }
    };
}
