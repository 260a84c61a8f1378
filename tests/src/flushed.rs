//! Checks that each piece of a response reaches its client as soon as the upstream server has sent it.
//!
//! The upstream server sends its next piece only after the client has received the one before, so a held piece never
//! comes. `FLUSH_LATE_MS=5` is the permitted delay of a byte; the default is generous.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::busy::{Waits, inconclusive, worst_stall_while};
use crate::client::request;
use crate::h2::H2Client;
use crate::node::script;
use crate::spdy::SpdyClient;
use crate::wait::pause;

/// How late a byte may be on a machine that does something else as well.
const LATE_THRESHOLD: Duration = Duration::from_millis(20);
/// From when on a piece counts as held back, not late.
const HELD_BACK: Duration = Duration::from_secs(2);
/// A machine that keeps a thread from running for so long cannot judge that.
const STALL_MAX: Duration = Duration::from_millis(5);
/// Attempts before a delay is a failure.
const TRIES: usize = 6;
/// A piece has come when nothing follows for so long.
const QUIET: Duration = Duration::from_millis(3);

/// A client in the middle of a response.
#[derive(Debug)]
pub enum Reader {
    /// Over HTTP/1.1: the bytes so far.
    Http1(TcpStream, Vec<u8>),
    /// A stream of HTTP/2.
    Http2(Box<H2Client>, u32),
    /// A stream of SPDY.
    Spdy(Box<SpdyClient>, u32),
}

impl Reader {
    /// Requests a path in a coding, over a protocol named as in ALPN.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn ask(protocol: &str, port: u16, path: &str, coding: &str) -> Self {
        let fields = [("accept-encoding", coding)];
        match protocol {
            "h2" => {
                let mut client = Box::new(H2Client::connect(port));
                let stream = client.request("GET", path, &fields, true);
                Self::Http2(client, stream)
            }
            "spdy/3.1" => {
                let mut client = Box::new(SpdyClient::connect(port));
                let stream = client.request("GET", path, &fields, true);
                Self::Spdy(client, stream)
            }
            _ => {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
                let accept = format!("Accept-Encoding: {coding}");
                let head = request("GET", path, &[&accept]);
                stream.write_all(head.as_bytes()).expect("it reads");
                Self::Http1(stream, Vec::new())
            }
        }
    }

    /// Received part of the body; `None` before the end of the head.
    #[must_use]
    pub fn body(&self) -> Option<Vec<u8>> {
        let reply = match self {
            Self::Http1(_, bytes) => return chunks_of(bytes),
            Self::Http2(client, stream) => client.so_far(*stream),
            Self::Spdy(client, stream) => client.so_far(*stream),
        };
        (reply.status != 0).then_some(reply.body)
    }

    /// Reads until `done` accepts the length of the body.
    pub fn holds_within(&mut self, limit: Duration, done: impl Fn(Option<usize>) -> bool) -> bool {
        let start = Instant::now();
        let len = |reader: &Self| reader.body().map(|body| body.len());
        match self {
            Self::Http2(client, stream) => {
                let stream = *stream;
                client.holds_within(limit, |c| {
                    let reply = c.replies.get(&stream).filter(|reply| reply.status != 0);
                    done(reply.map(|reply| reply.body.len()))
                })
            }
            Self::Spdy(client, stream) => {
                let stream = *stream;
                client.holds_within(limit, |c| {
                    let reply = c.replies.get(&stream).filter(|reply| reply.status != 0);
                    done(reply.map(|reply| reply.body.len()))
                })
            }
            Self::Http1(..) => {
                while !done(len(self)) {
                    let left = limit.saturating_sub(start.elapsed());
                    if left.is_zero() || !self.read_http1(left) {
                        break;
                    }
                }
                done(len(self))
            }
        }
    }

    /// Reads once; false when nothing came.
    fn read_http1(&mut self, limit: Duration) -> bool {
        let Self::Http1(stream, bytes) = self else {
            return false;
        };
        stream
            .set_read_timeout(Some(limit))
            .expect("it is not zero");
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(count) => {
                bytes.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(e) => e.kind() == ErrorKind::Interrupted,
        }
    }
}

/// Returns the whole chunks of a body; `None` before the end of the head.
fn chunks_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let text_end = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|w| w == mark);
    let mut rest = &bytes[text_end(bytes, b"\r\n\r\n")? + 4..];
    let mut body = Vec::new();
    while let Some(end) = text_end(rest, b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).expect("a chunk size");
        let Some(data) = rest.get(end + 2..end + 2 + size) else {
            break;
        };
        body.extend_from_slice(data);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    Some(body)
}

