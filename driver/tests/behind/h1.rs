//! HTTP/1 clients: requests one after the other, or all at once.

use sim::{Link, Random, Wire};

use super::ledger::Book;
use super::response::{self, Framed, Read};
use super::response_checks::{End, ReceivedResponse};
use super::run::{Behavior, SimClient, check, progress};

pub(crate) struct Client {
    behavior: Behavior,
    book: Book,
    asks: Vec<SentRequest>,
    /// Bytes to send, and how many of them are on the wire.
    out: Vec<u8>,
    pushed: usize,
    /// Number of requests sent.
    made: usize,
    answered: usize,
    /// Offset of the response in progress.
    from: usize,
    seen: usize,
    over: bool,
    closed: bool,
    tunnels: bool,
    bursts: bool,
}

struct SentRequest {
    ask: usize,
    start: usize,
    end: usize,
    got: ReceivedResponse,
}

impl Client {
    pub(crate) fn new(behavior: Behavior, book: &Book, random: &mut Random) -> Self {
        let count = 1 + random.within(0..5);
        let mut ledger = book.borrow_mut();
        let (mut asks, mut out) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let ask = ledger.ask(random);
            let start = out.len();
            let asked = &ledger.asks[ask];
            let version = if asked.has_body || asked.upgrade || random.chance(850) {
                1
            } else {
                0
            };
            let mut head = format!(
                "{} {} HTTP/1.{version}\r\nHost: a.test\r\nX-Id: {ask}\r\n",
                asked.method,
                asked.path()
            );
            if version == 0 {
                head += "Connection: keep-alive\r\n";
            }
            if asked.gzip {
                head += "Accept-Encoding: gzip\r\n";
            }
            if asked.upgrade {
                head += "Connection: Upgrade\r\nUpgrade: echo\r\n";
            }
            if asked.has_body && random.chance(200) {
                head += "Expect: 100-continue\r\n";
            }
            let chunked = asked.has_body && random.chance(400);
            if chunked {
                head += "Transfer-Encoding: chunked\r\n";
            } else if asked.has_body {
                head += &format!("Content-Length: {}\r\n", asked.body.len());
            }
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b"\r\n");
            if chunked {
                let mut rest = &asked.body[..];
                while !rest.is_empty() {
                    let (piece, left) = rest.split_at(random.piece(rest.len()));
                    out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    out.extend_from_slice(piece);
                    out.extend_from_slice(b"\r\n");
                    rest = left;
                }
                out.extend_from_slice(b"0\r\n\r\n");
            } else if asked.has_body {
                out.extend_from_slice(&asked.body);
            }
            let upgrade = asked.upgrade;
            asks.push(SentRequest {
                ask,
                start,
                end: out.len(),
                got: ReceivedResponse::default(),
            });
            if upgrade {
                break;
            }
        }
        drop(ledger);
        Self {
            behavior,
            book: Book::clone(book),
            asks,
            out,
            pushed: 0,
            made: 0,
            answered: 0,
            from: 0,
            seen: usize::MAX,
            over: false,
            closed: false,
            tunnels: false,
            bursts: random.chance(250),
        }
    }

    fn push(&mut self, wire: &mut Wire, all: bool, now_ms: u64, random: &mut Random) {
        let allowed = match self.bursts || self.tunnels {
            true => self.out.len(),
            false => self
                .asks
                .get(self.answered)
                .map_or(self.pushed, |asked| asked.end),
        };
        let allowed = allowed.min(self.behavior.limit);
        if self.pushed >= allowed {
            return;
        }
        let left = allowed - self.pushed;
        let len = if all { left } else { random.piece(left) };
        wire.push(&self.out[self.pushed..self.pushed + len]);
        self.pushed += len;
        let mut book = self.book.borrow_mut();
        while let Some(asked) = self
            .asks
            .get(self.made)
            .filter(|asked| asked.start < self.pushed)
        {
            book.asks[asked.ask].begun_ms = now_ms;
            self.made += 1;
        }
    }

    /// Records the client's behavior that excuses errors of the server.
    fn record_client_state(&self, wire: &Wire, link: &Link, now_ms: u64) {
        let mut book = self.book.borrow_mut();
        let mut is_ended_before = false;
        for (at, asked) in self.asks.iter().enumerate() {
            // A response complete for the client may have failed later, with its connection.
            let mut attempts = book.attempts_of(asked.ask);
            let fails_late = attempts.any(|(_, attempt)| attempt.may_fail_late(now_ms));
            drop(attempts);
            let ask = &mut book.asks[asked.ask];
            // For a pipelined request, the start of its turn is unknown.
            if self.bursts && at > 0 {
                ask.begun_ms = 0;
            }
            ask.is_sent = self.pushed >= asked.end && wire.taken() >= asked.end;
            ask.spoiled |= wire.is_ended()
                || wire.is_reset()
                || self.behavior.is_stalled()
                || link.swept.is_some()
                || link.lost
                || is_ended_before;
            is_ended_before |= fails_late;
        }
    }

    fn read(&mut self, wire: &Wire) -> Result<(), String> {
        let sent = wire.sent();
        let ended = wire.closed || wire.shutdown_ms.is_some();
        if self.seen == sent.len() && !ended {
            return Ok(());
        }
        self.seen = sent.len();
        while !self.over {
            let Some(asked) = self.asks.get_mut(self.answered) else {
                return match sent.len() > self.from {
                    true => Err("bytes that nobody asked for".to_owned()),
                    false => Ok(()),
                };
            };
            let bytes = &sent[self.from..];
            if bytes.is_empty() {
                return Ok(());
            }
            if wire.taken() <= asked.start {
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(90)]).into_owned();
                return Err(format!("an answer to what was not asked: {text:?}"));
            }
            let is_head = self.book.borrow().asks[asked.ask].is_head();
            let read = response::read(bytes, is_head)?;
            let Read::Whole(response) = read else {
                asked.got = partly(bytes);
                return Ok(());
            };
            let closes = response.framed == Framed::UntilClose || response.status == 101;
            asked.got.status = response.status;
            asked.got.trailers = response.trailers.len();
            asked.got.body = match closes {
                true => bytes[response.len..].to_vec(),
                false => response.body.clone(),
            };
            let last = response
                .field("Connection")
                .is_some_and(|v| v.contains("close"));
            asked.got.fields = response.fields;
            if closes {
                if response.status == 101 && !self.tunnels {
                    self.tunnels = true;
                    let body = std::rc::Rc::clone(&self.book.borrow().asks[asked.ask].body);
                    self.out.extend_from_slice(&body);
                }
                asked.got.end = if ended { End::Closed } else { End::Open };
                return Ok(());
            }
            asked.got.end = End::Whole;
            self.from += response.len;
            self.answered += 1;
            self.over = last;
            if self.over && sent.len() > self.from {
                return Err("bytes behind the last response".to_owned());
            }
        }
        Ok(())
    }
}

