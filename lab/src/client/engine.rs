//! HTTP/1.1, HTTP/2 and SPDY/3.1 in the client role, behind one interface.

use engines::client::{self, Bodies, HeadSize, SendError};
use engines::http::{BodyLength, Chunk, OutputQueue, ResponseHead, Version};
use engines::{h1, h2, spdy};

/// A protocol of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
    /// SPDY/3.1.
    Spdy,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::H1, Self::H2, Self::Spdy];

    /// Returns its ALPN name (RFC 7301).
    #[must_use]
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Self::H1 => b"http/1.1",
            Self::H2 => b"h2",
            Self::Spdy => b"spdy/3.1",
        }
    }

    /// Values of options that choose a protocol.
    pub const OPTIONS: [&str; 4] = ["auto", "h1", "h2", "spdy"];

    /// The protocol of one of [`Protocol::OPTIONS`]; `None` for `auto`.
    #[must_use]
    pub fn of_option(name: &str) -> Option<Self> {
        match name {
            "h1" => Some(Self::H1),
            "h2" => Some(Self::H2),
            "spdy" => Some(Self::Spdy),
            _ => None,
        }
    }

    /// Returns its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H1 => "HTTP/1.1",
            Self::H2 => "HTTP/2",
            Self::Spdy => "SPDY/3.1",
        }
    }

    /// Whether a connection carries several requests at a time.
    #[must_use]
    pub const fn has_streams(self) -> bool {
        !matches!(self, Self::H1)
    }

    /// Returns whether a stream reset with this code was not processed. Then its request may be sent again (RFC 9113
    /// section 8.7).
    pub(crate) const fn is_refusal(self, code: u32) -> bool {
        match self {
            Self::H1 => false,
            Self::H2 => code == h2::REFUSED_STREAM,
            Self::Spdy => code == spdy::REFUSED_STREAM,
        }
    }

    /// Returns the protocol of an ALPN name; without a name it is HTTP/1.1.
    #[must_use]
    pub fn of_alpn(alpn: Option<&[u8]>) -> Option<Self> {
        match alpn {
            None => Some(Self::H1),
            Some(name) => Self::ALL.into_iter().find(|one| one.alpn() == name),
        }
    }
}

/// An engine in the client role.
pub(crate) enum Engine {
    H1(Box<Http1>),
    H2(Box<h2::Client>),
    Spdy(Box<spdy::Client>),
}

/// HTTP/1: each request has a field for keep-alive or close.
pub(crate) struct Http1 {
    client: h1::Client,
    keep_alive: bool,
    /// Memory for sent bytes.
    out: OutputQueue,
}

impl Http1 {
    fn request(&mut self, fields: &[(Vec<u8>, Vec<u8>)], body: &[u8]) -> Result<u32, SendError> {
        let own = fields.iter().filter_map(|(name, value)| match &name[..] {
            b":scheme" => None,
            b":authority" => Some((&b"host"[..], &value[..])),
            name => Some((name, &value[..])),
        });
        let close = (!self.keep_alive).then_some((&b"connection"[..], &b"close"[..]));
        let options = h1::RequestOptions {
            body: match body.len() as u64 {
                0 => BodyLength::None,
                length => BodyLength::Length(length),
            },
            head_bytes: HEADER_BYTES,
            ..h1::RequestOptions::default()
        };
        let stream = self.client.request(own.chain(close), options)?;
        if !body.is_empty() {
            self.client.send(Chunk::Owned(body.to_vec()));
        }
        Ok(stream)
    }
}

/// An event of a connection; times are nanoseconds of the monotonic clock.
#[derive(Debug)]
pub(crate) enum Event {
    /// TCP is connected.
    Connected {
        from_ns: u64,
        to_ns: u64,
    },
    /// The TLS handshake is complete, which began with the connection.
    Handshake {
        from_ns: u64,
        to_ns: u64,
        resumed: bool,
    },
    /// Requests can be sent.
    Open(Protocol),
    /// The head of a response.
    Head {
        stream: u32,
        status: u16,
        size: HeadSize,
    },
    /// A response is complete.
    End {
        stream: u32,
        body_bytes: u64,
    },
    /// A request failed, and the connection did not.
    Lost {
        stream: u32,
        why: String,
    },
    /// The connection accepts no more requests.
    Closing,
    /// The connection failed, with all its requests.
    Failed(String),
    Other,
}

impl Engine {
    /// An engine that counts bodies and drops them.
    pub(super) fn new(protocol: Protocol, keep_alive: bool, spdy_level: u8) -> Self {
        Self::build(protocol, Bodies::Counted, keep_alive, spdy_level)
    }

    /// Makes an engine that delivers bodies, and that fails if the server only causes work.
    pub(crate) fn delivering(protocol: Protocol, spdy_level: u8) -> Self {
        Self::build(protocol, Bodies::Delivered, true, spdy_level)
    }

    fn build(protocol: Protocol, bodies: Bodies, keep_alive: bool, spdy_level: u8) -> Self {
        let abuse_budget = match bodies {
            Bodies::Counted => u32::MAX,
            Bodies::Delivered => ABUSE_BUDGET,
        };
        match protocol {
            Protocol::H1 => Self::H1(Box::new(Http1 {
                client: h1::Client::new(bodies),
                keep_alive,
                out: OutputQueue::default(),
            })),
            Protocol::H2 => {
                let settings = h2::Settings {
                    preread_bytes: WINDOW_BYTES,
                    header_bytes: HEADER_BYTES,
                    field_bytes: HEADER_BYTES,
                    abuse_budget,
                    ..h2::Settings::default()
                };
                Self::H2(Box::new(h2::Client::new(settings, bodies)))
            }
            Protocol::Spdy => {
                let settings = spdy::Settings {
                    headers_level: spdy_level,
                    preread_bytes: WINDOW_BYTES,
                    header_bytes: HEADER_BYTES,
                    abuse_budget,
                    ..spdy::Settings::default()
                };
                Self::Spdy(Box::new(spdy::Client::new(settings, bodies)))
            }
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::H1(_) => Protocol::H1,
            Self::H2(_) => Protocol::H2,
            Self::Spdy(_) => Protocol::Spdy,
        }
    }

