//! Turns by smooth weights over many choices.

use crate::balance::PickKey;
use crate::balance::testing::{PICKS, pick, servers};
use crate::peers::PeerList;

#[test]
fn each_cycle_has_the_weights_of_its_servers() {
    // The last two have a tournament.
    for weights in [
        &[5, 1, 1][..],
        &[1, 1, 1],
        &[7, 20, 3],
        &[2; 40],
        &[1, 30, 4, 9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
    ] {
        let mut list = PeerList::of(&servers(weights));
        let cycle: i64 = weights.iter().sum();
        for n in 0..PICKS / 5 / cycle as usize {
            let mut counts = vec![0; weights.len()];
            for _ in 0..cycle {
                counts[usize::from(pick(&mut list, &PickKey::default())) - 8081] += 1;
            }
            assert_eq!(counts, weights, "cycle {n}");
        }
    }
}
