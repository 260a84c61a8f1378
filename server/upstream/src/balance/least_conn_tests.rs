//! Choices by `least_conn` and those of its formula.

use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::balance::PickKey;
use crate::balance::testing::{Model, NOW_MS, PICKS, any_server, peers, pick, port, servers};
use crate::peers::{PeerId, TriedPeers};
use crate::shared::{PeerSettings, SharedPeers};

#[test]
fn choices_are_those_of_the_formula() {
    const SEEDS: usize = 20;
    for seed in 0..SEEDS {
        let rng = &mut fastrand::Rng::with_seed(seed as u64);
        let count = [2, 3, 7, 33][rng.usize(..4)];
        let all: Vec<_> = (1..=count).map(|port| any_server(rng, port)).collect();
        let (mut list, mut model) = (peers(&all, &LeastConn), Model::of(&all));
        let mut held: Vec<(PeerId, usize)> = Vec::new();
        let mut now_s = 1000;
        for n in 0..PICKS / SEEDS {
            let (mut state, mut tried) = (TriedPeers::default(), Vec::new());
            for _ in 0..[1, 1, 1, 4][rng.usize(..4)] {
                let id = list.pick(&mut state, &PickKey::default(), now_s * 1000);
                let usable = model.usable(&tried, now_s);
                let expected = model.least(&usable, |peer, _| peer.conns);
                let found = id.map(|id| usize::from(port(&list, id)) - 1);
                assert_eq!(found, expected, "seed {seed}, choice {n}");
                let (Some(id), Some(at)) = (id, expected) else {
                    break;
                };
                model.begin(at, now_s);
                tried.push(at);
                held.push((id, at));
            }
            while !held.is_empty() && rng.usize(..held.len() + 8) > 8 {
                let (id, at) = held.swap_remove(rng.usize(..held.len()));
                list.release(id);
                model.0[at].conns -= 1;
                if rng.u8(..8) == 0 {
                    list.fail(id, now_s);
                    model.fail(at, now_s);
                } else {
                    list.succeed(id);
                    model.0[at].failures.succeed();
                }
            }
            now_s += u64::from(rng.u8(..20) == 0);
        }
    }
}

#[test]
fn a_server_with_a_double_weight_has_twice_the_attempts() {
    let mut list = peers(&servers(&[1, 2, 3]), &LeastConn);
    let key = PickKey::default();
    let mut counts = [0; 3];
    for _ in 0..600 {
        let id = list.pick(&mut TriedPeers::default(), &key, NOW_MS);
        let id = id.expect("all are usable");
        counts[usize::from(port(&list, id)) - 8081] += 1;
    }
    assert_eq!(counts, [100, 200, 300]);
}

#[test]
fn idle_servers_take_turns() {
    let mut list = peers(&servers(&[1, 1, 2]), &LeastConn);
    let ports: Vec<u16> = (0..8)
        .map(|_| pick(&mut list, &PickKey::default()))
        .collect();
    assert_eq!(ports, [8083, 8081, 8082, 8083, 8083, 8081, 8082, 8083]);
}

#[test]
fn attempts_of_four_threads_are_level() {
    const THREADS: usize = 4;
    for count in [2, 3, 4] {
        let shared = Arc::new(SharedPeers::new(&PeerSettings {
            servers: &servers(&vec![1; count]),
            method: Some(&LeastConn),
            ..PeerSettings::default()
        }));
        let start = Arc::new(Barrier::new(THREADS));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (shared, start) = (Arc::clone(&shared), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    for _ in 0..PICKS / THREADS {
                        let key = PickKey::default();
                        let id = shared.lock().pick(&mut TriedPeers::default(), &key, NOW_MS);
                        let id = id.expect("all are usable");
                        let conns = shared.lock().get(id).map(|peer| peer.conns);
                        // Each thread has one attempt.
                        assert!(conns <= Some(THREADS.div_ceil(count) as u64), "{conns:?}");
                        shared.lock().release(id);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("the attempts are level");
        }
    }
}
