//! Which connection is taken, and which is closed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use server_upstream::idle_counts::idle_connections;

use super::*;

fn addr(port: u16) -> UpstreamAddr {
    UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn key(index: u32) -> Key {
    Key { index, life: 0 }
}

/// A pool that is alone in its group.
fn of(id: u64, connections: usize) -> Pool {
    Pool {
        id,
        group: id,
        connections,
        requests: 1,
        time_ms: 1,
        timeout_ms: 1,
        counted: 0,
    }
}

/// Pool 1 with connections 0 to 3 to two servers by turns, pool 2 with connection 4.
fn filled() -> IdleConnections {
    let mut idle = IdleConnections::default();
    for index in 0..4 {
        let port = 80 + index as u16 % 2;
        idle.insert(&of(1, 4), addr(port), key(index), 10 + u64::from(index));
    }
    idle.insert(&of(2, 4), addr(80), key(4), 5);
    idle
}

#[test]
fn the_one_used_last_is_taken_first_and_only_for_its_server_and_pool() {
    let mut idle = filled();
    assert_eq!(idle.take(1, &addr(80)), Some(key(2)));
    assert_eq!(idle.take(1, &addr(80)), Some(key(0)));
    assert_eq!(idle.take(1, &addr(80)), None);
    assert_eq!(idle.take(2, &addr(81)), None);
    assert_eq!(idle.take(3, &addr(80)), None);
    assert_eq!((idle.len(), idle.is_empty()), (3, false));
}

/// A pool of limited size, with connections of these numbers.
fn pool(most: usize, numbers: std::ops::Range<u32>) -> IdleConnections {
    let mut idle = IdleConnections::default();
    for n in numbers {
        assert_eq!(idle.insert(&of(1, most), addr(80), key(n), 100), None);
    }
    idle
}

#[test]
fn a_pool_lets_go_of_the_oldest_that_were_not_needed() {
    let mut idle = pool(16, 0..16);
    assert_eq!(idle.surplus_due_ms(), None, "it has not too many");
    for n in 16..18 {
        assert_eq!(idle.insert(&of(1, 16), addr(80), key(n), 100), None);
    }
    assert_eq!(idle.surplus_due_ms(), Some(100 + SURPLUS_MS));
    assert_eq!(idle.take_surplus(100 + SURPLUS_MS - 1), []);
    // The count from before the pool had too many does not matter.
    assert_eq!(idle.take_surplus(120), []);
    assert_eq!(idle.surplus_due_ms(), Some(140));
    assert_eq!(idle.take(1, &addr(80)), Some(key(17)));
    assert_eq!(idle.insert(&of(1, 16), addr(80), key(17), 130), None);
    assert_eq!(idle.take_surplus(140), [key(0)], "the other was needed");
    assert_eq!(idle.take_surplus(160), [key(1)]);
    assert_eq!((idle.surplus_due_ms(), idle.len()), (None, 16));
    assert_eq!(idle.take_surplus(1000), []);
}

#[test]
fn a_pool_has_twice_as_many_as_it_keeps_at_most_and_a_small_one_no_more() {
    let mut idle = pool(16, 0..32);
    assert_eq!(idle.insert(&of(1, 16), addr(80), key(32), 0), Some(key(0)));
    assert_eq!(idle.len(), 32);
    let mut idle = pool(15, 0..15);
    assert_eq!(idle.insert(&of(1, 15), addr(80), key(15), 0), Some(key(0)));
    assert_eq!((idle.len(), idle.surplus_due_ms()), (15, None));
}

#[test]
fn no_surplus_is_due_once_all_are_gone() {
    let mut idle = pool(16, 0..17);
    assert_eq!(idle.surplus_due_ms(), Some(100 + SURPLUS_MS));
    for index in 0..17 {
        idle.remove(1, key(index));
    }
    assert_eq!(idle.surplus_due_ms(), None);
}

#[test]
fn the_oldest_of_all_pools_goes_first() {
    let mut idle = filled();
    let order: Vec<Option<Key>> = (0..6).map(|_| idle.take_oldest()).collect();
    let expected = [4, 0, 1, 2, 3].map(|index| Some(key(index)));
    assert_eq!(order[..5], expected);
    assert_eq!((order[5], idle.is_empty()), (None, true));
}

#[test]
fn one_that_is_closed_is_not_found_again() {
    let mut idle = filled();
    idle.remove(1, key(2));
    idle.remove(1, key(2));
    idle.remove(7, key(0));
    assert_eq!(idle.take(1, &addr(80)), Some(key(0)));
    idle.remove(2, key(4));
    assert_eq!(idle.len(), 2);
    assert!(idle.take(2, &addr(80)).is_none());
    // The last group that became empty is remembered, the others are not.
    assert_eq!(idle.remembered(), (2, 2));
    idle.remove(1, key(1));
    idle.remove(1, key(3));
    assert_eq!(idle.remembered(), (1, 1));
}

impl IdleConnections {
    /// The groups and servers that are known.
    fn remembered(&self) -> (usize, usize) {
        (self.groups.numbers().len(), self.servers.numbers().len())
    }
}

/// A search in a group without lists and digests.
#[derive(Default)]
struct Model {
    /// The pool, the server and the key of each idle connection, in the order in which they became idle.
    idle: Vec<(Pool, UpstreamAddr, Key)>,
    /// The fewest connections of each group since surplus was last taken, and its maximum.
    groups: std::collections::BTreeMap<u64, (usize, usize)>,
    surplus_ms: Option<u64>,
}

impl Model {
    fn len(&self, group: u64) -> usize {
        self.idle
            .iter()
            .filter(|idle| idle.0.group == group)
            .count()
    }

    fn remove(&mut self, at: usize) -> Key {
        let (pool, _, key) = self.idle.remove(at);
        let len = self.len(pool.group);
        let (fewest, _) = self.groups.entry(pool.group).or_default();
        *fewest = len.min(*fewest);
        if self.idle.is_empty() {
            self.surplus_ms = None;
        }
        key
    }

    fn remove_oldest(&mut self, group: u64) -> Option<Key> {
        let at = self.idle.iter().position(|idle| idle.0.group == group)?;
        Some(self.remove(at))
    }

    fn insert(&mut self, pool: Pool, idle: (UpstreamAddr, Key), now_ms: u64) -> Option<Key> {
        let most = pool.connections;
        self.idle.push((pool, idle.0, idle.1));
        self.groups.entry(pool.group).or_default().1 = most;
        let len = self.len(pool.group);
        if len > most && (most < EXACT_BELOW || len > 2 * most) {
            return self.remove_oldest(pool.group);
        }
        if len > most {
            self.surplus_ms.get_or_insert(now_ms + SURPLUS_MS);
        }
        None
    }

    fn take(&mut self, pool: u64, addr: &UpstreamAddr) -> Option<Key> {
        let newest = self
            .idle
            .iter()
            .rposition(|idle| idle.0.id == pool && idle.1 == *addr)?;
        Some(self.remove(newest))
    }

    fn take_surplus(&mut self, now_ms: u64) -> Vec<Key> {
        if self.surplus_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for (group, (fewest, most)) in self.groups.clone() {
            let surplus = fewest.saturating_sub(most);
            taken.extend((0..surplus).filter_map(|_| self.remove_oldest(group)));
        }
        let mut more = false;
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            let len = self.len(group);
            let (fewest, most) = self.groups.entry(group).or_default();
            *fewest = len;
            more |= len > *most;
        }
        self.surplus_ms = more.then_some(now_ms + SURPLUS_MS);
        taken
    }
}

