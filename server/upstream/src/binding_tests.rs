//! Bound requests and draining servers; recorded sequences are those of nginx 1.31.4 with the same servers.

use crate::balance::PickKey;
use crate::group::Server;
use crate::peers::{PeerId, PeerList, TriedPeers};
use crate::route::UpstreamAddr;
use crate::server_id::hash_of;
use crate::shared::{PeerSettings, SharedPeers};

fn server(port: u16, weight: i64, route: &str) -> Server {
    Server {
        addresses: vec![UpstreamAddr::Inet(([127, 0, 0, 1], port).into())],
        weight,
        route: Some(route.as_bytes().into()),
        ..Server::new()
    }
}

/// Chooses for a request bound to a route; an empty route binds to none. The request ends at once.
fn pick(peers: &mut PeerList, route: &str) -> Option<u16> {
    let id = choose(peers, &mut TriedPeers::default(), route)?;
    peers.release(id);
    port(peers, id)
}

fn choose(peers: &mut PeerList, tried: &mut TriedPeers, route: &str) -> Option<PeerId> {
    choose_at(peers, tried, route, NOW_MS)
}

fn choose_at(
    peers: &mut PeerList,
    tried: &mut TriedPeers,
    route: &str,
    now_ms: u64,
) -> Option<PeerId> {
    let bound_to = (!route.is_empty()).then(|| route.as_bytes().to_vec());
    let key = PickKey {
        bound_to,
        ..PickKey::default()
    };
    peers.pick(tried, &key, now_ms)
}

/// Time of choices.
const NOW_MS: u64 = 1_000_000;

fn port(peers: &PeerList, id: PeerId) -> Option<u16> {
    match peers.get(id)?.addr() {
        UpstreamAddr::Inet(addr) => Some(addr.port()),
        UpstreamAddr::Unix(_) => None,
    }
}

/// Returns the ports of requests with these routes; `-` is a request that is not bound.
fn sequence(peers: &mut PeerList, routes: &str) -> String {
    let ports = routes.split(' ').map(|route| {
        let port = pick(peers, route.trim_matches('-'));
        port.map_or("none".to_owned(), |port| port.to_string())
    });
    ports.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_identifier_is_the_hash_of_the_address_as_in_nginx() {
    let id = |addr: UpstreamAddr| String::from_utf8(hash_of(&addr)).expect("digits");
    // From cookies of nginx 1.31.4.
    let inet = UpstreamAddr::Inet(([127, 0, 0, 1], 18101).into());
    assert_eq!(id(inet), "a44db3549e461fcd8a5ae22f73f91140");
    let unix = UpstreamAddr::Unix(b"/tmp/s"[..].into());
    assert_eq!(id(unix), "2b4dce229af1a9cfe8679fbc61d2393d");
}

#[test]
fn bound_requests_count_as_turns_as_in_nginx() {
    let mut peers = PeerList::of(&[server(1, 3, "a"), server(2, 2, "b"), server(3, 1, "c")]);
    assert_eq!(
        sequence(&mut peers, "- - - - - - - - - - - -"),
        "1 2 1 3 2 1 1 2 1 3 2 1"
    );
    assert_eq!(
        sequence(
            &mut peers,
            "a a a a a a a a - - - - b b - - - c c c - - - - - - - - -"
        ),
        "1 1 1 1 1 1 1 1 2 1 3 2 2 2 1 1 1 3 3 3 1 2 1 2 1 2 1 1 2"
    );
}

#[test]
fn a_draining_server_gets_bound_requests_alone_as_in_nginx() {
    let draining = Server {
        is_draining: true,
        ..server(1, 3, "a")
    };
    let mut peers = PeerList::of(&[draining, server(2, 2, "b"), server(3, 1, "c")]);
    assert_eq!(peers.tries(), 2, "as one that is down");
    assert_eq!(
        sequence(
            &mut peers,
            "- - - a a a a - - - - b b - - a a - - - c c c - - - - - - - - -"
        ),
        "2 3 2 1 1 1 1 2 2 3 2 2 2 3 2 1 1 3 2 2 3 3 3 2 2 2 2 2 2 3 2 2"
    );
}

#[test]
fn the_only_server_gets_bound_requests_while_draining() {
    let draining = Server {
        is_draining: true,
        max_conns: 1,
        ..server(1, 1, "a")
    };
    let mut peers = PeerList::of(&[draining]);
    assert_eq!(sequence(&mut peers, "- a b a"), "none 1 none 1");
    assert!(choose(&mut peers, &mut TriedPeers::default(), "a").is_some());
    assert_eq!(pick(&mut peers, "a"), None, "it is full");
}

#[test]
fn a_bound_request_is_balanced_if_its_servers_are_not_usable() {
    let limited = Server {
        max_conns: 1,
        ..server(1, 1, "a")
    };
    let down = Server {
        is_down: true,
        ..server(2, 1, "a")
    };
    let mut peers = PeerList::of(&[limited, down, server(3, 1, "a"), server(4, 1, "b")]);
    let mut tried = TriedPeers::default();
    let chosen = [(); 4].map(|()| {
        let id = choose(&mut peers, &mut tried, "a")?;
        port(&peers, id)
    });
    assert_eq!(chosen, [Some(1), Some(3), Some(4), None]);
    assert_eq!(pick(&mut peers, "a"), Some(3), "the first one is full");
    assert_eq!(sequence(&mut peers, "x x x"), "4 4 3", "an unknown one");
}

#[test]
fn a_backup_server_is_found_once_no_other_server_is_usable() {
    let backup = |port, route| Server {
        is_backup: true,
        ..server(port, 1, route)
    };
    let first = Server {
        max_conns: 1,
        ..server(1, 1, "p")
    };
    let mut peers = PeerList::of(&[first, backup(2, "a"), backup(3, "b")]);
    assert_eq!(pick(&mut peers, "b"), Some(1));
    assert!(choose(&mut peers, &mut TriedPeers::default(), "").is_some());
    assert_eq!(sequence(&mut peers, "b b a b -"), "3 3 2 3 2");
}

#[test]
fn a_new_list_has_new_identifiers() {
    fn settings(servers: &[Server]) -> PeerSettings<'_> {
        PeerSettings {
            servers,
            ..PeerSettings::default()
        }
    }
    let peers = SharedPeers::new(&settings(&[server(1, 1, "a"), server(2, 1, "b")]));
    assert_eq!(sequence(&mut peers.lock(), "b b"), "2 2");
    peers.commit(&settings(&[server(1, 1, "b"), server(2, 1, "a")]));
    assert_eq!(sequence(&mut peers.lock(), "b b a"), "1 1 2");
}

