//! One run: a seed determines a sequence of events. Every event is checked.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::{Rc, Weak};

use driver::worker::readiness::{Part, Readiness, SocketFlags, TurnCause};
use server_http::exchange::Peer;
use server_http::http::LocalHttp;
use sim::{ClosedBy, Command, Disk, Link, Random, Wire, World};

use super::checker::RunContext;
use super::client::faults;
use super::site::{CONFS, Site, clear_log_entries, log_entries_count};
use super::waits::{next_wake, wake_due};

/// A client with its checks.
pub(crate) trait SimClient {
    /// Makes a client with a random script.
    fn new(link: usize, random: &mut Random) -> Self;
    /// Returns the index of its connection.
    fn link(&self) -> usize;
    /// Does one random action.
    fn act(&mut self, wire: &mut Wire, random: &mut Random);
    /// Does all remaining actions. Returns whether there were any.
    fn finish(&mut self, wire: &mut Wire, random: &mut Random) -> bool;
    /// Checks the bytes received since the last call.
    ///
    /// # Errors
    /// A description of the error.
    fn look(&mut self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String>;
    /// Checks that no request is unanswered. Called when nothing happens until time advances.
    ///
    /// # Errors
    /// A description of the error.
    fn quiet(&self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String>;
    /// Returns the log of the connection, for debugging.
    fn story(&self, link: &Link) -> String;
    /// Returns the number of answered requests.
    fn answered(&self) -> usize;
    /// Whether a timeout has closed it, or may have.
    fn is_expired(&self) -> bool;
}

sim::tally! {
    /// Counts of events in a run, to check coverage.
    pub(crate) struct Tally {
        pub(crate) connections,
        pub(crate) responses,
        pub(crate) bytes,
        pub(crate) lingered,
        pub(crate) expired,
        pub(crate) resets,
        pub(crate) ordered,
        pub(crate) generations,
    }
}

/// Runs a seed.
///
/// # Errors
/// A description of the error, with the connection.
pub(crate) fn run<G: SimClient>(seed: u64, site: &Site) -> Result<Tally, String> {
    clear_log_entries();
    let mut run = Run::<G>::new(seed, site);
    let steps = run.random.within(20..400);
    for _ in 0..steps {
        run.step()?;
    }
    run.wind_up()?;
    run.check_end()
}

struct Run<'a, G> {
    site: &'a Site,
    random: Random,
    world: World,
    clients: Vec<G>,
    /// Index of the configuration of each generation; `lives` shows whether it still exists.
    confs: Vec<usize>,
    lives: Vec<Weak<LocalHttp>>,
    clients_max: usize,
    quitting: bool,
    /// Random numbers for spurious wakes.
    wakes: Random,
    /// Connections with this last digit in their number are woken spuriously.
    woken: u64,
    /// Frequency of configuration changes, per thousand steps.
    restless: u32,
}

impl<'a, G: SimClient> Run<'a, G> {
    fn new(seed: u64, site: &'a Site) -> Self {
        let mut random = Random::new(seed);
        let conf = random.within(0..CONFS.len());
        let generation = site.generation(conf, 1);
        let lives = vec![Rc::downgrade(&generation.http)];
        let scratch = *random.pick(&[1, 7, 64, 1000, 4096, 65_536]);
        // Before the files' times, their bytes are never cached; long after them, they are.
        let unix_ms = *random.pick(&[1_000_000_000_000, 4_000_000_000_000]);
        let mut world = World::new(generation, random.fork(), unix_ms, scratch);
        let clients_max = random.within(1..9);
        let restless = *random.pick(&[0, 0, 5, 40]);
        // A separate generator: without it, the other events of a seed stay the same.
        let mut wakes = Random::new(!seed);
        let woken = wakes.below(WOKEN_ONE_IN);
        world.piece = *wakes.pick(&PIECES);
        if wakes.chance(DISKS_PERMILLE) {
            world.shared.net.disk = Some(Disk::new(*wakes.pick(&READ_BYTES)));
        }
        Self {
            site,
            random,
            world,
            clients: Vec::new(),
            confs: vec![conf],
            lives,
            clients_max,
            quitting: false,
            wakes,
            woken,
            restless,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.random.chance(self.restless) {
            self.order();
        }
        match self.random.below(100) {
            0..5 => self.accept(),
            5..65 => self.act(),
            65..85 => return self.poll(800),
            85..93 => {
                let ms = self.random.below(60);
                return self.advance(ms);
            }
            93..95 => return self.jump(),
            _ => return self.spurious(),
        }
        Ok(())
    }

    fn accept(&mut self) {
        if self.clients.len() == self.clients_max || self.quitting {
            return;
        }
        let faults = faults(&mut self.random);
        let capacity = *self.random.pick(&[1, 50, 1000, 30_000, 1 << 20]);
        let wire = Wire::new(
            Rc::clone(&self.world.hands),
            self.random.fork(),
            faults,
            capacity,
        );
        // The other ports only add to their number.
        let listening: Vec<usize> = (0..2).filter(|port| self.world.listens(*port)).collect();
        if listening.is_empty() {
            return;
        }
        let port = *self.random.pick(&listening);
        let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)));
        let link = self.world.accept(wire, port, peer);
        self.clients.push(G::new(link, &mut self.random));
    }

    fn act(&mut self) {
        if self.clients.is_empty() {
            return self.accept();
        }
        let n = self.random.within(0..self.clients.len());
        let client = &mut self.clients[n];
        client.act(
            &mut self.world.links[client.link()].wire.borrow_mut(),
            &mut self.random,
        );
    }

    fn poll(&mut self, permille: u32) -> Result<(), String> {
        wake_due(self.world.now_ms());
        self.read_files();
        for index in 0..self.world.links.len() {
            let woken = self.world.links[index].serial % WOKEN_ONE_IN == self.woken;
            if woken && self.wakes.chance(300) {
                // Some of these streams begin with the connection, others never begin.
                let stream = self.wakes.below(16) as u32;
                self.world.wake_spuriously(index, stream);
            }
        }
        self.world.poll(permille);
        self.look()
    }

    /// Completes some file reads. The bytes may be evicted again, and further reads refused.
    fn read_files(&mut self) {
        let Some(disk) = &mut self.world.shared.net.disk else {
            return;
        };
        while !disk.fetches.is_empty() && self.wakes.chance(600) {
            disk.end_fetch(self.wakes.chance(50));
        }
        if self.wakes.chance(50) {
            disk.evict();
        }
        disk.full = self.wakes.chance(50);
    }

    /// Advances time. File reads take no time, so that every timeout is the client's.
    fn advance(&mut self, ms: u64) -> Result<(), String> {
        while self.is_reading() {
            self.poll(1000)?;
        }
        self.world.advance(ms);
        Ok(())
    }

    fn is_reading(&self) -> bool {
        let disk = self.world.shared.net.disk.as_ref();
        disk.is_some_and(|disk| !disk.fetches.is_empty())
    }

    /// Returns the next timer of the loop or scheduled wake.
    fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.world.next_deadline().into_iter();
        deadlines.chain(next_wake()).min()
    }

    /// Advances time to a deadline, to just before it, or far beyond.
    fn jump(&mut self) -> Result<(), String> {
        let due = self
            .next_deadline()
            .map_or(0, |at| at.saturating_sub(self.world.now_ms()));
        let ms = match self.random.below(4) {
            0 => due,
            1 => due.saturating_sub(1),
            2 => due + self.random.below(5),
            _ => self.random.below(20_000),
        };
        self.advance(ms)
    }

    /// Wakes a connection without a reason.
    fn spurious(&mut self) -> Result<(), String> {
        if self.clients.is_empty() {
            return Ok(());
        }
        let index = self.random.within(0..self.clients.len());
        let cause = Readiness {
            socket: SocketFlags {
                readable: self.random.chance(500),
                writable: self.random.chance(500),
                hung_up: self.random.chance(200),
                eof: false,
            },
            cause: match self.random.chance(500) {
                true => TurnCause::Expired,
                false => TurnCause::Event,
            },
            part: Part::Whole,
        };
        self.world.spurious(index, cause);
        self.look()
    }

    fn order(&mut self) {
        if !self.world.may_change(&mut self.quitting, &mut self.random) {
            return;
        }
        let conf = self.random.within(0..CONFS.len());
        let number = self.confs.len() as u64 + 1;
        let generation = self.site.generation(conf, number);
        self.confs.push(conf);
        self.lives.push(Rc::downgrade(&generation.http));
        let keep = self.random.chance(700);
        let timeout_ms = self.random.chance(300).then(|| self.random.below(10_000));
        self.world.command(Command::Configure {
            generation,
            keep,
            timeout_ms,
        });
    }

    /// Checks all connections.
    fn look(&mut self) -> Result<(), String> {
        let context = RunContext {
            site: self.site,
            generations: &self.confs,
            generation: self.world.hands.generation.get(),
            stopping: self.world.shared.stopping,
        };
        for client in &mut self.clients {
            let link = &self.world.links[client.link()];
            let result = client.look(link, self.world.polled_ms(), &context);
            result.map_err(|e| with_story(client, link, &e))?;
        }
        Ok(())
    }

    /// Finishes all actions without faults. Then advances from deadline to deadline until all connections are closed.
    fn wind_up(&mut self) -> Result<(), String> {
        for link in &self.world.links {
            link.wire.borrow_mut().behave(WIND_UP_CAPACITY);
        }
        for _ in 0..DEADLINES_MAX {
            self.settle()?;
            let Some(next) = self.next_deadline() else {
                return Ok(());
            };
            let late = if self.random.chance(200) {
                self.random.below(50)
            } else {
                0
            };
            self.advance(next.saturating_sub(self.world.now_ms()) + late)?;
            self.poll(1000)?;
        }
        Err(format!("timers go on: {:?}", self.world.counts()))
    }

    /// Does everything that is possible at the current time.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let due = next_wake().is_some_and(|at_ms| at_ms <= self.world.now_ms());
            let mut busy = due || self.world.is_ready() || self.is_reading();
            for client in &mut self.clients {
                let wire = &self.world.links[client.link()].wire;
                busy |= client.finish(&mut wire.borrow_mut(), &mut self.random);
            }
            if !busy {
                return self.quiet();
            }
            self.poll(1000)?;
        }
        Err("events go on without time".to_owned())
    }

    fn quiet(&self) -> Result<(), String> {
        let context = RunContext {
            site: self.site,
            generations: &self.confs,
            generation: self.world.hands.generation.get(),
            stopping: self.world.shared.stopping,
        };
        for client in &self.clients {
            let link = &self.world.links[client.link()];
            client
                .quiet(link, self.world.now_ms(), &context)
                .map_err(|e| with_story(client, link, &e))?;
        }
        Ok(())
    }

    fn check_end(self) -> Result<Tally, String> {
        if self.world.counts() != (0, 0) {
            return Err(format!(
                "connections and timers are left: {:?}",
                self.world.counts()
            ));
        }
        if self.world.shared.requests != log_entries_count() {
            return Err(format!(
                "{} requests counted, {} logged",
                self.world.shared.requests,
                log_entries_count()
            ));
        }
        let mut tally = Tally {
            connections: self.clients.len() as u64,
            ..Tally::default()
        };
        for client in &self.clients {
            let link = &self.world.links[client.link()];
            let wire = link.wire.borrow();
            tally.responses += client.answered() as u64;
            tally.bytes += wire.sent().len() as u64;
            tally.lingered += u64::from(wire.shutdown_ms.is_some());
            tally.expired += u64::from(client.is_expired());
            tally.resets += u64::from(wire.reset_seen);
            tally.ordered += u64::from(link.closed.is_some_and(|(_, by)| by == ClosedBy::Command));
        }
        tally.generations = self.confs.len() as u64;
        let current = self.world.hands.generation.get();
        let mut old = self.lives.iter().take(current as usize - 1);
        if let Some(n) = old.position(|life| life.strong_count() > 0) {
            return Err(format!("generation {} outlives its last connection", n + 1));
        }
        let (world, lives) = (self.world, self.lives);
        drop(world);
        // A configuration that outlives the worker is held by a lost exchange.
        match lives.iter().position(|life| life.strong_count() > 0) {
            Some(n) => Err(format!("generation {} is still held", n + 1)),
            None => Ok(tally),
        }
    }
}

fn with_story<G: SimClient>(client: &G, link: &Link, fault: &str) -> String {
    format!(
        "connection {}: {fault}\n{}",
        link.serial,
        client.story(link)
    )
}

/// Maximum number of deadlines at the end of a run; far more than any run has.
const DEADLINES_MAX: usize = 5000;
/// Steps of a configuration change per turn of the loop.
const PIECES: [usize; 6] = [1, 2, 3, 10, 64, usize::MAX];
/// Runs with files outside the page cache, per thousand.
const DISKS_PERMILLE: u32 = 400;
/// Bytes of one file read.
const READ_BYTES: [u64; 5] = [1, 999, 4096, 16_384, 1 << 20];
/// One connection in this number is woken spuriously.
const WOKEN_ONE_IN: u64 = 10;
/// Maximum number of turns without a change of time.
const ROUNDS_MAX: usize = 100_000;
/// Bytes that a client takes at a time at the end of a run, so that the run ends.
const WIND_UP_CAPACITY: usize = 10_000;
