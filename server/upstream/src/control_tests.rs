//! Servers of a shared group under control: views, counters, removed servers with requests, addresses of hosts.

use std::rc::Rc;

use server_base::handshakes::HandshakeResult;

use super::*;
use crate::found::FoundAddress;
use crate::health::active::{CheckSpec, Initial};
use crate::local::LocalGroup;
use crate::peer_stats::AttemptFigures;
use crate::picker::{Outcome, Pick, Picker};
use crate::server::UnresolvedHost;
use crate::shared::PeerSettings;

fn server(addr: &str) -> Server {
    Server {
        name: Arc::from(addr.as_bytes()),
        addresses: vec![UpstreamAddr::Inet(addr.parse().expect("an address"))],
        ..Server::new()
    }
}

fn shared(addrs: &[&str]) -> Arc<SharedPeers> {
    let servers: Vec<Server> = addrs.iter().map(|addr| server(addr)).collect();
    shared_of(&servers)
}

fn shared_of(servers: &[Server]) -> Arc<SharedPeers> {
    Arc::new(SharedPeers::new(&PeerSettings {
        servers,
        method: None,
        checks: Arc::default(),
    }))
}

/// Chooses a server of the group; returns its address.
fn pick(peers: &Arc<SharedPeers>, now_ms: u64) -> (Picker, String) {
    let group = LocalGroup::of_shared(b"g", Arc::clone(peers), (None, 0));
    let mut picker = Picker::new(Rc::new(group));
    let picked = picker.pick(now_ms, &mut |_, _, _| panic!("no name"));
    match picked {
        Pick::Selected(peer) => (picker, peer.addr.to_string()),
        other => panic!("{other:?}"),
    }
}

fn states(peers: &SharedPeers, now_ms: u64) -> Vec<PeerState> {
    let view = peers.group_view(now_ms);
    view.peers.iter().map(|peer| peer.state).collect()
}

const FIGURES: AttemptFigures = AttemptFigures {
    status: 404,
    head_ms: Some(3),
    response_ms: Some(9),
    sent_bytes: 10,
    received_bytes: 20,
    handshake: Some(HandshakeResult::Resumed),
};

#[test]
fn attempts_are_counted_with_their_server() {
    let peers = shared(&["127.0.0.1:1", "127.0.0.1:2"]);
    let (mut picker, first) = pick(&peers, 5000);
    assert_eq!(first, "127.0.0.1:1");
    let active = &peers.group_view(5000).peers[0];
    assert_eq!((active.active, active.stats.requests), (1, 1));
    assert!(picker.wants_figures());
    picker.set_figures(FIGURES);
    picker.finish(5009, Outcome::Alive, None);
    let view = peers.group_view(5010);
    let (first, second) = (&view.peers[0], &view.peers[1]);
    assert_eq!((first.active, first.stats.codes.total()), (0, 1));
    assert_eq!(
        (first.stats.sent_bytes, first.stats.received_bytes),
        (10, 20)
    );
    assert_eq!(
        (first.stats.selected_ms, first.stats.response_ms()),
        (Some(5000), Some(9))
    );
    let handshakes = first.stats.handshakes;
    assert_eq!((handshakes.succeeded, handshakes.resumed), (1, 1));
    assert_eq!(second.stats, PeerStats::default());
    peers.reset_stats(6000);
    assert_eq!(peers.group_view(6000).peers[0].stats.requests, 0);
}

#[test]
fn failed_servers_are_unavailable_until_they_are_tried_again() {
    let peers = shared(&["127.0.0.1:1", "127.0.0.1:2"]);
    let (mut picker, _) = pick(&peers, 1_000_000);
    assert!(picker.finish(1_000_000, Outcome::Failed, None));
    let (up, out) = (PeerState::Up, PeerState::Unavailable);
    assert_eq!(states(&peers, 1_005_000), [out, up]);
    let stats = &peers.group_view(1_005_000).peers[0].stats;
    assert_eq!((stats.fails, stats.unavailable), (1, 1));
    assert_eq!(stats.downtime_ms(1_005_000), 5000);
    // fail_timeout is 10 s.
    assert_eq!(states(&peers, 1_011_000), [up, up]);
    // The failure has lowered its weight, so it is not the next one.
    let mut picked = (0..4).map(|_| pick(&peers, 1_011_000));
    let (picker, _) = picked
        .find(|(_, addr)| addr == "127.0.0.1:1")
        .expect("its turn");
    let stats = &peers.group_view(1_020_000).peers[0].stats;
    assert_eq!((stats.requests, stats.downtime_ms(1_020_000)), (2, 11_000));
    drop(picker);
}