#[test]
fn a_recovered_server_starts_slowly() {
    let slow = Server {
        slow_start_ms: 1000,
        ..server(1, 1, "a")
    };
    let mut peers = PeerList::of(&[slow, server(2, 1, "b")]);
    let first = choose(&mut peers, &mut TriedPeers::default(), "").expect("all are usable");
    peers.release(first);
    peers.begin_slow_start(first, NOW_MS);
    let mut share = |after_ms: u64| {
        let chosen = (0..1000).filter_map(|_| {
            let tried = &mut TriedPeers::default();
            let id = choose_at(&mut peers, tried, "", NOW_MS + after_ms)?;
            peers.release(id);
            port(&peers, id)
        });
        chosen.filter(|port| *port == 1).count()
    };
    // Half of the choices in which it takes part, since the weights are equal.
    assert_eq!(share(0), 0);
    assert_eq!((share(100), share(500)), (50, 250));
    assert_eq!(share(1000), 500);
}

#[test]
fn a_starting_server_is_used_if_no_other_one_is() {
    let slow = Server {
        slow_start_ms: 1000,
        ..server(1, 1, "a")
    };
    let backup = Server {
        is_backup: true,
        ..server(3, 1, "c")
    };
    let other = Server {
        max_conns: 1,
        ..server(2, 1, "b")
    };
    let mut peers = PeerList::of(&[slow, other, backup]);
    let first = choose(&mut peers, &mut TriedPeers::default(), "").expect("all are usable");
    peers.release(first);
    peers.begin_slow_start(first, NOW_MS);
    assert_eq!(pick(&mut peers, "a"), Some(1), "a bound request");
    let held = choose(&mut peers, &mut TriedPeers::default(), "").expect("one is usable");
    assert_eq!(port(&peers, held), Some(2));
    assert_eq!(pick(&mut peers, ""), Some(1), "before the backup server");
}

#[test]
fn a_peer_begins_a_slow_start_as_it_recovers() {
    let slow = |port| Server {
        slow_start_ms: 10_000,
        ..server(port, 1, "a")
    };
    let mut peers = PeerList::of(&[slow(1), slow(2)]);
    let id = choose(&mut peers, &mut TriedPeers::default(), "").expect("all are usable");
    peers.release(id);
    peers.succeed_at(id, NOW_MS);
    let is_held = |peers: &mut PeerList, now_ms| {
        let chosen = choose_at(peers, &mut TriedPeers::default(), "b", now_ms);
        chosen.into_iter().for_each(|chosen| peers.release(chosen));
        peers.get(id).is_some_and(|peer| peer.slow_start.is_held())
    };
    assert!(!is_held(&mut peers, NOW_MS));
    assert!(peers.fail(id, NOW_MS / 1000));
    // The first request after `fail_timeout` finds it alive.
    let later_ms = NOW_MS + 11_000;
    let tried = &mut TriedPeers::default();
    let again = [(); 2].map(|()| choose_at(&mut peers, tried, "a", later_ms));
    assert!(again.contains(&Some(id)));
    peers.succeed_at(id, later_ms);
    assert!(is_held(&mut peers, later_ms));
    // A removed peer leaves no trace.
    peers.remove(id);
    peers.set_list(&[]);
    assert!(!is_held(&mut peers, later_ms + 1));
}
