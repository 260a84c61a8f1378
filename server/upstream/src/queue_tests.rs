//! Requests that wait for a server, with the group's limits of connections and failures.

use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use server_base::waker::{WakeKey, WakeQueue};

use super::*;
use crate::group::Server;
use crate::local::LocalGroup;
use crate::peers::PeerList;
use crate::picker::{Outcome, Pick, Picker};
use crate::route::UpstreamAddr;
use crate::shared::{PeerSettings, SharedPeers};

/// A group, the wakes of its thread, and the time.
struct Bench {
    group: Rc<LocalGroup>,
    wakes: WakeQueue,
    now_ms: u64,
}

/// A request with a waker of its own.
struct Request {
    picker: Picker,
    waker: Waker,
    retry_until_ms: u64,
}

impl Bench {
    fn new(servers: &[Server], requests: usize) -> Self {
        let peers = Peers::local(PeerList::of(servers));
        Self::with(peers, requests)
    }

    fn with(peers: Peers, requests: usize) -> Self {
        let limits = QueueLimits {
            requests,
            timeout_ms: 60_000,
        };
        Self {
            group: Rc::new(LocalGroup::queued(peers, limits)),
            wakes: WakeQueue::default(),
            now_ms: 1_000_000,
        }
    }

    fn request(&self, stream: u32) -> Request {
        Request {
            picker: Picker::new(Rc::clone(&self.group)),
            waker: Waker::new(WakeKey { owner: 1, stream }, &self.wakes),
            retry_until_ms: u64::MAX,
        }
    }

    /// Chooses a server for a request, or lets it wait. Returns the port, or the result.
    fn try_choose(&self, request: &mut Request) -> String {
        let mut resolve = |_: Option<&Arc<_>>, _: &str, _| unreachable!("no name is unknown");
        match request.picker.pick(self.now_ms, &mut resolve) {
            Pick::Selected(peer) => {
                let queued_ms = request.picker.leave_queue(self.now_ms);
                let port = String::from_utf8_lossy(&peer.name[10..]).into_owned();
                queued_ms.map_or(port.clone(), |ms| format!("{port} after {ms}"))
            }
            Pick::None => {
                let waker = request.waker.clone();
                match request
                    .picker
                    .queue(self.now_ms, request.retry_until_ms, || waker)
                {
                    Queued::Until(until_ms) => format!("waits {}", until_ms - self.now_ms),
                    Queued::Never => "never".to_owned(),
                    Queued::Full => "full".to_owned(),
                    Queued::TimedOut => "timed out".to_owned(),
                    Queued::Expired => "expired".to_owned(),
                }
            }
            other => format!("{other:?}"),
        }
    }

    fn answer(&self, request: &mut Request, outcome: Outcome) {
        request.picker.finish(self.now_ms, outcome, None);
    }

    /// Returns the streams of requests that were woken since the last call.
    fn woken(&self) -> Vec<u32> {
        self.wakes.receive();
        self.wakes.take().iter().map(|key| key.stream).collect()
    }
}

fn server(port: u16, max_conns: u64) -> Server {
    Server {
        addresses: vec![UpstreamAddr::Inet(([127, 0, 0, 1], port).into())],
        max_conns,
        ..Server::new()
    }
}

#[test]
fn requests_wait_in_order_for_the_end_of_a_connection() {
    let mut bench = Bench::new(&[server(1, 1), server(2, 1)], 2);
    let [mut a, mut b, mut c, mut d, mut e] = [1, 2, 3, 4, 5].map(|n| bench.request(n));
    assert_eq!(bench.try_choose(&mut a), "1");
    assert_eq!(bench.try_choose(&mut b), "2");
    assert_eq!(bench.try_choose(&mut c), "waits 1000");
    assert_eq!(bench.try_choose(&mut d), "waits 60000");
    assert_eq!(bench.try_choose(&mut e), "full");
    assert_eq!(bench.woken(), [0; 0]);
    bench.now_ms += 7;
    bench.answer(&mut a, Outcome::Alive);
    assert_eq!(bench.woken(), [3]);
    // A new request comes behind those that wait.
    assert_eq!(bench.try_choose(&mut e), "full");
    assert_eq!(bench.try_choose(&mut d), "waits 59993");
    assert_eq!(bench.try_choose(&mut c), "1 after 7");
    assert_eq!(bench.woken(), [4], "there may be another server");
    assert_eq!(bench.try_choose(&mut d), "waits 1000");
    assert_eq!(bench.try_choose(&mut e), "waits 60000");
    // A request that is given up leaves its connection and its place.
    drop(b);
    assert_eq!(bench.woken(), [4]);
    drop(d);
    assert_eq!(bench.woken(), [5]);
    assert_eq!(bench.try_choose(&mut e), "2 after 0");
}

