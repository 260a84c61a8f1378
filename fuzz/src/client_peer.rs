//! A client of streams, HTTP/2 or SPDY, with a server that sends any bytes: it sends five requests, reads, and checks
//! the engine's promises. The fuzz targets `h2_client` and `spdy_client` define the protocol and the server's bytes.

use std::collections::BTreeMap;

use engines::client::{Bodies, Event, MAX_INTERIM, SendError};
use engines::http::Fields;
use engines::mux::client::{Client, Protocol};
use engines::mux::{self, server};

/// Operations that differ between the protocols.
pub trait StreamClient {
    type Protocol: Protocol;

    /// Bytes of a server that opens windows of three bytes for each body.
    const SMALL_WINDOWS: &[u8];

    fn client(limits: u8, bodies: Bodies) -> Client<Self::Protocol>;

    fn request<'a>(
        client: &mut Client<Self::Protocol>,
        fields: [(&'a [u8], &'a [u8]); 5],
        ended: bool,
    ) -> Result<u32, SendError>;

    /// Ends a request, with trailers if there are any.
    fn send_trailers(client: &mut Client<Self::Protocol>, stream: u32, trailers: &Fields);

    fn ping(client: &mut Client<Self::Protocol>);

    /// Announces that no more requests come, if the protocol can.
    fn end(client: &mut Client<Self::Protocol>);
}

/// Checks that events do not depend on the cuts of the input. Returns the client's output for input in one go, and for
/// input between requests.
pub fn sent_by_all<S: StreamClient>(
    limits: u8,
    mode: u8,
    bytes: &[u8],
    step: u8,
    at: u8,
) -> [Vec<u8>; 2] {
    let whole = Peer::<S>::new(limits, mode).run([bytes].into_iter());
    let step = usize::from(step % 61) + 1;
    let cut = Peer::<S>::new(limits, mode).run(bytes.chunks(step));
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(at) / 256;
    let halves = Peer::<S>::new(limits, mode).run([&bytes[..at], &bytes[at..]].into_iter());
    assert_eq!(whole, halves, "cut at {at}");
    let early = Peer::<S>::new(limits, mode).run_early(bytes.chunks(step));
    [whole.sent, early.sent]
}

