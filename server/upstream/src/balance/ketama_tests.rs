//! Choices by `hash ... consistent`, those of its formula, and recorded ones of nginx 1.31.4.

use super::*;
use crate::balance::hash::tests::crc32;
use crate::balance::testing::{PICKS, key, peers, pick, port, server, servers, tried};
use crate::peers::{PeerId, PeerList};
use crate::route::UpstreamAddr;

/// The points of ketama by its definition: hash and port, in ascending order.
fn points(weights: &[i64]) -> Vec<(u32, u16)> {
    let mut points = Vec::new();
    for (port, weight) in (8081..).zip(weights) {
        let mut last = [0; 4];
        for _ in 0..weight * 160 {
            let name = [b"127.0.0.1\0", format!("{port}").as_bytes(), &last].concat();
            let hash = crc32(&name);
            last = hash.to_le_bytes();
            points.push((hash, port));
        }
    }
    points.sort_by_key(|(hash, _)| *hash);
    points.dedup_by_key(|(hash, _)| *hash);
    points
}

fn consistent(servers: &[Server]) -> PeerList {
    peers(servers, &ConsistentHash::default())
}

#[test]
fn choices_are_those_of_the_formula() {
    for weights in [&[1, 1][..], &[1, 1, 1], &[2, 3, 1], &[1; 40]] {
        let mut list = consistent(&servers(weights));
        let points = points(weights);
        for n in 0..PICKS / 4 {
            let bytes = format!("key {n}").into_bytes();
            let hash = crc32(&bytes);
            let at = points.partition_point(|(point, _)| *point < hash);
            let (_, port) = points[at % points.len()];
            assert_eq!(pick(&mut list, &key(&bytes)), port, "{n} {weights:?}");
        }
    }
}

#[test]
fn choices_are_those_of_nginx() {
    for (weights, sum) in RECORDED {
        let mut list = consistent(&servers(weights));
        let ports: Vec<u8> = (0..PICKS)
            .map(|n| (pick(&mut list, &key(n.to_string().as_bytes())) - 8080) as u8)
            .collect();
        assert_eq!(crc32(&ports), *sum, "{weights:?} {:?}", &ports[..20]);
    }
}

#[test]
fn further_choices_of_a_request_are_those_of_nginx() {
    let mut list = consistent(&servers(&[1; 5]));
    for (bytes, ports) in TRIED {
        assert_eq!(tried(&mut list, &key(bytes.as_bytes())), *ports);
    }
}

#[test]
fn only_keys_of_a_server_that_goes_move() {
    let mut all = consistent(&servers(&[1; 5]));
    let mut fewer = consistent(&servers(&[1; 4]));
    let mut moved = 0;
    for n in 0..PICKS / 10 {
        let key = key(n.to_string().as_bytes());
        let (before, after) = (pick(&mut all, &key), pick(&mut fewer, &key));
        assert!(before == after || before == 8085);
        moved += usize::from(before == 8085);
    }
    assert!((1500..2500).contains(&moved), "{moved} of 10,000");
}

#[test]
fn addresses_of_one_server_take_turns() {
    let mut several = server(8081, 2);
    several
        .addresses
        .push(UpstreamAddr::Inet(([127, 0, 0, 2], 8091).into()));
    let mut list = consistent(&[several, server(8082, 1)]);
    let mut keys = (0..).map(|n: u32| key(n.to_string().as_bytes()));
    let key = keys.find(|key| pick(&mut list, key) != 8082);
    let key = key.expect("a key");
    let ports: Vec<u16> = (0..4).map(|_| pick(&mut list, &key)).collect();
    assert!(
        ports == [8081, 8091, 8081, 8091] || ports == [8091, 8081, 8091, 8081],
        "{ports:?}"
    );
}

#[test]
fn hosts_and_ports_of_names_are_split_as_in_nginx() {
    for (name, host, port) in [
        ("a.example:8080", "a.example", "8080"),
        ("a.example", "a.example", ""),
        ("a.example:", "a.example", ""),
        ("[::1]:80", "[::1]", "80"),
        ("[::1]", "[::1]", ""),
        ("8080", "8080", ""),
        ("a8080", "a8080", ""),
        ("unix:/run/a:1", "/run/a:1", ""),
        ("UNIX:/run/a", "/run/a", ""),
        ("", "", ""),
        (":1", "", "1"),
    ] {
        let (found, found_port) = host_and_port(name.as_bytes());
        assert_eq!(
            (found, found_port),
            (host.as_bytes(), port.as_bytes()),
            "{name}"
        );
    }
}

