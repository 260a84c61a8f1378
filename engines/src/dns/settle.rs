//! Effects of answers: queries settled, waiters notified, answers cached.

use std::rc::Rc;

use super::answer::{self, QueryAnswer, ResponseData};
use super::entry::{
    Asking, Cached, Entry, Kept, LookupKind, Outcome, Question, Stage, State, ordered,
};
use super::event::{Answer, Event, Failure, Route, Transport};
use super::message::{QueryType, Reply};
use super::name::Name;
use super::refused::Refused;
use super::resolver::{KEPT_MAX, Resolver, Timer, WAITING_MAX};
use super::service::Hosts;
use super::slab::Key;
use super::waiter::{Role, Wait, Waiter};

impl Resolver {
    /// Takes a message that came from a server.
    ///
    /// # Errors
    /// Why the message was refused, for the log; nothing has changed then.
    pub fn receive(&mut self, now_ms: u64, from: Route, message: &[u8]) -> Result<(), Refused> {
        let reply = Reply::parse(message, from.transport).map_err(|refused| match refused {
            Refused::Error { code, id, .. } => Refused::Error {
                code,
                id,
                name: self.name_of(id),
            },
            refused => refused,
        })?;
        let (key, query) = self.asked_by(&reply, from)?;
        if reply.truncated {
            self.ask_over_tcp(now_ms, key, query);
            return Ok(());
        }
        let entry = self.entries.get_mut(key);
        let asking = entry
            .and_then(Entry::asking_mut)
            .expect("the entry has just been found to be asking");
        let told = match Failure::of_rcode(reply.code) {
            Some(failure) => Err(failure),
            None if reply.is_empty() => Ok(QueryAnswer {
                what: ResponseData::Nothing,
                ttl_s: u32::MAX,
            }),
            None => Ok(answer::read(&reply, asking.queries[query].kind)?),
        };
        let queued = asking.queries[query].stage == Stage::Queued;
        let outcome = asking.answered(query, told);
        if queued {
            // An earlier copy of the query was answered just before it was sent again.
            self.sends.retain(|send| *send != (key, query));
        }
        if let Some(outcome) = outcome {
            self.finish(now_ms, key, outcome);
        }
        Ok(())
    }

    /// The query that a response answers: the same question, number and server.
    fn asked_by(&self, reply: &Reply<'_>, from: Route) -> Result<(Key, usize), Refused> {
        let unexpected = || Refused::Unexpected(reply.name.clone());
        let question = Question {
            name: reply.name.clone(),
            kind: match reply.kind {
                QueryType::A | QueryType::Aaaa => LookupKind::Addresses,
                QueryType::Srv => LookupKind::Services,
                QueryType::Ptr => LookupKind::Pointer,
            },
        };
        let key = self.by_question.get(&question).ok_or_else(unexpected)?;
        let Some(State::Asking(asking)) = self.entries.get(*key).map(|entry| &entry.state) else {
            return Err(unexpected());
        };
        let mut queries = asking.queries.iter().enumerate();
        let (index, query) = queries
            .find(|(_, query)| query.kind == reply.kind)
            .ok_or_else(unexpected)?;
        if query.stage == Stage::Answered || !asking.asked.contains(&from.server) {
            return Err(unexpected());
        }
        let expected = query.id.ok_or_else(unexpected)?;
        if expected != reply.id {
            return Err(Refused::Id {
                id: reply.id,
                expected,
                name: reply.name.clone(),
            });
        }
        Ok((*key, index))
    }

    /// The name of the query with a number, for the log: looked for among the first entries only.
    fn name_of(&self, id: u16) -> Option<Name> {
        let has = |asking: &Asking| asking.queries.iter().any(|query| query.id == Some(id));
        let mut entries = self.entries.iter().take(LOOKED_AT_MAX);
        entries.find_map(|(_, entry)| match &entry.state {
            State::Asking(asking) if has(asking) => Some(entry.question.name.clone()),
            _ => None,
        })
    }

    /// An answer did not fit into a datagram.
    fn ask_over_tcp(&mut self, now_ms: u64, key: Key, index: usize) {
        if !self.has_waiters(key) {
            return self.remove_entry(key);
        }
        let Some(asking) = self.entries.get_mut(key).and_then(Entry::asking_mut) else {
            return;
        };
        let query = &mut asking.queries[index];
        if query.transport == Transport::Tcp {
            // A late datagram: the query is already pending over TCP.
            return;
        }
        query.transport = Transport::Tcp;
        let kind = query.kind;
        self.send_again(now_ms, key, |query| query.kind == kind);
    }

    /// All queries of an entry are answered, or need no answer.
    pub(super) fn finish(&mut self, now_ms: u64, key: Key, outcome: Outcome) {
        let Some(asking) = self.entries.get_mut(key).and_then(Entry::asking_mut) else {
            return;
        };
        let waiters = std::mem::take(&mut asking.waiters);
        let (answer, ttl_s) = match outcome {
            Outcome::Failed(failure) => {
                self.remove_entry(key);
                for waiter in waiters {
                    self.fail(now_ms, waiter, failure);
                }
                return;
            }
            Outcome::Found(answer, ttl_s) => (Rc::new(answer), ttl_s),
        };
        let valid_ms = self.settings.valid_ms.unwrap_or(u64::from(ttl_s) * 1000);
        let valid_until_ms = now_ms.saturating_add(valid_ms);
        let question = self.keep(now_ms, key, Rc::clone(&answer), valid_until_ms);
        for waiter in waiters {
            if self.waiters.get(waiter).is_none() {
                continue;
            }
            match &*answer {
                Cached::Alias(target) => {
                    if let Some(next) = self.follow(now_ms, waiter, target, &question) {
                        self.place(now_ms, waiter, next);
                    }
                }
                answer => self.give(now_ms, waiter, answer, valid_until_ms, false),
            }
        }
    }

