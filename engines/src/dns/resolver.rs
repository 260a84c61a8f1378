//! The resolver: waiters by question, questions by server, cached answers.
//!
//! The contract is at the top of the module. The effects of a message are in `settle`.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::entry::{
    Asking, Cached, Entry, LookupKind, Outcome, PURGE_MIN, Query, Question, Stage, State,
};
use super::event::{Answer, Event, Failure, Route, Subject};
use super::message::encode_query;
use super::name::Name;
use super::settings::Settings;
use super::slab::{Key, Slab};
use super::waiter::{Role, Wait, Waiter};

/// Names to addresses, for one thread.
#[derive(Debug)]
pub struct Resolver {
    pub(super) settings: Settings,
    pub(super) entries: Slab<Entry>,
    pub(super) by_question: BTreeMap<Question, Key>,
    /// Number of entries with queries in progress.
    pub(super) asking: usize,
    /// The cached entries, by their last use.
    pub(super) kept: BTreeSet<(u64, Key)>,
    pub(super) waiters: Slab<Waiter>,
    pub(super) timers: BTreeSet<(u64, Timer)>,
    /// Queries to be sent: the entry, and the index of its query.
    pub(super) sends: VecDeque<(Key, usize)>,
    pub(super) events: VecDeque<Event>,
    next_server: usize,
}

/// Owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Entry(Key),
    Waiter(Key),
}

