//! Seeded simulation of a worker with upstream servers: clients send requests; servers respond, split, reset, stall and
//! send false data.
//!
//! A run is made from its seed alone, as in `sim`: `SIM_SEED` is the first seed (1), `SIM_SEEDS` the number of runs
//! (300). Clients of HTTP/1, HTTP/2 and SPDY send requests in pieces to locations that pass them on in different ways
//! (`site`). Each connection to a server has a random script (`plan`, `server`). The server responds whole, in pieces,
//! late or early, with interim responses and trailers. It stops or breaks anywhere, sends a wrong length or malformed
//! data, stays silent, switches protocols, and leaves while it is idle. It refuses connections or keeps them waiting.
//! Servers use HTTP/1, SCGI, uwsgi, FastCGI, memcached (`protocol`) and HTTP/2 (`h2`), some of them over TLS
//! (`secure`).
//!
//! Requests and responses are in one account (`ledger`). The servers' judge (`server`, `request`) requires every
//! request to be a client's, whole, in order, and not repeated more often than permitted. The clients' judge
//! (`response_checks`) requires every response to be one server's whole response, an error of our server with a reason,
//! or visibly broken with a reason.

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
    let spoken = total.sound_streams.min(total.sound_tls);
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
