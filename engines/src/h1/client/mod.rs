//! HTTP/1.1 and HTTP/1.0 on one connection, client role.
//!
//! One exchange at a time: the next request is taken when the response before it, and the body of its own request, are
//! complete. Exchanges are numbered from 1.
//!
//! What servers and proxies could read in two ways is an error and never repaired: a body may have one length, chunked is
//! the only coding, a line needs its colon, nothing may come that was not asked for. Whether the end of the connection ends
//! a body is the driver's to say, since TLS knows of ends that somebody else has made.
//!
//! Absent: HTTP/0.9, pipelining.
//!
//! Source: RFC 9112, RFC 9110 section 15.

mod head;
mod protocol_error;
mod request;

use std::collections::VecDeque;

use super::Settings;
use super::chunked::ChunkedDecoder;
use crate::client::{self, Bodies, HeadSize, MAX_INTERIM, Refusal, Spares};
use crate::http::{BodyLength, Fault, Fields, ResponseHead, Version};
use crate::reassembly::ReassemblyBuffer;
use head::{Ends, Parsed, ResponseParser, ends};
pub use protocol_error::ProtocolError;
use request::Asked;

/// What a client of HTTP/1 tells its driver.
pub type Event = client::Event<ProtocolError>;

/// One HTTP/1 connection in the client role.
#[derive(Debug)]
pub struct Client {
    /// Limits of heads and trailer sections.
    settings: Settings,
    bodies: Bodies,
    /// Version of the requests.
    version: Version,
    keep_alive: bool,
    /// A part of a head.
    held: ReassemblyBuffer,
    parser: ResponseParser,
    receiving: Receiving,
    sending: Sending,
    asked: Asked,
    /// Number of the exchange that is under way, or of the last one.
    stream: u32,
    /// The connection may be used for another exchange.
    keep: bool,
    interim: u32,
    body_bytes: u64,
    events: VecDeque<Event>,
    out: Vec<u8>,
    spares: Spares,
    scratch: Vec<u8>,
}

/// What the next received byte belongs to.
#[derive(Debug)]
enum Receiving {
    /// Nothing has been asked.
    Idle,
    Head,
    /// A body with a length; `left` is never 0.
    Length {
        left: u64,
    },
    Chunked(ChunkedDecoder, Fields),
    UntilClose,
    Tunnel,
    /// Nothing is read any more.
    Over,
}

/// How far the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Counted { left: u64 },
    Chunked,
    Tunnel,
    Ended,
}

