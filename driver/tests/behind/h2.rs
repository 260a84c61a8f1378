//! HTTP/2 servers: several requests at a time on one connection. The server refuses some, resets some, sends GOAWAY,
//! and breaks connections. Its checks are as strict as those of other servers.

use std::rc::Rc;

use engines::h2::{self, INTERNAL_ERROR, REFUSED_STREAM};
use engines::http::{BodyLength, Chunk, OutputQueue, RequestHead, ResponseHead};
use engines::mux::{Event, SendAction, SendOptions};
use sim::Random;

use super::ledger::{Ledger, Part};
use super::plan::{self, Accel, After, Plan, ServerFault};
use super::protocol::ServerProtocol;
use super::request::of_path;
use super::server::record;

/// The server's end of a connection with streams.
pub(crate) struct Streams {
    engine: h2::Conn,
    /// Number of bytes passed to the engine.
    read: usize,
    asked: Vec<RequestStream>,
    /// Indices of all attempts of the connection.
    attempts: Vec<usize>,
    /// GOAWAY was sent.
    leaving: bool,
    calm: bool,
}

/// A request in progress.
struct RequestStream {
    id: u32,
    attempt: usize,
    /// Number of received body bytes.
    body: usize,
    is_whole: bool,
    due_ms: u64,
    paused: bool,
    /// Number of body bytes passed to the engine; `is_sent` once the engine has sent the end, too.
    given: usize,
    is_sent: bool,
}

/// Result of one step of the server.
#[derive(Default)]
pub(crate) struct StreamActions {
    pub(crate) busy: bool,
    pub(crate) out: Vec<u8>,
    pub(crate) after: Option<After>,
}

impl Streams {
    pub(crate) fn new(calm: bool, book: &mut Ledger, random: &mut Random) -> Self {
        let settings = h2::Settings {
            max_concurrent_streams: *random.pick(&[4, 32, 128, 128]),
            preread_bytes: *random.pick(&[65_535, 1 << 20]),
            abuse_budget: u32::MAX,
            ..h2::Settings::default()
        };
        // Until the client has these settings, it may open more streams. The engine refuses them.
        book.unconnected += usize::from(settings.max_concurrent_streams < 100);
        Self {
            engine: h2::Conn::new(Rc::new(settings)),
            read: 0,
            asked: Vec::new(),
            attempts: Vec::new(),
            leaving: false,
            calm,
        }
    }

