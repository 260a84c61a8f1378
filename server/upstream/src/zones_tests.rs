//! Tests of peers shared by threads and configurations.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;

use server_base::name_servers::NameServers;

use super::*;
use crate::balance::PickKey;
use crate::connector::{Lookup, Resolved};
use crate::local::LocalGroup;
use crate::peers::{PeerId, TriedPeers};
use crate::picker::{Outcome, Pick, Picker};
use crate::route::UpstreamAddr;
use crate::server::{Server, UnresolvedHost};

fn server(port: u16, weight: i64) -> Server {
    Server {
        name: Arc::from(format!("s{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], port).into())],
        weight,
        ..Server::new()
    }
}

/// Loads a configuration with one group, and returns its zone. It is served after [`Zone::peers`] and a commit.
fn load(zone: &str, group: &str, servers: &[Server]) -> Zone {
    let made = Zone::new(zone.as_bytes());
    adopt_all([(&made, group.as_bytes(), settings(servers))].into_iter());
    made
}

fn settings(servers: &[Server]) -> PeerSettings<'_> {
    PeerSettings {
        servers,
        ..PeerSettings::default()
    }
}

/// Serves a configuration with one group.
fn attach(group: &str, servers: &[Server]) -> Arc<SharedPeers> {
    let zone = load("zone", group, servers);
    let peers = zone.peers(&settings(servers));
    peers.commit(&settings(servers));
    Arc::clone(peers)
}

fn pick(peers: &SharedPeers) -> PeerId {
    let (mut tried, key) = (TriedPeers::default(), PickKey::default());
    let picked = peers.lock().pick(&mut tried, &key, 1_000_000);
    picked.expect("one is usable")
}

fn failures(peers: &SharedPeers, id: PeerId) -> Option<u64> {
    peers.lock().get(id).map(|peer| peer.failures().count())
}

#[test]
fn a_reload_finds_the_peers_of_a_group_by_its_name() {
    let before = attach("found again", &[server(1, 1), server(2, 1)]);
    let failed = pick(&before);
    before.lock().fail(failed, 1000);
    // The new configuration moves the failed server to the end, and replaces the second one.
    let after = attach("Found Again", &[server(3, 1), server(1, 1)]);
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(failures(&after, failed), Some(1));
    assert!(!Arc::ptr_eq(&after, &attach("another", &[server(1, 1)])));
    let zone = load("another zone", "found again", &[server(1, 1)]);
    assert!(!Arc::ptr_eq(&after, zone.peers(&settings(&[]))));
}

#[test]
fn a_load_that_fails_changes_nothing() {
    let serving = attach("failed load", &[server(1, 1), server(2, 1)]);
    let chosen = [pick(&serving), pick(&serving)];
    drop(load("zone", "failed load", &[server(3, 1)]));
    assert_eq!(chosen.map(|id| failures(&serving, id)), [Some(0), Some(0)]);
    attach("failed load", &[server(3, 1)]);
    assert_eq!(chosen.map(|id| failures(&serving, id)), [None, None]);
}

#[test]
fn peers_without_a_configuration_are_forgotten() {
    let id = {
        let peers = attach("forgotten", &[server(1, 1), server(2, 1)]);
        let id = pick(&peers);
        peers.lock().fail(id, 1000);
        id
    };
    let anew = attach("forgotten", &[server(1, 1), server(2, 1)]);
    assert_eq!(failures(&anew, id), Some(0));
}

#[test]
fn threads_choose_in_one_order() {
    let peers = attach("one order", &[server(1, 5), server(2, 1), server(3, 1)]);
    let picks = |peers: Arc<SharedPeers>| {
        move || {
            let all = (0..700).map(|_| {
                let id = pick(&peers);
                peers.lock().release(id);
                id.index()
            });
            all.collect::<Vec<_>>()
        }
    };
    let threads: Vec<_> = (0..4)
        .map(|_| thread::spawn(picks(Arc::clone(&peers))))
        .collect();
    let mut counts = [0; 3];
    for thread in threads {
        for index in thread.join().expect("no thread panics") {
            counts[index] += 1;
        }
    }
    assert_eq!(counts, [2000, 400, 400]);
}

#[test]
fn a_panic_inside_of_a_choice_leaves_a_group_that_chooses() {
    let servers: Vec<_> = (1..=64).map(|port| server(port, 1)).collect();
    let peers = attach("panic", &servers);
    let first = pick(&peers);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut list = peers.lock();
        list.corrupt();
        panic!("a test");
    }));
    assert!(panicked.is_err());
    let again: Vec<_> = (0..64).map(|_| pick(&peers)).collect();
    assert!(
        again
            .iter()
            .all(|id| again.iter().filter(|other| *other == id).count() == 1)
    );
    // Changes of a peer are noticed again.
    assert!(peers.lock().fail(first, 1000));
    assert!((0..64).all(|_| pick(&peers) != first));
}

