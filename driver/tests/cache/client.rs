//! Clients: each sends requests one after the other over a connection.

use sim::{Link, Random, Reading, Wire};

use super::judge::{Origin, ReceivedResponse, judge};
use super::ledger::{Book, Moment, Purge};
use super::request::{Action, ClientRequest};
use super::response::{self, Framed, Read};

/// A client of one of the workers.
pub(crate) struct Client {
    /// Number of the worker, and the connection there.
    pub(crate) worker: usize,
    pub(crate) link: usize,
    book: Book,
    reading: Reading,
    /// It may leave before the response.
    leaves: bool,
    /// Requests still to be made.
    left: usize,
    current: Option<Current>,
    /// Bytes of all requests so far.
    pushed: usize,
    /// Bytes of complete responses.
    read: usize,
    seen: usize,
    is_over: bool,
    /// It does not read, or has left: errors need no reason.
    is_spoiled: bool,
    /// The previous response was a range. The connection is held until its server has sent the rest, and ends with it.
    is_after_range: bool,
    pub(crate) origins: Vec<Origin>,
}

/// The request in progress.
struct Current {
    id: usize,
    text: Vec<u8>,
    sent: usize,
}

impl Client {
    pub(crate) fn new(worker: usize, link: usize, book: &Book, random: &mut Random) -> Self {
        Self {
            worker,
            link,
            book: Book::clone(book),
            reading: Reading::drawn(10, if random.chance(200) { 3000 } else { 0 }, random),
            leaves: random.chance(150),
            left: 1 + random.within(0..8),
            current: None,
            pushed: 0,
            read: 0,
            seen: 0,
            is_over: false,
            is_spoiled: false,
            is_after_range: false,
            origins: Vec::new(),
        }
    }

    /// Does one random action.
    pub(crate) fn act(&mut self, wire: &mut Wire, random: &mut Random) {
        if random.chance(700) {
            self.push(wire, false, random);
        } else {
            self.reading.fetch(wire, 2000, random);
        }
        if self.leaves && random.chance(60) {
            self.is_spoiled = true;
            match random.chance(500) {
                true => wire.end(),
                false => wire.reset(),
            }
        }
    }

    /// Does all remaining actions. Returns whether there were any.
    pub(crate) fn finish(&mut self, wire: &mut Wire, random: &mut Random) -> bool {
        let before = (self.pushed, wire.fetched());
        self.reading.hurry();
        self.push(wire, true, random);
        self.reading.fetch(wire, 2000, random);
        before != (self.pushed, wire.fetched())
    }

    fn push(&mut self, wire: &mut Wire, all: bool, random: &mut Random) {
        if self.is_over || wire.is_ended() || wire.is_reset() || wire.closed {
            return;
        }
        // The time of a response is unknown while an earlier one fills the connection.
        if self.current.is_none() && self.left > 0 && wire.fetched() == wire.sent().len() {
            self.left -= 1;
            let mut book = self.book.borrow_mut();
            let mut request = ClientRequest::drawn(&book, random);
            request.begun = book.now();
            self.current = Some(Current {
                id: request.id,
                text: request.text().into_bytes(),
                sent: 0,
            });
            book.requests.push(request);
        }
        let Some(current) = &mut self.current else {
            return;
        };
        let rest = current.text.len() - current.sent;
        let len = if all { rest } else { random.piece(rest) };
        wire.push(&current.text[current.sent..current.sent + len]);
        current.sent += len;
        self.pushed += len;
    }

    /// Whether it waits for a response, and its connection is open.
    pub(crate) fn waits(&self, link: &Link) -> bool {
        let wire = link.wire.borrow();
        self.current.is_some() && !wire.closed && !wire.is_reset() && !wire.is_ended()
    }

