//! A raw client: sends the bytes that it gets, and reads the response.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt;

use crate::response::{self, Response};
use crate::wait::DEADLINE;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// One connection to the server under test.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        Self::connect_to("127.0.0.1", port)
    }

    /// Connects to a port of an address of this machine.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn connect_to(address: &str, port: u16) -> Self {
        Self::try_connect_to(address, port)
            .unwrap_or_else(|e| panic!("cannot connect to {address}:{port}: {e}"))
    }

    /// Connects to a port of an address of this machine.
    ///
    /// # Errors
    /// If the connection is refused.
    pub fn try_connect_to(address: &str, port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((address, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self {
            wire: Wire::Tcp(stream),
            buffer: Vec::new(),
        })
    }

    /// Connects to a UNIX socket.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn connect_unix(path: &Path) -> Self {
        let stream =
            UnixStream::connect(path).unwrap_or_else(|e| panic!("cannot connect to {path:?}: {e}"));
        stream
            .set_read_timeout(Some(DEADLINE))
            .expect("a deadline that is not zero is valid");
        Self {
            wire: Wire::Unix(stream),
            buffer: Vec::new(),
        }
    }

    /// Sends bytes. A closed connection is no failure: the response has the reason.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = match &mut self.wire {
            Wire::Tcp(stream) => stream.write_all(bytes.as_ref()),
            Wire::Unix(stream) => stream.write_all(bytes.as_ref()),
        };
        self
    }

    /// Sends the end of this direction; answers can still be read.
    pub fn finish_sending(&mut self) -> &mut Self {
        let _ = match &self.wire {
            Wire::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Wire::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
        self
    }

    /// Closes the connection with a reset.
    pub fn reset(self) {
        if let Wire::Tcp(stream) = &self.wire {
            let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    /// Reads one response to a request other than HEAD.
    ///
    /// # Panics
    /// When none comes, or a malformed one.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        match self.try_response() {
            Ok(Some(response)) => response,
            Ok(None) => panic!("the connection was closed instead of a response"),
            Err(e) => panic!("no response: {e}"),
        }
    }

    /// Reads one response to a HEAD request.
    ///
    /// # Panics
    /// When none comes, or a malformed one.
    #[track_caller]
    pub fn response_to_head(&mut self) -> Response {
        match self.read_response(true) {
            Ok(Some(response)) => response,
            other => panic!("no response to HEAD: {other:?}"),
        }
    }

    /// Reads one response; `None` when the connection ends before its first byte.
    ///
    /// # Errors
    /// Those of the socket, and an end inside the response.
    pub fn try_response(&mut self) -> io::Result<Option<Response>> {
        self.read_response(false)
    }

    fn read_response(&mut self, to_head: bool) -> io::Result<Option<Response>> {
        let Self { wire, buffer } = self;
        response::read(buffer, to_head, |buffer| receive(wire, buffer))
    }

    /// Asks for `path` with Host `localhost` and keeps the connection.
    ///
    /// # Panics
    /// When no well-formed response comes.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.get_with(path, &[])
    }

    /// Asks for `path` with further header lines (each without its end).
    ///
    /// # Panics
    /// When no well-formed response comes.
    #[track_caller]
    pub fn get_with(&mut self, path: &str, lines: &[&str]) -> Response {
        self.send(request("GET", path, lines)).response()
    }

    /// Asks for the head of `path`.
    ///
    /// # Panics
    /// When no well-formed response comes.
    #[track_caller]
    pub fn head(&mut self, path: &str) -> Response {
        self.send(request("HEAD", path, &[])).response_to_head()
    }

    /// Everything up to the end of the connection, by FIN or RST.
    ///
    /// # Panics
    /// When the connection is still open at the deadline.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.buffer);
        loop {
            match receive(&mut self.wire, &mut bytes) {
                Ok(0) => return bytes,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return bytes,
                Err(e) => panic!(
                    "the connection stays open ({e}) after {:?}",
                    String::from_utf8_lossy(&bytes)
                ),
            }
        }
    }

    /// True when the peer closes without another byte, by FIN or RST, before the deadline.
    pub fn closed(&mut self) -> bool {
        self.closed_within(DEADLINE)
    }

    /// True when the peer closes without another byte within `limit`.
    pub fn closed_within(&mut self, limit: Duration) -> bool {
        if !self.buffer.is_empty() {
            return false;
        }
        self.limit_reading(limit);
        let outcome = receive(&mut self.wire, &mut self.buffer);
        self.limit_reading(DEADLINE);
        match outcome {
            Ok(count) => count == 0,
            Err(e) => e.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// True when the peer ends the connection by FIN without another byte, before the deadline.
    pub fn ended(&mut self) -> bool {
        self.buffer.is_empty() && matches!(receive(&mut self.wire, &mut self.buffer), Ok(0))
    }

    /// True when a byte waits to be read, or arrives within `limit`.
    pub fn has_bytes_within(&mut self, limit: Duration) -> bool {
        if self.buffer.is_empty() {
            self.limit_reading(limit);
            let _ = receive(&mut self.wire, &mut self.buffer);
            self.limit_reading(DEADLINE);
        }
        !self.buffer.is_empty()
    }

    /// Reads exactly `count` bytes as they come, framing included.
    ///
    /// # Panics
    /// When the connection ends first.
    #[track_caller]
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            let got = receive(&mut self.wire, &mut self.buffer).unwrap_or(0);
            assert!(
                got > 0,
                "the connection ended after {} of {count} bytes",
                self.buffer.len()
            );
        }
        self.buffer.drain(..count).collect()
    }

    /// This end's port.
    ///
    /// # Panics
    /// On a unix socket, which has none.
    #[must_use]
    pub fn local_port(&self) -> u16 {
        match &self.wire {
            Wire::Tcp(stream) => stream
                .local_addr()
                .expect("a connected socket has an address")
                .port(),
            Wire::Unix(_) => panic!("a unix socket has no port"),
        }
    }

    /// Sets the time limit of every read from here on.
    pub(crate) fn limit_reading(&self, limit: Duration) {
        let outcome = match &self.wire {
            Wire::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Wire::Unix(stream) => stream.set_read_timeout(Some(limit)),
        };
        outcome.expect("a deadline that is not zero is valid");
    }
}

/// The text of an HTTP/1.1 request with Host `localhost` (unless a line names another).
#[must_use]
pub fn request(method: &str, path: &str, lines: &[&str]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !lines
        .iter()
        .any(|line| line.to_ascii_lowercase().starts_with("host:"))
    {
        text.push_str("Host: localhost\r\n");
    }
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

fn receive(wire: &mut Wire, buffer: &mut Vec<u8>) -> io::Result<usize> {
    // Growing the buffer itself would loop over every byte in unoptimized tests.
    let mut piece = [0; READ_BYTES];
    loop {
        let outcome = match wire {
            Wire::Tcp(stream) => stream.read(&mut piece),
            Wire::Unix(stream) => stream.read(&mut piece),
        };
        match outcome {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(count) => {
                buffer.extend_from_slice(&piece[..count]);
                return Ok(count);
            }
        }
    }
}
