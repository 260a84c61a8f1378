//! Measures taking an idle connection to a server out of its pool and putting it back.
//!
//! `cargo run --release -p firstbyte-driver --example idle_pool` prints nanoseconds of CPU time for both together: the
//! median and the slowest of 20 rounds. Each row has a number of connections to a number of servers in one pool.

use driver::worker::servers::pool::IdleConnections;
use driver::worker::slab::Key;
use server_upstream::route::{Pool, UpstreamAddr};

/// Returns the CPU time of the thread, nanoseconds; 0 if the kernel does not count it.
fn processor_ns() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = counts.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

fn addr(server: u32) -> UpstreamAddr {
    let [_, b, c, d] = server.to_be_bytes();
    UpstreamAddr::Inet(([10, b, c, d], 80).into())
}

fn main() {
    println!(
        "{:>12} {:>8} {:>8} {:>8}",
        "connections", "servers", "ns", "slowest"
    );
    for (connections, servers) in [
        (1, 1),
        (100, 10),
        (10_000, 1),
        (10_000, 100),
        (10_000, 10_000),
    ] {
        let mut idle = IdleConnections::default();
        let pool = Pool {
            id: 7,
            group: 7,
            connections: 20_000,
            requests: 1000,
            time_ms: 3_600_000,
            timeout_ms: 60_000,
            counted: 0,
        };
        for index in 0..connections {
            let key = Key { index, life: 0 };
            idle.insert(&pool, addr(index % servers), key, 0);
        }
        let mut server = 0;
        let mut round = || {
            let begin = processor_ns();
            for _ in 0..REQUESTS {
                // In an order that caches cannot predict.
                server = (server + 7919) % servers;
                let addr = addr(server);
                if let Some(key) = idle.take(7, &addr) {
                    idle.insert(&pool, addr, key, 0);
                }
            }
            (processor_ns() - begin) / REQUESTS
        };
        round();
        let mut all: Vec<u64> = (0..20).map(|_| round()).collect();
        all.sort_unstable();
        println!(
            "{connections:>12} {servers:>8} {:>8} {:>8}",
            all[10], all[19]
        );
    }
}

const REQUESTS: u64 = 1_000_000;