#[test]
fn threads_share_the_points_of_the_configuration() {
    let method = ConsistentHash::default();
    let all = servers(&[1, 2]);
    method.prepare(&all);
    let circle = |servers: &[Server]| {
        let peers: Vec<Peer> = servers
            .iter()
            .map(|s| Peer::new(s, &s.addresses[0], 0))
            .collect();
        let mut state = State {
            prepared: Arc::clone(&method.prepared),
            ..State::default()
        };
        state.set_list(&peers, &(0..peers.len() as u32).collect::<Vec<_>>());
        if let Some(build) = state.build() {
            build.run();
            state.use_build();
        }
        state.circle
    };
    let prepared = method.prepared.get().expect("they are prepared");
    assert!(Arc::ptr_eq(&circle(&all), prepared));
    let other = circle(&servers(&[2, 1]));
    assert_ne!(other.points(), prepared.points());
    assert_eq!(other.points().len(), prepared.points().len());
}

/// Has these ports served: peers with other ports are removed, and missing ones are added.
fn set_ports(list: &mut PeerList, ports: &[u16]) {
    let known: Vec<(PeerId, u16)> = list.iter().map(|(id, _)| (id, port(list, id))).collect();
    for (id, _) in known.iter().filter(|(_, port)| !ports.contains(port)) {
        list.remove(*id);
    }
    let ids = ports.iter().map(|port| {
        let found = known.iter().find(|(_, known)| known == port);
        found.map_or_else(
            || {
                let server = server(*port, 1);
                list.add(&server, &server.addresses[0])
            },
            |(id, _)| *id,
        )
    });
    let ids: Vec<PeerId> = ids.collect();
    list.set_list(&ids);
}

/// The servers of many keys.
fn choices(list: &mut PeerList) -> Vec<u16> {
    let keys = (0..PICKS / 50).map(|n| key(n.to_string().as_bytes()));
    keys.map(|key| pick(list, &key)).collect()
}

#[test]
fn a_changed_list_of_threads_uses_the_points_before_until_its_own_are_made() {
    let of = |ports: &[u16]| {
        let servers: Vec<_> = ports.iter().map(|port| server(*port, 1)).collect();
        choices(&mut consistent(&servers))
    };
    let mut list = PeerList::of(&servers(&[1; 5]));
    list.share();
    drop(list.set_method(Some(&ConsistentHash::default())));
    let build = |list: &mut PeerList| {
        let builds = list.builds();
        assert_eq!(builds.len(), 1, "points were not made under the lock");
        builds.iter().for_each(|build| build.run());
        list.use_builds();
        assert!(list.builds().is_empty());
    };
    build(&mut list);
    assert_eq!(choices(&mut list), of(&[8081, 8082, 8083, 8084, 8085]));
    // The points of a server that has left count as unusable.
    set_ports(&mut list, &[8081, 8082, 8084, 8085]);
    assert_eq!(choices(&mut list), of(&[8081, 8082, 8084, 8085]));
    build(&mut list);
    assert_eq!(choices(&mut list), of(&[8081, 8082, 8084, 8085]));
    // A new server gets no keys until its points are made.
    set_ports(&mut list, &[8090, 8081, 8082, 8084, 8085]);
    assert_eq!(choices(&mut list), of(&[8081, 8082, 8084, 8085]));
    // A new configuration with the same method continues with the points.
    drop(list.set_method(Some(&ConsistentHash::default())));
    assert_eq!(choices(&mut list), of(&[8081, 8082, 8084, 8085]));
    build(&mut list);
    assert_eq!(choices(&mut list), of(&[8090, 8081, 8082, 8084, 8085]));
    // A change that is taken back needs no points.
    set_ports(&mut list, &[8081]);
    set_ports(&mut list, &[8090, 8081, 8082, 8084, 8085]);
    assert_eq!(choices(&mut list), of(&[8090, 8081, 8082, 8084, 8085]));
}

#[test]
fn the_sum_of_weights_is_limited() {
    for (sum, divisor) in [
        (0, 1),
        (65_535, 1),
        (65_536, 1),
        (65_537, 2),
        (131_072, 2),
        (131_073, 3),
    ] {
        assert_eq!(scale(sum), divisor, "{sum}");
    }
    for (weight, scale, count) in [
        (1, 1, 160),
        (3, 1, 480),
        (1, 2, 160),
        (3, 2, 160),
        (4, 2, 320),
    ] {
        assert_eq!(point_count(weight, scale), count, "{weight} {scale}");
    }
}

/// Weights, and the checksum of the servers of the keys 0 to 99,999, a byte each.
const RECORDED: &[(&[i64], u32)] = &[(&[5, 1, 2], 0xc648_b1b6), (&[1; 40], 0xd2c6_08e7)];
/// Keys, and the servers that their requests try, of five with equal weights.
const TRIED: &[(&str, &str)] = &[
    ("1", "8084 8085 8081 8082 8083"),
    ("2", "8084 8083 8085 8081 8082"),
    ("key", "8085 8082 8084 8081 8083"),
    ("a+b", "8083 8081 8082 8084 8085"),
];