    /// Whether no request is in progress, after at least one.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && !self.attempts.is_empty()
    }

    /// Whether it accepts no more requests and has answered all.
    pub(crate) fn is_over(&mut self) -> bool {
        self.leaving && self.asked.is_empty() && self.engine.is_over()
    }

    /// Returns the time of the next action, or `None`.
    pub(crate) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let times = self.asked.iter().map(|asked| asked.due_ms);
        times.filter(|at_ms| *at_ms > now_ms).min()
    }

    /// Records that the connection breaks, so all its requests may be lost.
    pub(crate) fn breaks(&self, book: &mut Ledger) {
        for at in &self.attempts {
            match &mut book.attempts[*at].plan {
                Some(plan) => plan.after = After::Reset,
                none => *none = Some(Plan::nothing(After::Reset)),
            }
        }
    }

    /// Sends GOAWAY. Requests on their way get no response.
    pub(crate) fn goaway(&mut self, book: &mut Ledger) {
        self.engine.end();
        self.leaving = true;
        book.unconnected += 1;
    }

    /// Processes received bytes, and sends a piece of a response.
    ///
    /// # Errors
    /// A description of an invalid request.
    pub(crate) fn act(
        &mut self,
        came: &[u8],
        book: &mut Ledger,
        now_ms: u64,
        hurries: bool,
        random: &mut Random,
    ) -> Result<StreamActions, String> {
        let mut acts = StreamActions::default();
        self.engine.tick(now_ms);
        if came.len() > self.read {
            self.engine.receive(&came[self.read..]);
            self.read = came.len();
            acts.busy = true;
        }
        let events: Vec<_> = std::iter::from_fn(|| self.engine.event()).collect();
        let is_reset = |of: u32| {
            let mut all = events.iter();
            all.any(|event| matches!(event, Event::Reset { stream, .. } if *stream == of))
        };
        // A request that was cancelled at once does not count.
        let given_up: Vec<bool> = events
            .iter()
            .map(|event| matches!(event, Event::Head { stream, .. } if is_reset(*stream)))
            .collect();
        for (event, given_up) in events.into_iter().zip(given_up) {
            if !given_up {
                self.take(event, book, now_ms, random)?;
            }
        }
        let some = random.within(0..self.asked.len().max(1));
        for at in (0..self.asked.len()).rev() {
            if hurries || at == some {
                acts.busy |= self.send_answer(at, book, now_ms, hurries, random, &mut acts.after);
            }
        }
        self.pump(book, now_ms);
        let mut queue = OutputQueue::default();
        self.engine.transmit(&mut queue);
        queue.drain_bytes(&mut acts.out);
        acts.busy |= !acts.out.is_empty();
        Ok(acts)
    }

    fn take(
        &mut self,
        event: Event<h2::ProtocolError>,
        book: &mut Ledger,
        now_ms: u64,
        random: &mut Random,
    ) -> Result<(), String> {
        match event {
            Event::Head { stream, head } => self.begin(stream, &head, book, now_ms, random)?,
            Event::Data { stream, bytes } => {
                self.engine.consumed(stream, bytes.len() as u64);
                let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == stream) else {
                    return Ok(());
                };
                let ask = book.attempts[asked.attempt].ask;
                let expected = book.asks[ask]
                    .body
                    .get(asked.body..asked.body + bytes.len());
                if expected != Some(&bytes[..]) {
                    return Err(format!("the body of request {ask} is another"));
                }
                asked.body += bytes.len();
            }
            Event::BodyEnd(stream) => self.whole(stream, book)?,
            Event::Reset { stream, .. } => self.asked.retain(|asked| asked.id != stream),
            Event::BodyFault(stream, fault) => return Err(format!("stream {stream}: {fault:?}")),
            Event::Failed(error) => return Err(format!("HTTP/2 is broken: {error}")),
            Event::Trailers { .. } | Event::Eof => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        id: u32,
        head: &RequestHead,
        book: &mut Ledger,
        now_ms: u64,
        random: &mut Random,
    ) -> Result<(), String> {
        if !self.calm && random.chance(30) {
            // The request was not begun, so no side counts it.
            self.engine.reset(id, REFUSED_STREAM);
            book.unconnected += 1;
            return Ok(());
        }
        let path = String::from_utf8_lossy(head.bytes(head.target)).into_owned();
        let (ask, part) = of_path(&path)?;
        let is_fresh = self.attempts.is_empty();
        let attempt = record(book, (ask, part, ServerProtocol::Http2), is_fresh, now_ms)?;
        self.attempts.push(attempt);
        let asked = &book.asks[ask];
        let method = match part {
            Part::Auth | Part::Copy => "GET",
            _ => asked.method,
        };
        let is_method = head.bytes(head.method_name) == method.as_bytes();
        let mut ids = head.named(b"x-id");
        if !is_method || ids.next() != Some(ask.to_string().as_bytes()) || ids.next().is_some() {
            return Err(format!("request {ask} has another method or number"));
        }
        self.engine.want_whole_body(id);
        let has_body = asked.has_body && !matches!(part, Part::Auth | Part::Copy);
        let plan = plan::draw(
            attempt,
            asked,
            part,
            ServerProtocol::Http2,
            self.calm,
            random,
        );
        self.asked.push(RequestStream {
            id,
            attempt,
            body: 0,
            is_whole: false,
            due_ms: now_ms + plan.late_ms,
            paused: false,
            given: 0,
            is_sent: false,
        });
        book.attempts[attempt].plan = Some(plan);
        book.streams_at_once = book.streams_at_once.max(self.asked.len());
        match has_body {
            true => Ok(()),
            false => self.whole(id, book),
        }
    }

    fn whole(&mut self, id: u32, book: &mut Ledger) -> Result<(), String> {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == id) else {
            return Ok(());
        };
        let attempt = &mut book.attempts[asked.attempt];
        let expected = match attempt.part {
            Part::Auth | Part::Copy => 0,
            _ => book.asks[attempt.ask].body.len(),
        };
        if asked.body != expected {
            let (ask, len) = (attempt.ask, asked.body);
            return Err(format!("request {ask} has {len} bytes, not {expected}"));
        }
        (asked.is_whole, attempt.is_whole) = (true, true);
        Ok(())
    }

    /// Sends a piece of a response; returns whether it did something.
    fn send_answer(
        &mut self,
        at: usize,
        book: &mut Ledger,
        now_ms: u64,
        hurries: bool,
        random: &mut Random,
        after: &mut Option<After>,
    ) -> bool {
        let asked = &mut self.asked[at];
        let record = &mut book.attempts[asked.attempt];
        let Some(plan) = &record.plan else {
            return false;
        };
        if !asked.is_whole && !plan.early && record.sent == 0 || now_ms < asked.due_ms {
            return false;
        }
        if record.sent < plan.text.len() {
            if let Some((pause, ms)) = plan.pause
                && record.sent >= pause
                && !asked.paused
            {
                asked.paused = true;
                asked.due_ms = now_ms + ms;
                return true;
            }
            let left = plan.text.len() - record.sent;
            let len = if hurries { left } else { random.piece(left) };
            let len = match plan.pause {
                Some((pause, _)) if !asked.paused && record.sent < pause => {
                    len.min(pause - record.sent)
                }
                _ => len,
            };
            if record.sent == 0 {
                if random.chance(100) {
                    self.engine.send_interim(asked.id, 103, None);
                }
                let options = SendOptions {
                    trailers: false,
                    chunk_bytes: 1 << 14,
                };
                self.engine.send_head(
                    asked.id,
                    &head((record.ask, asked.attempt), plan, random),
                    options,
                );
            }
            record.sent += len;
            self.engine.resume(asked.id);
            return true;
        }
        if !record.is_over {
            record.is_over = true;
            match (plan.fault, plan.after) {
                (ServerFault::Connection, _) => *after = Some(After::Reset),
                (_, After::Reset) => {
                    let id = asked.id;
                    if record.sent == 0 || !self.engine.break_off(id, INTERNAL_ERROR) {
                        self.engine.reset(id, INTERNAL_ERROR);
                    }
                    self.asked.remove(at);
                }
                (_, After::Leave | After::End) if !self.leaving => self.goaway(book),
                _ => {}
            }
            return true;
        }
        let is_answered = record.sent >= plan.whole_at && asked.is_whole;
        if is_answered && asked.is_sent {
            self.asked.remove(at);
            return true;
        }
        false
    }

    /// Passes body bytes to the engine.
    fn pump(&mut self, book: &Ledger, now_ms: u64) {
        loop {
            match self.engine.advance(u64::MAX, now_ms) {
                SendAction::Body(id) => self.send_body(id, book),
                SendAction::Sent { stream, .. } => {
                    let asked = self.asked.iter_mut().find(|asked| asked.id == stream);
                    asked.into_iter().for_each(|asked| asked.is_sent = true);
                }
                SendAction::Nothing => return,
            }
        }
    }

    fn send_body(&mut self, id: u32, book: &Ledger) {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == id) else {
            return self.engine.stall(id);
        };
        let record = &book.attempts[asked.attempt];
        let Some(plan) = &record.plan else {
            return self.engine.stall(id);
        };
        let sent = record
            .sent
            .saturating_sub(plan.head_at)
            .min(plan.body.len());
        if asked.given < sent {
            let piece = plan.body[asked.given..sent].to_vec();
            asked.given = sent;
            self.engine.send_data(id, Chunk::Owned(piece));
        } else if record.sent >= plan.whole_at {
            self.engine.send_end(id, None);
        } else {
            self.engine.stall(id);
        }
    }
}

