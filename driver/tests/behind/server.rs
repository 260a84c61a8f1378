//! The simulated servers: each connection has its own random script, and checks the requests that it receives.

#[path = "server_act.rs"]
mod act;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use server_upstream::route::UpstreamAddr;
use sim::{Faults, Hands, Random, Servers, Wire};

use super::h2::Streams;
use super::ledger::{Attempt, Book, Ledger, Part};
use super::plan::{self, After, Plan};
use super::protocol::ServerProtocol;
use super::request::{Reader, name};
use super::secure::{Pair, Secure};
use super::site::{H2S_PORTS, TLS_PORTS};

/// Shared handle of all server connections.
#[derive(Clone)]
pub(crate) struct UpstreamServers(pub(crate) Rc<RefCell<ServerConnections>>);

/// All connections to servers.
pub(crate) struct ServerConnections {
    random: Random,
    hands: Rc<Hands>,
    tls: Rc<Pair>,
    pub(crate) book: Book,
    pub(crate) calm: bool,
    pub(crate) faults: Faults,
    pub(crate) links: Vec<ServerConnection>,
    /// Servers do all remaining actions at once.
    pub(crate) hurries: bool,
}

/// One connection to a server.
pub(crate) struct ServerConnection {
    pub(crate) protocol: ServerProtocol,
    pub(crate) wire: Rc<RefCell<Wire>>,
    /// TLS below its protocol.
    secure: Option<Secure>,
    /// Requests of HTTP/2.
    streams: Option<Streams>,
    /// Time and result of the connection attempt in progress.
    pending: Option<(u64, Connect)>,
    pub(crate) reader: Reader,
    pub(crate) attempt: Option<usize>,
    requests: usize,
    /// The previous request asked to keep the connection.
    keeps: bool,
    /// Time of the next output, milliseconds.
    pub(crate) due_ms: u64,
    paused: bool,
    is_over: bool,
    /// The server sends nothing any more.
    is_done: bool,
    /// Frequency of closing while idle, per thousand.
    leaves: u32,
    counted_lost: bool,
    /// Index of the last attempt.
    last: Option<usize>,
    /// Action that remains after the previous response.
    closing: Option<After>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connect {
    Takes,
    Refuses,
    Never,
}

impl Servers for UpstreamServers {
    fn connect(&mut self, addr: &UpstreamAddr) -> io::Result<Rc<RefCell<Wire>>> {
        let is_secure = matches!(addr, UpstreamAddr::Inet(addr)
            if TLS_PORTS.contains(&addr.port()) || H2S_PORTS.contains(&addr.port()));
        self.0
            .borrow_mut()
            .connect(ServerProtocol::at(addr), is_secure)
    }
}

impl UpstreamServers {
    pub(crate) fn new(book: &Book, hands: &Rc<Hands>, tls: &Rc<Pair>, mut random: Random) -> Self {
        Self(Rc::new(RefCell::new(ServerConnections {
            hands: Rc::clone(hands),
            tls: Rc::clone(tls),
            book: Rc::clone(book),
            calm: random.chance(300),
            faults: Faults::default(),
            random,
            links: Vec::new(),
            hurries: false,
        })))
    }
}

impl ServerConnections {
    fn connect(
        &mut self,
        protocol: ServerProtocol,
        is_secure: bool,
    ) -> io::Result<Rc<RefCell<Wire>>> {
        let now_ms = self.hands.now_ms.get();
        let random = &mut self.random;
        let how = match random.below(100) {
            _ if self.calm => Connect::Takes,
            0..3 => {
                self.book.borrow_mut().unconnected += 1;
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            3..6 => Connect::Refuses,
            6..8 => Connect::Never,
            _ => Connect::Takes,
        };
        if how != Connect::Takes {
            self.book.borrow_mut().unconnected += 1;
        }
        let late_ms = if random.chance(300) {
            random.below(200)
        } else {
            0
        };
        let capacity = *random.pick(&[1000, 30_000, 1 << 20]);
        let mut wire = Wire::new(Rc::clone(&self.hands), random.fork(), self.faults, capacity);
        let at_once = how == Connect::Takes && late_ms == 0;
        if !at_once {
            wire.hold();
        }
        let wire = Rc::new(RefCell::new(wire));
        self.links.push(ServerConnection {
            wire: Rc::clone(&wire),
            pending: (!at_once).then_some((now_ms + late_ms, how)),
            protocol,
            secure: is_secure.then(|| self.tls.accept()),
            streams: (protocol == ServerProtocol::Http2)
                .then(|| Streams::new(self.calm, &mut self.book.borrow_mut(), random)),
            reader: Reader::new(protocol),
            attempt: None,
            requests: 0,
            keeps: false,
            due_ms: 0,
            paused: false,
            is_over: false,
            is_done: false,
            leaves: *random.pick(&[0, 0, 30, 200]),
            counted_lost: false,
            last: None,
            closing: None,
        });
        Ok(wire)
    }

    /// Checks the received bytes of all connections.
    pub(crate) fn look(&mut self) {
        let now_ms = self.hands.now_ms.get();
        let mut book = self.book.borrow_mut();
        book.pending = self
            .links
            .iter()
            .filter(|s| s.pending.is_some() && !s.is_closed())
            .count();
        for (at, server) in self.links.iter_mut().enumerate() {
            let done = book.faults.len();
            if let Err(fault) = server.look(&mut book, now_ms, self.calm, &mut self.random) {
                book.faults.push(format!("server {at}: {fault}"));
            }
            if book.faults.len() > done {
                server.is_done = true;
            }
        }
    }

    /// Does one action of a random connection.
    pub(crate) fn act(&mut self) {
        let open: Vec<usize> = (0..self.links.len())
            .filter(|at| !self.links[*at].is_closed())
            .collect();
        if !open.is_empty() {
            let at = *self.random.pick(&open);
            self.act_one(at);
        }
    }

    fn act_one(&mut self, at: usize) -> bool {
        self.look();
        let now_ms = self.hands.now_ms.get();
        let mut book = self.book.borrow_mut();
        let hurries = self.hurries;
        self.links[at].act(&mut book, now_ms, hurries, &mut self.random)
    }

    /// Does all possible actions. Returns whether there were any.
    pub(crate) fn finish(&mut self) -> bool {
        self.hurries = true;
        let mut busy = false;
        for at in 0..self.links.len() {
            busy |= !self.links[at].is_closed() && self.act_one(at);
        }
        busy
    }

    /// Returns the time of the next action.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let now_ms = self.hands.now_ms.get();
        let open = self.links.iter().filter(|s| !s.is_closed());
        let times = open.filter_map(|server| match server.pending {
            Some((_, Connect::Never)) => None,
            Some((at_ms, _)) => Some(at_ms),
            None => (server.due_ms > now_ms).then_some(server.due_ms),
        });
        times.min()
    }

