//! Time of a choice among the peers of a group, by their number.
//!
//! `cargo run --release -p firstbyte-upstream --example pick` prints nanoseconds of the processor for a choice, its release
//! and its result, as one request needs them: the median and the slowest of 20 rounds. Without a method, `equal` has one
//! weight, `few` 1 to 100, `many` a weight of its own for most peers. `failing` has a failure in every eighth request, and
//! `rising` too, with weights that take long to rise again. The other rows are methods, with weights of 1 to 4 and a key of
//! eight bytes for each request.

use server_upstream::balance::hash::Hash;
use server_upstream::balance::ip_hash::IpHash;
use server_upstream::balance::ketama::ConsistentHash;
use server_upstream::balance::least_conn::LeastConn;
use server_upstream::balance::least_time::{LeastTime, Time};
use server_upstream::balance::random::Random;
use server_upstream::balance::{Method, PickKey};
use server_upstream::group::Server;
use server_upstream::peers::{PeerList, TriedPeers};
use server_upstream::route::UpstreamAddr;

/// Returns a reproducible sequence of numbers below a limit (SplitMix64).
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// Returns the CPU time of the thread, nanoseconds; 0 if the kernel does not count it.
fn processor_ns() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = counts.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

/// Makes peers with weights of 1 to `weights`.
fn peers(count: u32, weights: u64, method: Option<&dyn Method>) -> PeerList {
    let mut next = numbers(7);
    let servers = (0..count).map(|n| {
        let [_, b, c, d] = n.to_be_bytes();
        Server {
            addresses: vec![UpstreamAddr::Inet(([10, b, c, d], 80).into())],
            weight: 1 + next(weights) as i64,
            fail_timeout_s: 0,
            ..Server::new()
        }
    });
    let servers: Vec<_> = servers.collect();
    let mut peers = PeerList::of(&servers);
    if let Some(method) = method {
        method.prepare(&servers);
        drop(peers.set_method(Some(method)));
    }
    peers
}

/// Returns nanoseconds per request of each round, in ascending order.
fn rounds(peers: &mut PeerList, keyed: bool, fails: bool, requests: u64) -> Vec<u64> {
    let mut next = numbers(8);
    let (mut key, mut now_s) = (PickKey::default(), 1000);
    let mut all: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_ns();
            for n in 0..requests {
                // Peers that failed are usable again in the next second.
                now_s += u64::from(n % 8 == 0);
                let mut tried = TriedPeers::default();
                if keyed {
                    key.bytes.clear();
                    key.bytes.extend_from_slice(&n.to_be_bytes());
                }
                let Some(id) = peers.pick(&mut tried, &key, now_s * 1000) else {
                    continue;
                };
                peers.release(id);
                match fails && next(8) == 0 {
                    true => drop(peers.fail(id, now_s)),
                    false => peers.succeed(id),
                }
            }
            (processor_ns() - begin) / requests
        })
        .collect();
    all.sort_unstable();
    all
}

/// Prints a row.
fn row(peers: &mut PeerList, (count, name): (u32, &str), keyed: bool, fails: bool) {
    // A scan costs as much as the list is long.
    let requests = match name {
        "rising" | "least_conn" | "least_time" => REQUESTS / u64::from(count / 64 + 1),
        _ => REQUESTS,
    };
    // The first choice in a long list builds its tournament.
    rounds(peers, keyed, false, requests);
    let all = rounds(peers, keyed, fails, requests);
    let (median, slowest) = (all[all.len() / 2], all[all.len() - 1]);
    println!("{count:>8} {name:>16} {median:>8} {slowest:>8}");
}

fn main() {
    println!("{:>8} {:>16} {:>8} {:>8}", "peers", "kind", "ns", "slowest");
    let least_time = LeastTime {
        time: Time::Header,
        in_flight: true,
    };
    for count in [2, 16, 1024, 65_536] {
        for (name, weights, fails) in [
            ("equal", 1, false),
            ("few", 100, false),
            ("many", 1 << 20, false),
            ("failing", 100, true),
            ("rising", 1 << 20, true),
        ] {
            row(
                &mut peers(count, weights, None),
                (count, name),
                false,
                fails,
            );
        }
        let methods: [(&str, &dyn Method); 7] = [
            ("least_conn", &LeastConn),
            ("least_time", &least_time),
            ("ip_hash", &IpHash),
            ("hash", &Hash),
            ("hash consistent", &ConsistentHash::default()),
            ("random", &Random::One),
            ("random two", &Random::TwoLeastConn),
        ];
        for (name, method) in methods {
            row(
                &mut peers(count, 4, Some(method)),
                (count, name),
                true,
                false,
            );
        }
    }
}

const ROUNDS: u64 = 20;
const REQUESTS: u64 = 500_000;
