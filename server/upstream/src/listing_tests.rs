//! Reads of a shared group: steps of bounded size, the lock free between two of them, changes meanwhile.

use super::*;
use crate::balance::PickKey;
use crate::found::FoundAddress;
use crate::peers::TriedPeers;
use crate::route::UpstreamAddr;
use crate::server::UnresolvedHost;
use crate::shared::PeerSettings;

/// A group with as many servers, whose ports count from 1.
fn group(servers: usize) -> SharedPeers {
    let servers: Vec<Server> = (1..=servers).map(|port| server(port as u16)).collect();
    SharedPeers::new(&PeerSettings {
        servers: &servers,
        method: None,
        checks: Arc::default(),
    })
}

fn server(port: u16) -> Server {
    Server {
        name: Arc::from(format!("s{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([127, 0, 0, 1], port).into())],
        ..Server::new()
    }
}

/// Locks the peers in another thread, which would wait forever if this thread held the lock.
fn lock_elsewhere(peers: &SharedPeers) {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drop(peers.lock()));
        assert!(other.join().is_ok());
    });
}

#[test]
fn no_lock_is_held_for_more_than_a_step() {
    for (servers, steps) in [
        (0, vec![]),
        (1, vec![1]),
        (PEERS_A_LOCK - 1, vec![PEERS_A_LOCK - 1]),
        (PEERS_A_LOCK, vec![PEERS_A_LOCK]),
        (PEERS_A_LOCK + 1, vec![PEERS_A_LOCK, 1]),
    ] {
        let peers = group(servers);
        let mut sizes = Vec::new();
        let mut ids = Vec::new();
        for step in peers.peer_views(0) {
            lock_elsewhere(&peers);
            sizes.push(step.len());
            ids.extend(step.iter().map(|view| view.id.0));
        }
        assert_eq!(sizes, steps);
        let mut locked = Vec::new();
        peers.in_steps(&ids, |_, step| locked.push(step.len()));
        assert_eq!(locked, steps);
        assert_eq!(ids, (0..servers as u32).collect::<Vec<_>>());
        assert_eq!(peers.server_views().len(), servers);
    }
}

#[test]
fn resets_and_lists_of_servers_pass_the_bound_of_a_step() {
    let count = 2 * PEERS_A_LOCK + 1;
    let peers = group(count);
    let mut list = peers.lock();
    for _ in 0..count {
        let id = list.pick(&mut TriedPeers::default(), &PickKey::default(), 0);
        list.count_chosen(id.expect("one is free"), 0);
    }
    drop(list);
    let requests = |peers: &SharedPeers| -> u64 {
        let all = peers.peer_views(0).flatten();
        all.map(|view| view.stats.requests).sum()
    };
    assert_eq!(requests(&peers), count as u64);
    peers.reset_stats(0);
    assert_eq!(requests(&peers), 0);
    // Addresses of a host need the lock of the peers.
    let host = Server {
        name: Arc::from(&b"a.test"[..]),
        unresolved: Some(UnresolvedHost::followed("a.test", 80, None)),
        ..Server::new()
    };
    let id = peers.add(host).expect("there is room");
    let addr = |n: usize| FoundAddress {
        ip: [10, 0, (n >> 8) as u8, n as u8].into(),
        record: None,
    };
    peers.set_found(id, (0..count).map(addr).collect());
    let views = peers.server_views();
    assert_eq!(views.len(), 2 * count + 1);
    let last = views.last().expect("a child");
    assert_eq!(last.parent, Some(id));
    assert_eq!(peers.server_view(last.id).as_ref(), Some(last));
    assert_eq!(peers.server_view(id).map(|view| view.id), Some(id));
    assert_eq!(peers.server_view(MemberId(u32::MAX)), None);
}

#[test]
fn changes_between_two_steps_are_safe() {
    let peers = group(2 * PEERS_A_LOCK);
    let mut steps = peers.peer_views(0);
    assert_eq!(steps.next().map(|step| step.len()), Some(PEERS_A_LOCK));
    let removed = MemberId(PEERS_A_LOCK as u32);
    assert!(peers.remove(removed) && peers.remove(MemberId(0)));
    peers.add(server(9000)).expect("there is room");
    let step = steps.next().expect("a second step");
    assert_eq!(step.len(), PEERS_A_LOCK - 1, "without the removed server");
    assert_eq!(step[0].id, MemberId(PEERS_A_LOCK as u32 + 1));
    assert!(steps.next().is_none(), "without the added server");
}
