//! Numbers of idle connections to groups with a zone, over all threads.
//!
//! A thread registers once for each of its pools, and then counts without a lock. Pools of groups without a zone are not
//! counted.
//!
//! Source: nginx documentation, `ngx_http_api_module`, `keepalive` of an upstream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The part of a pool in the number of its group. Dropping it uncounts its connections.
#[derive(Debug)]
pub struct IdleCount {
    group: Arc<AtomicU64>,
    own: u64,
}

impl IdleCount {
    /// Registers a pool with `own` connections of a group, by the digest of the group's name.
    pub fn register(group: u64, own: u64) -> Self {
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let Groups {
            counts,
            pruned_from,
        } = groups.get_or_insert_default();
        if counts.len() >= (*pruned_from).max(PRUNED_FROM) {
            counts.retain(|_, count| Arc::strong_count(count) > 1);
            // With many groups in use, the next look is due after as many new ones.
            *pruned_from = 2 * counts.len();
        }
        let group = Arc::clone(counts.entry(group).or_default());
        group.fetch_add(own, Ordering::Relaxed);
        Self { group, own }
    }

    /// Counts a connection that has become idle.
    #[inline]
    pub fn add(&mut self) {
        self.own += 1;
        self.group.fetch_add(1, Ordering::Relaxed);
    }

    /// Uncounts a connection.
    #[inline]
    pub fn remove(&mut self) {
        self.own -= 1;
        self.group.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for IdleCount {
    fn drop(&mut self) {
        self.group.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// Returns the number of idle connections to a group, by the digest of the group's name.
pub fn idle_connections(group: u64) -> u64 {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = groups.as_ref().and_then(|all| all.counts.get(&group));
    count.map_or(0, |count| count.load(Ordering::Relaxed))
}

/// The groups with pools.
#[derive(Default)]
struct Groups {
    counts: HashMap<u64, Arc<AtomicU64>>,
    /// Number of groups at which those without a pool are removed next.
    pruned_from: usize,
}

static GROUPS: Mutex<Option<Groups>> = Mutex::new(None);

/// Smallest number of groups at which those without a pool are removed.
const PRUNED_FROM: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_a_group_are_added_up_until_they_are_dropped() {
        let group = 0x1d1e_0001;
        assert_eq!(idle_connections(group), 0);
        let mut pools = [IdleCount::register(group, 0), IdleCount::register(group, 0)];
        pools[0].add();
        pools[1].add();
        pools[1].add();
        pools[1].remove();
        let mut other = IdleCount::register(group + 1, 5);
        other.add();
        assert_eq!(idle_connections(group), 2);
        let [first, second] = pools;
        drop(first);
        assert_eq!(idle_connections(group), 1);
        drop(second);
        assert_eq!(idle_connections(group), 0);
    }

    #[test]
    fn groups_without_a_pool_are_forgotten() {
        let kept = IdleCount::register(0x1d1e_1000, 0);
        for n in 0..4 * PRUNED_FROM as u64 {
            drop(IdleCount::register(0x1d1e_2000 + n, 0));
        }
        let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = &groups.as_ref().expect("there are groups").counts;
        assert!(groups.len() <= PRUNED_FROM + 1, "{}", groups.len());
        assert!(groups.contains_key(&0x1d1e_1000));
        drop(kept);
    }
}
