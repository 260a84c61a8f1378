//! Reproducible random decisions: a packet's outcome depends on the seed, its direction and its number alone.
//!
//! A draw is the output of SplitMix64 at one place of its sequence: `mix(seed + GAMMA * place)`. The place is `4 *
//! number + 2 * (1 to the client, 0 to the server) + (1 for jitter, 0 for loss) + 1`, all modulo 2^64. `number` counts
//! the packets of a direction from 0, as they enter the delay. So two links with one seed lose the packets of the same
//! numbers, whatever their rate and jitter. The ends decide which segment has a number. Source: Steele, Lea, Flood,
//! "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014).

use std::time::Duration;

use crate::quantity::Loss;
use crate::segment::Direction;

/// Random numbers of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRng {
    seed: u64,
    direction: u64,
}

impl PacketRng {
    pub(crate) fn new(seed: u64, direction: Direction) -> Self {
        let direction = match direction {
            Direction::ToServer => 0,
            Direction::ToClient => 2,
        };
        Self { seed, direction }
    }

    /// Whether the packet of this number is lost.
    pub(crate) fn loses(self, number: u64, loss: Loss) -> bool {
        // A loss in billionths as a share of all 2^64 draws.
        let share = (u128::from(loss.billionths()) << 64) / u128::from(Loss::WHOLE);
        u128::from(self.draw(number, 0)) < share
    }

    /// Returns the time that the packet of this number takes beyond `delay - jitter`: uniform from 0 to twice `jitter`.
    pub(crate) fn wavers(self, number: u64, jitter: Duration) -> Duration {
        let span = jitter.as_nanos() * 2 + 1;
        let nanos = (u128::from(self.draw(number, 1)) * span) >> 64;
        // Twice the longest jitter is far below 2^64 nanoseconds.
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn draw(self, number: u64, what: u64) -> u64 {
        let place = number.wrapping_mul(4) + self.direction + what;
        let state = self
            .seed
            .wrapping_add(GAMMA.wrapping_mul(place.wrapping_add(1)));
        mix(state)
    }
}

/// Output function of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The step of SplitMix64: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(text: &str) -> Loss {
        text.parse().expect("a loss")
    }

    fn lost(seed: u64, direction: Direction, packets: u64, share: &str) -> Vec<u64> {
        let chance = PacketRng::new(seed, direction);
        let lost = (0..packets).filter(|number| chance.loses(*number, loss(share)));
        lost.collect()
    }

    #[test]
    fn draws_are_those_of_splitmix64() {
        // The first outputs for the seed 1234567 of the reference implementation in C.
        let first = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        let to_server = PacketRng::new(1_234_567, Direction::ToServer);
        let to_client = PacketRng::new(1_234_567, Direction::ToClient);
        let drawn = [
            to_server.draw(0, 0),
            to_server.draw(0, 1),
            to_client.draw(0, 0),
            to_client.draw(0, 1),
        ];
        assert_eq!(drawn, first);
    }

    #[test]
    fn same_seed_loses_the_same_packets() {
        let first = lost(7, Direction::ToServer, 10_000, "1%");
        assert_eq!(first, lost(7, Direction::ToServer, 10_000, "1%"));
        assert_ne!(first, lost(8, Direction::ToServer, 10_000, "1%"));
        assert_ne!(first, lost(7, Direction::ToClient, 10_000, "1%"));
        // A higher loss loses these packets, too.
        let more = lost(7, Direction::ToServer, 10_000, "2%");
        assert!(first.iter().all(|number| more.contains(number)));
    }

    #[test]
    fn losses_are_the_share_asked_for() {
        assert_eq!(lost(7, Direction::ToClient, 10_000, "0%").len(), 0);
        assert_eq!(lost(7, Direction::ToClient, 10_000, "100%").len(), 10_000);
        for seed in 0..5 {
            let lost = lost(seed, Direction::ToClient, 1_000_000, "5%").len();
            assert!((49_000..=51_000).contains(&lost), "{lost} with seed {seed}");
        }
    }

    #[test]
    fn jitter_is_even_and_has_its_ends() {
        let chance = PacketRng::new(3, Direction::ToServer);
        let jitter = Duration::from_millis(1);
        let drawn: Vec<Duration> = (0..100_000).map(|n| chance.wavers(n, jitter)).collect();
        assert!(drawn.iter().all(|time| *time <= 2 * jitter));
        let mean = drawn.iter().sum::<Duration>() / 100_000;
        assert!(mean.abs_diff(jitter) < jitter / 100, "{mean:?}");
        let early = drawn.iter().filter(|time| **time < jitter / 2).count();
        assert!((24_000..26_000).contains(&early), "{early}");
        assert_eq!(chance.wavers(5, Duration::ZERO), Duration::ZERO);
    }
}
