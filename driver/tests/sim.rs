//! Seeded simulation of the worker: connections, timers and configurations under a virtual clock, on simulated sockets.
//!
//! A run depends on its seed only. `SIM_SEED` is the first seed (1), `SIM_SEEDS` the number of runs (300). Clients send
//! valid and invalid requests in random pieces. They read fast, slowly or never; they end, reset or stay silent. Reads
//! and writes stop anywhere, the worker is woken spuriously, the clock jumps, and the configuration changes.
//!
//! A checker for each connection (`checker`) sees only the wire and the clock. It checks every response, close and
//! timeout. Clients of HTTP/2 (`h2`) check for themselves.

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
#[path = "support/load.rs"]
mod load;
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
    // The cost of abuse is tested elsewhere. These clients do much, but are harmless.
    let site = site::Site::new(
        "http2 on; http2_abuse_budget 1000000; http2_max_concurrent_streams 9; http2_header_table_size 256;",
    );
    let mut total = run::Tally::default();
    let test = "no_seed_of_http2_finds_a_fault";
    let run = |seed| run::run::<h2::Peer>(seed, &site);
    seeds::seeds("sim", test, run, |tally| total.add(tally));
    println!("{total:?}");
}
