//! Zones of `status_zone`: counters of the requests and TLS handshakes of servers, and of the requests of locations.
//!
//! A zone is known by its kind and name. Its counts outlive reloads while a configuration uses it. A zone has [`SHARDS`]
//! shards with a lock each, and a thread uses one of them, so threads rarely wait for each other. Absent: the directive,
//! and the output of the counts.
//!
//! Source: nginx documentation, `ngx_http_api_module`, `status_zone`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use server_base::code_counts::CodeCounts;
use server_base::handshakes::{CertificateFault, HandshakeCounts, HandshakeResult};

/// The kind of a zone. Zones of different kinds may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneKind {
    /// Requests and handshakes of servers.
    Server,
    /// Requests of locations.
    Location,
}

/// A zone.
#[derive(Debug)]
pub struct StatusZone {
    name: Box<[u8]>,
    shards: Box<[Shard]>,
}

/// Counts of some threads, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<ZoneCounts>);

/// Counts of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// Requests in progress. A shard may be negative while it is summed up.
    processing: i64,
    /// Requests so far.
    pub requests: u64,
    /// Requests that ended without a response.
    pub discarded: u64,
    /// Bytes of requests.
    pub received_bytes: u64,
    /// Bytes of responses.
    pub sent_bytes: u64,
    /// Responses by status.
    pub codes: CodeCounts,
    /// TLS handshakes.
    pub handshakes: HandshakeCounts,
}

/// A request that ended, as zones count it.
#[derive(Clone, Copy, Debug)]
pub struct EndedRequest {
    /// Status of the response; `None` without a response.
    pub status: Option<u16>,
    /// Bytes of the request.
    pub received_bytes: u64,
    /// Bytes of the response.
    pub sent_bytes: u64,
}

/// A request in progress in a zone, until it is dropped.
#[derive(Debug)]
pub struct Processing(Arc<StatusZone>);

impl StatusZone {
    /// Returns the name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Counts a request that begins.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Processing {
        let mut counts = self.counts();
        counts.requests += 1;
        counts.processing += 1;
        drop(counts);
        Processing(Arc::clone(self))
    }

    /// Counts a request without its time in progress.
    pub fn count_request(&self) {
        self.counts().requests += 1;
    }

    /// Counts the end of a request.
    pub fn end(&self, request: &EndedRequest) {
        let mut counts = self.counts();
        counts.received_bytes += request.received_bytes;
        counts.sent_bytes += request.sent_bytes;
        match request.status {
            Some(status) => counts.codes.count(status),
            None => counts.discarded += 1,
        }
    }

    /// Counts a handshake.
    pub fn handshake(&self, result: HandshakeResult) {
        self.counts().handshakes.count(result);
    }

    /// Counts a client's certificate that is refused.
    pub fn refused_certificate(&self, fault: CertificateFault) {
        self.counts().handshakes.count_certificate(fault);
    }

    /// Returns the counts of all threads.
    pub fn sum(&self) -> ZoneCounts {
        let mut sum = ZoneCounts::default();
        for shard in &self.shards {
            let counts = shard.lock();
            sum.processing += counts.processing;
            sum.requests += counts.requests;
            sum.discarded += counts.discarded;
            sum.received_bytes += counts.received_bytes;
            sum.sent_bytes += counts.sent_bytes;
            sum.codes.add(&counts.codes);
            sum.handshakes.add(&counts.handshakes);
        }
        sum
    }

    /// Sets all counts to 0 except that of requests in progress.
    pub fn reset(&self) {
        for shard in &self.shards {
            let mut counts = shard.lock();
            *counts = ZoneCounts {
                processing: counts.processing,
                ..ZoneCounts::default()
            };
        }
    }

    /// Locks the shard of this thread.
    fn counts(&self) -> MutexGuard<'_, ZoneCounts> {
        self.shards[own_shard()].lock()
    }
}

