//! One question of a resolver: pending at servers, or answered and cached.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use fastrand::Rng;

use super::answer::{QueryAnswer, ResponseData, Service};
use super::event::{Failure, Transport};
use super::message::QueryType;
use super::name::Name;
use super::settings::Settings;
use super::slab::Key;

/// Key of a question, by which entries are found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) name: Name,
    pub(super) kind: LookupKind,
}

/// Type of lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LookupKind {
    Addresses,
    Services,
    Pointer,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) question: Question,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    Asking(Asking),
    Kept(Kept),
}

impl Entry {
    pub(super) fn asking_mut(&mut self) -> Option<&mut Asking> {
        match &mut self.state {
            State::Asking(asking) => Some(asking),
            State::Kept(_) => None,
        }
    }
}

/// A pending question.
#[derive(Debug)]
pub(super) struct Asking {
    /// One query for each type of record.
    pub(super) queries: Vec<Query>,
    /// The server to query now.
    pub(super) server: usize,
    /// The servers queried so far.
    pub(super) asked: Vec<usize>,
    /// Whether the next server was queried early because one was unreachable.
    pub(super) hurried: bool,
    /// The unreachable servers, if they may end the question.
    pub(super) unreached: Vec<usize>,
    /// Waiters; some may have been cancelled.
    pub(super) waiters: Vec<Key>,
    /// Number of waiters above which cancelled ones are removed.
    pub(super) purge_at: usize,
    /// Time to query the next server.
    pub(super) resend_at_ms: u64,
    /// Answers received so far.
    pub(super) so_far: SoFar,
}

/// The query for one type of record.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) kind: QueryType,
    /// Its number, chosen when it is first sent.
    pub(super) id: Option<u16>,
    pub(super) transport: Transport,
    pub(super) stage: Stage,
}

/// State of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is in the queue of queries to send.
    Queued,
    /// It was sent.
    Sent,
    /// It is answered.
    Answered,
}

/// Combined answers of the queries of one question.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    failure: Option<Failure>,
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
    ttl_s: Option<u32>,
}

/// Result of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    Failed(Failure),
    Found(Cached, u32),
}

/// Cache entry of an answered question.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) answer: Rc<Cached>,
    pub(super) valid_until_ms: u64,
    /// Time of its last use, milliseconds.
    pub(super) used_ms: u64,
}

/// A cached answer.
#[derive(Debug)]
pub(super) enum Cached {
    Alias(Name),
    Addresses(Vec<Ipv4Addr>, Vec<Ipv6Addr>),
    Services(Vec<Service>),
    Name(Name),
}

impl Asking {
    /// A question for `server` first; `None` if the settings want no record of this kind.
    pub(super) fn new(
        kind: LookupKind,
        settings: &Settings,
        server: usize,
        now_ms: u64,
    ) -> Option<Self> {
        let kinds: Vec<QueryType> = match kind {
            LookupKind::Addresses => [
                (settings.ipv4, QueryType::A),
                (settings.ipv6, QueryType::Aaaa),
            ]
            .into_iter()
            .filter_map(|(wanted, kind)| wanted.then_some(kind))
            .collect(),
            LookupKind::Services => vec![QueryType::Srv],
            LookupKind::Pointer => vec![QueryType::Ptr],
        };
        if kinds.is_empty() {
            return None;
        }
        let query = |kind| Query {
            kind,
            id: None,
            transport: Transport::Udp,
            stage: Stage::Queued,
        };
        Some(Self {
            queries: kinds.into_iter().map(query).collect(),
            server,
            asked: Vec::new(),
            hurried: false,
            unreached: Vec::new(),
            waiters: Vec::new(),
            purge_at: PURGE_MIN,
            resend_at_ms: now_ms.saturating_add(settings.resend_ms),
            so_far: SoFar::default(),
        })
    }

    /// Adds the answer of one query; returns the question's result once all queries are answered.
    pub(super) fn answered(
        &mut self,
        query: usize,
        told: Result<QueryAnswer, Failure>,
    ) -> Option<Outcome> {
        self.queries[query].stage = Stage::Answered;
        let pending = self.queries.iter().any(|q| q.stage != Stage::Answered);
        self.so_far.take(told, pending)
    }
}

impl SoFar {
    /// Adds an answer. As in nginx an error of one type is that of the name, and an alias counts if it came last.
    fn take(&mut self, told: Result<QueryAnswer, Failure>, pending: bool) -> Option<Outcome> {
        let mut alias = None;
        match told {
            Err(failure) => self.failure = Some(failure),
            Ok(QueryAnswer { what, ttl_s }) => {
                let shortest = self.ttl_s.unwrap_or(u32::MAX).min(ttl_s);
                self.ttl_s = Some(shortest);
                match what {
                    ResponseData::Nothing => {}
                    ResponseData::Alias(name) => alias = Some(name),
                    ResponseData::V4(addresses) => self.v4 = addresses,
                    ResponseData::V6(addresses) => self.v6 = addresses,
                    ResponseData::Services(services) => {
                        return Some(Outcome::Found(Cached::Services(services), shortest));
                    }
                    ResponseData::Name(name) => {
                        return Some(Outcome::Found(Cached::Name(name), shortest));
                    }
                }
            }
        }
        if pending {
            return None;
        }
        if let Some(failure) = self.failure {
            return Some(Outcome::Failed(failure));
        }
        let ttl_s = self.ttl_s.unwrap_or_default();
        let (v4, v6) = (std::mem::take(&mut self.v4), std::mem::take(&mut self.v6));
        let answer = match alias {
            _ if !v4.is_empty() || !v6.is_empty() => Cached::Addresses(v4, v6),
            Some(name) if !name.is_root() => Cached::Alias(name),
            _ => return Some(Outcome::Failed(Failure::NotFound)),
        };
        Some(Outcome::Found(answer, ttl_s))
    }
}

/// The addresses in the order of attempts: as received, or rotated at random if other waiters had them before.
pub(super) fn ordered(v4: &[Ipv4Addr], v6: &[Ipv6Addr], random: Option<&mut Rng>) -> Vec<IpAddr> {
    let mut list: Vec<IpAddr> = v4.iter().copied().map(IpAddr::V4).collect();
    list.extend(v6.iter().copied().map(IpAddr::V6));
    if let Some(random) = random {
        let (first, second) = list.split_at_mut(v4.len());
        for part in [first, second] {
            let by = below(random, part.len());
            part.rotate_left(by);
        }
        let by = below(random, list.len());
        list.rotate_left(by);
    }
    list
}

/// A number below `end`; 0 for no numbers.
pub(super) fn below(random: &mut Rng, end: usize) -> usize {
    random.usize(..end.max(1))
}

/// Number of waiters of one question from which cancelled ones are searched for.
pub(super) const PURGE_MIN: usize = 16;
