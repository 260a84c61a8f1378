//! The peers of a group: of one thread, or shared by all threads.
//!
//! Shared peers are kept over reloads. A process has a registry of them by the name of their group. If an older
//! configuration still uses a group, a new one with that name gets the same peers, with its own servers. A lock is held
//! for one choice or one result: the order of a choice depends on the sums of all peers, so single atomic counters
//! would not do.
//!
//! Absent: the directive that enables them; peers by names that are resolved at run time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::peers::PeerList;
use crate::server::Server;

/// The peers of a group.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would be one more allocation for the peers of a request"
)]
pub enum Peers {
    /// Owned by one thread and one configuration.
    Local(RefCell<PeerList>),
    /// Shared by all threads. They outlive a reload.
    Shared(Arc<SharedPeers>),
}

/// The peers of a group, shared by all threads.
#[derive(Debug)]
pub struct SharedPeers(Mutex<PeerList>);

impl SharedPeers {
    /// Locks the list.
    pub fn lock(&self) -> MutexGuard<'_, PeerList> {
        // A panic of another thread leaves consistent counters.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers {
    /// Makes peers of one thread.
    pub fn local(list: PeerList) -> Self {
        Self::Local(RefCell::new(list))
    }

    /// Calls `act` with the list.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut PeerList) -> R) -> R {
        match self {
            Self::Local(list) => act(&mut list.borrow_mut()),
            Self::Shared(shared) => act(&mut shared.lock()),
        }
    }
}

/// Returns the shared peers with this name and sets their servers. Makes them if they are not in use. Names are
/// case-insensitive.
pub fn attach(name: &[u8], servers: &[Server]) -> Arc<SharedPeers> {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let all = registry.get_or_insert_default();
    all.retain(|_, peers| peers.strong_count() > 0);
    let name = name.to_ascii_lowercase();
    if let Some(peers) = all.get(&name).and_then(Weak::upgrade) {
        peers.lock().set_servers(servers);
        return peers;
    }
    let peers = Arc::new(SharedPeers(Mutex::new(PeerList::of(servers))));
    all.insert(name, Arc::downgrade(&peers));
    peers
}

type Registry = HashMap<Vec<u8>, Weak<SharedPeers>>;

/// Shared groups used by a configuration.
static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