/// The server role parses the output of the client role without an error other than `allowed`.
pub fn read_back<P: server::Protocol>(
    mut server: server::Conn<P>,
    sent: &[u8],
    allowed: impl Fn(&P::ProtocolError) -> bool,
) {
    server.receive(sent);
    server.check_invariants();
    while let Some(event) = server.event() {
        match event {
            mux::Event::Failed(why) => {
                assert!(allowed(&why), "{why:?}: a frame that nobody understands");
            }
            mux::Event::Head { head, .. } => assert_eq!(head.fault, None),
            _ => {}
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

struct Peer<S: StreamClient> {
    client: Client<S::Protocol>,
    /// Bodies are delivered, not only counted.
    delivers: bool,
    mode: u8,
    events: Vec<String>,
    sent: Vec<u8>,
    /// Exchanges that have not ended.
    open: BTreeMap<u32, Exchange>,
    over: bool,
    turns: u8,
}

#[derive(Debug, Default)]
struct Exchange {
    head: bool,
    interim: u32,
    body_bytes: u64,
}

impl<S: StreamClient> Peer<S> {
    /// Makes a client with five requests: without a body, by HEAD, and with bodies. Bodies are sent in part, wait for
    /// windows, or have trailers.
    fn new(limits: u8, mode: u8) -> Self {
        let bodies = [Bodies::Delivered, Bodies::Counted][usize::from(limits & 1)];
        let mut peer = Self {
            client: S::client(limits, bodies),
            delivers: limits & 1 == 0,
            mode,
            events: Vec::new(),
            sent: Vec::new(),
            open: BTreeMap::new(),
            over: false,
            turns: 0,
        };
        if mode & 2 != 0 {
            peer.client.receive(S::SMALL_WINDOWS);
        }
        peer.send_request(b"GET", true);
        peer.send_request(b"HEAD", true);
        for (method, len) in [(&b"POST"[..], 300), (b"PUT", 40), (b"PATCH", 40)] {
            let Some(stream) = peer.send_request(method, false) else {
                continue;
            };
            // In one mode, more than the connection's window.
            let len = if mode & 0x1c == 0x1c { 40_000 } else { len };
            peer.client.send(stream, &vec![b'x'; len], method == b"PUT");
            if method == b"PATCH" {
                peer.end_with_trailers(stream);
            }
        }
        peer.client.check_invariants();
        peer
    }

    fn send_request(&mut self, method: &[u8], ended: bool) -> Option<u32> {
        let fields: [(&[u8], &[u8]); 5] = [
            (b":method", method),
            (b":scheme", b"http"),
            (b":authority", b"h"),
            (b":path", b"/"),
            (b"x-mode", &[b'0' + self.mode % 10]),
        ];
        let room = self.client.room();
        let stream = S::request(&mut self.client, fields, ended).ok()?;
        assert!(room > 0, "a request without room");
        self.open.insert(stream, Exchange::default());
        Some(stream)
    }

    fn end_with_trailers(&mut self, stream: u32) {
        let mut trailers = Fields::default();
        trailers.push(b"x-sum", b"1");
        trailers.push(b"connection", b"close");
        S::send_trailers(&mut self.client, stream, &trailers);
    }

    /// Receives all input before it takes events.
    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.client.receive(piece);
            self.client.check_invariants();
        }
        self.client.receive_eof(true);
        self.listen();
        self.story()
    }

    /// Sends further requests between pieces of input.
    fn run_early<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.client.receive(piece);
            self.client.check_invariants();
            self.listen();
            self.turns = self.turns.wrapping_add(1);
            match (self.turns ^ self.mode) & 0x1f {
                1 => self.client.send(5, b"more", false),
                2 => self.client.send(5, b"", true),
                3 => self.end_with_trailers(5),
                4 => self.cancel(7),
                5 => S::ping(&mut self.client),
                6 => S::end(&mut self.client),
                7 => self.client.tick(u64::from(self.turns) * 1000),
                8 | 9 => _ = self.send_request(b"GET", true),
                10 => _ = self.send_request(b"DELETE", false),
                11 => self.cancel(1),
                12 => assert!(self.client.pending_bytes(9) <= 40_000),
                _ => {}
            }
            self.client.check_invariants();
            self.client.transmit(&mut self.sent);
        }
        self.client.receive_eof(true);
        self.listen();
        self.story()
    }

    fn cancel(&mut self, stream: u32) {
        self.client.cancel(stream);
        self.open.remove(&stream);
    }

    fn story(mut self) -> Story {
        self.client.transmit(&mut self.sent);
        Story {
            room: self.client.room(),
            closed: self.client.is_closed(),
            events: self.events,
            sent: self.sent,
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.client.event() {
            self.check_event(&event);
            self.events.push(format!("{event:?}"));
            match event {
                Event::Data { stream, bytes } => {
                    self.client.consumed(stream, bytes.len() as u64);
                }
                Event::Head { head, .. } | Event::Interim { head, .. } => {
                    self.client.recycle(head);
                }
                _ => {}
            }
            self.client.check_invariants();
        }
    }

    /// Checks the order of events, and that their exchanges have not ended.
    fn check_event(&mut self, event: &Event<<S::Protocol as Protocol>::ProtocolError>) {
        assert!(!self.over, "{event:?} after the end");
        match event {
            Event::Interim { stream, .. } => {
                let exchange = self.exchange(*stream, false, event);
                exchange.interim += 1;
                assert!(exchange.interim <= MAX_INTERIM);
            }
            Event::Head { stream, .. } => self.exchange(*stream, false, event).head = true,
            Event::Data { stream, bytes } => {
                self.exchange(*stream, true, event).body_bytes += bytes.len() as u64;
            }
            Event::Trailers { stream, .. } => _ = self.exchange(*stream, true, event),
            Event::End { stream, body_bytes } => {
                let delivered = self.exchange(*stream, true, event).body_bytes;
                let expected = if self.delivers { *body_bytes } else { 0 };
                assert_eq!(delivered, expected, "{event:?}");
                self.open.remove(stream);
            }
            Event::Reset { stream, .. } | Event::Malformed { stream, .. } => {
                assert!(self.open.remove(stream).is_some(), "{event:?}");
            }
            Event::Pong(_) | Event::Closing { .. } => {}
            Event::Failed(_) => self.over = true,
            Event::Eof => {
                assert!(self.open.is_empty(), "{:?} have no end", self.open);
                self.over = true;
            }
            Event::Note { .. } | Event::Upgraded(_) => panic!("{event:?} does not exist here"),
        }
    }

    fn exchange(
        &mut self,
        stream: u32,
        head: bool,
        event: &Event<<S::Protocol as Protocol>::ProtocolError>,
    ) -> &mut Exchange {
        let exchange = self.open.get_mut(&stream);
        let exchange = exchange.unwrap_or_else(|| panic!("{event:?} about no exchange"));
        assert_eq!(exchange.head, head, "{event:?}");
        exchange
    }
}

/// Defines the operations common to all clients; `$settings` chooses limits by a byte.
#[macro_export]
macro_rules! asks {
    ($settings:path) => {
        fn client(
            limits: u8,
            bodies: engines::client::Bodies,
        ) -> engines::mux::client::Client<<Self as $crate::client_peer::StreamClient>::Protocol> {
            engines::mux::client::Client::<<Self as $crate::client_peer::StreamClient>::Protocol>::new(
                $settings(limits),
                bodies,
            )
        }
        fn request<'a>(
            client: &mut engines::mux::client::Client<
                <Self as $crate::client_peer::StreamClient>::Protocol,
            >,
            fields: [(&'a [u8], &'a [u8]); 5],
            ended: bool,
        ) -> Result<u32, engines::client::SendError> {
            client.request(fields, ended)
        }
        fn ping(
            client: &mut engines::mux::client::Client<
                <Self as $crate::client_peer::StreamClient>::Protocol,
            >,
        ) {
            client.ping(5);
        }
    };
}