    /// Returns whether the last response used HTTP/1.0. Without `keep-alive` such a connection ends with its response.
    #[inline]
    pub(crate) fn is_http10(&self) -> bool {
        matches!(self, Self::H1(http1) if http1.client.version() == Version::Http10)
    }

    /// How many exchanges can be begun now.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        match self {
            Self::H1(http1) => usize::from(http1.client.is_reusable()),
            Self::H2(client) => client.room(),
            Self::Spdy(client) => client.room(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::H1(http1) => http1.client.is_closed(),
            Self::H2(client) => client.is_closed(),
            Self::Spdy(client) => client.is_closed(),
        }
    }

    #[inline]
    pub(crate) fn request(
        &mut self,
        fields: &[(Vec<u8>, Vec<u8>)],
        body: &[u8],
    ) -> Result<u32, SendError> {
        let ended = body.is_empty();
        let pairs = fields
            .iter()
            .map(|(name, value)| (name.as_slice(), value.as_slice()));
        match self {
            Self::H1(http1) => http1.request(fields, body),
            Self::H2(client) => {
                let stream = client.request(pairs, ended)?;
                client.send(stream, body, true);
                Ok(stream)
            }
            Self::Spdy(client) => {
                let stream = client.request(pairs, ended)?;
                client.send(stream, body, true);
                Ok(stream)
            }
        }
    }

    #[inline]
    pub(crate) fn receive(&mut self, input: &[u8]) {
        match self {
            Self::H1(http1) => http1.client.receive(input),
            Self::H2(client) => client.receive(input),
            Self::Spdy(client) => client.receive(input),
        }
    }

    pub(crate) fn receive_eof(&mut self, whole: bool) {
        match self {
            Self::H1(http1) => http1.client.receive_eof(whole),
            Self::H2(client) => client.receive_eof(whole),
            Self::Spdy(client) => client.receive_eof(whole),
        }
    }

    #[inline]
    pub(crate) fn transmit(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::H1(http1) => {
                http1.client.transmit(&mut http1.out);
                http1.out.drain_bytes(out);
            }
            Self::H2(client) => client.transmit(out),
            Self::Spdy(client) => client.transmit(out),
        }
    }

    /// Bytes of a body have been used up: the server may send as many again.
    pub(crate) fn consumed(&mut self, stream: u32, bytes: u64) {
        match self {
            Self::H1(_) => {}
            Self::H2(client) => client.consumed(stream, bytes),
            Self::Spdy(client) => client.consumed(stream, bytes),
        }
    }

    /// Returns the next event with all its data; an error of the connection is a text.
    pub(crate) fn whole_event(&mut self) -> Option<client::Event<String>> {
        Some(match self {
            Self::H1(http1) => http1
                .client
                .event()?
                .map_error(|error| format!("server {error}")),
            Self::H2(client) => client.event()?.map_error(h2::ProtocolError::of_server),
            Self::Spdy(client) => client.event()?.map_error(spdy::ProtocolError::of_server),
        })
    }

    #[inline]
    pub(super) fn event(&mut self) -> Option<Event> {
        match self {
            Self::H1(http1) => {
                let client = &mut http1.client;
                let event = client.event()?;
                let (event, head) = reduced(event, |error| format!("server {error}"));
                head.into_iter().for_each(|head| client.recycle(head));
                Some(event)
            }
            Self::H2(client) => {
                let event = client.event()?;
                let (event, head) = reduced(event, h2::ProtocolError::of_server);
                head.into_iter().for_each(|head| client.recycle(head));
                Some(event)
            }
            Self::Spdy(client) => {
                let event = client.event()?;
                let (event, head) = reduced(event, spdy::ProtocolError::of_server);
                head.into_iter().for_each(|head| client.recycle(head));
                Some(event)
            }
        }
    }
}

/// Returns the event without the parts that only one protocol has, and a head for reuse of its memory.
#[inline]
fn reduced<M>(
    event: client::Event<M>,
    words: impl FnOnce(M) -> String,
) -> (Event, Option<Box<ResponseHead>>) {
    match event {
        client::Event::Head { stream, head, size } => {
            let status = head.status;
            let event = Event::Head {
                stream,
                status,
                size,
            };
            (event, Some(head))
        }
        client::Event::End { stream, body_bytes } => (Event::End { stream, body_bytes }, None),
        client::Event::Reset { stream, code } => {
            let why = format!("stream reset by the server, code {code}");
            (Event::Lost { stream, why }, None)
        }
        client::Event::Malformed { stream, what } => {
            let why = what.message().to_owned();
            (Event::Lost { stream, why }, None)
        }
        client::Event::Failed(error) => (Event::Failed(words(error)), None),
        client::Event::Closing { .. } | client::Event::Eof => (Event::Closing, None),
        client::Event::Interim { head, .. } => (Event::Other, Some(head)),
        client::Event::Data { .. }
        | client::Event::Note { .. }
        | client::Event::Trailers { .. }
        | client::Event::Upgraded(_)
        | client::Event::Pong(_) => (Event::Other, None),
    }
}

/// Window of each response: as large as that of h2load, so that no server waits for it.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Most bytes of a response's head.
const HEADER_BYTES: usize = 256 << 10;
/// Frames that cost CPU without progress, before a connection fails that delivers bodies.
const ABUSE_BUDGET: u32 = 10_000;
