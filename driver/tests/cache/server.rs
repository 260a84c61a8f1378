//! The simulated server: new versions, and responses that are late, in pieces or absent.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use server_upstream::route::UpstreamAddr;
use sim::{Faults, Hands, Moment, Random, Servers, Wire};

use super::ledger::{Book, Giving, Ledger, Policy, RESOURCES, VARIANTS, Version, etag, modified};
use super::messages::{End, ServerRequest, framed, head_text, parse};
use super::site::READ_MS;

/// The server behind both workers.
pub(crate) struct Origin {
    random: Random,
    book: Book,
    /// The latest version of each resource and variant.
    latest: [[Option<usize>; VARIANTS.len()]; RESOURCES.len()],
    links: Vec<Link>,
    /// There are no failures.
    is_calm: bool,
    /// Share of requests before which a resource changes, per mille.
    changes: u32,
    pub(crate) faults: Faults,
    /// Everything that remains is done at once.
    pub(crate) hurries: bool,
}

/// Makes connections of one worker to the server.
pub(crate) struct Dialer {
    pub(crate) origin: Rc<RefCell<Origin>>,
    pub(crate) hands: Rc<Hands>,
}

impl Servers for Dialer {
    fn connect(&mut self, _: &UpstreamAddr) -> io::Result<Rc<RefCell<Wire>>> {
        self.origin.borrow_mut().connect(&self.hands)
    }
}

/// A connection.
struct Link {
    wire: Rc<RefCell<Wire>>,
    /// Bytes of requests that are over.
    done: usize,
    reply: Option<Reply>,
    due_ms: u64,
    /// Time of the connection attempt.
    begun_ms: u64,
    /// The last response with a version, and the position behind its head.
    reading: Option<usize>,
    head_end: usize,
    /// Bytes sent so far.
    pushed: usize,
    /// Its end by the worker was noticed.
    is_closed: bool,
    /// A refused or late connection is decided at this time.
    pending: Option<Connect>,
    is_over: bool,
}

#[derive(Clone, Copy)]
enum Connect {
    Takes(u64),
    Refuses(u64),
}

/// A response in progress.
struct Reply {
    giving: Option<usize>,
    /// The POST that it answers.
    posted: Option<usize>,
    text: Vec<u8>,
    sent: usize,
    /// Position and length of a pause.
    pause: Option<(usize, u64)>,
    end: End,
}

impl Origin {
    pub(crate) fn new(book: &Book, mut random: Random) -> Self {
        Self {
            book: Rc::clone(book),
            latest: Default::default(),
            links: Vec::new(),
            is_calm: random.chance(300),
            changes: *random.pick(&[50, 300, 800]),
            faults: Faults::default(),
            hurries: false,
            random,
        }
    }

    fn connect(&mut self, hands: &Rc<Hands>) -> io::Result<Rc<RefCell<Wire>>> {
        let now_ms = hands.now_ms.get();
        let random = &mut self.random;
        let late_ms = now_ms + random.below(300);
        let pending = match random.below(100) {
            _ if self.is_calm => None,
            0..2 => {
                self.book.borrow_mut().fail();
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            2..4 => Some(Connect::Refuses(late_ms)),
            4..20 => Some(Connect::Takes(late_ms)),
            _ => None,
        };
        let capacity = *random.pick(&[1000, 30_000, 1 << 20]);
        let mut wire = Wire::new(Rc::clone(hands), random.fork(), self.faults, capacity);
        if pending.is_some() {
            wire.hold();
        }
        let wire = Rc::new(RefCell::new(wire));
        self.links.push(Link {
            wire: Rc::clone(&wire),
            done: 0,
            reply: None,
            due_ms: 0,
            begun_ms: now_ms,
            reading: None,
            head_end: 0,
            pushed: 0,
            is_closed: false,
            pending,
            is_over: false,
        });
        Ok(wire)
    }

    /// Records heads read by a worker, and connections closed by it after a timeout.
    pub(crate) fn look(&mut self) {
        let mut book = self.book.borrow_mut();
        for link in &mut self.links {
            let wire = link.wire.borrow();
            if let Some(reading) = link.reading
                && book.givings[reading].read.is_none()
                && wire.taken() >= link.head_end
            {
                book.givings[reading].read = Some(book.now());
            }
            if link.is_closed || !wire.closed {
                continue;
            }
            link.is_closed = true;
            let last = |moments: &[Moment]| moments.last().map_or(0, |moment| moment.at_ms);
            let last_ms = last(&wire.takes).max(last(&wire.puts)).max(link.begun_ms);
            if book.now_ms - last_ms < TIMEOUT_MS {
                continue;
            }
            book.fail();
            if let Some(giving) = link.reading {
                book.givings[giving].fails = true;
            }
        }
    }

    /// Does one action of a random connection.
    pub(crate) fn act(&mut self) {
        let open = |at: &usize| !self.links[*at].wire.borrow().closed;
        let open: Vec<usize> = (0..self.links.len()).filter(open).collect();
        if !open.is_empty() {
            let at = *self.random.pick(&open);
            self.act_one(at);
        }
    }

    /// Does all possible actions. Returns whether there were any.
    pub(crate) fn finish(&mut self) -> bool {
        self.hurries = true;
        let mut is_busy = false;
        for at in 0..self.links.len() {
            is_busy |= self.act_one(at);
        }
        is_busy
    }

    /// Returns the time of the next action.
    pub(crate) fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let open = self.links.iter().filter(|link| !link.wire.borrow().closed);
        let times = open.filter_map(|link| match link.pending {
            Some(Connect::Takes(at_ms) | Connect::Refuses(at_ms)) => Some(at_ms),
            None => (link.due_ms > now_ms).then_some(link.due_ms),
        });
        times.min()
    }

