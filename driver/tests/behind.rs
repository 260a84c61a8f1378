//! Seeded simulation of a worker with upstream servers that split, delay, reset and falsify their responses.
//!
//! A run depends on its seed only, as in `sim`. `SIM_SEED` is the first seed (1), `SIM_SEEDS` the number of runs (300).
//! Clients of HTTP/1, HTTP/2 and SPDY send requests in pieces to locations with different proxy settings (`site`).
//!
//! Each connection to a server follows a random script (`plan`, `server`). It sends complete responses, in pieces, late
//! or early, with interim responses and trailers. It stops or breaks anywhere, announces wrong lengths, sends garbage
//! or nothing, switches protocols, and closes while idle. Some connections are refused or never established. Servers
//! use HTTP/1, SCGI, uwsgi, FastCGI, memcached (`protocol`) and HTTP/2 (`h2`), some of them over TLS (`secure`).
//! Groups choose by each balancing method, and some requests are copied by `mirror`.
//!
//! Requests and responses are recorded in one ledger (`ledger`). On the server side (`server`, `request`), each request
//! must be one that a client made, complete, in order, and not sent too often. On the client side (`response_checks`),
//! each response must be a complete response of one server, or an error or a visibly broken response that has a reason.

#[path = "behind/copies.rs"]
mod copies;
#[path = "behind/fastcgi.rs"]
mod fastcgi;
#[path = "behind/h1.rs"]
mod h1;
#[path = "behind/h2.rs"]
mod h2;
#[path = "behind/ledger.rs"]
mod ledger;
#[path = "support/load.rs"]
mod load;
#[path = "behind/locations.rs"]
mod locations;
#[path = "behind/memcached.rs"]
mod memcached;
#[path = "behind/mux.rs"]
mod mux;
#[path = "behind/plan.rs"]
mod plan;
#[path = "behind/protocol.rs"]
mod protocol;
#[path = "behind/request.rs"]
mod request;
#[path = "sim/response.rs"]
#[expect(dead_code, reason = "the other simulation counts more")]
mod response;
#[path = "behind/response_checks.rs"]
mod response_checks;
#[path = "behind/run.rs"]
mod run;
#[path = "behind/secure.rs"]
mod secure;
#[path = "sim/seeds.rs"]
mod seeds;
#[path = "behind/server.rs"]
mod server;
#[path = "behind/site.rs"]
mod site;
#[path = "behind/story.rs"]
mod story;

#[test]
fn no_seed_finds_a_fault() {
    let site = site::Site::new();
    let mut total = run::Tally::default();
    let run = |seed| run::run(seed, &site);
    seeds::seeds("behind", "no_seed_finds_a_fault", run, |tally| {
        total.add(tally)
    });
    println!("{total:?}");
    // A run of few seeds may have none.
    assert!(total.copies < 50 || total.orphans.min(total.copies_timed_out) > 0);
    let spoken = total.sound_streams.min(total.sound_tls).min(total.mirrored);
    assert!(total.attempts < 1000 || (spoken > 0 && total.streams_at_once > 1));
}

/// Connections of HTTP/2 that several requests waited for were reset before any response. The requests other than the
/// first were repeated without being counted.
#[test]
fn resets_before_the_first_response_of_a_connection_are_counted() {
    let site = site::Site::new();
    for seed in [6857, 12529, 16009, 21065] {
        let result = run::run(seed, &site);
        assert_eq!(result.err(), None, "seed {seed}");
    }
}