impl ZoneCounts {
    /// Returns the number of requests in progress.
    pub fn processing(&self) -> u64 {
        u64::try_from(self.processing).unwrap_or(0)
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, ZoneCounts> {
        // A panic of another thread leaves a count too small at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Processing {
    fn drop(&mut self) {
        self.0.counts().processing -= 1;
    }
}

/// Returns the zone of a kind with this name. Makes it if no configuration uses it.
pub fn attach(kind: ZoneKind, name: &[u8]) -> Arc<StatusZone> {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = registry.get_or_insert_default();
    let id = (kind, Box::from(name));
    if let Some(zone) = registry.zones.get(&id).and_then(Weak::upgrade) {
        return zone;
    }
    let zone = Arc::new(StatusZone {
        name: name.into(),
        shards: std::iter::repeat_with(Shard::default)
            .take(SHARDS)
            .collect(),
    });
    registry.zones.insert(id, Arc::downgrade(&zone));
    registry.prune();
    zone
}

/// The zones that configurations use.
#[derive(Default)]
struct Registry {
    zones: HashMap<(ZoneKind, Box<[u8]>), Weak<StatusZone>>,
    /// Number of entries after the last removal of unused ones.
    kept: usize,
}

impl Registry {
    /// Removes unused zones once the table has doubled, so that the cost of a zone does not grow with their number.
    fn prune(&mut self) {
        if self.zones.len() > PRUNED_FROM.max(2 * self.kept) {
            self.zones.retain(|_, zone| zone.strong_count() > 0);
            self.kept = self.zones.len();
        }
    }
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// Returns the shard of this thread.
fn own_shard() -> usize {
    OWN_SHARD.with(|own| match own.get() {
        Some(shard) => shard,
        None => {
            let shard = NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS;
            own.set(Some(shard));
            shard
        }
    })
}

thread_local! {
    static OWN_SHARD: Cell<Option<usize>> = const { Cell::new(None) };
}

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

/// Number of shards of a zone.
const SHARDS: usize = 8;
/// Number of zones from which unused ones are removed.
const PRUNED_FROM: usize = 16;

#[cfg(test)]
mod tests {
    use server_base::handshakes::HandshakeFailure;

    use super::*;

    #[test]
    fn counts_of_threads_are_added_up_and_reset() {
        let zone = attach(ZoneKind::Server, b"added up");
        let first = zone.begin();
        let threads: Vec<_> = (0..2 * SHARDS)
            .map(|n| {
                let zone = Arc::clone(&zone);
                std::thread::spawn(move || {
                    let request = zone.begin();
                    zone.end(&EndedRequest {
                        status: (n > 0).then_some(200 + n as u16 % 2),
                        received_bytes: 10,
                        sent_bytes: 100,
                    });
                    zone.handshake(HandshakeResult::Resumed);
                    drop(request);
                })
            })
            .collect();
        for thread in threads {
            assert!(thread.join().is_ok());
        }
        zone.handshake(HandshakeResult::Full);
        zone.handshake(HandshakeResult::Failed(HandshakeFailure::Other));
        zone.refused_certificate(CertificateFault::Expired);
        let (all, sum) = (2 * SHARDS as u64, zone.sum());
        assert_eq!((sum.processing(), sum.requests), (1, all + 1));
        assert_eq!((sum.discarded, sum.codes.total()), (1, all - 1));
        assert_eq!((sum.received_bytes, sum.sent_bytes), (10 * all, 100 * all));
        assert_eq!(
            sum.handshakes,
            HandshakeCounts {
                succeeded: all + 1,
                failed: 1,
                resumed: all,
                certificates: [0, 1, 0, 0, 0],
                ..HandshakeCounts::default()
            }
        );
        zone.reset();
        assert_eq!(
            zone.sum(),
            ZoneCounts {
                processing: 1,
                ..ZoneCounts::default()
            }
        );
        drop(first);
        assert_eq!(zone.sum(), ZoneCounts::default());
    }

    #[test]
    fn a_zone_is_kept_while_it_is_used() {
        let zone = attach(ZoneKind::Server, b"kept");
        zone.count_request();
        let location = attach(ZoneKind::Location, b"kept");
        assert_eq!(location.sum().requests, 0, "another kind");
        assert_eq!(attach(ZoneKind::Server, b"kept").sum().requests, 1);
        drop(zone);
        assert_eq!(attach(ZoneKind::Server, b"kept").sum().requests, 0);
    }

    #[test]
    fn unused_zones_are_removed_from_the_registry() {
        for n in 0..4 * PRUNED_FROM {
            drop(attach(ZoneKind::Server, format!("unused {n}").as_bytes()));
        }
        let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let known = registry.as_ref().map_or(0, |registry| registry.zones.len());
        // Other tests use a few.
        assert!(known <= 2 * PRUNED_FROM + 8, "{known}");
    }
}