    pub(crate) fn behave(&mut self, capacity: usize) {
        self.faults = Faults::default();
        for link in &self.links {
            link.wire.borrow_mut().behave(capacity);
        }
    }

    fn act_one(&mut self, at: usize) -> bool {
        let wire = Rc::clone(&self.links[at].wire);
        let mut wire = wire.borrow_mut();
        let book = Rc::clone(&self.book);
        let mut book = book.borrow_mut();
        let now_ms = book.now_ms;
        let link = &mut self.links[at];
        if wire.closed || wire.is_reset() || wire.has_left() {
            return false;
        }
        match link.pending {
            Some(Connect::Takes(at_ms)) if at_ms <= now_ms => {
                link.pending = None;
                wire.establish();
                return true;
            }
            Some(Connect::Refuses(at_ms)) if at_ms <= now_ms => {
                link.pending = None;
                link.is_over = true;
                book.fail();
                wire.refuse();
                return true;
            }
            Some(_) => return false,
            None => {}
        }
        let is_busy = wire.fetch(usize::MAX) > 0;
        if link.is_over || now_ms < link.due_ms {
            return is_busy;
        }
        if link.reply.is_some() {
            return self.answer(at, &mut wire, &mut book) || is_busy;
        }
        let came = &wire.sent()[link.done..wire.fetched()];
        let asked = match parse(came) {
            Ok(Some(asked)) => asked,
            Ok(None) => {
                let leaves = came.is_empty() && link.done > 0 && !self.is_calm && !self.hurries;
                if leaves && self.random.chance(30) {
                    book.fail();
                    wire.leave();
                    return true;
                }
                return is_busy;
            }
            Err(fault) => {
                book.faults.push(fault);
                link.is_over = true;
                return true;
            }
        };
        link.done += asked.len;
        self.plan(at, &asked, &mut book);
        true
    }

    /// Continues a response.
    fn answer(&mut self, at: usize, wire: &mut Wire, book: &mut Ledger) -> bool {
        let link = &mut self.links[at];
        let Some(reply) = &mut link.reply else {
            return false;
        };
        if reply.sent == 0 {
            let now = book.now();
            if let Some(giving) = reply.giving {
                book.givings[giving].given = Some(now);
                let head = reply.text.windows(4).position(|w| w == b"\r\n\r\n");
                link.reading = Some(giving);
                link.head_end = link.pushed + head.map_or(usize::MAX / 2, |end| end + 4);
            }
            if let Some(id) = reply.posted {
                book.posted.push((id, now));
            }
        }
        let left = reply.text.len() - reply.sent;
        if left > 0 {
            let mut len = match self.hurries {
                true => left,
                false => self.random.piece(left),
            };
            if let Some((pause_at, ms)) = reply.pause
                && reply.sent + len >= pause_at
            {
                len = pause_at.saturating_sub(reply.sent).max(1).min(left);
                link.due_ms = book.now_ms + ms;
                reply.pause = None;
            }
            wire.push(&reply.text[reply.sent..reply.sent + len]);
            reply.sent += len;
            link.pushed += len;
            return true;
        }
        let end = reply.end;
        link.reply = None;
        if end == End::Keep {
            return true;
        }
        link.is_over = true;
        match end {
            End::Close => wire.leave(),
            End::Reset => wire.reset(),
            End::Silent | End::Keep => {}
        }
        // It closes after a whole response as well, when another request may be on its way.
        book.fail();
        true
    }

