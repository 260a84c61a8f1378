//! Background fetches of the served configuration. The worker's main thread starts due fetches and runs the loop of
//! their connections beside its other duties.
//!
//! Only [`IN_PROGRESS_MAX`] due fetches are in progress at a time, so that a thousand certificates do not reach one
//! responder together. Names are resolved by the resolver of `io`, one for each `resolver` that fetches have. A reload
//! ends all fetches, with their sockets. Nothing here blocks.

mod attempt;
mod connections;
mod response;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use engines::dns::{Answer, Event, Subject};
use server_base::background_fetch::BackgroundFetch;
use server_base::errlog::{ErrorLog, Level};
use server_base::name_servers::NameServers;
use server_http::http::Http;
use sys::poll::{Poller, Ready};

use super::thread_config::ThreadConfig;
use super::unix_s;
use crate::io::resolver::Resolver;
use attempt::{Attempt, Outcome, write_log};
use connections::Connections;

/// All background fetches of a configuration.
pub(super) struct BackgroundFetches {
    jobs: Vec<Job>,
    resolvers: Vec<(Arc<NameServers>, Resolver<usize>)>,
    /// None without fetches.
    connections: Option<Connections>,
    began: Instant,
    /// The first token of the resolvers' sockets.
    first_token: u64,
}

struct Job {
    fetch: Arc<dyn BackgroundFetch>,
    state: State,
}

enum State {
    /// Starts at this time, milliseconds.
    Scheduled(u64),
    /// Waits for addresses, which come from a resolver within its time.
    Resolving,
    /// Connects to one address after another.
    InProgress(Box<Attempt>),
}

impl BackgroundFetches {
    /// No fetches.
    pub(super) fn none(first_token: u64) -> Self {
        Self {
            jobs: Vec::new(),
            resolvers: Vec::new(),
            connections: None,
            began: Instant::now(),
            first_token,
        }
    }

    /// The fetches of a configuration with this number; none is started yet. Sockets of resolvers have tokens from
    /// `first_token` on.
    pub(super) fn new(http: &Arc<Http>, number: u64, first_token: u64) -> Self {
        Self::of(&http.background_fetches, http, number, first_token)
    }

    fn of(
        all: &[Arc<dyn BackgroundFetch>],
        http: &Arc<Http>,
        number: u64,
        first_token: u64,
    ) -> Self {
        let now_s = unix_s();
        let job = |fetch: &Arc<dyn BackgroundFetch>| Job {
            fetch: Arc::clone(fetch),
            state: State::Scheduled(fetch.first_in_ms(now_s)),
        };
        Self {
            jobs: all.iter().map(job).collect(),
            resolvers: Vec::new(),
            connections: (!all.is_empty())
                .then(|| Connections::new(ThreadConfig::unprepared(Arc::clone(http), number))),
            began: Instant::now(),
            first_token,
        }
    }

    /// Milliseconds until something is due, `most` at most; rounded up, so that it is due then.
    pub(super) fn wait_ms(&self, most: u64) -> u64 {
        let busy = self.in_progress() >= IN_PROGRESS_MAX;
        let jobs = self.jobs.iter().filter_map(|job| match &job.state {
            // A fetch has to end first, and its end is an event.
            State::Scheduled(_) if busy => None,
            State::Scheduled(at_ms) => Some(*at_ms),
            State::Resolving => None,
            State::InProgress(attempt) => Some(attempt.deadline_ms),
        });
        let resolvers = self.resolvers.iter().filter_map(|(_, r)| r.deadline());
        let connections = self.connections.as_ref().and_then(Connections::deadline);
        let Some(next) = jobs.chain(resolvers).chain(connections).min() else {
            return most;
        };
        // The clock counts in whole milliseconds and may be just short of the next one.
        let now_ms = self.now_ms();
        let left = next.saturating_sub(now_ms);
        (if left == 0 { 0 } else { left + 1 }).min(most)
    }

    /// Starts and abandons fetches that are due.
    pub(super) fn run_due(&mut self, poller: &Poller, log: &ErrorLog) {
        let now_ms = self.now_ms();
        for (_, resolver) in &mut self.resolvers {
            if resolver.deadline().is_some_and(|at| at <= now_ms) {
                resolver.expire(poller, now_ms);
            }
        }
        self.deliver_addresses(log);
        for n in 0..self.jobs.len() {
            let job = &mut self.jobs[n];
            if let State::InProgress(attempt) = &mut job.state
                && attempt.deadline_ms <= now_ms
            {
                attempt.time_out(job.fetch.endpoint(), log);
                self.advance(n, log);
            }
        }
        let mut free = IN_PROGRESS_MAX.saturating_sub(self.in_progress());
        for n in 0..self.jobs.len() {
            let due = matches!(self.jobs[n].state, State::Scheduled(at_ms) if at_ms <= now_ms);
            if due && free > 0 {
                self.start(n, poller, log);
                free -= usize::from(!matches!(self.jobs[n].state, State::Scheduled(_)));
            }
        }
        self.run_connections(poller, log);
    }

    /// Runs turns of the loop until no fetch needs another one.
    fn run_connections(&mut self, poller: &Poller, log: &ErrorLog) {
        loop {
            let now_ms = self.now_ms();
            let Some(connections) = &mut self.connections else {
                return;
            };
            connections.turn(poller, now_ms);
            let advanced = (0..self.jobs.len()).filter(|n| self.advance(*n, log));
            let is_done = advanced.count() == 0;
            // A fetch that emptied its mailbox lets its connection read on.
            if is_done && !self.connections.as_ref().is_some_and(Connections::is_woken) {
                return;
            }
        }
    }