#[test]
fn limit_is_of_all_pools_of_a_group() {
    let mut idle = IdleConnections::default();
    let named = |name: u64| Pool {
        group: 7,
        ..of(name, 3)
    };
    for n in 0..100 {
        let closed = idle.insert(&named(u64::from(n)), addr(80), key(n), 0);
        assert_eq!(closed, n.checked_sub(3).map(key), "the oldest of all");
    }
    assert_eq!(idle.insert(&of(8, 3), addr(80), key(100), 0), None);
    assert_eq!(idle.len(), 4);
    // One group and one server may be remembered without connections.
    let (groups, servers) = idle.remembered();
    assert!(groups <= 2 && servers <= 5, "{groups} {servers}");
    assert_eq!(idle.take(96, &addr(80)), None);
    assert_eq!(idle.take(97, &addr(80)), Some(key(97)));
    assert_eq!(idle.take(98, &addr(80)), Some(key(98)));
    idle.abandon(7);
    assert_eq!(idle.take(99, &addr(80)), None);
    assert_eq!(idle.take_surplus(0), [key(99)]);
}

#[test]
fn choices_are_those_of_a_search() {
    let unix = |n: u64| UpstreamAddr::Unix(Arc::from(format!("/run/{n}").as_bytes()));
    let mut surplus = 0;
    for seed in 0..100 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let mut idle = IdleConnections::default();
        let mut model = Model::default();
        let servers = [1, 3, 40][rng.usize(..3)];
        let most = [12, EXACT_BELOW, 20][rng.usize(..3)];
        // Pools fill up if more connections come than go.
        let inserts = rng.u8(3..7);
        for now_ms in 0..2000 {
            // Two of the pools are of one group.
            let id = rng.u64(1..4);
            let pool = Pool {
                group: id / 2,
                ..of(id, most)
            };
            let server = rng.u64(..servers);
            let addr = match server % 2 {
                0 => addr(80 + server as u16),
                _ => unix(server),
            };
            match rng.u8(..9) {
                n if n < inserts => {
                    let used: Vec<u32> = model.idle.iter().map(|idle| idle.2.index).collect();
                    let free = (0..).find(|index| !used.contains(index));
                    let key = Key {
                        index: free.expect("one is free"),
                        life: now_ms as u32,
                    };
                    let closed = idle.insert(&pool, addr.clone(), key, now_ms);
                    let expected = model.insert(pool, (addr, key), now_ms);
                    assert_eq!(closed, expected, "seed {seed}, {now_ms}");
                }
                7 if !model.idle.is_empty() => {
                    let at = rng.usize(..model.idle.len());
                    let pool = model.idle[at].0.id;
                    idle.remove(pool, model.remove(at));
                }
                8 if rng.u8(..8) == 0 => {
                    let oldest = (!model.idle.is_empty()).then(|| model.remove(0));
                    assert_eq!(idle.take_oldest(), oldest, "seed {seed}, {now_ms}");
                }
                _ => {
                    let expected = model.take(id, &addr);
                    assert_eq!(idle.take(id, &addr), expected, "seed {seed}, {now_ms}");
                }
            }
            assert_eq!(
                idle.surplus_due_ms(),
                model.surplus_ms,
                "seed {seed}, {now_ms}"
            );
            let mut taken = idle.take_surplus(now_ms);
            let mut expected = model.take_surplus(now_ms);
            taken.sort_unstable_by_key(|key| key.index);
            expected.sort_unstable_by_key(|key| key.index);
            assert_eq!(taken, expected, "seed {seed}, {now_ms}");
            surplus += taken.len();
            assert_eq!(idle.len(), model.idle.len());
        }
    }
    assert!(surplus > 100, "{surplus} connections were surplus");
}

