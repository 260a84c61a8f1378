//! One question of a resolver: asked of servers now, or answered and kept.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use fastrand::Rng;

use super::answer::{Service, Told, What};
use super::event::{Failure, Transport};
use super::message::QueryType;
use super::name::Name;
use super::settings::Settings;
use super::slab::Key;

/// What is asked: entries are found by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) name: Name,
    pub(super) kind: Kind,
}

/// What of a name is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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

/// A question that servers are asked.
#[derive(Debug)]
pub(super) struct Asking {
    /// One query for each type of record.
    pub(super) queries: Vec<Query>,
    /// The server whose turn it is.
    pub(super) server: usize,
    /// The servers that were asked.
    pub(super) asked: Vec<usize>,
    /// Whether the next server was asked before the time because one could not be reached.
    pub(super) hurried: bool,
    /// The servers that could not be reached, where that may end the question.
    pub(super) unreached: Vec<usize>,
    /// Who waits; some may be gone.
    pub(super) waiters: Vec<Key>,
    /// How many waiters there may be before those that are gone are taken out.
    pub(super) purge_at: usize,
    /// When to ask the next server.
    pub(super) resend_at_ms: u64,
    /// What has been told so far.
    pub(super) so_far: SoFar,
}

/// The query for one type of record.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) kind: QueryType,
    /// Its number, chosen when it is sent first.
    pub(super) id: Option<u16>,
    pub(super) transport: Transport,
    pub(super) stage: Stage,
}

/// Where a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is in the queue of what is to be sent.
    Queued,
    /// It was sent.
    Sent,
    /// It is answered.
    Answered,
}

/// What the queries of one question have brought.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    failure: Option<Failure>,
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
    ttl_s: Option<u32>,
}

/// What a question came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Failed(Failure),
    Found(Held, u32),
}

/// A question that is answered.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) held: Rc<Held>,
    pub(super) valid_until_ms: u64,
    /// When it was used last.
    pub(super) used_ms: u64,
}

/// An answer as it is kept.
#[derive(Debug)]
pub(super) enum Held {
    Alias(Name),
    Addresses(Vec<Ipv4Addr>, Vec<Ipv6Addr>),
    Services(Vec<Service>),
    Name(Name),
}

impl Asking {
    /// A question that is asked of `server` first; `None` where the settings want no record of this kind.
    pub(super) fn new(kind: Kind, settings: &Settings, server: usize, now_ms: u64) -> Option<Self> {
        let kinds: Vec<QueryType> = match kind {
            Kind::Addresses => [
                (settings.ipv4, QueryType::A),
                (settings.ipv6, QueryType::Aaaa),
            ]
            .into_iter()
            .filter_map(|(wanted, kind)| wanted.then_some(kind))
            .collect(),
            Kind::Services => vec![QueryType::Srv],
            Kind::Pointer => vec![QueryType::Ptr],
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

    /// Takes what one query was answered; gives what the question came to once all are answered.
    pub(super) fn answered(
        &mut self,
        query: usize,
        told: Result<Told, Failure>,
    ) -> Option<Outcome> {
        self.queries[query].stage = Stage::Answered;
        let pending = self.queries.iter().any(|q| q.stage != Stage::Answered);
        self.so_far.take(told, pending)
    }
}

impl SoFar {
    /// Adds what came. As in nginx an error of one type is that of the name, and an alias counts if it came last.
    fn take(&mut self, told: Result<Told, Failure>, pending: bool) -> Option<Outcome> {
        let mut alias = None;
        match told {
            Err(failure) => self.failure = Some(failure),
            Ok(Told { what, ttl_s }) => {
                let shortest = self.ttl_s.unwrap_or(u32::MAX).min(ttl_s);
                self.ttl_s = Some(shortest);
                match what {
                    What::Nothing => {}
                    What::Alias(name) => alias = Some(name),
                    What::V4(addresses) => self.v4 = addresses,
                    What::V6(addresses) => self.v6 = addresses,
                    What::Services(services) => {
                        return Some(Outcome::Found(Held::Services(services), shortest));
                    }
                    What::Name(name) => return Some(Outcome::Found(Held::Name(name), shortest)),
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
        let held = match alias {
            _ if !v4.is_empty() || !v6.is_empty() => Held::Addresses(v4, v6),
            Some(name) if !name.is_root() => Held::Alias(name),
            _ => return Some(Outcome::Failed(Failure::NotFound)),
        };
        Some(Outcome::Found(held, ttl_s))
    }
}

/// The addresses in the order in which they shall be tried: as they came, or turned by chance where others have had
/// them before.
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

/// Waiters of one question before those that are gone are looked for.
pub(super) const PURGE_MIN: usize = 16;
