//! A client of HTTP/1.1 for the sweep: one keep-alive connection, one request at a time, clock readings.
//!
//! A response with neither a length nor chunks is an error: it has no end to time. Source: RFC 9112 section 6.

use std::io::{self, ErrorKind, Write};
use std::time::Instant;

use crate::sweep::{Peer, Timing};

use crate::transport::{NAME, Transport, Wire};

/// The client.
pub(crate) struct H1 {
    transport: Transport,
    wire: Option<Wire>,
    buffer: Vec<u8>,
}

impl H1 {
    /// A client of the server at this transport; the path of a body is its size.
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
        self.transport.turn();
        self.wire = Some(self.transport.open()?);
        Ok(())
    }

    fn request(&mut self, body_bytes: usize) -> io::Result<Timing> {
        let wire = self.wire.as_mut().ok_or(ErrorKind::NotConnected)?;
        let coding = self.transport.coding();
        let accept = coding.map_or(String::new(), |name| format!("Accept-Encoding: {name}\r\n"));
        let request = format!("GET /{body_bytes} HTTP/1.1\r\nHost: {NAME}\r\n{accept}\r\n");
        let sent = Instant::now();
        wire.write_all(request.as_bytes())?;
        let mut length = wire.read_some(&mut self.buffer)?;
        let first = Instant::now();
        let mut last = first;
        loop {
            if let Some(response) = Response::whole(&self.buffer[..length])? {
                let coding = response.coding.as_deref();
                self.transport
                    .check(body_bytes, response.body_bytes, coding)?;
                return Ok(Timing { sent, first, last });
            }
            length += wire.read_some(&mut self.buffer[length..])?;
            last = Instant::now();
        }
    }
}

/// A complete response.
struct Response {
    /// Bytes of its body, without the framing of chunks.
    body_bytes: usize,
    coding: Option<String>,
}

impl Response {
    /// The response, if it is whole.
    fn whole(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let field = |name: &str| {
            let mut lines = head.split("\r\n");
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let broken = || io::Error::new(ErrorKind::InvalidData, format!("not a response: {head}"));
        if !head.starts_with("http/1.1 200 ") {
            return Err(broken());
        }
        let body = &bytes[end + 4..];
        let body_bytes = match field("content-length") {
            Some(text) => {
                let length: usize = text.parse().map_err(|_| broken())?;
                if body.len() > length {
                    return Err(broken());
                }
                (body.len() == length).then_some(length)
            }
            None if field("transfer-encoding") == Some("chunked") => {
                chunked(body).ok_or_else(broken)?
            }
            None => return Err(broken()),
        };
        let coding = field("content-encoding").map(str::to_owned);
        Ok(body_bytes.map(|body_bytes| Self { body_bytes, coding }))
    }
}

/// The bytes in chunks, once the last one is there; `None` outside if they are no chunks.
fn chunked(mut rest: &[u8]) -> Option<Option<usize>> {
    let mut total = 0;
    loop {
        let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") else {
            return Some(None);
        };
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(size, 16).ok()?;
        let Some(chunk) = rest[end + 2..].get(..size + 2) else {
            return Some(None);
        };
        total += size;
        if size == 0 {
            return chunk.eq(b"\r\n").then_some(Some(total));
        }
        rest = &rest[end + 2 + chunk.len()..];
    }
}
