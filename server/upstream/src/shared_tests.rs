//! Work of a method on a changed list is done without the lock of the list, and choices go on meanwhile.

use std::sync::Weak;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::balance::{Balance, Build, Candidates, PickKey};
use crate::peer::Peer;
use crate::peers::TriedPeers;
use crate::route::UpstreamAddr;
use crate::server::UnresolvedHost;

/// A method with work on each changed list.
#[derive(Debug, Default)]
struct Laborious(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    peers: OnceLock<Weak<SharedPeers>>,
    /// Works that were done while the list was not locked.
    without_lock: AtomicUsize,
    with_lock: AtomicUsize,
}

#[derive(Debug)]
struct State {
    counts: Arc<Counts>,
    next: Option<Arc<Work>>,
}

#[derive(Debug)]
struct Work(Arc<Counts>);

impl Method for Laborious {
    fn name(&self) -> &'static str {
        "laborious"
    }

    fn allows_backup(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State {
            counts: Arc::clone(&self.0),
            next: None,
        })
    }
}

impl Balance for State {
    fn set_list(&mut self, _: &[Peer], _: &[u32]) {
        self.next = Some(Arc::new(Work(Arc::clone(&self.counts))));
    }

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        candidates.turn()
    }

    fn build(&self) -> Option<Arc<dyn Build>> {
        let next = self.next.as_ref()?;
        Some(Arc::clone(next) as Arc<dyn Build>)
    }

    fn use_build(&mut self) {
        self.next = None;
    }
}

impl Build for Work {
    fn run(&self) {
        let Some(peers) = self.0.peers.get().and_then(Weak::upgrade) else {
            return;
        };
        let is_free = peers.list.try_lock().is_ok();
        let counter = match is_free {
            true => &self.0.without_lock,
            false => &self.0.with_lock,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counts {
    /// Returns the number of works so far, of which none was done under the lock.
    fn done(&self) -> usize {
        assert_eq!(self.with_lock.load(Ordering::Relaxed), 0);
        self.without_lock.load(Ordering::Relaxed)
    }
}

fn server(port: u16) -> Server {
    Server {
        name: Arc::from(format!("s{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], port).into())],
        ..Server::new()
    }
}

fn host() -> Server {
    Server {
        unresolved: Some(UnresolvedHost::followed("app.test", 81, None)),
        ..Server::new()
    }
}

/// Makes shared peers of these servers, and the counts of their method.
fn group(servers: &[Server], method: &Laborious) -> (Arc<SharedPeers>, Arc<Counts>) {
    let counts = Arc::clone(&method.0);
    let peers = Arc::new(SharedPeers::new(&settings(servers, method)));
    let _ = counts.peers.set(Arc::downgrade(&peers));
    (peers, counts)
}

fn settings<'a>(servers: &'a [Server], method: &'a Laborious) -> PeerSettings<'a> {
    PeerSettings {
        servers,
        method: Some(method),
        ..PeerSettings::default()
    }
}

fn is_served(peers: &SharedPeers) -> bool {
    let (mut tried, key) = (TriedPeers::default(), PickKey::default());
    let picked = peers.lock().pick(&mut tried, &key, 1_000_000);
    picked.is_some()
}

#[test]
fn each_change_does_its_work_without_the_lock() {
    let method = Laborious::default();
    let servers = [server(1), server(2), host()];
    let (peers, counts) = group(&servers, &method);
    let id = peers.add(server(3)).expect("there is room");
    assert_eq!(counts.done(), 1);
    assert!(peers.add_unique(server(4)).is_ok());
    assert_eq!(counts.done(), 2);
    assert!(peers.modify(id, |server| server.weight = 2));
    assert_eq!(counts.done(), 3);
    assert!(peers.change(id, |server| server.weight = 3).is_ok());
    assert_eq!(counts.done(), 4);
    assert!(peers.remove_server(id).is_ok());
    assert_eq!(counts.done(), 5);
    let found = FoundAddress {
        ip: [192, 0, 2, 7].into(),
        record: None,
    };
    let id = peers.followed_hosts()[0].id;
    assert!(peers.set_found(id, vec![found]).is_some());
    assert_eq!(counts.done(), 6);
    peers.commit(&settings(&servers[..1], &method));
    assert_eq!(counts.done(), 7);
    assert!(is_served(&peers));
}

#[test]
fn the_main_thread_does_the_work_of_changes_once() {
    let method = Laborious::default();
    let (peers, counts) = group(&[server(1), server(2)], &method);
    let notified = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&notified);
    let notify: Notify = Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    peers.set_notify(&notify);
    for port in 3..6 {
        peers.add(server(port)).expect("there is room");
        assert!(is_served(&peers), "choices do not wait");
    }
    assert_eq!(counts.done(), 0);
    assert!(notified.load(Ordering::Relaxed) >= 3);
    peers.build();
    peers.build();
    assert_eq!(counts.done(), 1, "one work for three changes");
}
