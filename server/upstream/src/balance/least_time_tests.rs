//! Choices by `least_time` and those of its formula.

use super::*;
use crate::balance::PickKey;
use crate::balance::testing::{
    Model, ModelPeer, NOW_MS, PICKS, any_server, peers, pick, port, servers,
};
use crate::peers::{PeerId, PeerList, TriedPeers};

/// Response times of a peer as nginx counts them.
#[derive(Default)]
struct Times {
    header: u64,
    response: u64,
    in_flight: u64,
    /// Number of attempts in progress, their ages in all at the time of the last change, and that time.
    count: u64,
    ages: u64,
    changed: u64,
}

/// The moving average of nginx.
fn average(before: u64, value: u64) -> u64 {
    match before {
        0 => value,
        _ => (0.5 + (value as f64 * 0.05 + before as f64 * 0.95)) as u64,
    }
}

impl Times {
    fn begin(&mut self, now_ms: u64) {
        self.ages += self.count * (now_ms - self.changed);
        self.changed = now_ms;
        self.count += 1;
    }

    fn end(&mut self, now_ms: u64, age_ms: u64) {
        self.ages += self.count * (now_ms - self.changed);
        self.ages -= age_ms;
        self.changed = now_ms;
        self.count -= 1;
    }

    fn look(&mut self, now_ms: u64) {
        if let Some(mean) = self.ages.checked_div(self.count) {
            let mean = mean + (now_ms - self.changed);
            self.in_flight = average(self.in_flight, mean);
        }
    }

    /// The estimate of a peer's time.
    fn load(&self, time: Time, peer: &ModelPeer, now_ms: u64) -> u64 {
        let average = match time {
            Time::Header => self.header,
            Time::LastByte => self.response,
        };
        let halvings = peer.failures.periods_since_check(now_ms / 1000);
        let mut average = (0..halvings.min(64)).fold(average, |average, _| average / 2);
        if self.count > 0 {
            average = average.max(self.in_flight);
        }
        let stepped = match average {
            0..=5000 => (average / 20 + 1) * 20,
            _ => 5000,
        };
        stepped * (1 + peer.conns)
    }
}

/// An attempt in progress: the peer, its place in the model, its start, and whether it counts as in progress.
struct Pending {
    id: PeerId,
    at: usize,
    started_ms: u64,
    counts: bool,
}

/// A list with a method, its model, and the attempts in progress.
struct Bench {
    method: LeastTime,
    list: PeerList,
    model: Model,
    times: Vec<Times>,
    held: Vec<Pending>,
    now_ms: u64,
}

impl Bench {
    /// One request with up to this number of attempts. Returns whether all choices are those of the formula.
    fn request(&mut self, attempts: usize) -> bool {
        let (mut state, mut tried) = (TriedPeers::default(), Vec::new());
        let now_ms = self.now_ms;
        for _ in 0..attempts {
            let id = self.list.pick(&mut state, &PickKey::default(), now_ms);
            let usable = self.model.usable(&tried, now_ms / 1000);
            usable.iter().for_each(|n| self.times[*n].look(now_ms));
            let load =
                |peer: &ModelPeer, n: usize| self.times[n].load(self.method.time, peer, now_ms);
            let expected = self.model.least(&usable, load);
            if id.map(|id| usize::from(port(&self.list, id)) - 1) != expected {
                return false;
            }
            let (Some(id), Some(at)) = (id, expected) else {
                break;
            };
            self.model.begin(at, now_ms / 1000);
            if self.method.in_flight {
                self.list.begin_measured(id, now_ms);
                self.times[at].begin(now_ms);
            }
            tried.push(at);
            self.held.push(Pending {
                id,
                at,
                started_ms: now_ms,
                counts: self.method.in_flight,
            });
        }
        true
    }

    /// The head of an attempt's response has arrived.
    fn answer(&mut self, n: usize) {
        let held = &mut self.held[n];
        if self.list.measures() == Measures::UntilHead && std::mem::take(&mut held.counts) {
            let ms = self.now_ms - held.started_ms;
            self.list.add_header_time(held.id, ms);
            self.list.end_measured(held.id, held.started_ms);
            let times = &mut self.times[held.at];
            times.header = average(times.header, ms);
            times.end(self.now_ms, ms);
        }
    }

