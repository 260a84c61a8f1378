//! Estimates the cost of comparing a password with a stored hash. Cheap comparisons run in place, the rest on another
//! thread. A name without an entry is compared with the costliest hash of the file.
//!
//! The estimates serve these two decisions alone; a factor of two is accurate enough.

use super::crypt::{Setting, bcrypt_rounds, sha_params, yescrypt_params};

/// Estimated cost of comparing a password of `password_bytes` with a stored hash, microseconds; 1 for an unknown form.
pub(crate) fn cost_us(stored: &[u8], password_bytes: usize) -> u64 {
    if stored.starts_with(b"{") {
        return 1;
    }
    let bytes = password_bytes as u64;
    let cost = Setting::parse(stored).and_then(|setting| match setting {
        Setting::Des(stored) => (stored.len() == DES_CHARACTERS).then_some(DES_US),
        Setting::Md5(..) => Some(MD5_US + bytes * MD5_BYTE_US),
        Setting::Sha(_, rounds, _) => {
            let rounds = match rounds {
                "" => Some(SHA_ROUNDS),
                _ => sha_params(rounds).and_then(|_| rounds_of(rounds)),
            };
            rounds.map(|rounds| rounds * (SHA_ROUND_NS + bytes * SHA_BYTE_NS) / 1000)
        }
        Setting::Bcrypt(_, cost, _) => {
            bcrypt_rounds(cost).map(|rounds| u64::from(rounds) * BCRYPT_ROUND_US)
        }
        Setting::Yescrypt(written, _) => yescrypt_params(written).map(|params| {
            let blocks = params.n().saturating_mul(u64::from(params.r()));
            blocks.saturating_mul(u64::from(params.p())) / YESCRYPT_BLOCKS_A_US
        }),
    });
    cost.unwrap_or(1).max(1)
}

/// The number in `rounds=number$`.
fn rounds_of(text: &str) -> Option<u64> {
    conf::parse_digits(text.strip_prefix("rounds=")?.strip_suffix('$')?)
}

/// Whether a comparison is fast enough for the thread of a worker.
pub(crate) fn is_quick(stored: &[u8], password: &[u8]) -> bool {
    cost_us(stored, password.len()) <= QUICK_US
}

/// Whether one cost cannot be measured beside another.
pub(crate) fn is_negligible(cost_us: u64, beside_us: u64) -> bool {
    cost_us <= beside_us / NEGLIGIBLE_PARTS
}

/// Maximum cost of a comparison on the thread of a worker, microseconds. DES, and MD5 of usual passwords, are below;
/// all other hashes are above.
const QUICK_US: u64 = 250;
/// A cost is negligible beside another that is this many times as large.
const NEGLIGIBLE_PARTS: u64 = 16;
/// Measured at about 3 GHz. DES: 100 us. MD5: 120 us, and 3 us per byte of the password. SHA: 0.25 us and 5 ns per
/// byte, in each round. bcrypt: 50 us in each round (cost 12: 0.2 s). yescrypt: 17 ms with the default of libxcrypt,
/// 2^17 blocks.
const DES_US: u64 = 100;
const MD5_US: u64 = 120;
const MD5_BYTE_US: u64 = 3;
const SHA_ROUND_NS: u64 = 250;
const SHA_BYTE_NS: u64 = 5;
const BCRYPT_ROUND_US: u64 = 50;
const YESCRYPT_BLOCKS_A_US: u64 = 8;
/// Default rounds of SHA-crypt, and the length of a DES hash, characters.
const SHA_ROUNDS: u64 = 5000;
const DES_CHARACTERS: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_in_the_order_of_what_hashes_take() {
        let rising = [
            "{SSHA}x",
            "sa3tHJ3/KuYvI",
            "$apr1$salt$Xxd1irWT9ycqoYxGFn4cb.",
            "$5$rounds=1000$salt$x",
            "$2y$04$abcdefghijklmnopqrstuux",
            "$6$salt$x",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$x",
            "$2y$10$abcdefghijklmnopqrstuux",
            "$2y$12$abcdefghijklmnopqrstuux",
            "$6$rounds=10000000$salt$x",
        ];
        for (n, stored) in rising.iter().enumerate() {
            let costs = |bytes| cost_us(stored.as_bytes(), bytes);
            assert!(
                n == 0 || cost_us(rising[n - 1].as_bytes(), 8) < costs(8),
                "{stored}"
            );
            assert_eq!(is_quick(stored.as_bytes(), b"password"), n < 3, "{stored}");
        }
        // A long password is slow: the cost grows with the square of its length.
        assert!(!is_quick(b"$apr1$salt$x", &[b'x'; 100]));
    }

    #[test]
    fn what_is_broken_costs_nothing() {
        for stored in [
            "",
            "x",
            "$9$salt$",
            "$2y$99$abcdefghijklmnopqrstuu",
            "$5$rounds=1$salt$",
            "$y$jHT$abcd$",
            "$y$x$abcd$",
        ] {
            assert_eq!(cost_us(stored.as_bytes(), 500), 1, "{stored}");
        }
    }

    #[test]
    fn a_sixteenth_is_negligible() {
        assert!(is_negligible(1, 16));
        assert!(!is_negligible(2, 31));
        assert!(!is_negligible(u64::MAX, u64::MAX));
        assert!(!is_negligible(1, 1));
    }
}