/// Returns the decodable part of an unfinished body.
fn decoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut command = match coding {
        "gzip" => Command::new("gzip"),
        "zstd" => Command::new("zstd"),
        "br" => {
            let mut node = Command::new("node");
            node.arg(script("inflate.js"));
            node
        }
        _ => return body.to_vec(),
    };
    if coding != "br" {
        command.arg("-dcq");
    }
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = piped
        .spawn()
        .expect("the tool is there; .ci/setup installs it");
    // It is far shorter than a pipe. The tool reports the missing end as an error, but prints the rest.
    let written = child.stdin.take().expect("it is piped").write_all(body);
    written.expect("it reads");
    child.wait_with_output().expect("it was started").stdout
}

/// Parts of a response: its beginning, and its pieces.
#[derive(Debug)]
pub struct Expected<'a> {
    /// Data that comes with the head.
    pub first: Vec<u8>,
    /// Pause after it.
    pub pause: Duration,
    /// Pieces that come afterwards, each by itself.
    pub pieces: Vec<Vec<u8>>,
    /// The coding of all of it.
    pub coding: &'a str,
}

impl Expected<'_> {
    /// Releases piece by piece with `open`, and returns the worst delay of one.
    ///
    /// # Errors
    /// The piece that was held, or that differs from the sent one.
    ///
    /// # Panics
    /// If a decoder is missing.
    pub fn worst_delay(
        &self,
        reader: &mut Reader,
        open: impl Fn(usize),
    ) -> Result<Duration, String> {
        let coding = self.coding;
        let mut worst = Duration::ZERO;
        if !self.first.is_empty() && !reader.holds_within(HELD_BACK, |len| len > Some(0)) {
            return Err("what comes with the head is held back".to_owned());
        }
        pause(self.pause);
        let mut text = self.first.clone();
        for (n, piece) in self.pieces.iter().enumerate() {
            // A stream that is compressed may begin with bytes of its own, before there is anything to compress.
            let before = reader.body().map_or(0, |body| body.len());
            let start = Instant::now();
            open(n);
            let last = if coding == "identity" {
                let whole = Some(before + piece.len());
                let came = reader.holds_within(HELD_BACK, |len| len >= whole);
                came.then(|| start.elapsed())
            } else {
                last_growth(reader, before, start)
            };
            let Some(last) = last else {
                return Err(format!("piece {n} is held back"));
            };
            worst = worst.max(last);
            text.extend(piece);
            // To decode every one would take seconds for all of them.
            if n == 0 || n + 1 == self.pieces.len() {
                let seen = decoded(coding, &reader.body().unwrap_or_default());
                if seen != text {
                    return Err(format!("after piece {n} a client can read {seen:?}"));
                }
            }
        }
        Ok(worst)
    }
}

/// When the last bytes of a piece of unknown length came.
fn last_growth(reader: &mut Reader, before: usize, start: Instant) -> Option<Duration> {
    let mut came = before;
    let mut last = None;
    let mut limit = HELD_BACK;
    while reader.holds_within(limit, |len| len > Some(came)) {
        last = Some(start.elapsed());
        came = reader.body().map_or(0, |body| body.len());
        limit = QUIET;
    }
    last
}

/// Repeats until all is in time, or the machine is not to blame; returns the errors.
///
/// # Panics
/// When `FLUSH_LATE_MS` is no number.
pub fn judge(what: &str, mut once: impl FnMut() -> Result<Duration, String>) -> Option<String> {
    let limit = std::env::var("FLUSH_LATE_MS").map_or(LATE_THRESHOLD, |ms| {
        Duration::from_millis(ms.parse().expect("a number"))
    });
    let mut stalls = Vec::new();
    let mut is_busy = true;
    let mut finding = String::new();
    for _ in 0..TRIES {
        let mut outcome = Ok(Duration::ZERO);
        let waits = Waits::begin();
        let stall = worst_stall_while(|| outcome = once());
        let waited = waits.waited();
        match outcome {
            Ok(worst) if worst <= limit => return None,
            Ok(worst) => {
                finding = format!("{what}: {worst:?} late");
                is_busy &= stall >= STALL_MAX || worst <= limit + waited;
            }
            // This fault does not depend on time.
            Err(why) => return Some(format!("{what}: {why}")),
        }
        stalls.push((stall, waited));
    }
    if is_busy {
        inconclusive(&format!("{finding}, with stalls and waits of {stalls:?}"));
        return None;
    }
    Some(finding)
}