    pub(crate) fn behave(&self, capacity: usize) {
        for server in &self.links {
            server.wire.borrow_mut().behave(capacity);
        }
    }
}

impl ServerConnection {
    fn is_closed(&self) -> bool {
        self.wire.borrow().closed
    }

    /// Reads received bytes, and checks the request.
    fn look(
        &mut self,
        book: &mut Ledger,
        now_ms: u64,
        calm: bool,
        random: &mut Random,
    ) -> Result<(), String> {
        if self.is_done {
            return Ok(());
        }
        let wire = Rc::clone(&self.wire);
        let wire = wire.borrow();
        let plain = self.secure.as_ref().map(|secure| secure.came.clone());
        let is_named = plain.is_none() && self.streams.is_none();
        if let Some(violation) = wire.violations.first() {
            return Err(violation.clone());
        }
        if !is_named && !self.counted_lost && !wire.lost().is_empty() {
            // The lost request cannot be identified: it is encrypted or in HTTP/2.
            self.counted_lost = true;
            book.unconnected += 1;
        }
        if self.streams.is_some() {
            return Ok(());
        }
        if !self.counted_lost
            && let Ok(Some((ask, _))) = name(self.protocol, wire.lost())
        {
            self.counted_lost = true;
            if wire.is_end_ignored() && !self.reader.has_begun(wire.sent()) {
                return Err(format!("request {ask} on a connection whose end was told"));
            }
            book.lost.push((ask, now_ms));
        }
        if let Some(attempt) = self.attempt.filter(|_| !wire.lost().is_empty())
            && let Some(plan) = &mut book.attempts[attempt].plan
        {
            // Bytes after the server's end of a tunnel are answered with a reset, as on any connection.
            plan.after = After::Reset;
        }
        let came = plain.as_deref().unwrap_or(wire.sent());
        self.pass(book, came);
        // A pipelined request without a response is not counted.
        let is_gone = wire.closed && self.protocol == ServerProtocol::Memcached;
        if self.attempt.is_none() && self.reader.has_begun(came) && !is_gone {
            let Some((ask, part)) = self.reader.begins(came)? else {
                return Ok(());
            };
            if wire.fin_seen && is_named {
                return Err(format!("request {ask} on a connection that had ended"));
            }
            self.begin(book, ask, part, now_ms)?;
        }
        let Some(attempt) = self.attempt else {
            return Ok(());
        };
        let ask = book.attempts[attempt].ask;
        self.reader.read(came, ask)?;
        self.check(book, attempt)?;
        if self.reader.head_end.is_some() && book.attempts[attempt].plan.is_none() {
            let (asked, part) = (&book.asks[ask], book.attempts[attempt].part);
            let mut plan = match (self.closing.take(), wire.is_ended()) {
                (Some(after), _) => Plan::nothing(after),
                (None, true) => Plan::nothing(After::Silent),
                (None, false) => plan::draw(attempt, asked, part, self.protocol, calm, random),
            };
            if self.reader.end.is_some_and(|end| came.len() > end)
                && plan.text.len() > plan.whole_at
            {
                // A second END would be taken as the response to the next request.
                plan.text.truncate(plan.whole_at);
            }
            self.due_ms = now_ms + plan.late_ms;
            self.paused = false;
            book.attempts[attempt].plan = Some(plan);
        }
        self.pass(book, came);
        if self.reader.end.is_some_and(|end| came.len() > end)
            && self.protocol != ServerProtocol::Memcached
        {
            return Err(format!(
                "something behind request {ask}, which is not answered"
            ));
        }
        Ok(())
    }

