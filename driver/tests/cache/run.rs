//! One run: a seed determines clients, servers and a sequence of events. Every turn is checked.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use driver::worker::thread_config::ThreadConfig;
use server_base::errlog::ErrorLog;
use server_base::periodic_task::{TaskClock, Wake};
use server_http::exchange::Peer;
use server_http::http::Http;
use sim::{Faults, Random, Wire, World};

use super::client::Client;
use super::judge::Origin as ResponseOrigin;
use super::ledger::{Book, RESOURCES, VARIANTS};
use super::load::log;
use super::server::{Dialer, Origin};
use super::site::Site;

sim::tally! {
    /// Counts of events in a run, to check coverage.
    pub(crate) struct Tally {
        connections,
        pub(crate) requests,
        givings,
        pub(crate) purges,
        own,
        pub(crate) confirmed,
        pub(crate) joined,
        pub(crate) reused,
        pub(crate) stale,
        others,
        failures,
    }
}

/// Runs a seed.
///
/// # Errors
/// A description of the fault.
pub(crate) fn run(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let site = Site::new(&mut random);
    let mut run = Run::new(&site, random);
    let result = run.course();
    match result {
        Ok(()) => run.check_end(),
        Err(fault) => Err(format!("{fault}\n{}", run.story())),
    }
}

struct Run {
    random: Random,
    http: Arc<Http>,
    worlds: [World; 2],
    book: Book,
    origin: Rc<RefCell<Origin>>,
    clients: Vec<Client>,
    clients_max: usize,
    /// When each periodic task is due.
    due_ms: Vec<u64>,
    log: ErrorLog,
    /// Number of times that the periodic tasks have run.
    works: usize,
    /// When the loader begins.
    loads_ms: u64,
    /// Frequency of jumps of the clock, per thousand steps.
    jumps: u32,
}

impl Run {
    fn new(site: &Site, mut random: Random) -> Self {
        let http = site.http();
        let scratch = *random.pick(&[1000, 4096, 65_536]);
        let mut world = || {
            let config = ThreadConfig::unprepared(Arc::clone(&http), 1);
            World::new(config, random.fork(), UNIX_MS, scratch)
        };
        let mut worlds = [world(), world()];
        let book = Book::default();
        book.borrow_mut().now_ms = worlds[0].now_ms();
        let mut origin = Origin::new(&book, random.fork());
        origin.faults = faults(&mut random);
        let origin = Rc::new(RefCell::new(origin));
        for world in &mut worlds {
            world.shared.net.servers = Some(Box::new(Dialer {
                origin: Rc::clone(&origin),
                hands: Rc::clone(&world.hands),
            }));
        }
        let wake: Wake = Arc::new(|| {});
        for task in &http.periodic_tasks {
            task.set_wake(&wake);
        }
        let mut run = Self {
            clients_max: random.within(2..14),
            jumps: *random.pick(&[0, 10, 40]),
            random,
            due_ms: vec![0; http.periodic_tasks.len()],
            http,
            worlds,
            book,
            origin,
            clients: Vec::new(),
            log: log(),
            works: 0,
            loads_ms: u64::MAX,
        };
        // Opens the directory.
        run.work();
        run
    }

    fn now_ms(&self) -> u64 {
        self.worlds[0].now_ms()
    }

    fn advance(&mut self, ms: u64) {
        for world in &mut self.worlds {
            world.advance(ms);
        }
        self.book.borrow_mut().now_ms = self.now_ms();
    }

    fn course(&mut self) -> Result<(), String> {
        for _ in 0..self.random.within(50..700) {
            self.step()?;
        }
        self.wind_up()
    }

    fn step(&mut self) -> Result<(), String> {
        if self.random.chance(self.jumps) {
            let due = self.next_deadline().unwrap_or(0);
            let ms = match self.random.below(3) {
                0 => due.saturating_sub(self.now_ms()),
                1 => self.random.below(1200),
                _ => self.random.below(4000),
            };
            self.advance(ms);
        }
        match self.random.below(100) {
            0..6 => self.accept(),
            6..40 => self.act(),
            40..65 => self.origin.borrow_mut().act(),
            65..90 => {
                let worker = self.random.within(0..2);
                return self.poll(worker, 800);
            }
            90..94 => {
                let ms = self.random.below(100);
                self.advance(ms);
            }
            _ => self.work(),
        }
        Ok(())
    }

