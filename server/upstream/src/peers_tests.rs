//! Round robin; recorded sequences are those of nginx 1.31.4 with the same servers.

use super::*;
use crate::members::{Members, single_addresses};

fn addr(port: u16) -> UpstreamAddr {
    UpstreamAddr::Inet(([127, 0, 0, 1], port).into())
}

fn server(port: u16, weight: i64) -> Server {
    Server {
        addresses: vec![addr(port)],
        weight,
        ..Server::new()
    }
}

fn peers(servers: &[Server]) -> PeerList {
    PeerList::of(servers)
}

/// Returns the port of a peer.
fn port(peers: &PeerList, id: PeerId) -> u16 {
    match peers.get(id).map(Peer::addr) {
        Some(UpstreamAddr::Inet(addr)) => addr.port(),
        _ => 0,
    }
}

/// Chooses a peer for a request.
fn choose(peers: &mut PeerList, tries: &mut TriedPeers, now_s: u64) -> Option<PeerId> {
    peers.pick(tries, &PickKey::default(), now_s * 1000)
}

/// Chooses a peer for a new request, which ends at once.
fn pick(peers: &mut PeerList, now_s: u64) -> Option<PeerId> {
    let id = choose(peers, &mut TriedPeers::default(), now_s)?;
    peers.release(id);
    Some(id)
}

/// The ports of this number of requests in order, if every server responds.
fn sequence(peers: &mut PeerList, requests: usize) -> String {
    let ports = (0..requests).map(|_| {
        let id = pick(peers, 1000).expect("a server is usable");
        peers.succeed(id);
        port(peers, id).to_string()
    });
    ports.collect::<Vec<_>>().join(" ")
}

/// One request with one failing server: the ports that it tries up to the first that responds.
fn request(peers: &mut PeerList, failing: u16, now_s: u64) -> String {
    let mut tries = TriedPeers::default();
    let mut ports = Vec::new();
    while let Some(id) = choose(peers, &mut tries, now_s) {
        peers.release(id);
        ports.push(port(peers, id).to_string());
        if port(peers, id) != failing {
            peers.succeed(id);
            break;
        }
        peers.fail(id, now_s);
    }
    ports.join(",")
}

#[test]
fn servers_take_turns_by_weight_as_in_nginx() {
    for (weights, told) in [
        (&[5, 1, 1][..], "1 1 2 1 3 1 1 1 1 2 1 3 1 1"),
        (&[4, 3, 2], "1 2 3 1 2 1 3 2 1 1 2 3 1 2"),
        (&[1, 1, 1], "1 2 3 1 2 3 1 2 3 1 2 3 1 2"),
    ] {
        let servers: Vec<_> = (1..).zip(weights).map(|(n, w)| server(n, *w)).collect();
        assert_eq!(sequence(&mut peers(&servers), 14), told, "{weights:?}");
    }
}

#[test]
fn a_server_with_several_addresses_is_several_peers() {
    let mut several = server(1, 2);
    several.addresses.push(addr(2));
    let mut peers = peers(&[several, server(3, 1)]);
    assert_eq!(sequence(&mut peers, 10), "1 2 3 1 2 1 2 3 1 2");
    assert_eq!((peers.tries(), peers.is_single()), (3, false));
}

