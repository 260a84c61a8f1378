//! One run: a seed determines clients, servers and a sequence of events. Every turn is checked.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::{Rc, Weak};

use driver::worker::readiness::{Part, Readiness, SocketFlags, TurnCause};
use engines::{h2, spdy};
use server_http::exchange::Peer;
use server_http::http::LocalHttp;
use sim::{Command, Faults, Link, Random, Reading, Wire, World};

use super::copies;
use super::h1;
use super::ledger::{Attempt, Book};
use super::mux;
use super::protocol::ServerProtocol;
use super::server::UpstreamServers;
use super::site::{CONFS, PORTS, Site};

/// A simulated client.
pub(crate) trait SimClient {
    /// Does one random action.
    fn act(&mut self, wire: &mut Wire, now_ms: u64, random: &mut Random);
    /// Does all remaining actions. Returns whether there were any.
    fn finish(&mut self, wire: &mut Wire, now_ms: u64, random: &mut Random) -> bool;
    /// Checks the bytes received since the last call.
    fn look(&mut self, link: &Link, now_ms: u64) -> Result<(), String>;
    /// Checks that no available response is missing. Called when nothing happens until time advances.
    fn quiet(&self, link: &Link, now_ms: u64) -> Result<(), String>;
    /// Whether its connection is open.
    fn waits(&self, link: &Link) -> bool {
        let wire = link.wire.borrow();
        !wire.closed && !wire.is_reset()
    }
    /// Returns the log of events, for debugging.
    fn story(&self, link: &Link) -> String;
    fn answered(&self) -> usize;
}

/// Checks for violations of the connection's contract.
pub(crate) fn check(wire: &Wire) -> Result<(), String> {
    wire.violations.first().map_or(Ok(()), |v| Err(v.clone()))
}

/// Returns the progress of a connection for the client's log; it has pushed `pushed` bytes of `of`.
pub(crate) fn progress(link: &Link, pushed: usize, of: usize) -> String {
    let wire = link.wire.borrow();
    format!(
        "pushed {pushed} of {of}, taken {}, sent {}, fetched {}, closed {:?} shutdown {:?} retired {:?}",
        wire.taken(),
        wire.sent().len(),
        wire.fetched(),
        link.closed,
        wire.shutdown_ms,
        link.drained_at
    )
}

/// Behavior of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    /// It sends at most this number of bytes.
    pub(crate) limit: usize,
    reading: Reading,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Stay,
    End,
    Reset,
}

impl Behavior {
    fn new(calm: bool, random: &mut Random) -> Self {
        let reading = Reading::drawn(12, if calm { 0 } else { 5000 }, random);
        let ending = match random.below(20) {
            0 if !calm => Ending::End,
            1 if !calm => Ending::Reset,
            _ => Ending::Stay,
        };
        Self {
            limit: match !calm && random.chance(80) {
                true => random.within(0..3000),
                false => usize::MAX,
            },
            reading,
            ending,
        }
    }

    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self.reading, Reading::Stalled(_))
    }

    /// From now on it reads everything.
    pub(crate) fn hurry(&mut self) {
        self.reading.hurry();
    }

    pub(crate) fn fetch(&self, wire: &mut Wire, random: &mut Random) {
        self.reading.fetch(wire, 2000, random);
    }

    /// It may end or reset the connection, if it is `done` with sending.
    pub(crate) fn leave(&self, wire: &mut Wire, done: bool, random: &mut Random) {
        if done && random.chance(300) {
            match self.ending {
                Ending::Stay => {}
                Ending::End => wire.end(),
                Ending::Reset => wire.reset(),
            }
        }
    }
}

sim::tally! {
    /// Counts of events in a run, to check coverage.
    pub(crate) struct Tally {
        connections,
        requests,
        responses,
        pub(crate) attempts,
        reused,
        sound,
        sound_scgi,
        sound_uwsgi,
        sound_fastcgi,
        sound_memcached,
        pub(crate) sound_streams,
        pub(crate) sound_tls,
        pub(crate) streams_at_once,
        pipelined,
        lost,
        unconnected,
        pub(crate) mirrored,
        pub(crate) copies,
        pub(crate) orphans,
        pub(crate) copies_timed_out,
        generations,
    }
}