    /// An attempt has ended.
    fn end(&mut self, n: usize, fails: bool) {
        let held = self.held.swap_remove(n);
        let (list, times, peer) = (&mut self.list, &mut self.times[held.at], held.at);
        let ms = self.now_ms - held.started_ms;
        list.release(held.id);
        self.model.0[peer].conns -= 1;
        if held.counts {
            list.end_measured(held.id, held.started_ms);
            times.end(self.now_ms, ms);
        }
        if fails {
            list.fail(held.id, self.now_ms / 1000);
            return self.model.fail(peer, self.now_ms / 1000);
        }
        list.succeed(held.id);
        self.model.0[peer].failures.succeed();
        list.add_response_time(held.id, ms);
        times.response = average(times.response, ms);
        if list.measures() != Measures::UntilHead {
            list.add_header_time(held.id, ms / 2);
            times.header = average(times.header, ms / 2);
        }
    }
}

#[test]
fn choices_are_those_of_the_formula() {
    const SEEDS: usize = 20;
    for seed in 0..SEEDS {
        let rng = &mut fastrand::Rng::with_seed(seed as u64);
        let count = [2, 3, 7, 33][rng.usize(..4)];
        let all: Vec<_> = (1..=count).map(|port| any_server(rng, port)).collect();
        let method = LeastTime {
            time: [Time::Header, Time::LastByte][rng.usize(..2)],
            in_flight: rng.bool(),
        };
        let mut bench = Bench {
            method,
            list: peers(&all, &method),
            model: Model::of(&all),
            times: all.iter().map(|_| Times::default()).collect(),
            held: Vec::new(),
            now_ms: NOW_MS,
        };
        for n in 0..PICKS / SEEDS {
            let attempts = [1, 1, 1, 4][rng.usize(..4)];
            assert!(
                bench.request(attempts),
                "seed {seed}, choice {n}, {method:?}"
            );
            if !bench.held.is_empty() {
                bench.answer(rng.usize(..bench.held.len()));
            }
            while !bench.held.is_empty() && rng.usize(..bench.held.len() + 8) > 8 {
                bench.end(rng.usize(..bench.held.len()), rng.u8(..8) == 0);
            }
            bench.now_ms += [0, 1, 30, 500][rng.usize(..4)];
        }
    }
}

/// Two servers with these average times until the last byte, and no attempts in progress.
fn with_times(times: [u64; 2]) -> PeerList {
    let method = LeastTime {
        time: Time::LastByte,
        in_flight: false,
    };
    let mut list = peers(&servers(&[1, 1]), &method);
    let mut state = TriedPeers::default();
    while let Some(id) = list.pick(&mut state, &PickKey::default(), NOW_MS) {
        list.release(id);
        list.add_response_time(id, times[usize::from(port(&list, id)) - 8081]);
    }
    list
}

#[test]
fn times_of_one_step_are_equal() {
    let key = PickKey::default();
    for (times, is_equal) in [
        ([1, 19], true),
        ([0, 20], false),
        ([20, 39], true),
        ([19, 20], false),
        ([5000, 5001], false),
        ([5001, 90_000], true),
        ([4999, 5001], true),
    ] {
        let mut list = with_times(times);
        let ports = [(); 4].map(|()| pick(&mut list, &key));
        let has_turns = ports.contains(&8081) && ports.contains(&8082);
        assert_eq!(has_turns, is_equal, "{times:?} {ports:?}");
    }
}

#[test]
fn a_slow_server_is_tried_again_after_its_time() {
    // The default `fail_timeout` is 10 s. Each 11 s halve the average: 100, 50, 25, 12 ms.
    let mut list = with_times([100, 10]);
    let mut at = |s: u64| {
        let mut ports = Vec::new();
        for _ in 0..2 {
            let id = list.pick(
                &mut TriedPeers::default(),
                &PickKey::default(),
                NOW_MS + s * 1000,
            );
            let id = id.expect("both are usable");
            list.release(id);
            ports.push(port(&list, id));
        }
        ports
    };
    for s in [0, 10, 11, 32] {
        assert_eq!(at(s), [8082, 8082], "{s}");
    }
    assert!(at(33).contains(&8081), "12 ms are of the step of 10 ms");
    assert_eq!(at(34), [8082, 8082], "the choice ended the halving");
}
