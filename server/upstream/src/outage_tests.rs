//! The cost of requests to a group during an outage of its name servers.

use super::*;

#[test]
fn hosts_that_do_not_resolve_cost_few_requests() {
    let rng = &mut fastrand::Rng::with_seed(7);
    let hosts = (0..50).map(|n| named(&format!("{n}.test")));
    let mut bench = Bench::new(&[server(1)].into_iter().chain(hosts).collect::<Vec<_>>());
    let mut pending: Vec<(u64, Lookup)> = Vec::new();
    let (mut asked, mut asking) = (0, 0);
    for _ in 0..500 {
        bench.pass(10);
        for (_, lookup) in pending.extract_if(.., |(at_ms, _)| *at_ms <= bench.now_ms) {
            lookup.complete(Err("2: Server failure".to_owned()));
        }
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
        let new: Vec<_> = bench.names.asked.drain(..).collect();
        asking += usize::from(!new.is_empty());
        asked += new.len();
        let later = |(_, lookup)| (bench.now_ms + rng.u64(..1_000), lookup);
        pending.extend(new.into_iter().map(later));
    }
    // Five seconds, in which each host was looked up again and again.
    assert!(asked > 150, "{asked}");
    assert!(asking <= 11, "{asking}");
}