/// Parses the received part of a response.
fn partly(bytes: &[u8]) -> ReceivedResponse {
    // A chunked body is compared when it is complete. A head, and a body with a length, are compared at once.
    let mut got = ReceivedResponse::default();
    let mut rest = bytes;
    loop {
        let Some(end) = rest.windows(4).position(|w| w == b"\r\n\r\n") else {
            return got;
        };
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 4..];
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|l| l.get(9..12)?.parse().ok())
            .unwrap_or(0);
        if status >= 200 {
            got.status = status;
            let pairs = lines.filter_map(|l| l.split_once(": "));
            got.fields = pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
            break;
        }
    }
    if got.field_is_length() {
        got.body = rest.to_vec();
    }
    got
}

impl ReceivedResponse {
    fn field_is_length(&self) -> bool {
        self.fields.iter().any(|(n, _)| n == "Content-Length")
    }
}

impl SimClient for Client {
    fn act(&mut self, wire: &mut Wire, now_ms: u64, random: &mut Random) {
        if random.chance(700) {
            self.push(wire, false, now_ms, random);
        } else {
            self.behavior.fetch(wire, random);
        }
        self.behavior.leave(
            wire,
            self.pushed == self.out.len() || self.pushed >= self.behavior.limit,
            random,
        );
    }

    fn finish(&mut self, wire: &mut Wire, now_ms: u64, random: &mut Random) -> bool {
        let before = (self.pushed, wire.fetched());
        self.behavior.hurry();
        self.push(wire, true, now_ms, random);
        self.behavior.fetch(wire, random);
        before != (self.pushed, wire.fetched())
    }

    fn look(&mut self, link: &Link, now_ms: u64) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        let wire = link.wire.borrow();
        check(&wire)?;
        self.record_client_state(&wire, link, now_ms);
        let first = self.answered;
        self.read(&wire)?;
        let ended = wire.closed || wire.shutdown_ms.is_some();
        self.closed = wire.closed;
        let book = Book::clone(&self.book);
        for at in first..self.asks.len().min(self.answered + 1) {
            let begun = wire.taken() > self.asks[at].start && !self.over;
            let asked = &mut self.asks[at];
            if asked.got.end == End::Open && ended && begun {
                asked.got.end = End::Broken;
            }
            let ordered = link.drained_at.is_some() && asked.got.status == 0;
            if !ordered {
                book.borrow().check(asked.ask, &asked.got, now_ms)?;
            }
        }
        Ok(())
    }

    fn quiet(&self, link: &Link, now_ms: u64) -> Result<(), String> {
        let wire = link.wire.borrow();
        let ended = wire.closed || wire.shutdown_ms.is_some();
        let Some(asked) = self
            .asks
            .get(self.answered)
            .filter(|_| !self.over && !ended)
        else {
            return Ok(());
        };
        if !wire.is_full()
            && asked.got.end == End::Open
            && self.book.borrow().is_due(asked.ask, now_ms)
        {
            return Err(format!(
                "request {} is not answered, though its server has",
                asked.ask
            ));
        }
        Ok(())
    }

    fn story(&self, link: &Link) -> String {
        let mut story = format!(
            "  h1 {:?} bursts {}: {}, from {}, answered {}, over {}\n",
            self.behavior,
            self.bursts,
            progress(link, self.pushed, self.out.len()),
            self.from,
            self.answered,
            self.over
        );
        for asked in &self.asks {
            let text =
                String::from_utf8_lossy(&self.out[asked.start..asked.end.min(asked.start + 120)])
                    .into_owned();
            let ask = &self.book.borrow().asks[asked.ask];
            story += &format!(
                "    {text:?} at {}..{}, begun {} sent {} spoiled {}: {:?} {} {:?}\n",
                asked.start,
                asked.end,
                ask.begun_ms,
                ask.is_sent,
                ask.spoiled,
                asked.got.end,
                asked.got.status,
                asked.got.fields
            );
        }
        story
    }

    fn answered(&self) -> usize {
        self.answered
    }
}