/// Runs a seed.
///
/// # Errors
/// A description of the error.
pub(crate) fn run(seed: u64, site: &Site) -> Result<Tally, String> {
    let mut run = Run::new(seed, site);
    let result = run.course();
    match result {
        Ok(()) => run.check_end(),
        Err(fault) => Err(format!("{fault}\n{}", run.story())),
    }
}

struct Run<'a> {
    site: &'a Site,
    random: Random,
    world: World,
    book: Book,
    behind: UpstreamServers,
    clients: Vec<(usize, Box<dyn SimClient>)>,
    clients_max: usize,
    lives: Vec<Weak<LocalHttp>>,
    quitting: bool,
    restless: u32,
    /// Connections with this last digit in their number are woken spuriously.
    woken: u64,
    /// Frequency of clock jumps, per thousand steps.
    jumps: u32,
}

impl<'a> Run<'a> {
    fn new(seed: u64, site: &'a Site) -> Self {
        copies::forget();
        let mut random = Random::new(seed);
        let conf = random.within(0..CONFS);
        let generation = site.generation(conf, 1);
        let lives = vec![Rc::downgrade(&generation.http)];
        let scratch = *random.pick(&[64, 1000, 4096, 65_536]);
        let mut world = World::new(generation, random.fork(), 4_000_000_000_000, scratch);
        let book = Book::default();
        book.borrow_mut().only = match seed % ALIKE_ONE_IN {
            0 => Some(ServerProtocol::Memcached),
            1 => Some(ServerProtocol::Http2),
            _ => None,
        };
        let behind = UpstreamServers::new(&book, &world.hands, &site.tls, random.fork());
        behind.0.borrow_mut().faults = faults(&mut random);
        world.piece = *random.pick(&[1, 2, 3, 10, 64, usize::MAX]);
        world.shared.net.servers = Some(Box::new(behind.clone()));
        world.adjust = Some(site.adjust());
        Self {
            site,
            clients_max: random.within(1..7),
            restless: *random.pick(&[0, 0, 5, 40]),
            woken: random.below(WOKEN_ONE_IN),
            jumps: *random.pick(&[0, 0, 10, 30]),
            random,
            world,
            book,
            behind,
            clients: Vec::new(),
            lives,
            quitting: false,
        }
    }

    fn course(&mut self) -> Result<(), String> {
        for _ in 0..self.random.within(30..500) {
            self.step()?;
        }
        self.wind_up()
    }

    fn step(&mut self) -> Result<(), String> {
        if self.random.chance(self.restless) {
            self.order();
        }
        if self.random.chance(self.jumps) {
            let due = self
                .next_deadline()
                .unwrap_or(0)
                .saturating_sub(self.world.now_ms());
            let ms = match self.random.below(4) {
                0 => due,
                1 => due.saturating_sub(1),
                2 => due + self.random.below(5),
                _ => self.random.below(9_000),
            };
            self.world.advance(ms);
        }
        match self.random.below(100) {
            0..5 => self.accept(),
            5..45 => self.act(),
            45..70 => self.behind.0.borrow_mut().act(),
            70..90 => return self.poll(800),
            90..94 => {
                let ms = self.random.below(60);
                self.world.advance(ms);
            }
            _ => return self.spurious(),
        }
        Ok(())
    }

