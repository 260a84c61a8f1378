//! Counters of name servers: `status_zone` of `resolver`.
//!
//! Resolvers with one zone name have one set of counters, which is kept over reloads. Messages are counted: a query that is
//! sent again counts twice, an answer from the cache not at all.
//!
//! Absent: the pages that show them, `api` and `metrics`.
//!
//! Source: nginx documentation, `ngx_http_api_module`, `/resolvers/`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The counters of a zone.
#[derive(Clone, Debug)]
pub struct ResolverStatus(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    requests: [AtomicU64; 3],
    responses: [AtomicU64; 8],
}

/// A kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A name to addresses.
    Name,
    /// A service to hosts.
    Srv,
    /// An address to a name.
    Addr,
}

/// A kind of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// NOERROR.
    NoError,
    /// FORMERR.
    FormErr,
    /// SERVFAIL.
    ServFail,
    /// NXDOMAIN.
    NxDomain,
    /// NOTIMP.
    NotImp,
    /// REFUSED.
    Refused,
    /// None in time.
    TimedOut,
    /// Any other code.
    Unknown,
}

impl ResolverStatus {
    /// Returns the counters of a zone: those in use, or new ones.
    pub fn attach(name: &str) -> Self {
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        zones.retain(|_, counters| counters.strong_count() > 0);
        if let Some(counters) = zones.get(name).and_then(Weak::upgrade) {
            return Self(counters);
        }
        let counters = Arc::default();
        zones.insert(name.to_owned(), Arc::downgrade(&counters));
        Self(counters)
    }

    /// Returns all zones in use, by name.
    pub fn zones() -> Vec<(String, Self)> {
        let zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        let used = |(name, counters): (&String, &Weak<Counters>)| {
            Some((name.clone(), Self(counters.upgrade()?)))
        };
        zones.iter().filter_map(used).collect()
    }

    /// Counts a request.
    pub fn count_request(&self, kind: Request) {
        self.0.requests[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a response.
    pub fn count_response(&self, kind: Response) {
        self.0.responses[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Sets all counts to 0.
    pub fn reset(&self) {
        let counters = self.0.requests.iter().chain(&self.0.responses);
        counters.for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// Returns the number of requests of a kind.
    pub fn requests(&self, kind: Request) -> u64 {
        self.0.requests[kind as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of responses of a kind.
    pub fn responses(&self, kind: Response) -> u64 {
        self.0.responses[kind as usize].load(Ordering::Relaxed)
    }
}

impl Request {
    /// All kinds, with the names of their counts.
    pub const ALL: [(&'static str, Self); 3] = [
        ("name", Self::Name),
        ("srv", Self::Srv),
        ("addr", Self::Addr),
    ];
}

impl Response {
    /// All kinds, with the names of their counts.
    pub const ALL: [(&'static str, Self); 8] = [
        ("noerror", Self::NoError),
        ("formerr", Self::FormErr),
        ("servfail", Self::ServFail),
        ("nxdomain", Self::NxDomain),
        ("notimp", Self::NotImp),
        ("refused", Self::Refused),
        ("timedout", Self::TimedOut),
        ("unknown", Self::Unknown),
    ];

    /// The kind of a response code.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::NoError,
            1 => Self::FormErr,
            2 => Self::ServFail,
            3 => Self::NxDomain,
            4 => Self::NotImp,
            5 => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

impl PartialEq for ResolverStatus {
    /// Compares by address: a zone has one set of counters.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ResolverStatus {}

/// The zones in use.
static ZONES: Mutex<BTreeMap<String, Weak<Counters>>> = Mutex::new(BTreeMap::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_one_set_of_counters_while_it_is_used() {
        let first = ResolverStatus::attach("one set");
        first.count_request(Request::Srv);
        first.count_response(Response::of_code(9));
        let again = ResolverStatus::attach("one set");
        assert_eq!(again, first);
        assert_eq!(again.requests(Request::Srv), 1);
        assert_eq!(again.responses(Response::Unknown), 1);
        assert_ne!(ResolverStatus::attach("another set"), first);
        assert!(
            ResolverStatus::zones()
                .iter()
                .any(|(name, _)| name == "one set")
        );
        again.reset();
        assert_eq!(first.requests(Request::Srv), 0);
        assert_eq!(first.responses(Response::Unknown), 0);
        first.count_request(Request::Srv);
        drop((first, again));
        assert_eq!(ResolverStatus::attach("one set").requests(Request::Srv), 0);
    }
}
