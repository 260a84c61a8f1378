//! The shared peers of the process, by the names of zone and group.
//!
//! A new configuration takes over the peers of the one before, with counters, failures and changes made at run time.
//!
//! ```text
//! load:         Zone::new   nothing is shared so far; a load that fails changes nothing
//! main thread:  adopt       each group gets its peers: those in use, or new ones
//! main thread:  commit      once all threads have the configuration, its servers are set
//! ```
//!
//! Absent: a limit of memory by the size of a zone.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `zone`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::group::{Group, Groups};
use crate::shared::{Notify, PeerSettings, SharedPeers, Zone};

/// Sets the peers of each group with a zone: those in use by an older configuration, which stay as they are, or new
/// ones. Names of groups are case-insensitive. `notify` is called by the thread that changes servers at run time.
pub fn adopt(groups: &Groups, notify: &Notify) {
    adopt_all(zones(groups));
    for peers in groups.iter().filter_map(Group::shared_peers) {
        peers.set_notify(notify);
    }
}

/// Has the peers of groups with a zone take over the settings of a configuration. [`adopt`] came before.
pub fn commit(groups: &Groups) {
    for group in groups.iter() {
        if let Some(peers) = group.shared_peers() {
            peers.commit(&group.peer_settings());
        }
    }
}

/// The groups with a zone: zone, name and settings of each.
fn zones(groups: &Groups) -> impl Iterator<Item = (&Zone, &[u8], PeerSettings<'_>)> {
    groups.iter().filter_map(|group| {
        let zone = group.zone.as_ref()?;
        Some((zone, &*group.name, group.peer_settings()))
    })
}

fn adopt_all<'g>(groups: impl Iterator<Item = (&'g Zone, &'g [u8], PeerSettings<'g>)>) {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let all = registry.get_or_insert_default();
    all.retain(|_, peers| peers.strong_count() > 0);
    for (zone, name, settings) in groups {
        let key = (Box::from(zone.name()), name.to_ascii_lowercase());
        if let Some(peers) = all.get(&key).and_then(Weak::upgrade) {
            zone.set_peers(peers);
        } else {
            all.insert(key, Arc::downgrade(zone.peers(&settings)));
        }
    }
}

/// The peers in use, by the names of zone and group.
type Registry = HashMap<(Box<[u8]>, Vec<u8>), Weak<SharedPeers>>;

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

#[cfg(test)]
#[path = "zones_tests.rs"]
mod tests;