/// A server that has failed is tried again after `fail_timeout`.
#[test]
fn a_cut_response_is_a_success_and_an_attempt_without_an_answer_has_no_result() {
    for (is_cut, second_failure) in [(true, false), (false, true)] {
        let peers = shared_of(&["127.0.0.1:1", "127.0.0.1:2"].map(|addr| Server {
            max_fails: 2,
            ..server(addr)
        }));
        let first = |now_ms| {
            let mut all = (0..8).map(|_| pick(&peers, now_ms));
            let found = all.find(|(_, addr)| addr == "127.0.0.1:1");
            found.expect("its turn").0
        };
        first(1_000_000).finish(1_000_000, Outcome::Failed, None);
        let mut picker = first(1_011_000);
        picker.set_figures(FIGURES);
        match is_cut {
            true => drop(picker.finish(1_012_000, Outcome::Cut, None)),
            false => picker.give_up(),
        }
        let stats = &peers.group_view(1_012_000).peers[0].stats;
        assert_eq!((stats.codes.total(), stats.sent_bytes), (1, 10));
        let is_out = first(1_013_000).finish(1_013_000, Outcome::Failed, None);
        assert_eq!(is_out, second_failure, "{is_cut}");
    }
}

#[test]
fn time_in_which_checks_exclude_a_server_is_downtime() {
    let check = CheckSpec {
        id: 7,
        fails: 1,
        passes: 1,
        initial: Initial::Checking,
    };
    let settings = PeerSettings {
        servers: &[server("127.0.0.1:1")],
        checks: Arc::from([check]),
        ..PeerSettings::default()
    };
    let peers = SharedPeers::new(&settings);
    let id = peers.lock().iter().next().expect("it is there").0;
    let record = |passed, now_ms| {
        let change = peers.lock().record_check(id, 7, passed, now_ms);
        change.expect("it changes the state");
    };
    let stats = |now_ms| {
        let stats = &peers.group_view(now_ms).peers[0].stats;
        (
            stats.down_start_ms,
            stats.downtime_ms(now_ms),
            stats.unavailable,
        )
    };
    // From the first look at a server that is being checked.
    assert_eq!(stats(1000), (Some(1000), 0, 0));
    record(true, 1500);
    assert_eq!(stats(2000), (Some(1000), 500, 0));
    record(false, 3000);
    assert_eq!(stats(3100), (Some(3000), 600, 0));
    // After failed requests, a check alone does not end it.
    peers.lock().fail(id, 3);
    peers.lock().count_failed(id, true, 3200);
    record(true, 4000);
    assert_eq!(stats(4000), (Some(3000), 1500, 0));
    peers.lock().reset_failures(id);
    peers.lock().count_chosen(id, 5000);
    assert_eq!(stats(9000), (Some(3000), 2500, 0));
    // A server that is down has no state of checks, and a configuration may have no checks.
    record(false, 10_000);
    let server_id = peers.server_views()[0].id;
    let down = |is_down| peers.change(server_id, |server| server.is_down = is_down);
    assert_eq!(down(true), Ok(()));
    assert_eq!(stats(10_500), (Some(10_000), 3000, 0));
    assert_eq!(down(false), Ok(()));
    assert_eq!(stats(11_000), (Some(11_000), 3000, 0));
    peers.commit(&PeerSettings {
        checks: Arc::default(),
        ..settings
    });
    assert_eq!(stats(12_000), (Some(11_000), 4000, 0));
    assert_eq!(stats(13_000), (Some(11_000), 4000, 0));
}

