//! A client of HTTP/1.1 for the sweep: one keep-alive connection, one request at a time, clock readings.
//!
//! Absent on purpose: chunked bodies. The server is asked for files, whose length it tells; without one there is
//! no end to time, and that is an error. Source: RFC 9112 section 6.

use std::io::{self, ErrorKind, Write};
use std::time::Instant;

use link::sweep::{Peer, Timing};

use crate::transport::{NAME, Transport, Wire};

/// The client.
pub(crate) struct H1 {
    transport: Transport,
    wire: Option<Wire>,
    buffer: Vec<u8>,
}

impl H1 {
    /// A client of the server behind this transport; the path of a body is its size.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            wire: None,
            buffer: vec![0; 256 * 1024],
        }
    }
}

impl Peer for H1 {
    fn connect(&mut self) -> io::Result<()> {
        // The connection before ends first, so that its last packets are none of the new one's time.
        self.wire = None;
        self.wire = Some(self.transport.open()?);
        Ok(())
    }

    fn request(&mut self, body_bytes: usize) -> io::Result<Timing> {
        let wire = self.wire.as_mut().ok_or(ErrorKind::NotConnected)?;
        let request = format!("GET /{body_bytes} HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
        let sent = Instant::now();
        wire.write_all(request.as_bytes())?;
        let mut length = wire.read_some(&mut self.buffer)?;
        let first = Instant::now();
        let mut last = first;
        while length < response_bytes(&self.buffer[..length], body_bytes)? {
            length += wire.read_some(&mut self.buffer[length..])?;
            last = Instant::now();
        }
        Ok(Timing { sent, first, last })
    }
}

/// How long the response will be; one byte more than there is while its head is not whole.
fn response_bytes(response: &[u8], body_bytes: usize) -> io::Result<usize> {
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(end) = end else {
        return Ok(response.len() + 1);
    };
    let head = String::from_utf8_lossy(&response[..end]).to_ascii_lowercase();
    let length = format!("\r\ncontent-length: {body_bytes}");
    let right = head.starts_with("http/1.1 200 ")
        && head.match_indices(&length).any(|(at, text)| {
            let rest = &head[at + text.len()..];
            rest.is_empty() || rest.starts_with("\r\n")
        });
    if !right || response.len() > end + 4 + body_bytes {
        let what = format!("not a response of {body_bytes} bytes: {head}");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(end + 4 + body_bytes)
}