    /// A socket is ready.
    pub(super) fn ready(&mut self, ready: Ready, poller: &Poller, log: &ErrorLog) {
        let now_ms = self.now_ms();
        if (self.connections.as_mut()).is_some_and(|connections| connections.ready(ready)) {
            return self.run_connections(poller, log);
        }
        for (_, resolver) in &mut self.resolvers {
            resolver.ready(poller, now_ms, ready);
        }
        self.deliver_addresses(log);
        self.run_connections(poller, log);
    }

    /// Returns the number of fetches in progress.
    fn in_progress(&self) -> usize {
        let in_progress = |job: &&Job| !matches!(job.state, State::Scheduled(_));
        self.jobs.iter().filter(in_progress).count()
    }

    fn start(&mut self, n: usize, poller: &Poller, log: &ErrorLog) {
        let now_ms = self.now_ms();
        let fetch = Arc::clone(&self.jobs[n].fetch);
        let to = fetch.endpoint();
        if !to.addresses.is_empty() {
            if to.host.parse::<IpAddr>().is_err() && !to.host.starts_with('[') {
                let text = format_args!("no resolver defined to resolve {}", to.host);
                write_log(log, Level::Warn, to, None, text);
            }
            let addresses = to.addresses.clone();
            return self.connect(n, addresses, log);
        }
        let resolver = to
            .servers
            .as_ref()
            .map(|servers| self.resolver(servers, log));
        let Some(Ok(resolver)) = resolver else {
            let text = format_args!("no resolver defined to resolve {}", to.host);
            write_log(log, Level::Error, to, None, text);
            return self.end(n, false);
        };
        let subject = Subject::Addresses(to.host.as_bytes());
        resolver.ask(poller, now_ms, subject, to.resolver_timeout_ms, n);
        self.jobs[n].state = State::Resolving;
        self.deliver_addresses(log);
    }

    /// The resolver with these servers.
    fn resolver(
        &mut self,
        servers: &Arc<NameServers>,
        log: &ErrorLog,
    ) -> std::io::Result<&mut Resolver<usize>> {
        let known = self
            .resolvers
            .iter()
            .position(|(known, _)| known == servers);
        let place = match known {
            Some(place) => place,
            None => {
                let last = self.resolvers.last().map(|(_, last)| last.tokens().end);
                let first = last.unwrap_or(self.first_token);
                let resolver = Resolver::new(servers, first, log.clone())?;
                self.resolvers.push((Arc::clone(servers), resolver));
                self.resolvers.len() - 1
            }
        };
        Ok(&mut self.resolvers[place].1)
    }

    /// Continues fetches after the resolution of their names has succeeded or failed.
    fn deliver_addresses(&mut self, log: &ErrorLog) {
        for place in 0..self.resolvers.len() {
            while let Some((n, event)) = self.resolvers[place].1.event() {
                let fetch = Arc::clone(&self.jobs[n].fetch);
                let to = fetch.endpoint();
                match event {
                    Event::Resolved {
                        answer: Answer::Addresses(found),
                        ..
                    } => {
                        let addresses = found.into_iter().take(ADDRESSES_MAX);
                        let addresses = addresses.map(|ip| SocketAddr::new(ip, to.port));
                        self.connect(n, addresses.collect(), log);
                    }
                    Event::Resolved { .. } => self.end(n, false),
                    Event::Failed { why, .. } => {
                        let text = format_args!(
                            "{} could not be resolved ({}: {why})",
                            to.host,
                            why.code()
                        );
                        write_log(log, Level::Error, to, None, text);
                        self.end(n, false);
                    }
                }
            }
        }
    }

    fn connect(&mut self, n: usize, addresses: Vec<SocketAddr>, log: &ErrorLog) {
        self.jobs[n].state = State::InProgress(Box::new(Attempt::new(addresses)));
        self.advance(n, log);
    }

    /// Looks at the mailbox of a fetch; true if the loop is to have a turn.
    fn advance(&mut self, n: usize, log: &ErrorLog) -> bool {
        let job = &mut self.jobs[n];
        let (State::InProgress(attempt), Some(connections)) =
            (&mut job.state, &mut self.connections)
        else {
            return false;
        };
        // The clock is read for fetches in progress alone: there may be thousands.
        let now_ms = self.began.elapsed().as_millis() as u64;
        match attempt.advance(&*job.fetch, connections, now_ms, log) {
            Outcome::Pending => false,
            Outcome::Begun => true,
            Outcome::Ended { succeeded } => {
                self.end(n, succeeded);
                // Its connection is closed in a turn of the loop.
                true
            }
        }
    }

    fn end(&mut self, n: usize, succeeded: bool) {
        let job = &mut self.jobs[n];
        let pause_ms = job.fetch.ended(succeeded, unix_s()).max(PAUSE_MS_MIN);
        job.state = State::Scheduled(self.began.elapsed().as_millis() as u64 + pause_ms);
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

/// Fetches in progress at a time.
const IN_PROGRESS_MAX: usize = 32;
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;
/// The shortest pause between the end of a fetch and its next start.
const PAUSE_MS_MIN: u64 = 1_000;
