//! Requests of a flow: by their heads if these are in the clear or were decrypted, else by the client's flights.

use engines::http::parse_decimal;

use super::decrypt::Decrypted;
use super::flow::{Flow, Side};
use super::frames::{self, Frame};
use super::hello;
use super::records;

/// How requests of a connection were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// By their heads, which are in the clear or were decrypted.
    Heads,
    /// By the client's flights: data after data of the server. Of a connection with TLS the handshake is left out.
    Flights,
}

impl Counted {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heads => "heads",
            Self::Flights => "flights of the client",
        }
    }
}

/// The requests of a flow, in order.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) counted: Counted,
    requests: Vec<Request>,
    /// Of HTTP/2: the server's frames, with their places in the payload of TCP.
    frames: Vec<(i64, Frame)>,
}

#[derive(Debug)]
struct Request {
    at_ns: u64,
    /// Method and target; empty if unknown.
    line: String,
    /// The stream, with HTTP/2; else 0.
    stream: u32,
}

/// The request in progress at some moment.
#[derive(Debug, Default)]
pub(super) struct InProgress {
    /// Its number from 1; 0 before the first.
    pub(super) request: usize,
    pub(super) line: Option<String>,
    pub(super) frame: Option<String>,
}

impl Requests {
    /// Finds the requests of a flow, in its decrypted contents if there are any.
    pub(super) fn of(flow: &Flow, decrypted: Option<&Decrypted>) -> Self {
        let (requests, frames) = match decrypted {
            Some(decrypted) => {
                let client = &decrypted.client;
                let requests = heads(&client.bytes, |place| client.at_ns(place));
                (requests, frames_of(decrypted))
            }
            None => {
                let client = &flow.from_client;
                let requests = heads(&client.bytes, |place| {
                    client.part(place).map(|part| part.at_ns)
                });
                let frames = match frames::is_http2(&client.bytes) {
                    true => frames::frames(&flow.from_server.bytes),
                    false => Vec::new(),
                };
                let placed = frames.into_iter().map(|frame| (frame.begin as i64, frame));
                (requests, placed.collect())
            }
        };
        if requests.is_empty() {
            return Self {
                counted: Counted::Flights,
                requests: flights(flow),
                frames: Vec::new(),
            };
        }
        Self {
            counted: Counted::Heads,
            requests,
            frames,
        }
    }

    /// The request that is answered at this time with these bytes of the server's payload.
    pub(super) fn at(&self, at_ns: u64, place: i64) -> InProgress {
        let behind = self.frames.partition_point(|(begin, _)| *begin <= place);
        let frame = behind.checked_sub(1).map(|last| self.frames[last].1);
        let last = self.requests.partition_point(|one| one.at_ns <= at_ns);
        let of_stream = frame.filter(|frame| frame.stream > 0).and_then(|frame| {
            let number = self
                .requests
                .iter()
                .position(|one| one.stream == frame.stream);
            number.map(|number| number + 1)
        });
        let request = of_stream.unwrap_or(last);
        let line = request
            .checked_sub(1)
            .map(|place| self.requests[place].line.clone());
        InProgress {
            request,
            line: line.filter(|line| !line.is_empty()),
            frame: frame.map(|frame| format!("{} of stream {}", frame.name(), frame.stream)),
        }
    }
}

/// The server's frames in decrypted contents, with the offset of the record in which each begins.
fn frames_of(decrypted: &Decrypted) -> Vec<(i64, Frame)> {
    if !frames::is_http2(&decrypted.client.bytes) {
        return Vec::new();
    }
    let frames = frames::frames(&decrypted.server.bytes).into_iter();
    let placed = frames.filter_map(|frame| {
        let record = decrypted.server.record_of(frame.begin)?;
        Some((record as i64, frame))
    });
    placed.collect()
}

/// Parses requests from the beginning of a client's bytes. `at_ns` returns the arrival time of a byte.
fn heads(bytes: &[u8], at_ns: impl Fn(usize) -> Option<u64>) -> Vec<Request> {
    if frames::is_http2(bytes) {
        let heads = frames::heads(bytes).into_iter().take(REQUESTS_MAX);
        let timed = heads.filter_map(|head| {
            Some(Request {
                at_ns: at_ns(head.last)?,
                line: head.line,
                stream: head.stream,
            })
        });
        return timed.collect();
    }
    let mut found = Vec::new();
    let mut at = 0;
    while found.len() < REQUESTS_MAX
        && let Some(rest) = bytes.get(at..)
        && let Some(head) = head(&rest[..rest.len().min(HEAD_BYTES_MAX)])
        && let Some(at_ns) = at_ns(at + head.bytes - 1)
    {
        found.push(Request {
            at_ns,
            line: head.line,
            stream: 0,
        });
        let Some(body_bytes) = head.body_bytes else {
            break;
        };
        at = at.saturating_add(head.bytes).saturating_add(body_bytes);
    }
    found
}

struct Head {
    /// Method and target.
    line: String,
    bytes: usize,
    /// Length of the body; `None` if only the body itself has its end.
    body_bytes: Option<usize>,
}

fn head(bytes: &[u8]) -> Option<Head> {
    let length = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let mut lines = text.split("\r\n");
    let (method_and_target, version) = lines.next()?.rsplit_once(' ')?;
    if !version.starts_with("HTTP/1.") || !method_and_target.contains(' ') {
        return None;
    }
    let mut body_bytes = Some(0);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            body_bytes = parse_decimal(value.trim().as_bytes());
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            body_bytes = None;
        }
    }
    let line = method_and_target.chars().filter(|c| !c.is_control());
    Some(Head {
        line: line.take(LINE_CHARS_MAX).collect(),
        bytes: length,
        body_bytes,
    })
}

/// Starts of the client's flights: payload that follows payload of the server, after the TLS handshake if there is one.
fn flights(flow: &Flow) -> Vec<Request> {
    let begin = first_request_byte(flow);
    let mut found = Vec::new();
    let mut answered = true;
    for segment in flow
        .segments
        .iter()
        .filter(|one| one.bytes > 0 && one.is_new)
    {
        match segment.from {
            Side::Server => answered = true,
            Side::Client if segment.end() > begin => {
                if answered && found.len() < REQUESTS_MAX {
                    found.push(Request {
                        at_ns: segment.at_ns,
                        line: String::new(),
                        stream: 0,
                    });
                }
                answered = false;
            }
            Side::Client => {}
        }
    }
    found
}

/// The place of the client's first byte that belongs to no handshake.
fn first_request_byte(flow: &Flow) -> i64 {
    let records = records::of(&flow.from_client);
    // In TLS 1.3 the first encrypted record is Finished, unless there is early data.
    let hello = hello::server(&flow.from_server);
    let skipped = usize::from(hello.is_some_and(|hello| hello.version >= hello::TLS13));
    let mut data = records
        .iter()
        .filter(|one| one.kind == records::APPLICATION_DATA);
    let first = data.clone().nth(skipped).or_else(|| data.next_back());
    first.map_or(i64::MIN, |record| record.begin as i64)
}

/// The most requests of a connection that are counted.
const REQUESTS_MAX: usize = 100_000;
/// The longest head that is looked for.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The characters of method and target in a report.
const LINE_CHARS_MAX: usize = 200;
