//! A client of SPDY/3.1 for the sweep: the engine's client role, one connection, one stream at a time, clock readings.
//!
//! As with HTTP/2, the frames that open the windows wide are sent with the first request, and owed frames with the next
//! one. The first byte of a response counts once its head is whole, which is never too early.

use std::io::{self, ErrorKind, Write};
use std::time::Instant;

use crate::sweep::{Peer, Timing};
use engines::client::Bodies;
use engines::http::FieldId;
use engines::spdy::{Client, ClientEvent, Settings};

use crate::transport::{NAME, Transport, Wire};

/// The client.
pub(crate) struct Spdy {
    transport: Transport,
    wire: Option<Wire>,
    client: Client,
}

impl Spdy {
    /// A client of the server at this transport; the path of a body is its size.
    pub(crate) fn new(transport: Transport) -> Self {
        let settings = Settings {
            headers_level: LEVEL,
            preread_bytes: WIDE,
            ..Settings::default()
        };
        Self {
            transport,
            wire: None,
            client: Client::new(settings, Bodies::Delivered),
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
        let stream = self.client.request_at(fields, 0, true);
        let stream = stream.map_err(|why| io::Error::other(format!("{why:?}")))?;
        let mut request = Vec::new();
        self.client.transmit(&mut request);
        let mut piece = vec![0; PIECE_BYTES];
        let (mut first, mut came_bytes, mut coding) = (None, 0, None);
        let sent = Instant::now();
        wire.write_all(&request)?;
        loop {
            let length = wire.read_some(&mut piece)?;
            let came = Instant::now();
            self.client.receive(&piece[..length]);
            while let Some(event) = self.client.event() {
                match event {
                    ClientEvent::Head {
                        stream: of, head, ..
                    } if of == stream => {
                        first = Some(came);
                        let name = head.get(FieldId::ContentEncoding);
                        coding = name.map(|name| String::from_utf8_lossy(name).into_owned());
                    }
                    ClientEvent::Data { stream: of, bytes } if of == stream => {
                        came_bytes += bytes.len();
                    }
                    ClientEvent::End { stream: of, .. } if of == stream => {
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

/// The window of each response, the largest there is.
const WIDE: u32 = (1 << 31) - 1;
/// How much header blocks are compressed, as browsers did.
const LEVEL: u8 = 9;
/// Bytes of a read.
const PIECE_BYTES: usize = 64 << 10;
