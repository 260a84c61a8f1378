//! Which connection is taken, and which is closed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::*;

fn addr(port: u16) -> UpstreamAddr {
    UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn key(index: u32) -> Key {
    Key { index, life: 0 }
}

/// Pool 1 with connections 0 to 3 to two servers by turns, pool 2 with connection 4.
fn filled() -> IdleConnections {
    let mut idle = IdleConnections::default();
    for index in 0..4 {
        let port = 80 + index as u16 % 2;
        idle.insert((1, 4), addr(port), key(index), 10 + u64::from(index));
    }
    idle.insert((2, 4), addr(80), key(4), 5);
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
        assert_eq!(idle.insert((1, most), addr(80), key(n), 100), None);
    }
    idle
}

#[test]
fn a_pool_lets_go_of_the_oldest_that_were_not_needed() {
    let mut idle = pool(16, 0..16);
    assert_eq!(idle.look_at_ms(), None, "it has not too many");
    for n in 16..18 {
        assert_eq!(idle.insert((1, 16), addr(80), key(n), 100), None);
    }
    assert_eq!(idle.look_at_ms(), Some(100 + SURPLUS_MS));
    assert_eq!(idle.take_surplus(100 + SURPLUS_MS - 1), []);
    // What was before the pool had too many says nothing.
    assert_eq!(idle.take_surplus(120), []);
    assert_eq!(idle.look_at_ms(), Some(140));
    assert_eq!(idle.take(1, &addr(80)), Some(key(17)));
    assert_eq!(idle.insert((1, 16), addr(80), key(17), 130), None);
    assert_eq!(idle.take_surplus(140), [key(0)], "the other was needed");
    assert_eq!(idle.take_surplus(160), [key(1)]);
    assert_eq!((idle.look_at_ms(), idle.len()), (None, 16));
    assert_eq!(idle.take_surplus(1000), []);
}

#[test]
fn a_pool_has_twice_as_many_as_it_keeps_at_most_and_a_small_one_no_more() {
    let mut idle = pool(16, 0..32);
    assert_eq!(idle.insert((1, 16), addr(80), key(32), 0), Some(key(0)));
    assert_eq!(idle.len(), 32);
    let mut idle = pool(15, 0..15);
    assert_eq!(idle.insert((1, 15), addr(80), key(15), 0), Some(key(0)));
    assert_eq!((idle.len(), idle.look_at_ms()), (15, None));
}

#[test]
fn nothing_is_looked_at_once_all_are_gone() {
    let mut idle = pool(16, 0..17);
    assert_eq!(idle.look_at_ms(), Some(100 + SURPLUS_MS));
    for index in 0..17 {
        idle.remove(1, key(index));
    }
    assert_eq!(idle.look_at_ms(), None);
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
    // The last pool that became empty is remembered, the others are not.
    assert_eq!(idle.remembered(), (2, 2));
    idle.remove(1, key(1));
    idle.remove(1, key(3));
    assert_eq!(idle.remembered(), (1, 1));
}

impl IdleConnections {
    /// The pools and servers that are known.
    fn remembered(&self) -> (usize, usize) {
        (self.pools.numbers().len(), self.servers.numbers().len())
    }
}

/// The pool, the server and the number of each idle connection, in the order in which they became idle.
type Model = Vec<(u64, UpstreamAddr, Key)>;

#[test]
fn choices_are_those_of_a_search() {
    let unix = |n: u64| UpstreamAddr::Unix(Arc::from(format!("/run/{n}").as_bytes()));
    for seed in 0..50 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let mut idle = IdleConnections::default();
        let mut model = Model::new();
        let servers = [1, 3, 40][rng.usize(..3)];
        for now_ms in 0..2000 {
            let pool = rng.u64(1..4);
            let server = rng.u64(..servers);
            let addr = match server % 2 {
                0 => addr(80 + server as u16),
                _ => unix(server),
            };
            let is_here = |(own, at, _): &&(u64, UpstreamAddr, Key)| *own == pool && *at == addr;
            match rng.u8(..8) {
                0..4 => {
                    let used: Vec<u32> = model.iter().map(|(_, _, key)| key.index).collect();
                    let free = (0..).find(|index| !used.contains(index));
                    let key = Key {
                        index: free.expect("one is free"),
                        life: now_ms as u32,
                    };
                    let surplus = idle.insert((pool, 12), addr.clone(), key, now_ms);
                    model.push((pool, addr, key));
                    let same = model.iter().filter(|(own, _, _)| *own == pool);
                    let expected = (same.clone().count() > 12).then(|| same.map(|s| s.2).next());
                    assert_eq!(surplus, expected.flatten(), "seed {seed}, {now_ms}");
                    model.retain(|(_, _, key)| Some(*key) != surplus);
                }
                4..6 => {
                    let expected = model.iter().rfind(is_here).map(|(_, _, key)| *key);
                    assert_eq!(idle.take(pool, &addr), expected, "seed {seed}, {now_ms}");
                    model.retain(|(_, _, key)| Some(*key) != expected);
                }
                6 if !model.is_empty() => {
                    let (pool, _, key) = model.swap_remove(rng.usize(..model.len()));
                    model.sort_by_key(|(_, _, key)| key.life);
                    idle.remove(pool, key);
                }
                _ => {
                    let expected = model.first().map(|(_, _, key)| *key);
                    assert_eq!(idle.take_oldest(), expected, "seed {seed}, {now_ms}");
                    model.retain(|(_, _, key)| Some(*key) != expected);
                }
            }
            assert_eq!(idle.len(), model.len());
        }
    }
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