impl Client {
    /// A connection on which nothing has been sent. `settings` limit heads and trailer sections as they do for requests;
    /// without `keep_alive` every request asks the server to close.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies, keep_alive: bool) -> Self {
        Self {
            parser: ResponseParser::new(&settings),
            settings,
            bodies,
            version: Version::Http11,
            keep_alive,
            held: ReassemblyBuffer::default(),
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            asked: Asked::default(),
            stream: 0,
            keep: true,
            interim: 0,
            body_bytes: 0,
            events: VecDeque::new(),
            out: Vec::new(),
            spares: Spares::default(),
            scratch: Vec::new(),
        }
    }

    /// A connection for one request of HTTP/1.0. Its body and that of the response have a length, or the response ends with
    /// the connection.
    #[must_use]
    pub fn http10(settings: Settings, bodies: Bodies) -> Self {
        Self {
            version: Version::Http10,
            ..Self::new(settings, bodies, false)
        }
    }

    /// Sends a request with these fields, `:method`, `:path` and `:authority` first, and gives its number. With `ended` it
    /// has no body; else the body follows by [`Self::send`], chunked unless a `content-length` is among the fields.
    ///
    /// # Errors
    /// The connection cannot take it, or it cannot be sent; nothing has been sent then.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        ended: bool,
    ) -> Result<u32, Refusal> {
        match self.receiving {
            Receiving::Over | Receiving::Tunnel => return Err(Refusal::Closed),
            Receiving::Idle if !self.keep => return Err(Refusal::Closed),
            Receiving::Idle if self.sending == Sending::Ended => {}
            _ => return Err(Refusal::Busy),
        }
        let before = self.out.len();
        match request::encode(fields, ended, self.version, self.keep_alive, &mut self.out) {
            Ok((asked, sending)) => (self.asked, self.sending) = (asked, sending),
            Err(refusal) => {
                self.out.truncate(before);
                return Err(refusal);
            }
        }
        self.keep &= !self.asked.close;
        self.receiving = Receiving::Head;
        self.stream += 1;
        self.interim = 0;
        Ok(self.stream)
    }

    /// How many exchanges can be begun now: 1 or 0.
    #[must_use]
    pub fn room(&self) -> usize {
        let idle = matches!(self.receiving, Receiving::Idle) && self.sending == Sending::Ended;
        usize::from(idle && self.keep)
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.receiving {
            Receiving::Over | Receiving::Tunnel => true,
            Receiving::Idle => !self.keep,
            _ => false,
        }
    }

    /// Gives the exchange up, and with it the connection.
    pub fn cancel(&mut self, stream: u32) {
        if stream == self.stream && !self.is_idle() {
            self.receiving = Receiving::Over;
            self.sending = Sending::Ended;
            self.keep = false;
            self.held.clear();
            self.events.clear();
        }
    }

    /// Windows are those of the transport, which opens them itself.
    pub fn consumed(&mut self, _stream: u32, _bytes: u64) {}

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        client::hand_over(&mut self.out, out);
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        let all = self.held.join(input);
        match self.advance(&all) {
            Ok(used) => self.held.keep(all, used),
            Err(error) => self.fail(error),
        }
    }

    /// Takes the end of the server's bytes. It ends a body without a length only where it is `whole`: with TLS, where the
    /// server has said so before it closed.
    pub fn receive_eof(&mut self, whole: bool) {
        match self.receiving {
            Receiving::Over => {}
            Receiving::Idle => {
                self.receiving = Receiving::Over;
                self.events.push_back(Event::Eof);
            }
            Receiving::UntilClose | Receiving::Tunnel if whole => {
                self.end();
                self.receiving = Receiving::Over;
            }
            Receiving::Head if self.interim == 0 && self.parser.is_fresh() => {
                self.fail(ProtocolError::NoResponse);
            }
            _ => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes bytes; gives how many. What is left is a part of a head.
    fn advance(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            match &mut self.receiving {
                Receiving::Over => return Ok(input.len()),
                Receiving::Idle => return Err(ProtocolError::Unasked),
                Receiving::Head => {
                    let (used, done) = self.parser.advance(rest, &self.settings)?;
                    at += used;
                    if !done {
                        return Ok(at);
                    }
                    let spare = self.spares.take();
                    let parsed = self.parser.take(spare, &self.settings)?;
                    self.head(parsed)?;
                }
                Receiving::Length { left } => {
                    let used = (*left).min(rest.len() as u64) as usize;
                    *left -= used as u64;
                    let done = *left == 0;
                    self.data(&rest[..used]);
                    at += used;
                    if done {
                        self.end();
                    }
                }
                Receiving::Chunked(decoder, trailers) => {
                    self.scratch.clear();
                    let data = &mut self.scratch;
                    let result = decoder.decode(rest, &self.settings, data, trailers);
                    let done = decoder.is_done();
                    let trailers = done.then(|| std::mem::take(trailers));
                    let data = std::mem::take(&mut self.scratch);
                    self.data(&data);
                    self.scratch = data;
                    at += result.map_err(ProtocolError::Body)?;
                    if let Some(fields) = trailers {
                        self.trailers(fields);
                        self.end();
                    }
                }
                Receiving::UntilClose | Receiving::Tunnel => {
                    self.data(rest);
                    return Ok(input.len());
                }
            }
        }
        Ok(at)
    }

    fn head(&mut self, parsed: Parsed) -> Result<(), ProtocolError> {
        let Parsed {
            head,
            keep,
            size_bytes,
        } = parsed;
        let stream = self.stream;
        let status = head.status;
        if status == 101 && !self.asked.upgrade {
            return Err(ProtocolError::UnaskedUpgrade);
        }
        if (100..200).contains(&status) && status != 101 {
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(ProtocolError::TooManyInterim);
            }
            self.events.push_back(Event::Interim { stream, head });
            return Ok(());
        }
        // RFC 9112 section 6.1: a server sends no coding to who may not know it.
        if self.version == Version::Http10 && head.body == BodyLength::Unknown {
            return Err(ProtocolError::Head(Fault::EncodingInHttp10));
        }
        let tunnel = status == 101 || (self.asked.is_connect && (200..300).contains(&status));
        let ends = ends(&head, self.asked.is_head);
        let size = HeadSize {
            wire_bytes: size_bytes,
            text_bytes: size_bytes,
        };
        self.keep &= keep && ends != Ends::AtClose && !tunnel;
        self.body_bytes = 0;
        self.events.push_back(Event::Head { stream, head, size });
        if tunnel {
            self.events.push_back(Event::Upgraded(stream));
            self.receiving = Receiving::Tunnel;
            self.sending = Sending::Tunnel;
            return Ok(());
        }
        match ends {
            Ends::Now => self.end(),
            Ends::After(left) => self.receiving = Receiving::Length { left },
            Ends::Chunked => {
                self.receiving = Receiving::Chunked(ChunkedDecoder::new(), Fields::default());
            }
            Ends::AtClose => self.receiving = Receiving::UntilClose,
        }
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len() as u64;
        if bytes.is_empty() || self.bodies == Bodies::Counted {
            return;
        }
        match self.events.back_mut() {
            Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.events.push_back(Event::Data {
                stream: self.stream,
                bytes: bytes.to_vec(),
            }),
        }
    }

    fn trailers(&mut self, fields: Fields) {
        if !fields.is_empty() && self.bodies == Bodies::Told {
            let stream = self.stream;
            self.events.push_back(Event::Trailers { stream, fields });
        }
    }

    fn end(&mut self) {
        self.receiving = Receiving::Idle;
        self.events.push_back(Event::End {
            stream: self.stream,
            body_bytes: self.body_bytes,
        });
    }

    fn is_idle(&self) -> bool {
        matches!(self.receiving, Receiving::Idle) && self.sending == Sending::Ended
    }

    fn fail(&mut self, error: ProtocolError) {
        self.receiving = Receiving::Over;
        self.sending = Sending::Ended;
        self.keep = false;
        self.held.clear();
        self.events.push_back(Event::Failed(error));
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        match self.receiving {
            Receiving::Head => {
                let (_, large) = self.settings.large_header_buffers;
                let limit = large.max(self.settings.header_buffer_bytes);
                assert!(
                    self.held.bytes().len() <= limit,
                    "a part of a line exceeds its limit"
                );
            }
            Receiving::Length { left } => assert!(left > 0, "a complete body is not recognised"),
            Receiving::Chunked(ref decoder, _) => assert!(!decoder.is_done(), "a body has ended"),
            _ => {}
        }
        let in_head = matches!(self.receiving, Receiving::Head);
        assert!(
            in_head || self.held.bytes().is_empty(),
            "bytes are held for nobody"
        );
    }
}