    fn accept(&mut self) {
        let is_open = |client: &&Client| {
            let link = &self.worlds[client.worker].links[client.link];
            !link.wire.borrow().closed
        };
        if self.clients.iter().filter(is_open).count() >= self.clients_max {
            return;
        }
        let random = &mut self.random;
        let (worker, faults) = (random.within(0..2), faults(random));
        let capacity = *random.pick(&[1000, 30_000, 1 << 20]);
        let world = &mut self.worlds[worker];
        let wire = Wire::new(Rc::clone(&world.hands), random.fork(), faults, capacity);
        let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)));
        let link = world.accept(wire, 0, peer);
        let client = Client::new(worker, link, &self.book, random);
        self.clients.push(client);
    }

    fn act(&mut self) {
        if self.clients.is_empty() {
            return self.accept();
        }
        let at = self.random.within(0..self.clients.len());
        let client = &mut self.clients[at];
        let wire = Rc::clone(&self.worlds[client.worker].links[client.link].wire);
        client.act(&mut wire.borrow_mut(), &mut self.random);
    }

    fn poll(&mut self, worker: usize, permille: u32) -> Result<(), String> {
        self.worlds[worker].poll(permille);
        self.look()
    }

    /// Runs the periodic tasks that are due.
    fn work(&mut self) {
        let now_ms = self.now_ms();
        let unix_s = (UNIX_MS + now_ms) / 1000;
        let clock = TaskClock {
            mono_ms: &|| now_ms,
            unix_s: unix_s as i64,
        };
        for (task, due_ms) in self.http.periodic_tasks.iter().zip(&mut self.due_ms) {
            if now_ms >= *due_ms || task.is_woken() {
                let pause_ms = task.run(&clock, &self.log);
                *due_ms = pause_ms.map_or(u64::MAX, |ms| now_ms + ms.max(1));
                self.works += 1;
                if self.works == 2 {
                    self.loads_ms = now_ms + LOADER_DELAY_MS;
                }
            }
        }
        if now_ms >= self.loads_ms {
            self.loads_ms = u64::MAX;
            self.await_loader();
        }
    }

    /// Waits for the thread of the loader, so that the run depends on the seed only.
    fn await_loader(&self) {
        let begin = Instant::now();
        let is_cold = || {
            let mut caches = self.http.caches.iter();
            caches.any(|zone| zone.shared.index.is_cold())
        };
        let is_woken = || self.http.periodic_tasks.iter().all(|task| task.is_woken());
        while is_cold() || !is_woken() {
            assert!(begin.elapsed().as_secs() < 60, "the loader does not end");
            std::thread::yield_now();
        }
    }

    fn next_deadline(&self) -> Option<u64> {
        let ours = self.worlds.iter().filter_map(World::next_deadline);
        let theirs = self.origin.borrow().next_ms(self.now_ms());
        ours.chain(theirs).min()
    }

    /// Checks all connections.
    fn look(&mut self) -> Result<(), String> {
        self.origin.borrow_mut().look();
        for client in &mut self.clients {
            client.look(&self.worlds[client.worker].links[client.link])?;
        }
        let book = self.book.borrow();
        book.faults.first().map_or(Ok(()), |f| Err(f.clone()))
    }

    /// Finishes all actions without faults. Then advances from deadline to deadline until all connections are closed.
    fn wind_up(&mut self) -> Result<(), String> {
        let all = self.worlds.iter().flat_map(|world| &world.links);
        for link in all {
            link.wire.borrow_mut().behave(WIND_UP_CAPACITY);
        }
        self.origin.borrow_mut().behave(WIND_UP_CAPACITY);
        for _ in 0..DEADLINES_MAX {
            self.settle()?;
            let Some(next_ms) = self.next_deadline() else {
                return Ok(());
            };
            self.advance(next_ms.saturating_sub(self.now_ms()));
            for worker in [0, 1] {
                self.poll(worker, 1000)?;
            }
        }
        Err("timers go on".to_owned())
    }

    /// Does everything that is possible at the current time.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let mut is_busy = self.worlds.iter().any(World::is_ready);
            for client in &mut self.clients {
                let wire = &self.worlds[client.worker].links[client.link].wire;
                is_busy |= client.finish(&mut wire.borrow_mut(), &mut self.random);
            }
            is_busy |= self.origin.borrow_mut().finish();
            if !is_busy {
                self.work();
                return Ok(());
            }
            for worker in [0, 1] {
                self.poll(worker, 1000)?;
            }
        }
        Err("events go on without time".to_owned())
    }

    fn check_end(self) -> Result<Tally, String> {
        let waits = |client: &&Client| {
            let world = &self.worlds[client.worker];
            client.waits(&world.links[client.link])
        };
        let waiting = self.clients.iter().filter(waits).count();
        for world in &self.worlds {
            let counts = (world.counts(), world.upstream_counts());
            if counts != ((0, 0), (0, 0)) || waiting > 0 {
                let story = self.story();
                return Err(format!(
                    "{counts:?} and {waiting} clients wait for ever\n{story}"
                ));
            }
        }
        let caches = self.http.caches.iter();
        let fills: u64 = caches.map(|zone| zone.shared.index.stats().fills).sum();
        if fills > 0 {
            return Err(format!("{fills} fills have no end\n{}", self.story()));
        }
        let book = self.book.borrow();
        let origins = self.clients.iter().flat_map(|client| &client.origins);
        let count = |origin| origins.clone().filter(|o| **o == origin).count() as u64;
        Ok(Tally {
            connections: self.clients.len() as u64,
            requests: book.requests.len() as u64,
            givings: book.givings.len() as u64,
            purges: book.purges.len() as u64,
            own: count(ResponseOrigin::Own),
            confirmed: count(ResponseOrigin::Confirmed),
            joined: count(ResponseOrigin::Joined),
            reused: count(ResponseOrigin::Reused),
            stale: count(ResponseOrigin::Stale),
            others: count(ResponseOrigin::Other),
            failures: book.failures.len() as u64,
        })
    }

    /// Returns the log of a run: requests, responses of servers, and purges, in the order of their begin.
    fn story(&self) -> String {
        let book = self.book.borrow();
        let mut lines = Vec::new();
        for request in &book.requests {
            let name = RESOURCES[request.resource].name;
            let (id, location) = (request.id, request.location().name);
            let variant = VARIANTS[request.variant];
            let (action, directive) = (&request.action, request.directive);
            lines.push((
                request.begun,
                format!("request {id}: {location} {name}/{variant} {action:?} {directive:?}"),
            ));
        }
        for giving in &book.givings {
            let version = &book.versions[giving.version];
            let name = RESOURCES[version.resource].name;
            let given = giving.given.unwrap_or_default();
            let text = format!(
                "  version {} of {name}/{} for {}, {}, {} bytes, sent at {} ({} ms), {}{}{}",
                giving.version,
                VARIANTS[version.variant],
                giving.request,
                if giving.is_304 { 304 } else { version.status },
                version.len,
                given.order,
                given.ms,
                giving.policy.text(),
                if giving.is_head { ", HEAD" } else { "" },
                if giving.fails { ", fails" } else { "" },
            );
            lines.push((giving.asked, text));
        }
        for purge in &book.purges {
            let text = format!(
                "  purge of {:?}, answered at {}, soft {}, by tag {}",
                purge.resources, purge.answered.order, purge.is_soft, purge.by_tag
            );
            lines.push((purge.begun, text));
        }
        lines.sort_by_key(|(moment, _)| *moment);
        let mut story = format!("  now {}\n", self.now_ms());
        for (moment, line) in lines {
            story += &format!("  {:>4} {:>6} ms {line}\n", moment.order, moment.ms);
        }
        story
    }
}

/// Returns the faults of a connection: mostly none, or many.
fn faults(random: &mut Random) -> Faults {
    Faults::drawn(|| *random.pick(&[0, 0, 50, 400]))
}

/// The time of the begin, milliseconds since 1970. No file is older: the loader removes old temporary files.
const UNIX_MS: u64 = 1_600_000_000_000;
/// Time from the second run of the periodic task to the begin of the loader, milliseconds.
const LOADER_DELAY_MS: u64 = 1000;
/// Maximum number of deadlines at the end of a run; far more than any run has.
const DEADLINES_MAX: usize = 2000;
/// Maximum number of turns without a change of time.
const ROUNDS_MAX: usize = 100_000;
/// Bytes of each read at the end of a run, which bound its duration.
const WIND_UP_CAPACITY: usize = 10_000;