#[test]
fn a_server_that_fails_is_left_out_until_its_time_is_over_as_in_nginx() {
    let limited = |port, weight| Server {
        max_fails: 2,
        fail_timeout_s: 2,
        ..server(port, weight)
    };
    let mut peers = peers(&[limited(1, 3), limited(9, 4)]);
    let mut requests = |count: usize, now_s| {
        let all = (0..count).map(|_| request(&mut peers, 9, now_s));
        all.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(requests(8, 1000), "9,1 1 1 9,1 1 1 1 1");
    assert_eq!(requests(2, 1002), "1 1", "the last second counts");
    assert_eq!(requests(6, 1003), "1 9,1 1 1 1 1");
}

#[test]
fn a_success_after_the_time_is_over_makes_failures_good() {
    let mut peers = peers(&[server(1, 1), server(2, 1)]);
    let first = pick(&mut peers, 1000).expect("one is usable");
    assert!(peers.fail(first, 1000), "max_fails is 1");
    for _ in 0..3 {
        let next = pick(&mut peers, 1010).expect("one is usable");
        assert_eq!(port(&peers, next), 2);
    }
    let again = (0..4).filter_map(|_| pick(&mut peers, 1011));
    let again: Vec<PeerId> = again.collect();
    assert!(again.contains(&first), "it is tried again");
    let failures = |peers: &PeerList| peers.get(first).expect("it is there").failures().clone();
    let one_look = failures(&peers);
    assert!(one_look.count() == 1 && one_look.has_failed(1011));
    peers.succeed(first);
    let good = failures(&peers);
    assert!(good.count() == 0 && !good.has_failed(1011));
}

#[test]
fn success_while_failures_count_does_not_forget_them() {
    let mut peers = peers(&[Server {
        max_fails: 3,
        ..server(1, 1)
    }]);
    let id = pick(&mut peers, 1000).expect("it is usable");
    assert!(!peers.fail(id, 1000));
    peers.succeed(id);
    assert!(!peers.fail(id, 1001));
    assert!(peers.fail(id, 1002));
}

#[test]
fn failures_that_are_not_limited_cost_no_weight() {
    let mut peers = peers(&[
        Server {
            max_fails: 0,
            ..server(1, 2)
        },
        server(2, 2),
    ]);
    let mut other = PeerList::of(&[server(1, 2), server(2, 2)]);
    let [id, _] = [pick(&mut peers, 1000), pick(&mut other, 1000)].map(|id| id.expect("one"));
    assert!(!peers.fail(id, 1000) && !peers.fail(id, 1000));
    assert_eq!(sequence(&mut peers, 5), sequence(&mut other, 5));
}

#[test]
fn full_and_down_servers_are_passed_over() {
    let limited = Server {
        max_conns: 2,
        ..server(1, 1)
    };
    let down = Server {
        is_down: true,
        ..server(3, 9)
    };
    let mut peers = peers(&[limited, server(2, 1), down]);
    assert_eq!(peers.tries(), 2, "one that is down does not count");
    let mut held = Vec::new();
    for told in [1, 2, 1, 2, 2, 2] {
        let id = choose(&mut peers, &mut TriedPeers::default(), 1000);
        let id = id.expect("one is usable");
        assert_eq!(port(&peers, id), told);
        held.push(id);
    }
    peers.release(held[0]);
    let after = [(); 2].map(|()| pick(&mut peers, 1000).map(|id| port(&peers, id)));
    assert_eq!(after, [Some(2), Some(1)], "with the weight it had");
}

#[test]
fn a_request_tries_each_server_once() {
    let servers: Vec<_> = (1..=130).map(|port| server(port, 1)).collect();
    let mut peers = peers(&servers);
    let mut tries = TriedPeers::default();
    let mut seen = Vec::new();
    while let Some(id) = choose(&mut peers, &mut tries, 1000) {
        seen.push(port(&peers, id));
    }
    assert_eq!(seen, (1..=130).collect::<Vec<u16>>());
}

#[test]
fn the_only_server_is_usable_unless_down_or_full() {
    for (is_down, conns, usable) in [
        (false, 0, true),
        (false, 1, true),
        (false, 2, false),
        (true, 0, false),
    ] {
        let mut peers = peers(&[Server {
            is_down,
            max_conns: 2,
            ..server(1, 1)
        }]);
        assert!(peers.is_single());
        for _ in 0..conns {
            choose(&mut peers, &mut TriedPeers::default(), 1000);
        }
        let found = choose(&mut peers, &mut TriedPeers::default(), 1000);
        assert_eq!(found.is_some(), usable, "{is_down} {conns}");
    }
}

/// Chooses by comparing all peers: the definition of smooth weighted round robin, and of nginx's for bound requests.
fn scan(
    list: &[u32],
    peers: &mut [Peer],
    tried: &[u32],
    (bound_to, now_s): (Option<&[u8]>, u64),
) -> Option<u32> {
    let mut best: Option<(u32, i64)> = None;
    let mut total = 0;
    let weight: i64 = list
        .iter()
        .map(|at| peers[*at as usize].weights.weight)
        .sum();
    let bound = list.iter().copied().find(|at| {
        let peer = &peers[*at as usize];
        bound_to.is_some_and(|id| id == peer.server_id())
            && peer.is_usable_if_bound(now_s)
            && !tried.contains(at)
    });
    if let Some(at) = bound {
        let peer = &mut peers[at as usize];
        if peer.weights.current <= peer.weights.weight - weight {
            peer.failures.chosen(now_s);
            return Some(at);
        }
    }
    for at in list {
        let peer = &mut peers[*at as usize];
        if !peer.is_usable(now_s) || tried.contains(at) {
            continue;
        }
        let weights = &mut peer.weights;
        weights.current += weights.effective;
        total += weights.effective;
        if weights.effective < weights.weight {
            weights.effective += 1;
        }
        if best.is_none_or(|(_, best)| weights.current > best) {
            best = Some((*at, weights.current));
        }
    }
    let at = bound.or(best.map(|(at, _)| at))?;
    peers[at as usize].weights.current -= total;
    peers[at as usize].failures.chosen(now_s);
    Some(at)
}

/// [`PeerList::pick`] by scans; `tried` are the peers of the list in use.
fn scanned(
    peers: &mut PeerList,
    (tried, in_backup): &mut (Vec<u32>, bool),
    at: (Option<&[u8]>, u64),
) -> Option<PeerId> {
    let all = &mut peers.peers;
    let mut found = None;
    if !*in_backup {
        found = scan(peers.primary.list(), all, tried, at);
        if found.is_none() && !peers.backup.list().is_empty() {
            *in_backup = true;
            tried.clear();
        }
    }
    if *in_backup {
        found = scan(peers.backup.list(), all, tried, at);
    }
    let index = found?;
    tried.push(index);
    let peer = &mut all[index as usize];
    peer.conns += 1;
    let life = peer.life;
    Some(PeerId { index, life })
}

/// Makes a server with random parameters.
fn any_server(rng: &mut fastrand::Rng, port: u16) -> Server {
    Server {
        weight: [1, 1, 2, 5, 100, rng.i64(1..1 << 20)][rng.usize(..6)],
        max_conns: [0, 0, 1, 3][rng.usize(..4)],
        max_fails: [0, 1, 1, 3][rng.usize(..4)],
        fail_timeout_s: rng.u64(..5),
        is_down: rng.u8(..16) == 0,
        is_draining: rng.u8(..16) == 0,
        route: (rng.u8(..4) > 0).then(|| [rng.u8(b'a'..b'g')][..].into()),
        is_backup: rng.u8(..5) == 0,
        ..server(port, 1)
    }
}

/// Sets the servers of both lists.
fn commit(members: &mut [Members; 2], lists: &mut [PeerList; 2], servers: &[Server]) {
    for (members, list) in members.iter_mut().zip(lists) {
        members.commit(single_addresses(servers), true, || list);
    }
}

#[test]
fn choices_are_those_of_a_scan() {
    let mut in_tournaments = [0; 2];
    for seed in 0..30 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let count = [2, 3, 7, 33, 130, 400][rng.usize(..6)];
        // Out of 32 attempts, this many fail.
        let failing = [1, 4, 8][rng.usize(..3)];
        let mut servers: Vec<Server> = (1..=count).map(|port| any_server(rng, port)).collect();
        let mut lists = [(); 2].map(|()| PeerList::default());
        let mut members = [(); 2].map(|()| Members::default());
        commit(&mut members, &mut lists, &servers);
        let mut now_s = 1000;
        let mut held: Vec<PeerId> = Vec::new();
        for n in 0..700 {
            let (mut tries, mut tried) = (TriedPeers::default(), (Vec::new(), false));
            let routes: [&[u8]; 4] = [b"a", b"b", b"c", b"unknown"];
            let bound_to = rng.bool().then(|| routes[rng.usize(..4)]);
            let key = PickKey {
                bound_to: bound_to.map(<[u8]>::to_vec),
                ..PickKey::default()
            };
            // A request may try several peers at once.
            for _ in 0..[1, 1, 1, 1, 4, 40][rng.usize(..6)] {
                let picks = [
                    lists[0].pick(&mut tries, &key, now_s * 1000),
                    scanned(&mut lists[1], &mut tried, (bound_to, now_s)),
                ];
                let shown = format!("seed {seed}, choice {n}, {count} servers");
                assert_eq!(picks[0], picks[1], "{shown}");
                in_tournaments[usize::from(lists[0].primary.has_tournament())] += 1;
                let Some(id) = picks[0] else {
                    break;
                };
                held.push(id);
            }
            while !held.is_empty() && rng.usize(..held.len() + 4) > 4 {
                let id = held.swap_remove(rng.usize(..held.len()));
                let outcome = rng.u8(..32);
                for list in &mut lists {
                    list.release(id);
                    match outcome {
                        _ if outcome < failing => drop(list.fail(id, now_s)),
                        8..16 => {}
                        _ => list.succeed(id),
                    }
                }
            }
            now_s += u64::from(rng.u8(..20) == 0);
            if rng.u16(..500) == 0 {
                let at = rng.usize(..servers.len());
                let port = 1 + rng.u16(..count);
                servers[at] = any_server(rng, port);
                commit(&mut members, &mut lists, &servers);
            }
        }
    }
    assert!(
        in_tournaments.iter().all(|choices| *choices > 1000),
        "{in_tournaments:?}"
    );
}

