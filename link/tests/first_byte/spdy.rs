//! A client of SPDY/3.1 for the sweep: the engine's client role, one connection, one stream at a time, clock readings.
//!
//! As with HTTP/2, what opens the windows wide leaves with the first request, and what the client owes the server with
//! the next one. The first byte of a response is told when its head is whole, which is never too early.

use std::io::{self, ErrorKind, Write};
use std::time::Instant;

use engines::spdy::{Answer, Client};
use link::sweep::{Peer, Timing};

use crate::transport::{NAME, Transport, Wire};

/// The client.
pub(crate) struct Spdy {
    transport: Transport,
    wire: Option<Wire>,
    client: Client,
    /// What leaves before the first request.
    hello: Vec<u8>,
}

impl Spdy {
    /// A client of the server behind this transport; the path of a body is its size.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            wire: None,
            client: Client::new(LEVEL),
            hello: [&WIDE_STREAMS[..], &WIDE_CONNECTION].concat(),
        }
    }
}

impl Peer for Spdy {
    fn connect(&mut self) -> io::Result<()> {
        // The connection before ends first, so that its last packets are none of the new one's time.
        self.wire = None;
        self.transport.turn();
        *self = Self::new(self.transport.clone());
        self.wire = Some(self.transport.open()?);
        Ok(())
    }

    fn request(&mut self, body_bytes: usize) -> io::Result<Timing> {
        let mut wire = self.wire.take().ok_or(ErrorKind::NotConnected)?;
        let path = format!("/{body_bytes}");
        let mut fields = vec![
            (":method", "GET"),
            (":path", &path),
            (":version", "HTTP/1.1"),
            (":host", NAME),
            (":scheme", wire.scheme()),
        ];
        fields.extend(
            self.transport
                .coding()
                .map(|name| ("accept-encoding", name)),
        );
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let stream = self.client.request(fields, 0, true);
        let mut request = std::mem::take(&mut self.hello);
        request.extend(self.client.transmit());
        let mut piece = vec![0; PIECE_BYTES];
        let (mut first, mut came_bytes, mut coding) = (None, 0, None);
        let sent = Instant::now();
        wire.write_all(&request)?;
        loop {
            let length = wire.read_some(&mut piece)?;
            let came = Instant::now();
            self.client.receive(&piece[..length]);
            while let Some(answer) = self.client.answer() {
                match answer {
                    Answer::Head { stream: of, fields } if of == stream => {
                        first = Some(came);
                        let name = fields.named(b"content-encoding").next();
                        coding = name.map(|name| String::from_utf8_lossy(name).into_owned());
                    }
                    Answer::Data { stream: of, bytes } if of == stream => came_bytes += bytes.len(),
                    Answer::End(of) if of == stream => {
                        self.transport
                            .check(body_bytes, came_bytes, coding.as_deref())?;
                        self.wire = Some(wire);
                        let first = first.unwrap_or(came);
                        return Ok(Timing {
                            sent,
                            first,
                            last: came,
                        });
                    }
                    other => {
                        let what = format!("{other:?} after {came_bytes} bytes");
                        return Err(io::Error::new(ErrorKind::InvalidData, what));
                    }
                }
            }
        }
    }
}

/// SETTINGS: INITIAL_WINDOW_SIZE, the largest there is.
const WIDE_STREAMS: [u8; 20] = [
    0x80, 3, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 7, 0x7f, 0xff, 0xff, 0xff,
];
/// WINDOW_UPDATE of the connection, whose window is 65,536 bytes.
const WIDE_CONNECTION: [u8; 16] = [
    0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0, 0x7f, 0xfe, 0xff, 0xff,
];
/// How much header blocks are compressed, as browsers did.
const LEVEL: u8 = 9;
/// Bytes of a read.
const PIECE_BYTES: usize = 64 << 10;
