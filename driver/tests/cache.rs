//! Seeded simulation of a cache: two workers with one zone, and servers that change, stall and cut their responses.
//!
//! A run depends on its seed only, as in `sim`. `SIM_SEED` is the first seed (1), `SIM_SEEDS` the number of runs (300).
//! Two workers share index, directory and memory of a cache. They take turns, and wake each other's requests. A third party
//! runs the periodic task: loader, manager and purger. The directory is in memory, if the system has `/dev/shm`.
//!
//! Servers (`server`) answer with versions of a few resources. A version has its own number, length and validators. Each
//! response has a random policy of freshness. It may come late, in pieces, or break off.
//!
//! Clients (`client`) send GET, HEAD and POST, ranges, conditions and directives, and purge by key, prefix and tag. They
//! read slowly, and leave early. Each received response is checked against the ledger (`judge`): it is one version of the
//! right resource, not older than permitted, and not from before a purge.
//!
//! Absent: preemption within a turn of a worker, HTTP/2, and `proxy_cache_rfc off`.

#[path = "cache/client.rs"]
mod client;
#[path = "cache/judge.rs"]
mod judge;
#[path = "cache/judge_tests.rs"]
mod judge_tests;
#[path = "cache/ledger.rs"]
mod ledger;
#[path = "support/load.rs"]
mod load;
#[path = "cache/locations.rs"]
mod locations;
#[path = "cache/messages.rs"]
mod messages;
#[path = "cache/request.rs"]
mod request;
#[path = "sim/response.rs"]
#[expect(dead_code, reason = "the other simulation counts more")]
mod response;
#[path = "cache/run.rs"]
mod run;
#[path = "sim/seeds.rs"]
mod seeds;
#[path = "cache/server.rs"]
mod server;
#[path = "cache/site.rs"]
mod site;

#[test]
fn no_seed_finds_a_fault() {
    let mut total = run::Tally::default();
    seeds::seeds("cache", "no_seed_finds_a_fault", run::run, |tally| {
        total.add(tally)
    });
    println!("{total:?}");
    // A run of few seeds may have none.
    let found = total.reused.min(total.joined).min(total.confirmed);
    assert!(total.requests < 2000 || found.min(total.purges).min(total.stale) > 0);
}

/// Requests joined a response in progress with an earlier head, although it was stale by then. A request with `max-age`
/// received a stale response, since another request updated it.
#[test]
fn late_requests_get_no_stale_response() {
    for seed in [2, 28, 44, 81, 1670] {
        assert_eq!(run::run(seed).err(), None, "seed {seed}");
    }
}