    fn accept(&mut self) {
        if self.clients.len() == self.clients_max || self.quitting {
            return;
        }
        let random = &mut self.random;
        let faults = faults(random);
        let capacity = *random.pick(&[1000, 30_000, 1 << 20]);
        let wire = Wire::new(
            Rc::clone(&self.world.hands),
            random.fork(),
            faults,
            capacity,
        );
        let port = random.within(0..PORTS);
        let calm = self.behind.0.borrow().calm;
        let behavior = Behavior::new(calm, random);
        let book = &self.book;
        let guest: Box<dyn SimClient> = match random.below(2) {
            0 => Box::new(h1::Client::new(behavior, book, random)),
            _ if port == 0 => Box::new(mux::Client::<h2::Client>::new(behavior, book, random)),
            _ => Box::new(mux::Client::<spdy::Client>::new(behavior, book, random)),
        };
        let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)));
        let link = self.world.accept(wire, port, peer);
        self.clients.push((link, guest));
    }

    fn act(&mut self) {
        if self.clients.is_empty() {
            return self.accept();
        }
        let at = self.random.within(0..self.clients.len());
        let (link, client) = &mut self.clients[at];
        let wire = Rc::clone(&self.world.links[*link].wire);
        client.act(
            &mut wire.borrow_mut(),
            self.world.now_ms(),
            &mut self.random,
        );
    }

    fn poll(&mut self, permille: u32) -> Result<(), String> {
        for index in 0..self.world.links.len() {
            let woken = self.world.links[index].serial % WOKEN_ONE_IN == self.woken;
            if woken && permille < 1000 && self.random.chance(300) {
                let stream = self.random.below(16) as u32;
                self.world.wake_spuriously(index, stream);
            }
        }
        self.world.poll(permille);
        self.look()
    }

    fn next_deadline(&self) -> Option<u64> {
        let ours = self.world.next_deadline().into_iter();
        ours.chain(self.behind.0.borrow().next_ms()).min()
    }

    /// Wakes connections without a reason.
    fn spurious(&mut self) -> Result<(), String> {
        let cause = Readiness {
            socket: SocketFlags {
                readable: self.random.chance(500),
                writable: false,
                hung_up: self.random.chance(200),
                eof: false,
            },
            cause: match self.random.chance(500) {
                true => TurnCause::Expired,
                false => TurnCause::Event,
            },
            part: Part::Whole,
        };
        if self.random.chance(500) {
            let dice = self.random.next_u64();
            self.world.spurious_upstream(dice, cause);
        } else if !self.clients.is_empty() {
            let index = self.random.within(0..self.clients.len());
            self.world.spurious(index, cause);
        }
        self.look()
    }

    fn order(&mut self) {
        if !self.world.may_change(&mut self.quitting, &mut self.random) {
            return;
        }
        let conf = self.random.within(0..CONFS);
        let generation = self.site.generation(conf, self.lives.len() as u64 + 1);
        self.lives.push(Rc::downgrade(&generation.http));
        self.world.command(Command::Configure {
            generation,
            keep: self.random.chance(700),
            timeout_ms: self.random.chance(300).then(|| self.random.below(10_000)),
        });
    }

    /// Checks all connections.
    fn look(&mut self) -> Result<(), String> {
        self.behind.0.borrow_mut().look();
        let now_ms = self.world.now_ms();
        for (link, client) in &mut self.clients {
            let link = &self.world.links[*link];
            let looked = client.look(link, now_ms);
            looked.map_err(|e| format!("connection {}: {e}", link.serial))?;
        }
        if let Some(fault) = self.book.borrow().faults.first() {
            return Err(fault.clone());
        }
        let current = self.world.hands.generation.get() as usize;
        if self.world.counts().0 == 0
            && !self.world.is_changing()
            && self.lives[..current - 1]
                .iter()
                .any(|life| life.strong_count() > 0)
        {
            return Err("a configuration is held without a client".to_owned());
        }
        Ok(())
    }

    /// Finishes all actions without faults. Then advances from deadline to deadline until all connections are closed.
    fn wind_up(&mut self) -> Result<(), String> {
        for link in &self.world.links {
            link.wire.borrow_mut().behave(WIND_UP_CAPACITY);
        }
        self.behind.0.borrow_mut().faults = Faults::default();
        self.behind.0.borrow().behave(WIND_UP_CAPACITY);
        for _ in 0..DEADLINES_MAX {
            self.settle()?;
            let Some(next) = self.next_deadline() else {
                return Ok(());
            };
            self.world.advance(next.saturating_sub(self.world.now_ms()));
            self.poll(1000)?;
        }
        Err(format!(
            "timers go on: {:?} {:?}",
            self.world.counts(),
            self.world.upstream_counts()
        ))
    }

    /// Does everything that is possible at the current time.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let mut busy = self.world.is_ready();
            for (link, client) in &mut self.clients {
                let wire = &self.world.links[*link].wire;
                busy |= client.finish(
                    &mut wire.borrow_mut(),
                    self.world.hands.now_ms.get(),
                    &mut self.random,
                );
            }
            busy |= self.behind.0.borrow_mut().finish();
            if !busy {
                return self.quiet();
            }
            self.poll(1000)?;
        }
        Err("events go on without time".to_owned())
    }

    fn quiet(&self) -> Result<(), String> {
        for (link, client) in &self.clients {
            let link = &self.world.links[*link];
            let quiet = client.quiet(link, self.world.now_ms());
            quiet.map_err(|e| format!("connection {}: {e}", link.serial))?;
        }
        Ok(())
    }

    fn check_end(self) -> Result<Tally, String> {
        let open = self
            .clients
            .iter()
            .filter(|(link, client)| client.waits(&self.world.links[*link]))
            .count();
        let (ours, theirs) = (self.world.counts(), self.world.upstream_counts());
        if (ours, theirs) != ((0, 0), (0, 0)) || open > 0 {
            return Err(format!(
                "what waits for ever: {ours:?}, to servers {theirs:?}, {open} open\n{}",
                self.story()
            ));
        }
        let mut tally = Tally {
            connections: self.clients.len() as u64,
            generations: self.lives.len() as u64,
            ..Tally::default()
        };
        {
            let book = self.book.borrow();
            tally.requests = book.asks.len() as u64;
            (tally.attempts, tally.mirrored) = (book.attempts.len() as u64, book.mirrored());
            tally.reused = book.attempts.iter().filter(|a| !a.is_fresh).count() as u64;
            let sound = || book.attempts.iter().filter(|a| a.is_sound());
            let spoken = |protocol| sound().filter(|a| a.protocol == protocol).count() as u64;
            tally.sound = sound().count() as u64;
            tally.sound_scgi = spoken(ServerProtocol::Scgi);
            tally.sound_uwsgi = spoken(ServerProtocol::Uwsgi);
            tally.sound_fastcgi = spoken(ServerProtocol::FastCgi);
            tally.sound_memcached = spoken(ServerProtocol::Memcached);
            tally.sound_streams = spoken(ServerProtocol::Http2);
            let is_tls = |a: &&Attempt| book.asks[a.ask].location().name.contains("tls");
            tally.sound_tls = sound().filter(is_tls).count() as u64;
            tally.streams_at_once = book.streams_at_once as u64;
            tally.pipelined = book.pipelined as u64;
            tally.lost = book.lost.len() as u64;
            tally.unconnected = book.unconnected as u64;
        }
        let copies = copies::check().map_err(|e| format!("{e}\n{}", self.story()))?;
        (tally.copies, tally.orphans) = (copies.all, copies.orphans);
        tally.copies_timed_out = copies.timed_out;
        tally.responses = self
            .clients
            .iter()
            .map(|(_, client)| client.answered() as u64)
            .sum();
        let lives = self.lives;
        drop(self.world);
        match lives.iter().position(|life| life.strong_count() > 0) {
            Some(at) => Err(format!("generation {} is still held", at + 1)),
            None => Ok(tally),
        }
    }

    fn story(&self) -> String {
        let mut story = format!("  now {}\n", self.world.now_ms());
        for (link, client) in &self.clients {
            let link = &self.world.links[*link];
            story += &format!("  connection {}:\n{}", link.serial, client.story(link));
        }
        story + &self.behind.0.borrow().story()
    }
}

/// Returns the faults of a connection: mostly none, or many.
fn faults(random: &mut Random) -> Faults {
    Faults::drawn(|| *random.pick(&[0, 0, 50, 400]))
}

/// Maximum number of deadlines at the end of a run; far more than any run has.
const DEADLINES_MAX: usize = 5000;
/// One connection in this number is woken spuriously.
const WOKEN_ONE_IN: u64 = 10;
/// One run in this number has only memcached requests, another one only HTTP/2 requests.
const ALIKE_ONE_IN: u64 = 8;
/// Maximum number of turns without a change of time.
const ROUNDS_MAX: usize = 100_000;
/// Bytes that a peer takes at a time at the end of a run, so that the run ends.
const WIND_UP_CAPACITY: usize = 10_000;
