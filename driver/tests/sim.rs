//! Seeded simulation of the worker: connections, timers and configurations under a virtual clock, on simulated sockets.
//!
//! A run is made from its seed alone. `SIM_SEED` is the first seed (1), `SIM_SEEDS` how many are run (300). Clients send
//! sound and broken requests in any pieces, read fast, slowly or never, end, reset or stay silent; reads and writes stop
//! anywhere; the worker gets turns for nothing; the clock jumps; the configuration changes. A judge for each connection
//! (`checker`) sees only the wire and the clock and decides on every response, every close and every timeout. Clients of
//! HTTP/2 (`h2`) are their own judges.

#[path = "sim/checker.rs"]
mod checker;
#[path = "sim/client.rs"]
mod client;
#[path = "sim/expect.rs"]
mod expect;
#[path = "sim/final_checks.rs"]
mod final_checks;
#[path = "sim/h2.rs"]
mod h2;
#[path = "sim/limits.rs"]
mod limits;
#[path = "sim/response.rs"]
mod response;
#[path = "sim/run.rs"]
mod run;
#[path = "sim/script.rs"]
mod script;
#[path = "sim/seeds.rs"]
mod seeds;
#[path = "sim/site.rs"]
mod site;
#[path = "sim/waits.rs"]
mod waits;

#[test]
fn no_seed_finds_a_fault() {
    let site = site::Site::new("");
    let mut total = run::Tally::default();
    let test = "no_seed_finds_a_fault";
    let run = |seed| run::run::<client::Client>(seed, &site);
    seeds::seeds("sim", test, run, |tally| total.add(tally));
    println!("{total:?}");
}

#[test]
fn no_seed_of_http2_finds_a_fault() {
    // The abuse budget has other tests: these clients send much, but are harmless.
    let site = site::Site::new(
        "http2 on; http2_abuse_budget 1000000; http2_max_concurrent_streams 9; http2_header_table_size 256;",
    );
    let mut total = run::Tally::default();
    let test = "no_seed_of_http2_finds_a_fault";
    let run = |seed| run::run::<h2::Peer>(seed, &site);
    seeds::seeds("sim", test, run, |tally| total.add(tally));
    println!("{total:?}");
}
