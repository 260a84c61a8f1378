//! Requests as a scripted server receives them: kept whole, and as they came.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::backend::Wire;

/// A request that has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The connection it came on, the first being 1.
    pub connection: usize,
    /// Which request of its connection it is, the first being 1.
    pub number: usize,
    /// The request line.
    pub line: String,
    /// Header fields in order, names as received.
    pub headers: Vec<(String, String)>,
    /// The body, chunked framing removed.
    pub body: Vec<u8>,
    /// The sizes of its chunks.
    pub chunk_sizes: Vec<usize>,
    /// Fields after a chunked body.
    pub trailers: Vec<(String, String)>,
    /// The request has come to its end.
    pub whole: bool,
}

impl Request {
    pub(crate) fn of_connection(connection: usize) -> Self {
        Self {
            connection,
            ..Self::default()
        }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// The request target.
    #[must_use]
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The first value of a header field, the name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let found = fields.find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The head as lines, to check that a field is absent.
    #[must_use]
    pub fn head(&self) -> String {
        let fields = self.headers.iter().map(|(n, v)| format!("{n}: {v}\n"));
        format!("{}\n{}", self.line, fields.collect::<String>())
    }
}

/// Received bytes of a connection that were not taken yet.
pub(crate) struct Inbox {
    wire: Arc<Wire>,
    buffer: Vec<u8>,
    connection: usize,
    requests: usize,
}

impl Inbox {
    pub(crate) fn new(wire: Arc<Wire>, connection: usize) -> Self {
        Self {
            wire,
            buffer: Vec::new(),
            connection,
            requests: 0,
        }
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    pub(crate) fn connection(&self) -> usize {
        self.connection
    }

    /// The next head; `None` when the peer has ended the connection before it.
    pub(crate) fn head(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = self.position(b"\r\n\r\n") {
                break at + 4;
            }
            if self.more()? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(ErrorKind::UnexpectedEof.into())
                };
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let text = String::from_utf8_lossy(&head[..end - 4]).into_owned();
        let mut lines = text.split("\r\n");
        self.requests += 1;
        let mut request = Request {
            connection: self.connection,
            number: self.requests,
            line: lines.next().unwrap_or_default().to_owned(),
            headers: lines.map(field).collect(),
            ..Request::default()
        };
        request.whole = request.header("Transfer-Encoding").is_none()
            && request.header("Content-Length").is_none_or(|n| n == "0");
        Ok(Some(request))
    }

    /// The body of a request, as far as it comes.
    pub(crate) fn body(&mut self, request: &mut Request) -> io::Result<()> {
        if request.whole {
            return Ok(());
        }
        if request.header("Transfer-Encoding").is_some() {
            self.chunks(request)?;
        } else if let Some(length) = request.header("Content-Length") {
            let length: usize = length.parse().map_err(|_| ErrorKind::InvalidData)?;
            while self.buffer.len() < length {
                if self.more()? == 0 {
                    request.body = std::mem::take(&mut self.buffer);
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            request.body = self.take(length)?;
        }
        request.whole = true;
        Ok(())
    }

    fn chunks(&mut self, request: &mut Request) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(&line, 16).map_err(|_| ErrorKind::InvalidData)?;
            if size == 0 {
                break;
            }
            request.chunk_sizes.push(size);
            let bytes = self.take(size + 2)?;
            request.body.extend_from_slice(&bytes[..size]);
        }
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(());
            }
            request.trailers.push(field(&line));
        }
    }

    /// Takes exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if self.more()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// Takes all up to these bytes, and them.
    pub(crate) fn past(&mut self, mark: &[u8]) -> io::Result<Vec<u8>> {
        let mut taken = Vec::new();
        loop {
            if let Some(at) = self.position(mark) {
                taken.extend(self.buffer.drain(..at + mark.len()));
                return Ok(taken);
            }
            // The mark may come in two pieces.
            let keep = self.buffer.len().min(mark.len() - 1);
            taken.extend(self.buffer.drain(..self.buffer.len() - keep));
            if self.more()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends received bytes back until the peer ends its direction.
    pub(crate) fn echo(&mut self) -> io::Result<()> {
        loop {
            let bytes = std::mem::take(&mut self.buffer);
            self.wire.write(&bytes)?;
            if self.more()? == 0 {
                return Ok(());
            }
        }
    }

    /// Discards received bytes until the connection ends in any way.
    pub(crate) fn until_closed(&mut self) {
        while self.more().is_ok_and(|count| count > 0) {
            self.buffer.clear();
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.position(b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if self.more()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut piece = [0; 64 << 10];
        let count = self.wire.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    fn position(&self, needle: &[u8]) -> Option<usize> {
        let mut windows = self.buffer.windows(needle.len());
        windows.position(|window| window == needle)
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name.to_owned(), value.trim().to_owned())
}