    /// Caches an answer under its question, unless it must not be cached.
    fn keep(&mut self, now_ms: u64, key: Key, answer: Rc<Cached>, valid_until_ms: u64) -> Question {
        let question = self
            .entries
            .get(key)
            .map(|entry| entry.question.clone())
            .expect("the entry is asking");
        self.remove_entry(key);
        if valid_until_ms <= now_ms {
            return question;
        }
        while self.kept.len() >= KEPT_MAX {
            let Some((_, oldest)) = self.kept.first().copied() else {
                break;
            };
            self.remove_entry(oldest);
        }
        let key = self.entries.insert(Entry {
            question: question.clone(),
            state: State::Kept(Kept {
                answer,
                valid_until_ms,
                used_ms: now_ms,
            }),
        });
        self.by_question.insert(question.clone(), key);
        self.kept.insert((now_ms, key));
        question
    }

    /// Delivers a cached answer to a waiter; `again` if others had it before.
    pub(super) fn give(
        &mut self,
        now_ms: u64,
        key: Key,
        answer: &Cached,
        until_ms: u64,
        again: bool,
    ) {
        let Some(waiter) = self.waiters.get_mut(key) else {
            return;
        };
        match answer {
            Cached::Addresses(v4, v6) => {
                let list = ordered(v4, v6, again.then_some(&mut waiter.random));
                self.complete(now_ms, key, Ok(Answer::Addresses(list)), until_ms);
            }
            Cached::Name(name) => {
                self.complete(now_ms, key, Ok(Answer::Name(name.clone())), until_ms);
            }
            Cached::Services(services) => {
                waiter.stage = Wait::Hosts(Hosts::new(services, until_ms));
                // As in nginx the time for the hosts begins anew.
                if let Some(at) = waiter.deadline_ms.take() {
                    self.timers.remove(&(at, Timer::Waiter(key)));
                }
                for (index, service) in services.iter().enumerate() {
                    self.look_up(now_ms, key, index, &service.host);
                }
            }
            Cached::Alias(_) => unreachable!("aliases are followed before"),
        }
    }

    /// Looks up a host of a service.
    fn look_up(&mut self, now_ms: u64, of: Key, index: usize, host: &Name) {
        let room = self.waiters.len() < WAITING_MAX;
        let Some(parent) = self.waiters.get_mut(of) else {
            return;
        };
        let child = Waiter {
            role: Role::Host { of, index },
            stage: Wait::Nothing,
            aliases: 0,
            deadline_ms: None,
            timeout_ms: parent.timeout_ms,
            random: parent.random.fork(),
        };
        let child = self.waiters.insert(child);
        if let Some(parent) = self.waiters.get_mut(of)
            && let Wait::Hosts(hosts) = &mut parent.stage
        {
            hosts.set_waiter(index, child);
        }
        let question = Question {
            name: host.clone(),
            kind: LookupKind::Addresses,
        };
        if !room {
            self.fail(now_ms, child, Failure::TooMany);
        } else if host.is_root() {
            // RFC 2782: the service is not offered.
            self.fail(now_ms, child, Failure::NotFound);
        } else {
            self.begin(now_ms, child, question);
        }
    }

    /// Sends a waiter a failure.
    pub(super) fn fail(&mut self, now_ms: u64, key: Key, why: Failure) {
        let valid_ms = self.settings.valid_ms.unwrap_or(FAILED_MS);
        self.complete(now_ms, key, Err(why), now_ms.saturating_add(valid_ms));
    }

    /// Delivers a waiter's answer, also to the waiters that depend on it.
    pub(super) fn complete(
        &mut self,
        now_ms: u64,
        key: Key,
        result: Result<Answer, Failure>,
        valid_until_ms: u64,
    ) {
        let Some(waiter) = self.waiters.remove(key) else {
            return;
        };
        if let Some(at) = waiter.deadline_ms {
            self.timers.remove(&(at, Timer::Waiter(key)));
        }
        let Role::Host { of, index } = waiter.role else {
            self.events.push_back(match result {
                Ok(answer) => Event::Resolved {
                    key,
                    answer,
                    valid_until_ms,
                },
                Err(why) => Event::Failed {
                    key,
                    why,
                    valid_until_ms,
                },
            });
            return;
        };
        let result = result.map(|answer| match answer {
            Answer::Addresses(list) => list,
            Answer::Services(_) | Answer::Name(_) => Vec::new(),
        });
        let Some(parent) = self.waiters.get_mut(of) else {
            return;
        };
        let Wait::Hosts(hosts) = &mut parent.stage else {
            return;
        };
        if hosts.found(index, result, valid_until_ms) {
            let until_ms = hosts.valid_until_ms;
            match hosts.ordered(&mut parent.random) {
                Ok(list) => self.complete(now_ms, of, Ok(Answer::Services(list)), until_ms),
                Err(why) => self.fail(now_ms, of, why),
            }
        }
    }
}

/// Most entries searched for the name of a query in an error.
const LOOKED_AT_MAX: usize = 100;
/// Time that an error is cached if `valid` is not set, milliseconds; as in nginx.
const FAILED_MS: u64 = 10_000;
