//! The three protocols behind one face: what the load loop needs of an engine in the client role.

use engines::client::{Bodies, Event, HeadSize, SendError};
use engines::http::{BodyLength, Chunk, OutputQueue, ResponseHead};
use engines::{h1, h2, spdy};

/// What is spoken.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::H1, Self::H2, Self::Spdy];

    /// Its name in TLS (RFC 7301).
    #[must_use]
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Self::H1 => b"http/1.1",
            Self::H2 => b"h2",
            Self::Spdy => b"spdy/3.1",
        }
    }

    /// Its name for people.
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

    /// The protocol of a name in TLS; without one it is HTTP/1.1.
    #[must_use]
    pub fn of_alpn(alpn: Option<&[u8]>) -> Option<Self> {
        match alpn {
            None => Some(Self::H1),
            Some(name) => Self::ALL.into_iter().find(|one| one.alpn() == name),
        }
    }
}

/// An engine.
pub(crate) enum Engine {
    H1(Box<Http1>),
    H2(Box<h2::Client>),
    Spdy(Box<spdy::Client>),
}

/// HTTP/1, whose requests say themselves what becomes of the connection.
pub(crate) struct Http1 {
    client: h1::Client,
    keep_alive: bool,
    /// Memory for what is sent.
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

/// What an engine tells, as far as load is concerned.
#[derive(Debug)]
pub(crate) enum Told {
    Head {
        stream: u32,
        status: u16,
        size: HeadSize,
    },
    End {
        stream: u32,
        body_bytes: u64,
    },
    /// This exchange failed.
    Lost {
        stream: u32,
        why: String,
    },
    /// The connection takes no more requests.
    Closing,
    /// The connection failed, with all its exchanges.
    Failed(String),
    Other,
}

impl Engine {
    /// An engine that counts bodies and drops them.
    pub(crate) fn new(protocol: Protocol, keep_alive: bool, spdy_level: u8) -> Self {
        match protocol {
            Protocol::H1 => Self::H1(Box::new(Http1 {
                client: h1::Client::new(Bodies::Counted),
                keep_alive,
                out: OutputQueue::default(),
            })),
            Protocol::H2 => {
                let settings = h2::Settings {
                    preread_bytes: WINDOW_BYTES,
                    header_bytes: HEADER_BYTES,
                    field_bytes: HEADER_BYTES,
                    abuse_budget: u32::MAX,
                    ..h2::Settings::default()
                };
                Self::H2(Box::new(h2::Client::new(settings, Bodies::Counted)))
            }
            Protocol::Spdy => {
                let settings = spdy::Settings {
                    headers_level: spdy_level,
                    preread_bytes: WINDOW_BYTES,
                    header_bytes: HEADER_BYTES,
                    abuse_budget: u32::MAX,
                    ..spdy::Settings::default()
                };
                Self::Spdy(Box::new(spdy::Client::new(settings, Bodies::Counted)))
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

    #[inline]
    pub(crate) fn event(&mut self) -> Option<Told> {
        match self {
            Self::H1(http1) => {
                let client = &mut http1.client;
                let event = client.event()?;
                let (told, head) = told(event, |error| format!("server {error}"));
                head.into_iter().for_each(|head| client.recycle(head));
                Some(told)
            }
            Self::H2(client) => {
                let event = client.event()?;
                let (told, head) = told(event, h2::ProtocolError::of_server);
                head.into_iter().for_each(|head| client.recycle(head));
                Some(told)
            }
            Self::Spdy(client) => {
                let event = client.event()?;
                let (told, head) = told(event, spdy::ProtocolError::of_server);
                head.into_iter().for_each(|head| client.recycle(head));
                Some(told)
            }
        }
    }
}

/// What an event means here, and the head whose memory can be used again.
#[inline]
fn told<M>(event: Event<M>, words: impl FnOnce(M) -> String) -> (Told, Option<Box<ResponseHead>>) {
    match event {
        Event::Head { stream, head, size } => {
            let status = head.status;
            let told = Told::Head {
                stream,
                status,
                size,
            };
            (told, Some(head))
        }
        Event::End { stream, body_bytes } => (Told::End { stream, body_bytes }, None),
        Event::Reset { stream, code } => {
            let why = format!("stream reset by the server, code {code}");
            (Told::Lost { stream, why }, None)
        }
        Event::Malformed { stream, what } => {
            let why = what.message().to_owned();
            (Told::Lost { stream, why }, None)
        }
        Event::Failed(error) => (Told::Failed(words(error)), None),
        Event::Closing { .. } | Event::Eof => (Told::Closing, None),
        Event::Interim { head, .. } => (Told::Other, Some(head)),
        Event::Data { .. }
        | Event::Note { .. }
        | Event::Trailers { .. }
        | Event::Upgraded(_)
        | Event::Pong(_) => (Told::Other, None),
    }
}

/// The window of each response: as large as that of h2load, so that it stops nobody.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Most bytes of a response's head.
const HEADER_BYTES: usize = 256 << 10;
