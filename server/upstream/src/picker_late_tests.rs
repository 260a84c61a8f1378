//! Answers of name servers that a request takes late: after a failed attempt.

use super::*;

#[test]
fn a_late_answer_does_not_replace_a_newer_one() {
    let mut bench = Bench::new(&[named("slow.test"), named("fast.test")]);
    let mut picker = bench.picker();
    assert_eq!(bench.pick(&mut picker), "wait");
    let (name, slow) = bench.names.asked[0].clone();
    assert_eq!(name, "slow.test");
    bench.names.tell(Ok(vec![7]));
    assert_eq!(bench.pick(&mut picker), "192.0.2.7:80");
    // Another request gets a newer answer about the other name.
    bench.names.knows("slow.test", &[2]);
    bench.names.valid_until_ms = bench.now_ms + 60_000;
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.7:80");
    let told: Vec<_> = (0..2).map(|_| bench.request(Outcome::Alive)).collect();
    assert!(told.contains(&"192.0.2.2:80".to_owned()), "{told:?}");
    slow.complete(Ok(Resolved {
        addresses: [[192, 0, 2, 9].into()].into(),
        valid_until_ms: bench.now_ms + 1_000,
    }));
    bench.finish(&mut picker, Outcome::Failed);
    let mut told = vec![bench.pick(&mut picker)];
    told.extend((0..3).map(|_| bench.request(Outcome::Alive)));
    told.sort();
    told.dedup();
    assert_eq!(told, ["192.0.2.2:80", "192.0.2.7:80"]);
}
