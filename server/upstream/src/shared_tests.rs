//! Tests of peers shared by threads and configurations.

use std::rc::Rc;
use std::thread;

use super::*;
use crate::balance::PickKey;
use crate::local::LocalGroup;
use crate::peers::{PeerId, TriedPeers};
use crate::picker::{Outcome, Pick, Picker};
use crate::route::UpstreamAddr;

fn server(port: u16, weight: i64) -> Server {
    Server {
        name: Arc::from(format!("s{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], port).into())],
        weight,
        ..Server::new()
    }
}

fn pick(peers: &SharedPeers) -> PeerId {
    let key = PickKey::default();
    let picked = peers
        .lock()
        .pick(&mut TriedPeers::default(), &key, 1_000_000);
    picked.expect("one is usable")
}

#[test]
fn a_reload_finds_the_peers_of_a_group_by_its_name() {
    let before = attach(b"found again", &[server(1, 1), server(2, 1)]);
    let failed = pick(&before);
    before.lock().fail(failed, 1000);
    // The new configuration moves the failed server to the end, and replaces the second one.
    let after = attach(b"Found Again", &[server(3, 1), server(1, 1)]);
    assert!(Arc::ptr_eq(&before, &after));
    let failures = after
        .lock()
        .get(failed)
        .expect("it stays")
        .failures()
        .clone();
    assert!(failures.has_failed(1000));
    assert!(!Arc::ptr_eq(&after, &attach(b"another", &[server(1, 1)])));
}

#[test]
fn peers_without_a_configuration_are_forgotten() {
    let id = {
        let peers = attach(b"forgotten", &[server(1, 1), server(2, 1)]);
        let id = pick(&peers);
        peers.lock().fail(id, 1000);
        id
    };
    let anew = attach(b"forgotten", &[server(1, 1), server(2, 1)]);
    let failures = anew.lock().get(id).expect("it is there").failures().clone();
    assert_eq!(failures.count(), 0);
}

#[test]
fn threads_choose_in_one_order() {
    let peers = attach(b"one order", &[server(1, 5), server(2, 1), server(3, 1)]);
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
    let picker =
        |peers: Arc<SharedPeers>| Picker::new(Rc::new(LocalGroup::of_shared(b"places", peers)));
    let mut old = picker(attach(b"places", &[limited(1), limited(2)]));
    assert_eq!(chosen(&mut old), "s1");
    let peers = attach(b"places", &[limited(1), limited(4)]);
    let (mut new, mut other) = (picker(Arc::clone(&peers)), picker(peers));
    assert_eq!(chosen(&mut new), "s4");
    assert_eq!(chosen(&mut other), "None");
    old.finish(1_000_000, Outcome::Alive, None);
    assert_eq!(chosen(&mut other), "s1");
}
