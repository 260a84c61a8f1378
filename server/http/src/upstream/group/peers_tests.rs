//! Round robin; sequences that say so were recorded from nginx 1.31.4 with the same servers.

use super::*;

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

fn peers(servers: &[Server]) -> Peers {
    Peers::new(servers)
}

/// The port of a peer.
fn port(peer: &Peer) -> u16 {
    match peer.addr {
        UpstreamAddr::Inet(addr) => addr.port(),
        UpstreamAddr::Unix(_) => 0,
    }
}

/// The ports that as many requests would go to, one after the other, where every server answers.
fn sequence(peers: &Peers, requests: usize) -> String {
    let ports = (0..requests).map(|_| {
        let peer = choose(&peers.primary.borrow(), &mut Tried::default(), 1000);
        let peer = peer.expect("a server is usable");
        peer.succeed();
        port(&peer).to_string()
    });
    ports.collect::<Vec<_>>().join(" ")
}

/// One request at a time where one server fails: the ports it tries up to the first that answers.
fn request(peers: &Peers, failing: u16, now_s: u64) -> String {
    let mut tried = Tried::default();
    let mut ports = Vec::new();
    while let Some(peer) = choose(&peers.primary.borrow(), &mut tried, now_s) {
        ports.push(port(&peer).to_string());
        if port(&peer) != failing {
            peer.succeed();
            break;
        }
        peer.fail(now_s);
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
        assert_eq!(sequence(&peers(&servers), 14), told, "{weights:?}");
    }
}

#[test]
fn a_server_with_several_addresses_is_several_peers() {
    let mut several = server(1, 2);
    several.addresses.push(addr(2));
    let peers = peers(&[several, server(3, 1)]);
    assert_eq!(sequence(&peers, 10), "1 2 3 1 2 1 2 3 1 2");
    assert_eq!((peers.tries(), peers.is_single()), (3, false));
}

#[test]
fn a_server_that_fails_is_left_out_until_its_time_is_over_as_in_nginx() {
    let limited = |port, weight| Server {
        max_fails: 2,
        fail_timeout_s: 2,
        ..server(port, weight)
    };
    let peers = peers(&[limited(1, 3), limited(9, 4)]);
    let requests = |count: usize, now_s| {
        let all = (0..count).map(|_| request(&peers, 9, now_s));
        all.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(requests(8, 1000), "9,1 1 1 9,1 1 1 1 1");
    assert_eq!(requests(2, 1002), "1 1", "the last second counts");
    assert_eq!(requests(6, 1003), "1 9,1 1 1 1 1");
}

#[test]
fn a_success_after_the_time_is_over_makes_failures_good() {
    let peers = peers(&[server(1, 1), server(2, 1)]);
    let pick = |now_s| choose(&peers.primary.borrow(), &mut Tried::default(), now_s);
    let first = pick(1000).expect("one is usable");
    assert!(first.fail(1000), "max_fails is 1");
    for _ in 0..3 {
        assert_eq!(pick(1010).map(|peer| port(&peer)), Some(2));
    }
    let again = (0..4).filter_map(|_| pick(1011)).find(|p| port(p) == 1);
    let again = again.expect("it is tried again");
    assert!(again.fails.get() == 1 && again.has_failed(1011), "one look");
    again.succeed();
    assert!(again.fails.get() == 0 && !again.has_failed(1011));
}

#[test]
fn success_while_failures_count_does_not_forget_them() {
    let peers = peers(&[Server {
        max_fails: 3,
        ..server(1, 1)
    }]);
    let peer = Rc::clone(&peers.primary.borrow()[0]);
    assert!(!peer.fail(1000));
    peer.succeed();
    assert!(!peer.fail(1001));
    assert!(peer.fail(1002));
}

#[test]
fn failures_that_are_not_limited_cost_no_weight() {
    let peers = peers(&[
        Server {
            max_fails: 0,
            ..server(1, 2)
        },
        server(2, 2),
    ]);
    let peer = Rc::clone(&peers.primary.borrow()[0]);
    assert!(!peer.fail(1000) && !peer.fail(1000));
    assert_eq!(peer.effective_weight.get(), 2);
    assert_eq!(sequence(&peers, 4), "1 2 1 2");
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
    let peers = peers(&[limited, server(2, 1), down]);
    assert_eq!(peers.tries(), 2, "one that is down does not count");
    let pick = || choose(&peers.primary.borrow(), &mut Tried::default(), 1000);
    let mut held = Vec::new();
    for told in [1, 2, 1, 2, 2, 2] {
        let peer = pick().expect("one is usable");
        assert_eq!(port(&peer), told);
        peer.take();
        held.push(peer);
    }
    held[0].give_back();
    let after = [pick(), pick()].map(|peer| peer.map(|peer| port(&peer)));
    assert_eq!(after, [Some(2), Some(1)], "with the weight it had");
}

#[test]
fn a_request_tries_each_server_once() {
    let servers: Vec<_> = (1..=130).map(|port| server(port, 1)).collect();
    let peers = peers(&servers);
    let mut tried = Tried::default();
    let mut seen = Vec::new();
    while let Some(peer) = choose(&peers.primary.borrow(), &mut tried, 1000) {
        seen.push(port(&peer));
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
        let peers = peers(&[Server {
            is_down,
            max_conns: 2,
            ..server(1, 1)
        }]);
        assert!(peers.is_single());
        let peer = Rc::clone(&peers.primary.borrow()[0]);
        (0..conns).for_each(|_| peer.take());
        assert_eq!(peers.single().is_some(), usable, "{is_down} {conns}");
    }
}