    /// Returns the response to a request as far as it came, and its bytes; `None` if it still comes, or needs no reason for
    /// its end.
    fn receive(
        &mut self,
        wire: &Wire,
        link: &Link,
        request: &ClientRequest,
    ) -> Result<Option<(ReceivedResponse, usize)>, String> {
        let (id, bytes) = (request.id, &wire.sent()[self.read..]);
        let read = response::read(bytes, request.is_head());
        let read = read.map_err(|fault| format!("request {id}: {fault}"))?;
        let mut puts = wire.puts.iter();
        let first = puts.find(|put| put.total > self.read);
        let head_ms = first.map_or(0, |put| put.at_ms);
        if let Read::Whole(response) = read {
            if response.framed == Framed::UntilClose {
                return Err(format!("request {id}: a body without a length"));
            }
            self.is_over |= response.field("Connection") == Some("close");
            let got = ReceivedResponse {
                status: response.status,
                fields: response.fields,
                body: response.body,
                is_whole: true,
                head_ms,
            };
            return Ok(Some((got, response.len)));
        }
        if !wire.closed && wire.shutdown_ms.is_none() {
            return Ok(None);
        }
        self.is_over = true;
        let last_ms = wire.puts.last().map_or(0, |put| put.at_ms);
        let now_ms = self.book.borrow().now_ms;
        self.is_spoiled |= now_ms >= last_ms + SEND_MS;
        let Some((status, fields, body)) = partial(bytes) else {
            // The connection was closed while the request came.
            let is_unread = wire.taken() < self.pushed;
            let is_late = now_ms >= last_ms.max(link.accepted.0) + HEADER_MS;
            let is_excused = self.is_spoiled || is_unread || is_late || self.is_after_range;
            return match is_excused {
                true => Ok(None),
                false => Err(format!("request {id} is not answered")),
            };
        };
        let got = ReceivedResponse {
            status,
            fields,
            body,
            is_whole: false,
            head_ms,
        };
        Ok((!self.is_spoiled).then_some((got, bytes.len())))
    }

    /// Checks the bytes received since the last call.
    pub(crate) fn look(&mut self, link: &Link) -> Result<(), String> {
        let wire = link.wire.borrow();
        if let Some(violation) = wire.violations.first() {
            return Err(violation.clone());
        }
        let has_ended = wire.closed || wire.shutdown_ms.is_some();
        if self.is_over || (self.seen == wire.sent().len() && !has_ended) {
            return Ok(());
        }
        self.seen = wire.sent().len();
        self.is_spoiled |= matches!(self.reading, Reading::Stalled(_));
        let bytes = &wire.sent()[self.read..];
        let Some(current) = &self.current else {
            self.is_over |= has_ended;
            return match bytes.is_empty() {
                true => Ok(()),
                false => Err("bytes without a request".to_owned()),
            };
        };
        let request = self.book.borrow().requests[current.id].clone();
        let Some((got, len)) = self.receive(&wire, link, &request)? else {
            return Ok(());
        };
        let id = request.id;
        self.read += len;
        self.is_after_range = matches!(request.action, Action::Range(..));
        self.current = None;
        let mut book = self.book.borrow_mut();
        let origin = judge(&book, &request, &got);
        let origin = origin.map_err(|fault| {
            let (bytes, is_whole) = (got.body.len(), got.is_whole);
            let shown = format!(
                "{} {:?}, {bytes} bytes, whole {is_whole}",
                got.status, got.fields
            );
            format!("request {id}: {fault}\n  {shown}")
        })?;
        self.origins.push(origin);
        if got.is_whole {
            let answered = book.now();
            let purged = purge(&book, &request, &got, answered);
            book.purges.extend(purged);
        }
        Ok(())
    }
}

/// Returns the purge that a response confirms.
fn purge(
    book: &super::ledger::Ledger,
    request: &ClientRequest,
    got: &ReceivedResponse,
    answered: Moment,
) -> Option<Purge> {
    if request.action == Action::Post {
        let posted = book.posted.iter().find(|(id, _)| *id == request.id);
        let (_, begun) = posted.filter(|_| got.status == 200)?;
        return Some(Purge {
            resources: vec![request.resource],
            by_tag: false,
            is_soft: false,
            begun: *begun,
            answered,
        });
    }
    let (resources, by_tag, is_soft) = request.purged()?;
    Some(Purge {
        resources,
        by_tag,
        is_soft,
        begun: request.begun,
        answered,
    })
}

/// `client_header_timeout`, milliseconds. The last bytes may come together with its end.
const HEADER_MS: u64 = 10_000;
/// `send_timeout`, milliseconds.
const SEND_MS: u64 = 8000;

type Fields = Vec<(String, String)>;

/// Returns status, fields and the received part of the body; `None` without a complete head.
fn partial(bytes: &[u8]) -> Option<(u16, Fields, Vec<u8>)> {
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|w| w == what);
    let end = find(bytes, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.get(9..12)?.parse().ok()?;
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let fields: Fields = pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let mut rest = &bytes[end + 4..];
    let is_chunked = fields.iter().any(|(name, _)| name == "Transfer-Encoding");
    if !is_chunked {
        return Some((status, fields, rest.to_vec()));
    }
    let mut body = Vec::new();
    while let Some(line) = find(rest, b"\r\n") {
        let digits = std::str::from_utf8(&rest[..line]).unwrap_or_default();
        let size = usize::from_str_radix(digits, 16).unwrap_or(0);
        rest = &rest[line + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    Some((status, fields, body))
}