/// Returns the server for a request of this group.
fn chosen(picker: &mut Picker) -> String {
    match picker.pick(1_000_000, &mut |_, _, _| unreachable!("all have addresses")) {
        Pick::Selected(chosen) => String::from_utf8_lossy(&chosen.server).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_place_among_max_conns_is_one_of_all_configurations() {
    let limited = |port| Server {
        max_conns: 1,
        ..server(port, 1)
    };
    let picker = |peers: Arc<SharedPeers>| {
        Picker::new(Rc::new(LocalGroup::of_shared(b"places", peers, (None, 0))))
    };
    let mut old = picker(attach("places", &[limited(1), limited(2)]));
    assert_eq!(chosen(&mut old), "s1");
    let peers = attach("places", &[limited(1), limited(4)]);
    let (mut new, mut other) = (picker(Arc::clone(&peers)), picker(peers));
    assert_eq!(chosen(&mut new), "s4");
    assert_eq!(chosen(&mut other), "None");
    old.finish(1_000_000, Outcome::Alive, None);
    assert_eq!(chosen(&mut other), "s1");
}

/// Picks a server, with this lookup of each name. Returns the server or the result.
fn pick_with(picker: &mut Picker, lookup: &Lookup, asked: &mut Vec<String>) -> String {
    let resolve = &mut |_: Option<&Arc<NameServers>>, name: &str, _| {
        asked.push(name.to_owned());
        lookup.clone()
    };
    match picker.pick(1_000_000, resolve) {
        Pick::Selected(chosen) => String::from_utf8_lossy(&chosen.name).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_request_waits_for_the_first_addresses_of_a_host() {
    let host = Server {
        unresolved: Some(UnresolvedHost::followed("app.test", 81, None)),
        ..Server::new()
    };
    let peers = attach("first", &[host]);
    let group = || {
        Rc::new(LocalGroup::of_shared(
            b"first",
            Arc::clone(&peers),
            (None, 0),
        ))
    };
    let (lookup, mut asked) = (Lookup::pending(), Vec::new());
    let mut picker = Picker::new(group());
    assert_eq!(pick_with(&mut picker, &lookup, &mut asked), "Wait");
    lookup.complete(Ok(Resolved {
        addresses: Rc::from([[192, 0, 2, 7].into()]),
        valid_until_ms: 0,
    }));
    assert_eq!(pick_with(&mut picker, &lookup, &mut asked), "192.0.2.7:81");
    // The main thread follows the host from then on.
    let id = peers.followed_hosts()[0].id;
    assert!(peers.set_found(id, Vec::new()).is_some());
    let mut later = Picker::new(group());
    assert_eq!(pick_with(&mut later, &lookup, &mut asked), "None");
    assert_eq!(asked, ["app.test"]);
}

#[test]
fn no_request_waits_after_a_failure() {
    let host = Server {
        unresolved: Some(UnresolvedHost::followed("app.test", 81, None)),
        ..Server::new()
    };
    let peers = attach("first failure", &[host]);
    let group = || {
        Rc::new(LocalGroup::of_shared(
            b"first",
            Arc::clone(&peers),
            (None, 0),
        ))
    };
    let (lookup, mut asked) = (Lookup::pending(), Vec::new());
    let mut picker = Picker::new(group());
    assert_eq!(pick_with(&mut picker, &lookup, &mut asked), "Wait");
    lookup.complete(Err("2: Server failure".to_owned()));
    for picker in [&mut picker, &mut Picker::new(group())] {
        assert_eq!(pick_with(picker, &lookup, &mut asked), "None");
    }
    assert_eq!(asked, ["app.test"]);
}

#[test]
fn a_request_waits_for_the_first_usable_host_alone() {
    let host = |name| Server {
        unresolved: Some(UnresolvedHost::followed(name, 81, None)),
        ..Server::new()
    };
    let peers = attach("first of two", &[host("slow.test"), host("fast.test")]);
    let group = LocalGroup::of_shared(b"first", Arc::clone(&peers), (None, 0));
    let mut picker = Picker::new(Rc::new(group));
    let (slow, fast) = (Lookup::pending(), Lookup::pending());
    let mut pick = || {
        let resolve = &mut |_: Option<&Arc<NameServers>>, name: &str, _| match name {
            "slow.test" => slow.clone(),
            _ => fast.clone(),
        };
        match picker.pick(1_000_000, resolve) {
            Pick::Selected(chosen) => String::from_utf8_lossy(&chosen.name).into_owned(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(pick(), "Wait");
    fast.complete(Ok(Resolved {
        addresses: Rc::from([[192, 0, 2, 7].into()]),
        valid_until_ms: 0,
    }));
    assert_eq!(pick(), "192.0.2.7:81");
    // A late answer does not replace a later one, which the main thread has.
    for host in peers.followed_hosts() {
        assert!(peers.set_found(host.id, Vec::new()).is_some());
    }
    slow.complete(Ok(Resolved {
        addresses: Rc::from([[192, 0, 2, 9].into()]),
        valid_until_ms: 0,
    }));
    assert_eq!(pick(), "None");
}