#[test]
fn a_wait_has_an_end() {
    let mut bench = Bench::new(&[server(1, 1)], 1);
    let [mut a, mut b] = [1, 2].map(|n| bench.request(n));
    assert_eq!(bench.try_choose(&mut a), "1");
    assert_eq!(bench.try_choose(&mut b), "waits 1000");
    bench.now_ms += 59_500;
    assert_eq!(bench.try_choose(&mut b), "waits 500");
    bench.now_ms += 499;
    assert_eq!(bench.try_choose(&mut b), "waits 1");
    bench.now_ms += 1;
    assert_eq!(bench.try_choose(&mut b), "timed out");
    assert_eq!(b.picker.leave_queue(bench.now_ms), Some(60_000));
    assert_eq!(b.picker.leave_queue(bench.now_ms), None);
}

#[test]
fn a_server_that_may_be_tried_again_ends_a_wait() {
    let mut bench = Bench::new(&[server(1, 0), server(2, 0)], 9);
    let mut failing = bench.request(1);
    for port in ["1", "2"] {
        assert_eq!(bench.try_choose(&mut failing), port);
        bench.answer(&mut failing, Outcome::Failed);
    }
    assert_eq!(
        bench.try_choose(&mut failing),
        "waits 1000",
        "it has tried both"
    );
    let mut other = bench.request(2);
    assert_eq!(bench.try_choose(&mut other), "waits 60000");
    bench.now_ms += 11_000;
    assert_eq!(bench.try_choose(&mut failing), "waits 1000");
    assert_eq!(
        bench.woken(),
        [2],
        "the next one may use what this one cannot"
    );
    assert_eq!(bench.try_choose(&mut other), "2 after 11000");
    // Requests that have tried nothing pass those that are restricted.
    assert_eq!(bench.try_choose(&mut bench.request(3)), "1");
}

#[test]
fn a_waiting_request_that_tried_no_server_gets_a_primary_one() {
    let backup = Server {
        is_backup: true,
        ..server(2, 1)
    };
    let bench = Bench::new(&[server(1, 1), backup], 9);
    let [mut a, mut b, mut c] = [1, 2, 3].map(|n| bench.request(n));
    assert_eq!(bench.try_choose(&mut a), "1");
    assert_eq!(bench.try_choose(&mut b), "2");
    assert_eq!(bench.try_choose(&mut c), "waits 1000");
    bench.answer(&mut a, Outcome::Alive);
    assert_eq!(bench.try_choose(&mut c), "1 after 0");
}

#[test]
fn a_connection_that_ends_on_another_thread_ends_a_wait() {
    let peers = Arc::new(SharedPeers::new(&PeerSettings {
        servers: &[server(1, 1)],
        ..PeerSettings::default()
    }));
    let other = Bench::with(Peers::Shared(Arc::clone(&peers)), 1);
    let bench = Bench::with(Peers::Shared(peers), 1);
    let [mut a, mut b] = [other.request(1), bench.request(2)];
    assert_eq!(other.try_choose(&mut a), "1");
    assert_eq!(bench.try_choose(&mut b), "waits 1000");
    drop(a);
    assert_eq!(bench.woken(), [2]);
    assert_eq!(bench.try_choose(&mut b), "1 after 0");
    assert_eq!(bench.group.queue.as_ref().map(|queue| queue.len()), Some(0));
}

#[test]
fn a_group_without_a_queue_has_no_waits() {
    let mut picker = Picker::new(Rc::new(LocalGroup::of(b"g", &[server(1, 1)], (None, 0))));
    let waker = || unreachable!("it does not wait");
    assert_eq!(picker.queue(0, u64::MAX, waker), Queued::Never);
    assert_eq!(picker.leave_queue(0), None);
}

#[test]
fn queues_of_a_shared_group_are_counted() {
    let settings = PeerSettings {
        servers: &[server(1, 1)],
        ..PeerSettings::default()
    };
    let shared = Arc::new(SharedPeers::new(&settings));
    // Two threads, each with a queue.
    let benches = [(); 2].map(|()| Bench::with(Peers::Shared(Arc::clone(&shared)), 1));
    let counts = || {
        let counts = shared.queue_counts();
        (counts.waiting(), counts.overflows())
    };
    let mut first = benches[0].request(1);
    assert_eq!(benches[0].try_choose(&mut first), "1");
    let mut waiting = benches.each_ref().map(|bench| bench.request(2));
    for (bench, request) in benches.iter().zip(&mut waiting) {
        assert!(bench.try_choose(request).starts_with("waits"));
        assert!(
            bench.try_choose(request).starts_with("waits"),
            "the same place"
        );
    }
    assert_eq!(counts(), (2, 0));
    assert_eq!(benches[0].try_choose(&mut benches[0].request(3)), "full");
    assert_eq!(counts(), (2, 1));
    let [one, mut other] = waiting;
    drop(one);
    assert_eq!(counts(), (1, 1));
    drop(first);
    assert_eq!(benches[1].try_choose(&mut other), "1 after 0");
    assert_eq!(counts(), (0, 1));
    shared.reset_stats(0);
    assert_eq!(counts(), (0, 0));
}