/// Returns the head of a response.
fn head((ask, number): (usize, usize), plan: &Plan, random: &mut Random) -> ResponseHead {
    let mut head = ResponseHead {
        status: plan.status,
        ..ResponseHead::default()
    };
    head.push(b"x-answer", number.to_string().as_bytes());
    head.push(b"content-type", b"text/plain");
    match plan.accel {
        Accel::No => {}
        Accel::File => head.push(b"x-accel-redirect", b"/file"),
        Accel::Inner => head.push(b"x-accel-redirect", format!("/inner/{ask}").as_bytes()),
    }
    let is_bare = plan.whole_at == plan.head_at;
    let len = match plan.fault {
        ServerFault::Length => plan.body.len() as u64 + 7,
        _ => plan.body.len() as u64,
    };
    head.body = match is_bare {
        true => BodyLength::None,
        false if plan.fault == ServerFault::Length || random.chance(500) => {
            head.push(b"content-length", len.to_string().as_bytes());
            BodyLength::Length(len)
        }
        false => BodyLength::Unknown,
    };
    head
}

/// Converts a response for HTTP/2: one byte for the head, the body's bytes, and one byte for the end.
pub(crate) fn encode(plan: &mut Plan, spoiled: bool, random: &mut Random) {
    let is_bare = plan.whole_at == plan.head_at || plan.body.is_empty();
    plan.head_at = 1;
    plan.whole_at = if is_bare { 1 } else { plan.body.len() + 2 };
    plan.text = vec![b'.'; plan.whole_at];
    let enough_at = if is_bare { 1 } else { plan.body.len() + 1 };
    plan.enough_at = Some(enough_at);
    (plan.until_close, plan.trailers) = (false, false);
    if plan.after != After::Keep && random.chance(700) {
        plan.after = After::Keep;
    }
    if !spoiled {
        return;
    }
    match random.below(8) {
        0..5 => {
            let cut = random.within(0..plan.text.len());
            plan.text.truncate(cut);
            // A body of known length needs no end.
            plan.bad = cut < enough_at;
            plan.bad_head = cut == 0;
            plan.after = *random.pick(&[After::Reset, After::Silent]);
        }
        5 if !is_bare => {
            (plan.fault, plan.bad) = (ServerFault::Length, true);
            plan.after = After::Keep;
        }
        6 => {
            let cut = random.within(0..plan.text.len());
            plan.text.truncate(cut);
            (plan.bad, plan.bad_head) = (cut < enough_at, cut == 0);
            (plan.fault, plan.after) = (ServerFault::Connection, After::Reset);
        }
        _ => plan.after = After::Leave,
    }
}