#[test]
fn digests_of_servers_differ_in_their_low_bits() {
    let inet = |n: u32, port: u16| {
        let [_, b, c, d] = n.to_be_bytes();
        UpstreamAddr::Inet(([10, b, c, d], port).into())
    };
    let places = |addr: &dyn Fn(u32) -> UpstreamAddr| {
        let all = (0..10_000).map(|n| digest(7, &addr(n)) & 0x3fff);
        all.collect::<std::collections::HashSet<u64>>().len()
    };
    // 10,000 draws by chance from 16,384 have 7,486 values.
    assert!(places(&|n| inet(n, 80)) > 7000);
    assert!(places(&|n| inet(0, n as u16)) > 7000);
    assert!(places(&|n| UpstreamAddr::Unix(Arc::from(n.to_string().as_bytes()))) > 7000);
}

#[test]
fn an_abandoned_group_gives_up_its_connections() {
    let mut idle = IdleConnections::default();
    for (n, port) in [(0, 80), (1, 80), (2, 81)] {
        assert_eq!(idle.insert(&of(1, 4), addr(port), key(n), 100), None);
    }
    assert_eq!(idle.insert(&of(2, 4), addr(80), key(3), 100), None);
    idle.abandon(9);
    assert_eq!(idle.surplus_due_ms(), None);
    idle.abandon(1);
    assert_eq!((idle.surplus_due_ms(), idle.len()), (Some(0), 1));
    assert_eq!(idle.take(1, &addr(80)), None);
    let mut taken = idle.take_surplus(100);
    taken.sort_by_key(|key| key.index);
    assert_eq!(taken, [key(0), key(1), key(2)]);
    assert_eq!(
        (idle.surplus_due_ms(), idle.take_surplus(100)),
        (None, vec![])
    );
    assert_eq!(idle.take(2, &addr(80)), Some(key(3)));
}

#[test]
fn an_abandoned_connection_that_ends_is_not_awaited() {
    let mut idle = IdleConnections::default();
    assert_eq!(idle.insert(&of(1, 4), addr(80), key(0), 100), None);
    idle.abandon(1);
    idle.remove(1, key(0));
    assert_eq!(idle.surplus_due_ms(), None);
}

#[test]
fn connections_of_a_counted_group_are_counted_until_the_thread_ends() {
    let group = 0xc0_0f7e_d000;
    let counted = Pool {
        counted: group,
        ..of(1, 2)
    };
    let mut idle = IdleConnections::default();
    // The group had no zone before a reload.
    assert_eq!(idle.insert(&of(1, 2), addr(80), key(0), 0), None);
    assert_eq!(idle_connections(group), 0);
    assert_eq!(idle.insert(&counted, addr(81), key(1), 0), None);
    assert_eq!(idle_connections(group), 2);
    assert_eq!(idle.insert(&counted, addr(80), key(2), 0), Some(key(0)));
    assert_eq!(idle_connections(group), 2);
    assert_eq!(idle.take(1, &addr(81)), Some(key(1)));
    assert_eq!(idle_connections(group), 1);
    let mut other = IdleConnections::default();
    assert_eq!(other.insert(&counted, addr(80), key(0), 0), None);
    assert_eq!(idle_connections(group), 2, "pools of all threads");
    drop(idle);
    assert_eq!(idle_connections(group), 1);
}
