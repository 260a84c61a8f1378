//! Ledger of versions, responses of servers, requests of clients and purges; the judge uses it.

use std::cell::RefCell;
use std::rc::Rc;

use sim::Random;

use super::request::ClientRequest;

/// A resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) name: &'static str,
    /// Its responses depend on `X-V`.
    pub(crate) varies: bool,
}

const fn resource(name: &'static str, varies: bool) -> Resource {
    Resource { name, varies }
}

/// All resources.
pub(crate) const RESOURCES: [Resource; 6] = [
    resource("a1", false),
    resource("a2", true),
    resource("a3", false),
    resource("b1", true),
    resource("b2", false),
    resource("c1", false),
];
/// Values of `X-V`; the first one is that of a request without the field.
pub(crate) const VARIANTS: [&str; 3] = ["", "a", "b"];
/// Number of tags: a resource has the tag of its number.
pub(crate) const TAGS: usize = 2;

/// A time, in the order of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// Number of the event.
    pub(crate) order: u64,
    /// Monotonic milliseconds.
    pub(crate) ms: u64,
}

/// A representation of a resource. Its index in the ledger is its number.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) resource: usize,
    /// Index in [`VARIANTS`].
    pub(crate) variant: usize,
    pub(crate) len: usize,
    pub(crate) status: u16,
    pub(crate) has_etag: bool,
    pub(crate) has_date: bool,
}

impl Version {
    /// Returns the body, which reveals a piece of another version or position.
    pub(crate) fn body(&self, number: usize) -> Vec<u8> {
        let byte = |at: usize| {
            let mixed = (at as u32 + 1).wrapping_mul(2_654_435_761);
            let mixed = mixed.wrapping_add((number as u32 + 1).wrapping_mul(40_503));
            b'a' + ((mixed >> 13) % 26) as u8
        };
        (0..self.len).map(byte).collect()
    }
}

/// Returns the entity tag of a version.
pub(crate) fn etag(number: usize) -> String {
    format!("\"v{number}\"")
}

/// Returns `Last-Modified` of a version: each has its own second.
pub(crate) fn modified(number: usize) -> String {
    let (minutes, seconds) = (number / 60, number % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    format!("Sun, 06 Nov 1994 {hours:02}:{minutes:02}:{seconds:02} GMT")
}

/// `Cache-Control` of a response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) max_age_s: u64,
    pub(crate) no_cache: bool,
    pub(crate) no_store: bool,
    pub(crate) must_revalidate: bool,
    pub(crate) while_revalidate_s: Option<u64>,
    pub(crate) if_error_s: Option<u64>,
}

impl Policy {
    pub(crate) fn drawn(random: &mut Random) -> Self {
        Self {
            max_age_s: random.below(4),
            no_cache: random.chance(60),
            no_store: random.chance(60),
            must_revalidate: random.chance(150),
            while_revalidate_s: random.chance(150).then(|| random.below(4)),
            if_error_s: random.chance(150).then(|| random.below(4)),
        }
    }

    /// Returns the value of the field.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("max-age={}", self.max_age_s);
        let flags = [
            (self.no_cache, "no-cache"),
            (self.no_store, "no-store"),
            (self.must_revalidate, "must-revalidate"),
        ];
        for (_, name) in flags.iter().filter(|(is_set, _)| *is_set) {
            text += &format!(", {name}");
        }
        let times = [
            (self.while_revalidate_s, "stale-while-revalidate"),
            (self.if_error_s, "stale-if-error"),
        ];
        for (seconds, name) in times {
            if let Some(seconds) = seconds {
                text += &format!(", {name}={seconds}");
            }
        }
        text
    }
}

/// A response of a server with a version, or a 304 that confirms one.
#[derive(Clone, Debug)]
pub(crate) struct Giving {
    pub(crate) version: usize,
    /// The client's request that the server saw.
    pub(crate) request: usize,
    /// When the server had read the request.
    pub(crate) asked: Moment,
    /// When it sent the first byte.
    pub(crate) given: Option<Moment>,
    /// When a worker had read the head.
    pub(crate) read: Option<Moment>,
    pub(crate) policy: Policy,
    pub(crate) is_304: bool,
    pub(crate) is_head: bool,
    /// It has `Vary`.
    pub(crate) varies: bool,
    /// It has `Cache-Tag`.
    pub(crate) is_tagged: bool,
    /// It breaks off, or stops for longer than the timeout.
    pub(crate) fails: bool,
}

/// A purge by a client, or the change by POST.
#[derive(Clone, Debug)]
pub(crate) struct Purge {
    /// Concerned resources.
    pub(crate) resources: Vec<usize>,
    /// Only responses with a tag are concerned.
    pub(crate) by_tag: bool,
    pub(crate) is_soft: bool,
    pub(crate) begun: Moment,
    /// When the client had the answer.
    pub(crate) answered: Moment,
}

/// The ledger of one run.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    order: u64,
    pub(crate) now_ms: u64,
    pub(crate) versions: Vec<Version>,
    pub(crate) givings: Vec<Giving>,
    pub(crate) requests: Vec<ClientRequest>,
    pub(crate) purges: Vec<Purge>,
    /// Responses to POST: request and begin of the response.
    pub(crate) posted: Vec<(usize, Moment)>,
    /// Refused connections, broken responses and the like.
    pub(crate) failures: Vec<Moment>,
    /// Faults that servers have found.
    pub(crate) faults: Vec<String>,
}

pub(crate) type Book = Rc<RefCell<Ledger>>;

impl Ledger {
    /// Returns the next moment.
    pub(crate) fn now(&mut self) -> Moment {
        self.order += 1;
        Moment {
            order: self.order,
            ms: self.now_ms,
        }
    }

    /// Records a failure.
    pub(crate) fn fail(&mut self) {
        let now = self.now();
        self.failures.push(now);
    }

    /// Whether something has failed since a moment.
    pub(crate) fn has_failed_since(&self, moment: Moment) -> bool {
        self.failures.last().is_some_and(|last| *last >= moment)
    }

    /// Returns the responses with a version.
    pub(crate) fn givings_of(&self, version: usize) -> impl Iterator<Item = &Giving> {
        self.givings.iter().filter(move |g| g.version == version)
    }
}