    /// Continues with the next request, if the response is sent and the action after it is pending.
    fn pass(&mut self, book: &mut Ledger, came: &[u8]) {
        let (Some(attempt), Some(end)) = (self.attempt, self.reader.end) else {
            return;
        };
        let record = &book.attempts[attempt];
        let Some(plan) = &record.plan else { return };
        // Nothing more is sent after a complete response.
        let is_said = !plan.bad && !plan.until_close && record.sent >= plan.whole_at;
        if came.len() > end && (is_said || record.sent == plan.text.len()) {
            // After a wrong length, the server may still answer requests that came with this one.
            let goes_on = self.protocol == ServerProtocol::Memcached && plan.after == After::Silent;
            if !record.is_over && plan.after != After::Keep && !goes_on {
                self.closing = Some(plan.after);
            }
            book.pipelined += usize::from(self.protocol == ServerProtocol::Memcached);
            self.reader.next();
            self.attempt = None;
        }
    }

    fn begin(
        &mut self,
        book: &mut Ledger,
        ask: usize,
        part: Part,
        now_ms: u64,
    ) -> Result<(), String> {
        let is_fresh = self.requests == 0;
        if !is_fresh && self.protocol != ServerProtocol::Http && !self.keeps {
            return Err(format!("request {ask} is a second one on its connection"));
        }
        let before = self.last.map(|last| &book.attempts[last]);
        let is_behind_wrong = before.is_some_and(Attempt::is_wrong);
        let attempt = record(book, (ask, part, self.protocol), is_fresh, now_ms)?;
        book.attempts[attempt].is_behind_wrong = is_behind_wrong;
        self.requests += 1;
        self.attempt = Some(attempt);
        self.last = self.attempt;
        Ok(())
    }

    /// Compares the request with the client's.
    fn check(&mut self, book: &mut Ledger, attempt: usize) -> Result<(), String> {
        let Attempt { ask, part, .. } = book.attempts[attempt];
        let asked = &book.asks[ask];
        if self.reader.head_end.is_none() {
            return Ok(());
        }
        let method = match part {
            Part::Auth | Part::Copy => "GET",
            _ => asked.method,
        };
        self.keeps = self.reader.keep;
        if self.reader.method != method && self.protocol != ServerProtocol::Memcached {
            return Err(format!("request {ask} has become {}", self.reader.method));
        }
        let is_tunnel = book.attempts[attempt]
            .plan
            .as_ref()
            .is_some_and(|p| p.status == 101);
        let body: &[u8] = match part {
            Part::Auth | Part::Copy => &[],
            _ if asked.upgrade && !is_tunnel => &[],
            _ => &asked.body,
        };
        if !body.starts_with(&self.reader.body) {
            let at = body
                .iter()
                .zip(&self.reader.body)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(format!(
                "the body of request {ask} is another from byte {at} on"
            ));
        }
        if self.reader.end.is_some() && !is_tunnel {
            if self.reader.body.len() != body.len() {
                let len = self.reader.body.len();
                return Err(format!("request {ask} has {len} bytes, not {}", body.len()));
            }
            book.attempts[attempt].is_whole = true;
        }
        Ok(())
    }
}

/// Records an attempt (`is_fresh`: the first one of its connection). Returns its index.
///
/// # Errors
/// The request was sent too often.
pub(crate) fn record(
    book: &mut Ledger,
    (ask, part, protocol): (usize, Part, ServerProtocol),
    is_fresh: bool,
    now_ms: u64,
) -> Result<usize, String> {
    let Some(asked) = book.asks.get(ask) else {
        return Err(format!("request {ask}, which nobody made"));
    };
    let location = asked.location();
    let of_part = |a: &&Attempt| a.part == part;
    let before = book.all_of(ask).filter(of_part).count();
    let all = book.all_of(ask).filter(of_part);
    let fresh = all.filter(|a| a.is_fresh).count();
    let tries = asked.tries(part, protocol);
    if is_fresh && fresh == tries {
        return Err(format!(
            "request {ask} is sent to more than {tries} servers"
        ));
    }
    if before > 0 && asked.method == "POST" && part == Part::Whole && !location.repeats {
        return Err(format!("request {ask}, a POST, is sent again"));
    }
    book.attempts.push(Attempt {
        ask,
        part,
        protocol,
        is_fresh,
        begun_ms: now_ms,
        is_whole: false,
        plan: None,
        is_behind_wrong: false,
        sent: 0,
        is_over: false,
    });
    Ok(book.attempts.len() - 1)
}