#[test]
fn short_lists_and_lists_after_many_failures_have_no_tournament() {
    let server = |port| server(port, 1 << 20);
    let servers = |count| (1..=count).map(server).collect::<Vec<_>>();
    let mut short = peers(&servers(15));
    pick(&mut short, 1000).expect("all are usable");
    assert!(!short.primary.has_tournament());
    let mut long = peers(&servers(64));
    let mut now_s = 1000;
    for (failures, has_tournament) in [(0, true), (4, true), (1, false), (0, false)] {
        for _ in 0..failures {
            let id = pick(&mut long, now_s).expect("one is usable");
            long.fail(id, now_s);
        }
        // The effective weights of peers that failed rise with each choice after their timeout.
        now_s += 11;
        for _ in 0..2 {
            pick(&mut long, now_s).expect("one is usable");
        }
        assert_eq!(long.primary.has_tournament(), has_tournament, "{failures}");
    }
}

#[test]
fn a_peer_with_another_address_does_not_inherit_from_the_one_before() {
    let (mut peers, mut members) = (PeerList::default(), Members::default());
    let servers = single_addresses(&[server(1, 1), server(2, 1)]);
    members.commit(servers, true, || &mut peers);
    let [_, second, _] = [(); 3].map(|()| choose(&mut peers, &mut TriedPeers::default(), 1000));
    let second = second.expect("one is usable");
    assert_eq!(port(&peers, second), 2);
    let servers = single_addresses(&[server(1, 1), server(3, 1)]);
    members.commit(servers, true, || &mut peers);
    assert!(peers.get(second).is_none());
    peers.release(second);
    assert!(!peers.fail(second, 1000));
    assert_eq!(sequence(&mut peers, 4), "3 1 3 1", "the sum of 1 stays");
}
