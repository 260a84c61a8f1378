//! A client of HTTP/2 for the sweep: one connection, one stream at a time, clock readings.
//!
//! Its preface is sent with the first request, as by browsers, and opens the windows wide, so that the server waits for
//! no window update. Owed frames, such as the acknowledgement of SETTINGS, are sent with the next request: if sent at
//! once, they would carry the TCP acknowledgement that the link is to hold. Deliberately absent: CONTINUATION, since no
//! head is that long. Source: RFC 9113.

use std::io::{self, ErrorKind, Write};
use std::time::Instant;

use crate::sweep::{Peer, Timing};
use firstbyte_tests::h2::{
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, MAX_WINDOW, PING, PREFACE,
    SETTINGS, WINDOW_UPDATE, frame,
};
use firstbyte_tests::hpack::{self, Reader};

use crate::transport::{NAME, Transport, Wire};

/// The client.
pub(crate) struct H2 {
    transport: Transport,
    wire: Option<Wire>,
    reader: Reader,
    next_stream: u32,
    /// Received part of a frame.
    buffer: Vec<u8>,
    /// Frames to be sent with the next request.
    owed: Vec<u8>,
}

/// The head of a frame, and its payload.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A response so far.
#[derive(Default)]
struct Response {
    has_head: bool,
    coding: Option<String>,
    body_bytes: usize,
    ended: bool,
}

impl H2 {
    /// A client of the server at this transport; the path of a body is its size.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            wire: None,
            reader: Reader::default(),
            next_stream: 1,
            buffer: Vec::new(),
            owed: Vec::new(),
        }
    }

    fn take(&mut self, taken: &Frame, stream: u32, response: &mut Response) -> io::Result<()> {
        let Frame { kind, flags, .. } = *taken;
        match kind {
            SETTINGS if flags & ACK == 0 => self.owed.extend(frame(SETTINGS, ACK, 0, &[])),
            PING if flags & ACK == 0 => {
                self.owed.extend(frame(PING, ACK, 0, &taken.payload));
            }
            SETTINGS | PING | WINDOW_UPDATE => {}
            HEADERS if taken.stream == stream && flags & END_HEADERS != 0 => {
                let fields = self.reader.read(&taken.payload);
                if fields.first().is_none_or(|(_, status)| status != "200") {
                    return Err(broken(format!("{fields:?}")));
                }
                response.has_head = true;
                let coding = fields
                    .into_iter()
                    .find(|(name, _)| name == "content-encoding");
                response.coding = coding.map(|(_, value)| value);
            }
            DATA if taken.stream == stream && response.has_head => {
                response.body_bytes += taken.payload.len();
            }
            _ => {
                let what = format!("a frame of kind {kind} on stream {}", taken.stream);
                return Err(broken(what));
            }
        }
        if matches!(kind, HEADERS | DATA) {
            response.ended = flags & END_STREAM != 0;
        }
        Ok(())
    }
}

impl Peer for H2 {
    fn connect(&mut self) -> io::Result<()> {
        // The connection before ends first, so that its last packets are none of the new one's time.
        self.wire = None;
        self.transport.turn();
        *self = Self::new(self.transport.clone());
        let wire = self.transport.open()?;
        let window = [
            &INITIAL_WINDOW_SIZE.to_be_bytes()[..],
            &MAX_WINDOW.to_be_bytes(),
        ];
        let more = MAX_WINDOW - DEFAULT_WINDOW;
        let hello = [
            PREFACE,
            &frame(SETTINGS, 0, 0, &window.concat()),
            &frame(WINDOW_UPDATE, 0, 0, &more.to_be_bytes()),
        ];
        self.owed = hello.concat();
        self.wire = Some(wire);
        Ok(())
    }

    fn request(&mut self, body_bytes: usize) -> io::Result<Timing> {
        let mut wire = self.wire.take().ok_or(ErrorKind::NotConnected)?;
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut request = std::mem::take(&mut self.owed);
        let path = format!("/{body_bytes}");
        let mut fields = vec![
            (":method", "GET"),
            (":scheme", wire.scheme()),
            (":path", &path),
            (":authority", NAME),
        ];
        fields.extend(
            self.transport
                .coding()
                .map(|name| ("accept-encoding", name)),
        );
        let block = hpack::write(&fields);
        request.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
        let mut piece = vec![0; PIECE_BYTES];
        let mut response = Response::default();
        let mut first = None;
        let sent = Instant::now();
        wire.write_all(&request)?;
        loop {
            let length = wire.read_some(&mut piece)?;
            let came = Instant::now();
            self.buffer.extend_from_slice(&piece[..length]);
            loop {
                if begun_on(&self.buffer) == Some(stream) {
                    first.get_or_insert(came);
                }
                let Some(taken) = take_frame(&mut self.buffer) else {
                    break;
                };
                self.take(&taken, stream, &mut response)?;
            }
            if response.ended {
                let coding = response.coding.as_deref();
                self.transport
                    .check(body_bytes, response.body_bytes, coding)?;
                self.wire = Some(wire);
                let first = first.unwrap_or(came);
                return Ok(Timing {
                    sent,
                    first,
                    last: came,
                });
            }
        }
    }
}

/// The stream of the frame with a complete head.
fn begun_on(buffer: &[u8]) -> Option<u32> {
    let head: &[u8; HEAD_BYTES] = buffer.first_chunk()?;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(stream & MAX_WINDOW)
}

/// Takes the first frame, if it is whole.
pub(crate) fn take_frame(buffer: &mut Vec<u8>) -> Option<Frame> {
    let stream = begun_on(buffer)?;
    let length =
        usize::from(buffer[0]) << 16 | usize::from(buffer[1]) << 8 | usize::from(buffer[2]);
    if buffer.len() < HEAD_BYTES + length {
        return None;
    }
    let taken: Vec<u8> = buffer.drain(..HEAD_BYTES + length).collect();
    Some(Frame {
        kind: taken[3],
        flags: taken[4],
        stream,
        payload: taken[HEAD_BYTES..].to_vec(),
    })
}

fn broken(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// The head of a frame.
const HEAD_BYTES: usize = 9;

/// The connection's window until it is opened further.
const DEFAULT_WINDOW: u32 = 65_535;

/// Bytes of a read.
const PIECE_BYTES: usize = 64 << 10;