fn shared(server: Server) -> Arc<SharedPeers> {
    Arc::new(SharedPeers::new(&PeerSettings {
        servers: &[server],
        ..PeerSettings::default()
    }))
}

#[test]
fn a_connection_that_ends_between_a_choice_and_its_wait_ends_the_wait() {
    let peers = shared(server(1, 1));
    let other = Bench::with(Peers::Shared(Arc::clone(&peers)), 1);
    let bench = Bench::with(Peers::Shared(peers), 1);
    let [mut a, mut b] = [other.request(1), bench.request(2)];
    assert_eq!(other.try_choose(&mut a), "1");
    let mut resolve = |_: Option<&Arc<_>>, _: &str, _| unreachable!("no name is unknown");
    let picked = b.picker.pick(bench.now_ms, &mut resolve);
    assert!(matches!(picked, Pick::None), "{picked:?}");
    drop(a);
    let waker = b.waker.clone();
    let queued = b.picker.queue(bench.now_ms, u64::MAX, || waker);
    assert_eq!(queued, Queued::Until(bench.now_ms + RETRY_MS));
    assert_eq!(bench.woken(), [2]);
    assert_eq!(bench.try_choose(&mut b), "1 after 0");
    // Without such an event there is no wake.
    let mut c = bench.request(3);
    assert_eq!(bench.try_choose(&mut c), "waits 1000");
    assert_eq!(bench.woken(), [0; 0]);
}

#[test]
fn threads_that_share_one_connection_never_miss_its_end() {
    let peers = &shared(server(1, 1));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (sender, wakes) = mpsc::channel();
                let bench = Bench {
                    wakes: WakeQueue::new(move || {
                        // The test may have failed.
                        let _ = sender.send(());
                    }),
                    ..Bench::with(Peers::Shared(Arc::clone(peers)), 1)
                };
                for _ in 0..2_000 {
                    let mut request = bench.request(1);
                    while bench.try_choose(&mut request).starts_with("waits") {
                        // No timer of the queue: a missed wake is the end of the test.
                        let woken = wakes.recv_timeout(Duration::from_secs(30));
                        woken.expect("a connection has ended");
                        bench.woken();
                    }
                }
            });
        }
    });
}

#[test]
fn a_wait_ends_with_the_time_for_further_attempts() {
    let mut bench = Bench::new(&[server(1, 1)], 9);
    let [mut a, mut b, mut c] = [1, 2, 3].map(|n| bench.request(n));
    assert_eq!(bench.try_choose(&mut a), "1");
    b.retry_until_ms = bench.now_ms + 300;
    c.retry_until_ms = bench.now_ms + 60_001;
    assert_eq!(bench.try_choose(&mut b), "waits 300");
    assert_eq!(bench.try_choose(&mut c), "waits 60000");
    bench.now_ms += 299;
    assert_eq!(bench.try_choose(&mut b), "waits 1");
    bench.now_ms += 1;
    assert_eq!(bench.try_choose(&mut b), "expired");
    drop(b);
    bench.now_ms += 59_700;
    assert_eq!(c.picker.queue_end_ms(), Some(bench.now_ms));
    assert_eq!(bench.try_choose(&mut c), "timed out");
}

#[test]
fn requests_behind_one_that_can_use_no_server_do_not_wait_for_its_timer() {
    let out = Server {
        is_down: true,
        ..server(2, 0)
    };
    let mut bench = Bench::new(&[server(1, 0), out], 9);
    let [mut a, mut b, mut c, mut d] = [1, 2, 3, 4].map(|n| bench.request(n));
    assert_eq!(bench.try_choose(&mut a), "1");
    bench.answer(&mut a, Outcome::Failed);
    assert_eq!(bench.try_choose(&mut a), "waits 1000");
    for request in [&mut b, &mut c, &mut d] {
        assert_eq!(bench.try_choose(request), "waits 60000");
    }
    bench.woken();
    // Its failure is over. The first request has tried the server before.
    bench.now_ms += 11_000;
    assert_eq!(bench.try_choose(&mut a), "waits 1000");
    assert_eq!(bench.woken(), [2]);
    assert_eq!(bench.try_choose(&mut b), "1 after 11000");
    bench.answer(&mut b, Outcome::Alive);
    bench.woken();
    assert_eq!(bench.try_choose(&mut a), "waits 1000");
    assert_eq!(bench.woken(), [3]);
    assert_eq!(bench.try_choose(&mut c), "1 after 11000");
    assert_eq!(bench.woken(), [4], "the next one");
    assert_eq!(bench.try_choose(&mut d), "1 after 11000");
}