    /// Chooses the response to a request.
    fn plan(&mut self, at: usize, asked: &ServerRequest, book: &mut Ledger) {
        let reply = match asked.method.as_str() {
            "POST" => self.post(asked),
            _ => self.give(asked, book),
        };
        let random = &mut self.random;
        let link = &mut self.links[at];
        link.due_ms = book.now_ms
            + match random.below(10) {
                0..6 => 0,
                6..9 => random.below(300),
                _ => random.below(2500),
            };
        let mut reply = reply;
        if random.chance(200) {
            let pause_at = random.within(0..reply.text.len() + 1);
            reply.pause = Some((pause_at, random.below(2500)));
        }
        let fails = !self.is_calm && random.chance(120);
        if fails && !self.hurries {
            reply.text.truncate(random.within(0..reply.text.len()));
            // The end of the connection may be that of the body.
            let first = if reply.end == End::Close {
                End::Reset
            } else {
                End::Close
            };
            reply.end = *random.pick(&[first, End::Reset, End::Silent]);
            if reply.end == End::Silent {
                // The timeout comes before the end of the pause.
                reply.pause = Some((reply.text.len(), 2 * READ_MS));
            }
            if let Some(giving) = reply.giving {
                book.givings[giving].fails = true;
            }
            book.fail();
        }
        link.reply = Some(reply);
    }

    fn post(&mut self, asked: &ServerRequest) -> Reply {
        let status = match self.random.chance(200) {
            true => "500 Internal Server Error",
            false => "200 OK",
        };
        if status == "200 OK" {
            self.latest[asked.resource] = Default::default();
        }
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\nposted");
        Reply {
            giving: None,
            posted: Some(asked.id),
            text: text.into_bytes(),
            sent: 0,
            pause: None,
            end: End::Keep,
        }
    }

    /// Returns the response to GET and HEAD.
    fn give(&mut self, asked: &ServerRequest, book: &mut Ledger) -> Reply {
        let fails = !self.is_calm && self.random.chance(80);
        let varies = RESOURCES[asked.resource].varies;
        let variant = if varies { asked.variant } else { 0 };
        let known = self.latest[asked.resource][variant];
        let number = match known {
            _ if fails => self.new_version(asked, variant, 500, book),
            Some(number) if !self.random.chance(self.changes) => number,
            _ => {
                let number = self.new_version(asked, variant, 200, book);
                self.latest[asked.resource][variant] = Some(number);
                number
            }
        };
        let version = book.versions[number].clone();
        let random = &mut self.random;
        let is_known = asked.conditions[0]
            .as_ref()
            .map_or(asked.conditions[1] == Some(modified(number)), |tags| {
                version.has_etag && tags.contains(&etag(number))
            });
        let is_304 = version.status == 200 && is_known && random.chance(900);
        let mut policy = Policy::drawn(random);
        if version.status == 500 && random.chance(700) {
            policy.no_store = true;
        }
        let is_head = asked.method == "HEAD";
        let varies = varies && version.status == 200;
        let asked_at = book.now();
        book.givings.push(Giving {
            version: number,
            request: asked.id,
            asked: asked_at,
            given: None,
            read: None,
            policy,
            is_304,
            is_head,
            varies,
            is_tagged: version.status == 200,
            fails: false,
        });
        let mut text = head_text(&book.givings[book.givings.len() - 1], &version);
        if random.chance(200) {
            text += &format!("X-Giving: {}\r\n", book.givings.len());
        }
        let (bytes, end) = framed(text, &version.body(number), is_304 || is_head, random);
        Reply {
            giving: Some(book.givings.len() - 1),
            posted: None,
            text: bytes,
            sent: 0,
            pause: None,
            end,
        }
    }

    fn new_version(
        &mut self,
        asked: &ServerRequest,
        variant: usize,
        status: u16,
        book: &mut Ledger,
    ) -> usize {
        let random = &mut self.random;
        let len = match random.below(10) {
            0 => 0,
            1..6 => random.within(1..600),
            6..9 => random.within(600..9000),
            _ => random.within(9000..60_000),
        };
        book.versions.push(Version {
            resource: asked.resource,
            variant,
            len,
            status,
            has_etag: random.chance(600),
            has_date: random.chance(400),
        });
        book.versions.len() - 1
    }
}

/// The shortest timeout of a worker, milliseconds.
const TIMEOUT_MS: u64 = 3000;