#[test]
fn removed_servers_finish_their_requests() {
    let peers = shared(&["127.0.0.1:1", "127.0.0.1:2"]);
    let (picker, _) = pick(&peers, 1000);
    let id = peers.server_views()[0].id;
    assert_eq!(peers.remove_server(id), Ok(()));
    assert_eq!(peers.remove_server(id), Err(ChangeError::NotFound));
    let view = peers.group_view(1000);
    assert_eq!((view.peers.len(), view.zombies), (1, 1));
    // Another server gets the place of the removed one.
    assert!(peers.add_unique(server("127.0.0.1:3")).is_ok());
    drop(picker);
    let view = peers.group_view(1000);
    assert_eq!((view.peers[1].active, view.zombies), (0, 0));
}

#[test]
fn servers_are_unique_by_address() {
    let peers = shared(&["127.0.0.1:1"]);
    let again = peers.add_unique(server("127.0.0.1:1"));
    assert_eq!(again, Err(AddError::Exists));
    let other = peers.add_unique(server("127.0.0.1:2"));
    assert!(other.is_ok_and(|id| peers.server_views()[1].id == id));
    let host = |port| Server {
        name: Arc::from(&b"a"[..]),
        unresolved: Some(UnresolvedHost::followed("a", port, None)),
        ..Server::new()
    };
    assert!(peers.add_unique(host(1)).is_ok());
    assert_eq!(peers.add_unique(host(1)), Err(AddError::Exists));
    assert!(peers.add_unique(host(2)).is_ok());
}

#[test]
fn addresses_of_a_host_cannot_be_changed() {
    let peers = shared(&["127.0.0.1:1"]);
    let host = Server {
        name: Arc::from(&b"a:80"[..]),
        unresolved: Some(UnresolvedHost::followed("a", 80, None)),
        weight: 3,
        ..Server::new()
    };
    let host = peers.add_unique(host).expect("the group has room");
    let found = ["127.0.0.2", "127.0.0.3"].map(|ip| FoundAddress {
        ip: ip.parse().expect("an address"),
        record: None,
    });
    assert!(peers.set_found(host, found.to_vec()).is_some());
    let views = peers.server_views();
    let children: Vec<&ServerView> = views
        .iter()
        .filter(|view| view.parent == Some(host))
        .collect();
    assert_eq!(children.len(), 2);
    assert_eq!(children[0].server.addresses[0].to_string(), "127.0.0.2:80");
    assert_eq!(children[0].server.weight, 3);
    let id = children[0].id;
    let down = |server: &mut Server| server.is_down = true;
    assert_eq!(peers.change(id, down), Err(ChangeError::Resolved));
    assert_eq!(peers.remove_server(id), Err(ChangeError::Resolved));
    assert_eq!(peers.server_views(), views, "nothing was changed");
    assert_eq!(peers.change(host, down), Ok(()));
    let (up, down) = (PeerState::Up, PeerState::Down);
    assert_eq!(states(&peers, 1000), [up, down, down]);
    assert_eq!(peers.remove_server(host), Ok(()));
    assert_eq!(peers.group_view(1000).peers.len(), 1);
}

#[test]
fn a_changed_server_has_its_new_name_at_the_next_choice() {
    let peers = shared(&["127.0.0.1:1"]);
    let group = Rc::new(LocalGroup::of_shared(b"g", Arc::clone(&peers), (None, 0)));
    let name = || {
        let mut picker = Picker::new(Rc::clone(&group));
        match picker.pick(1000, &mut |_, _, _| panic!("no name")) {
            Pick::Selected(peer) => String::from_utf8_lossy(&peer.server).into_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name(), "127.0.0.1:1");
    let id = peers.server_views()[0].id;
    let renamed = |server: &mut Server| server.name = Arc::from(*b"renamed");
    assert_eq!(peers.change(id, renamed), Ok(()));
    assert_eq!(name(), "renamed");
}