impl Resolver {
    /// A resolver that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            entries: Slab::new(),
            by_question: BTreeMap::new(),
            asking: 0,
            kept: BTreeSet::new(),
            waiters: Slab::new(),
            timers: BTreeSet::new(),
            sends: VecDeque::new(),
            events: VecDeque::new(),
            next_server: 0,
        }
    }

    /// Starts a lookup. The event with the key comes at once if the answer is known, at the latest after
    /// `timeout_ms`; 0 is no limit. `chance` is any random number: it spreads load over the addresses of an answer.
    pub fn ask(&mut self, now_ms: u64, subject: Subject<'_>, timeout_ms: u64, chance: u64) -> Key {
        self.forget_unused(now_ms);
        let room = self.waiters.len() < WAITING_MAX;
        let key = self.waiters.insert(Waiter {
            role: Role::Asker,
            stage: Wait::Nothing,
            aliases: 0,
            deadline_ms: None,
            timeout_ms,
            random: fastrand::Rng::with_seed(chance),
        });
        if !room {
            self.fail(now_ms, key, Failure::TooMany);
            return key;
        }
        if let Some(address) = literal(subject) {
            let answer = Answer::Addresses(vec![address]);
            self.complete(now_ms, key, Ok(answer), u64::MAX);
            return key;
        }
        match question(subject) {
            Some(question) => self.begin(now_ms, key, question),
            None => self.fail(now_ms, key, Failure::NotFound),
        }
        key
    }

    /// Cancels a question; no event of it follows. No effect if the event of the key has been returned.
    pub fn cancel(&mut self, key: Key) {
        let Some(waiter) = self.waiters.remove(key) else {
            self.events.retain(|event| event.key() != key);
            return;
        };
        if let Some(at) = waiter.deadline_ms {
            self.timers.remove(&(at, Timer::Waiter(key)));
        }
        if let Wait::Hosts(hosts) = waiter.stage {
            for host in hosts.waiters() {
                self.cancel(host);
            }
        }
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether [`Resolver::transmit`] has a query to send.
    #[must_use]
    pub fn wants_transmit(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Writes the next query to `out`, replacing its content, and returns its route. Over TCP the query follows its
    /// length. `id` is an unpredictable random number, new for each call.
    pub fn transmit(&mut self, id: u16, out: &mut Vec<u8>) -> Option<Route> {
        while let Some((key, index)) = self.sends.pop_front() {
            let Some(entry) = self.entries.get_mut(key) else {
                continue;
            };
            let State::Asking(asking) = &mut entry.state else {
                continue;
            };
            let query = &mut asking.queries[index];
            query.stage = Stage::Sent;
            let id = *query.id.get_or_insert(id);
            if !asking.asked.contains(&asking.server) {
                asking.asked.push(asking.server);
            }
            out.clear();
            let name = &entry.question.name;
            encode_query(id, name, query.kind, query.transport, out);
            return Some(Route {
                server: asking.server,
                transport: query.transport,
            });
        }
        None
    }

    /// Reports an unreachable server: its queries go to the next server, once before the timeout, or fail if the
    /// settings require it.
    pub fn unreachable(&mut self, now_ms: u64, route: Route) {
        let (servers, gives_up) = (self.settings.servers, self.settings.gives_up);
        if servers < 2 && !gives_up {
            return;
        }
        let lost = |asking: &Asking| {
            let sent = asking
                .queries
                .iter()
                .any(|query| query.stage == Stage::Sent && query.transport == route.transport);
            asking.server == route.server && (gives_up || !asking.hurried) && sent
        };
        let keys: Vec<Key> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(&entry.state, State::Asking(asking) if lost(asking)))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            if gives_up && self.has_reached_none(key, route.server) {
                self.finish(now_ms, key, Outcome::Failed(Failure::Unreachable));
            } else {
                self.ask_next_server(now_ms, key, true);
            }
        }
    }

    /// Records an unreachable server for a question; returns whether all servers are unreachable.
    fn has_reached_none(&mut self, key: Key, server: usize) -> bool {
        let servers = self.settings.servers;
        let asking = self.entries.get_mut(key).and_then(Entry::asking_mut);
        asking.is_some_and(|asking| {
            if !asking.unreached.contains(&server) {
                asking.unreached.push(server);
            }
            asking.unreached.len() >= servers
        })
    }

    /// Whether queries are pending.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.asking > 0
    }

    /// When to call [`Resolver::expire`].
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles all timers that are due.
    pub fn expire(&mut self, now_ms: u64) {
        while let Some((at, timer)) = self.timers.first().copied()
            && at <= now_ms
        {
            self.timers.pop_first();
            match timer {
                Timer::Waiter(key) => {
                    if let Some(waiter) = self.waiters.get_mut(key) {
                        waiter.deadline_ms = None;
                    }
                    self.fail(now_ms, key, Failure::TimedOut);
                }
                Timer::Entry(key) => self.resend(now_ms, key),
            }
        }
    }

    /// Puts a waiter to its first question, with its time.
    pub(super) fn begin(&mut self, now_ms: u64, key: Key, question: Question) {
        if self.settings.servers == 0 {
            return self.fail(now_ms, key, Failure::NoServers);
        }
        self.place(now_ms, key, question);
        // The time limit begins here if the waiter must wait; a waiter with a known answer is gone already.
        let Some(waiter) = self.waiters.get_mut(key) else {
            return;
        };
        if waiter.timeout_ms > 0 && matches!(waiter.stage, Wait::Entry(_)) {
            let at = now_ms.saturating_add(waiter.timeout_ms);
            waiter.deadline_ms = Some(at);
            self.timers.insert((at, Timer::Waiter(key)));
        }
    }

    /// Attaches a waiter to a question: it gets a cached answer at once, or waits for it.
    pub(super) fn place(&mut self, now_ms: u64, key: Key, mut question: Question) {
        loop {
            let found = self.by_question.get(&question).copied();
            let Some(entry_key) = found else {
                return self.start(now_ms, key, question);
            };
            let entry = self
                .entries
                .get_mut(entry_key)
                .expect("a question leads to its entry");
            match &mut entry.state {
                State::Asking(asking) => {
                    if asking.waiters.len() >= asking.purge_at {
                        let waiters = &self.waiters;
                        asking.waiters.retain(|key| waiters.get(*key).is_some());
                        asking.purge_at = asking.waiters.len() * 2 + PURGE_MIN;
                    }
                    asking.waiters.push(key);
                    return self.wait_for(key, entry_key);
                }
                State::Kept(kept) if now_ms < kept.valid_until_ms => {
                    self.kept.remove(&(kept.used_ms, entry_key));
                    kept.used_ms = now_ms;
                    self.kept.insert((now_ms, entry_key));
                    let (answer, until_ms) = (kept.answer.clone(), kept.valid_until_ms);
                    match &*answer {
                        Cached::Alias(target) => {
                            match self.follow(now_ms, key, target, &question) {
                                Some(next) => question = next,
                                None => return,
                            }
                        }
                        answer => return self.give(now_ms, key, answer, until_ms, true),
                    }
                }
                State::Kept(_) => self.remove_entry(entry_key),
            }
        }
    }

    /// Question of a waiter after an alias; `None` if it has followed too many, which is reported to it.
    pub(super) fn follow(
        &mut self,
        now_ms: u64,
        key: Key,
        target: &Name,
        question: &Question,
    ) -> Option<Question> {
        let waiter = self.waiters.get_mut(key)?;
        waiter.aliases += 1;
        if waiter.aliases > ALIASES_MAX {
            self.fail(now_ms, key, Failure::NotFound);
            return None;
        }
        Some(Question {
            name: target.clone(),
            kind: question.kind,
        })
    }

    fn wait_for(&mut self, key: Key, entry: Key) {
        if let Some(waiter) = self.waiters.get_mut(key) {
            waiter.stage = Wait::Entry(entry);
        }
    }

    /// Starts the queries of a question that has no entry yet.
    fn start(&mut self, now_ms: u64, key: Key, question: Question) {
        if self.asking >= ASKED_MAX {
            return self.fail(now_ms, key, Failure::TooMany);
        }
        let server = self.next_server;
        let asking = Asking::new(question.kind, &self.settings, server, now_ms);
        let Some(mut asking) = asking else {
            return self.fail(now_ms, key, Failure::NotFound);
        };
        if self.settings.rotate {
            self.next_server = (server + 1) % self.settings.servers;
        }
        asking.waiters.push(key);
        let (queries, resend_at_ms) = (asking.queries.len(), asking.resend_at_ms);
        let entry = self.entries.insert(Entry {
            question: question.clone(),
            state: State::Asking(asking),
        });
        self.by_question.insert(question, entry);
        self.asking += 1;
        self.timers.insert((resend_at_ms, Timer::Entry(entry)));
        self.sends.extend((0..queries).map(|index| (entry, index)));
        self.wait_for(key, entry);
    }

    /// The time for an answer is over: the next server is queried if there are still waiters.
    fn resend(&mut self, now_ms: u64, key: Key) {
        if self.has_waiters(key) {
            self.ask_next_server(now_ms, key, false);
        } else {
            self.remove_entry(key);
        }
    }

    /// Whether the answer has waiters.
    pub(super) fn has_waiters(&self, key: Key) -> bool {
        let Some(Entry { state, .. }) = self.entries.get(key) else {
            return false;
        };
        let alive = |waiter: &Key| self.waiters.get(*waiter).is_some();
        matches!(state, State::Asking(asking) if asking.waiters.iter().any(alive))
    }

    /// Sends the unanswered queries to the next server.
    fn ask_next_server(&mut self, now_ms: u64, key: Key, hurried: bool) {
        let servers = self.settings.servers;
        let Some(asking) = self.entries.get_mut(key).and_then(Entry::asking_mut) else {
            return;
        };
        asking.server = (asking.server + 1) % servers;
        asking.hurried = hurried;
        self.send_again(now_ms, key, |query| query.stage == Stage::Sent);
    }

    /// Queues sent queries again, with a new time limit.
    pub(super) fn send_again(&mut self, now_ms: u64, key: Key, which: impl Fn(&Query) -> bool) {
        let at = now_ms.saturating_add(self.settings.resend_ms);
        let Some(asking) = self.entries.get_mut(key).and_then(Entry::asking_mut) else {
            return;
        };
        for (index, query) in asking.queries.iter_mut().enumerate() {
            if query.stage == Stage::Sent && which(query) {
                query.stage = Stage::Queued;
                self.sends.push_back((key, index));
            }
        }
        let before = std::mem::replace(&mut asking.resend_at_ms, at);
        self.timers.remove(&(before, Timer::Entry(key)));
        self.timers.insert((at, Timer::Entry(key)));
    }

    /// Drops an entry; its waiters were notified or moved before.
    pub(super) fn remove_entry(&mut self, key: Key) {
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        self.by_question.remove(&entry.question);
        match entry.state {
            State::Asking(asking) => {
                self.asking -= 1;
                self.timers
                    .remove(&(asking.resend_at_ms, Timer::Entry(key)));
                let queued = |query: &Query| query.stage == Stage::Queued;
                if asking.queries.iter().any(queued) {
                    self.sends.retain(|(sent, _)| *sent != key);
                }
            }
            State::Kept(kept) => {
                self.kept.remove(&(kept.used_ms, key));
            }
        }
    }

    /// Drops answers unused for a while: two each time, so that no call pays for many.
    fn forget_unused(&mut self, now_ms: u64) {
        for _ in 0..2 {
            match self.kept.first().copied() {
                Some((used_ms, key)) if used_ms.saturating_add(UNUSED_MS) < now_ms => {
                    self.remove_entry(key);
                }
                _ => return,
            }
        }
    }
}

/// The address that a subject is already.
fn literal(subject: Subject<'_>) -> Option<IpAddr> {
    let Subject::Addresses(text) = subject else {
        return None;
    };
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn question(subject: Subject<'_>) -> Option<Question> {
    let (name, kind) = match subject {
        Subject::Addresses(name) => (Name::parse(name)?, LookupKind::Addresses),
        Subject::Service { service, name } => {
            let labels = if service.contains(&b'.') {
                service.to_vec()
            } else {
                [b"_", service, b"._tcp"].concat()
            };
            (Name::below(&labels, name)?, LookupKind::Services)
        }
        Subject::Pointer(address) => (Name::of_address(address), LookupKind::Pointer),
    };
    Some(Question { name, kind })
}

/// Most aliases followed for one question, as in nginx.
pub const ALIASES_MAX: usize = 50;
/// Most names with pending queries.
pub const ASKED_MAX: usize = 4096;
/// Most cached answers; the one unused for longest is evicted first.
pub const KEPT_MAX: usize = 4096;
/// Most waiters at a time, including those for the hosts of a service.
pub const WAITING_MAX: usize = 65_536;
/// Time without use after which an answer may be dropped, milliseconds; as in nginx.
const UNUSED_MS: u64 = 30_000;
