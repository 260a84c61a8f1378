//! Clients of HTTP/2 and SPDY: several requests at a time, bodies in pieces within flow control, some requests
//! cancelled.

use engines::client::{Bodies, Event, SendError};
use engines::{h2, spdy};
use sim::{Link, Random, Wire};

use super::ledger::Book;
use super::protocol::ServerProtocol;
use super::response_checks::{End, ReceivedResponse};
use super::run::{Behavior, SimClient, check, progress};

/// Operations of HTTP/2 and SPDY clients.
pub(crate) trait MuxClient {
    fn begin(random: &mut Random) -> Self;
    fn request(&mut self, fields: &[(String, String)], ended: bool) -> Result<u32, SendError>;
    fn send(&mut self, id: u32, bytes: &[u8], ended: bool);
    fn cancel(&mut self, id: u32);
    fn receive(&mut self, bytes: &[u8]);
    fn event(&mut self) -> Option<Event<String>>;
    fn consumed(&mut self, id: u32, bytes: u64);
    fn transmit(&mut self, out: &mut Vec<u8>);
    const NAMES: [&'static str; 4];
}

macro_rules! mux_client {
    ($kind:ty, $new:expr, $names:expr) => {
        impl MuxClient for $kind {
            const NAMES: [&'static str; 4] = $names;
            fn begin(random: &mut Random) -> Self {
                #[allow(clippy::redundant_closure_call, reason = "one for each protocol")]
                $new(random)
            }
            fn request(
                &mut self,
                fields: &[(String, String)],
                ended: bool,
            ) -> Result<u32, SendError> {
                let fields = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
                <$kind>::request(self, fields, ended)
            }
            fn send(&mut self, id: u32, bytes: &[u8], ended: bool) {
                <$kind>::send(self, id, bytes, ended);
            }
            fn cancel(&mut self, id: u32) {
                <$kind>::cancel(self, id);
            }
            fn receive(&mut self, bytes: &[u8]) {
                <$kind>::receive(self, bytes);
            }
            fn event(&mut self) -> Option<Event<String>> {
                <$kind>::event(self).map(|event| event.map_error(|error| format!("{error:?}")))
            }
            fn consumed(&mut self, id: u32, bytes: u64) {
                <$kind>::consumed(self, id, bytes);
            }
            fn transmit(&mut self, out: &mut Vec<u8>) {
                <$kind>::transmit(self, out);
            }
        }
    };
}

mux_client!(
    h2::Client,
    |random: &mut Random| h2::Client::new(
        h2::Settings {
            preread_bytes: *random.pick(&[1000, 65_535]),
            abuse_budget: u32::MAX,
            ..h2::Settings::default()
        },
        Bodies::Delivered
    ),
    [":method", ":scheme", ":authority", ":path"]
);
mux_client!(
    spdy::Client,
    |random: &mut Random| spdy::Client::new(
        spdy::Settings {
            headers_level: 6,
            preread_bytes: *random.pick(&[1000, 65_536]),
            abuse_budget: u32::MAX,
            ..spdy::Settings::default()
        },
        Bodies::Delivered
    ),
    [":method", ":scheme", ":host", ":path"]
);

pub(crate) struct Client<S> {
    behavior: Behavior,
    book: Book,
    engine: S,
    left: usize,
    streams: Vec<Stream>,
    out: Vec<u8>,
    pushed: usize,
    received: usize,
    answered: usize,
    closed: bool,
}

struct Stream {
    id: u32,
    ask: usize,
    /// Number of body bytes passed to the engine; `None` if all were.
    sent: Option<usize>,
    /// Length of the client's output up to the end of this request.
    end: usize,
    got: ReceivedResponse,
    cancelled: bool,
    is_checked: bool,
    /// The server did not begin it.
    refused: bool,
}

impl<S: MuxClient> Client<S> {
    pub(crate) fn new(behavior: Behavior, book: &Book, random: &mut Random) -> Self {
        let mut client = Self {
            behavior,
            book: Book::clone(book),
            engine: S::begin(random),
            left: match book.borrow().only {
                Some(_) => random.within(1..40),
                None => random.within(1..12),
            },
            streams: Vec::new(),
            out: Vec::new(),
            pushed: 0,
            received: 0,
            answered: 0,
            closed: false,
        };
        client.engine.transmit(&mut client.out);
        client
    }

    /// Begins one request, or several if all use the same protocol, so that they share a connection.
    fn open(&mut self, now_ms: u64, random: &mut Random) {
        let count = match self.book.borrow().only {
            Some(ServerProtocol::Memcached) => random.within(1..10),
            Some(_) => random.within(1..36),
            None => 1,
        };
        (0..count).for_each(|_| self.open_one(now_ms, random));
    }

    fn open_one(&mut self, now_ms: u64, random: &mut Random) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let mut book = self.book.borrow_mut();
        let number = book.ask(random);
        let ask = &mut book.asks[number];
        ask.upgrade = false;
        ask.begun_ms = now_ms;
        if !ask.has_body {
            ask.body = std::rc::Rc::from([]);
        }
        let [method, scheme, host, path] = S::NAMES;
        let mut fields: Vec<(String, String)> = [
            (method, ask.method.to_owned()),
            (scheme, "http".to_owned()),
            (host, "a.test".to_owned()),
            (path, ask.path()),
        ]
        .map(|(n, v)| (n.to_owned(), v))
        .to_vec();
        if host == ":host" {
            fields.push((":version".to_owned(), "HTTP/1.1".to_owned()));
        }
        fields.push(("x-id".to_owned(), number.to_string()));
        if ask.gzip {
            fields.push(("accept-encoding".to_owned(), "gzip".to_owned()));
        }
        if ask.has_body && random.chance(500) {
            fields.push(("content-length".to_owned(), ask.body.len().to_string()));
        }
        let ended = !ask.has_body;
        let Ok(id) = self.engine.request(&fields, ended) else {
            self.left = 0;
            book.asks[number].spoiled = true;
            return;
        };
        self.streams.push(Stream {
            id,
            ask: number,
            sent: (!ended).then_some(0),
            end: usize::MAX,
            got: ReceivedResponse::default(),
            cancelled: false,
            is_checked: false,
            refused: false,
        });
    }

    /// Sends more of a body.
    fn upload(&mut self, at: usize, all: bool, random: &mut Random) {
        let stream = &mut self.streams[at];
        let Some(sent) = stream
            .sent
            .filter(|_| !stream.cancelled && stream.got.end == End::Open)
        else {
            return;
        };
        let body = std::rc::Rc::clone(&self.book.borrow().asks[stream.ask].body);
        let left = body.len() - sent;
        let len = if all { left } else { random.piece(left) };
        let ended = len == left && (all || random.chance(700));
        self.engine.send(stream.id, &body[sent..sent + len], ended);
        stream.sent = (!ended).then_some(sent + len);
    }

    fn push(&mut self, wire: &mut Wire, all: bool, random: &mut Random) {
        self.engine.transmit(&mut self.out);
        for stream in &mut self.streams {
            if stream.end == usize::MAX && stream.sent.is_none() {
                stream.end = self.out.len();
            }
        }
        let there = self.out.len().min(self.behavior.limit);
        let Some(left) = there.checked_sub(self.pushed).filter(|left| *left > 0) else {
            return;
        };
        let all = all || self.book.borrow().only.is_some() && random.chance(700);
        let len = if all { left } else { random.piece(left) };
        wire.push(&self.out[self.pushed..self.pushed + len]);
        self.pushed += len;
    }

    fn receive_events(&mut self) -> Result<(), String> {
        while let Some(event) = self.engine.event() {
            let stream = match &event {
                Event::Head { stream, .. }
                | Event::Data { stream, .. }
                | Event::Trailers { stream, .. }
                | Event::End { stream, .. }
                | Event::Reset { stream, .. }
                | Event::Malformed { stream, .. } => *stream,
                Event::Failed(error) => {
                    return Err(format!("the server breaks the protocol: {error}"));
                }
                Event::Closing { last, .. } => {
                    for stream in self.streams.iter_mut().filter(|s| s.id > *last) {
                        stream.refused = true;
                    }
                    self.left = 0;
                    continue;
                }
                _ => continue,
            };
            let Some(stream) = self.streams.iter_mut().find(|s| s.id == stream) else {
                return Err(format!("an event of nobody: {event:?}"));
            };
            match event {
                Event::Head { head, .. } => {
                    stream.got.status = head.status;
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let fields = head.fields.iter();
                    stream.got.fields = fields
                        .map(|f| (text(head.bytes(f.name)), text(head.bytes(f.value))))
                        .collect();
                }
                Event::Data { bytes, .. } => {
                    stream.got.body.extend_from_slice(&bytes);
                    self.engine.consumed(stream.id, bytes.len() as u64);
                }
                Event::Trailers { .. } => stream.got.trailers += 1,
                Event::End { .. } => {
                    stream.got.end = End::Whole;
                    self.answered += 1;
                }
                Event::Reset { code, .. } => {
                    // REFUSED_STREAM: the request may be sent again.
                    stream.refused |= code == 7 && stream.got.status == 0;
                    stream.got.end = End::Broken;
                }
                Event::Malformed { what, .. } => {
                    return Err(format!("a response is malformed: {what:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<S: MuxClient> SimClient for Client<S> {
    fn act(&mut self, wire: &mut Wire, now_ms: u64, random: &mut Random) {
        match random.below(10) {
            0..2 => self.open(now_ms, random),
            2..5 if !self.streams.is_empty() => {
                let at = random.within(0..self.streams.len());
                self.upload(at, false, random);
            }
            5 if !self.streams.is_empty() && random.chance(60) => {
                let at = random.within(0..self.streams.len());
                let stream = &mut self.streams[at];
                self.engine.cancel(stream.id);
                stream.cancelled = true;
            }
            6 => self.behavior.fetch(wire, random),
            _ => self.push(wire, false, random),
        }
        let done =
            self.left == 0 && self.pushed == self.out.len() || self.pushed >= self.behavior.limit;
        self.behavior.leave(wire, done, random);
    }

    fn finish(&mut self, wire: &mut Wire, _: u64, random: &mut Random) -> bool {
        let before = (self.pushed, wire.fetched());
        self.behavior.hurry();
        self.left = 0;
        for at in 0..self.streams.len() {
            self.upload(at, true, random);
        }
        self.push(wire, true, random);
        self.behavior.fetch(wire, random);
        before != (self.pushed, wire.fetched())
    }

    fn look(&mut self, link: &Link, now_ms: u64) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        let wire = link.wire.borrow();
        check(&wire)?;
        self.engine.receive(&wire.sent()[self.received..]);
        self.received = wire.sent().len();
        self.closed = wire.closed;
        // The client's timeout for reading closed the connection, and all its streams.
        let stuck = wire.closed && wire.fetched() < wire.sent().len();
        let gone = stuck
            || wire.is_ended()
            || wire.is_reset()
            || self.behavior.is_stalled()
            || link.swept.is_some()
            || link.lost;
        {
            let mut book = self.book.borrow_mut();
            for stream in &self.streams {
                let ask = &mut book.asks[stream.ask];
                ask.is_sent = wire.taken() >= stream.end && self.pushed >= stream.end;
                ask.spoiled |= gone || stream.cancelled;
            }
        }
        self.receive_events()?;
        let drained_at = link.drained_at.is_some();
        for stream in &mut self.streams {
            if self.closed && stream.got.end == End::Open {
                stream.got.end = End::Broken;
            }
            let unbegun = stream.got.status == 0 && (drained_at || stream.refused);
            if stream.cancelled || stream.is_checked || unbegun {
                continue;
            }
            stream.is_checked = stream.got.end != End::Open;
            self.book.borrow().check(stream.ask, &stream.got, now_ms)?;
        }
        Ok(())
    }

    fn quiet(&self, link: &Link, now_ms: u64) -> Result<(), String> {
        let wire = link.wire.borrow();
        if wire.closed
            || wire.is_full()
            || wire.shutdown_ms.is_some()
            || self.pushed < self.out.len()
        {
            return Ok(());
        }
        for stream in self
            .streams
            .iter()
            .filter(|s| s.got.end == End::Open && !s.refused)
        {
            if self.book.borrow().is_due(stream.ask, now_ms) {
                return Err(format!(
                    "request {} is not answered, though its server has",
                    stream.ask
                ));
            }
        }
        Ok(())
    }

    fn story(&self, link: &Link) -> String {
        let mut story = format!(
            "  {} {:?}: {}\n",
            S::NAMES[2],
            self.behavior,
            progress(link, self.pushed, self.out.len())
        );
        for stream in &self.streams {
            let ask = &self.book.borrow().asks[stream.ask];
            story += &format!(
                "    stream {}: {} {} {} bytes, sent {:?} begun {} all {} spoiled {} cancelled {} refused {}: {:?} {} {} bytes {:?}\n",
                stream.id,
                ask.method,
                ask.path(),
                ask.body.len(),
                stream.sent,
                ask.begun_ms,
                ask.is_sent,
                ask.spoiled,
                stream.cancelled,
                stream.refused,
                stream.got.end,
                stream.got.status,
                stream.got.body.len(),
                stream.got.fields
            );
        }
        story
    }

    fn answered(&self) -> usize {
        self.answered
    }
}
