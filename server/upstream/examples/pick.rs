//! Time of a choice among the peers of a group, by their number.
//!
//! `cargo run --release -p firstbyte-upstream --example pick` prints nanoseconds of the processor for a choice, its release
//! and its result, as one request needs them: the median and the slowest of 20 rounds. `equal` has one weight, `few` 1 to 100,
//! `many` a weight of its own for most peers. `failing` has a failure in every eighth request, and `rising` too, with weights
//! that take long to rise again.

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
fn peers(count: u32, weights: u64) -> PeerList {
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
    PeerList::of(&servers.collect::<Vec<_>>())
}

/// Returns nanoseconds per request of each round, in ascending order.
fn rounds(peers: &mut PeerList, fails: bool, requests: u64) -> Vec<u64> {
    let mut next = numbers(8);
    let mut now_s = 1000;
    let mut all: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_ns();
            for n in 0..requests {
                // Peers that failed are usable again in the next second.
                now_s += u64::from(n % 8 == 0);
                let mut tried = TriedPeers::default();
                let Some(id) = peers.pick(&mut tried, now_s) else {
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

fn main() {
    println!(
        "{:>8} {:>8} {:>8} {:>8}",
        "peers", "weights", "ns", "slowest"
    );
    for count in [2, 16, 1024, 65_536] {
        for (name, weights, fails) in [
            ("equal", 1, false),
            ("few", 100, false),
            ("many", 1 << 20, false),
            ("failing", 100, true),
            ("rising", 1 << 20, true),
        ] {
            let mut peers = peers(count, weights);
            // A scan costs as much as the list is long.
            let requests = match name {
                "rising" => REQUESTS / u64::from(count / 64 + 1),
                _ => REQUESTS,
            };
            // The first choice in a long list builds its tournament.
            rounds(&mut peers, false, requests);
            let all = rounds(&mut peers, fails, requests);
            let (median, slowest) = (all[all.len() / 2], all[all.len() - 1]);
            println!("{count:>8} {name:>8} {median:>8} {slowest:>8}");
        }
    }
}

const ROUNDS: u64 = 20;
const REQUESTS: u64 = 500_000;
