//! The oldest hash of crypt(3): DES with the password as key encrypts a block of zeros 25 times. The salt modifies the
//! expansion.
//!
//! Written for clarity, one bit at a time; password hashes may be slow. Only seven bits of the first eight characters
//! of a password count.
//!
//! Source: FIPS 46-3; crypt(3).

/// Hashes a password with the salt of a stored hash; `None` if that is no DES hash.
pub(crate) fn crypt(stored: &str, password: &[u8]) -> Option<String> {
    let salt = stored.get(..2).filter(|_| stored.len() == HASH_LEN)?;
    let mut swapped = 0;
    for (n, byte) in salt.bytes().enumerate() {
        let value = DIGITS.iter().position(|digit| *digit == byte)?;
        swapped |= value << (6 * n);
    }
    let mut key = 0;
    for n in 0..8 {
        let byte = password.get(n).copied().unwrap_or_default();
        key = key << 8 | u64::from(byte << 1);
    }
    let keys = schedule(key);
    let block = (0..25).fold(0, |block, _| encrypt(block, &keys, swapped));
    let mut hash = salt.to_owned();
    for n in 0..11 {
        // The 64 bits of the block and two zeros, six at a time.
        let six = u128::from(block) << 2 >> (60 - 6 * n) & 63;
        hash.push(char::from(DIGITS[six as usize]));
    }
    Some(hash)
}

/// Returns the bits of a number in the order of a table, the highest first. The table counts from 1, the highest bit of
/// `width`.
fn pick(from: u64, width: u32, table: &[u8]) -> u64 {
    table
        .iter()
        .fold(0, |to, bit| to << 1 | from >> (width - u32::from(*bit)) & 1)
}

/// The keys of the sixteen rounds.
fn schedule(key: u64) -> [u64; 16] {
    let both = pick(key, 64, &KEY_CHOICE);
    let (mut c, mut d) = (both >> 28, both & HALF_KEY);
    let rotate = |half: u64, by: u32| (half << by | half >> (28 - by)) & HALF_KEY;
    SHIFTS.map(|by| {
        (c, d) = (rotate(c, by), rotate(d, by));
        pick(c << 28 | d, 56, &ROUND_CHOICE)
    })
}

fn encrypt(block: u64, keys: &[u64; 16], swapped: usize) -> u64 {
    let block = pick(block, 64, &INITIAL);
    let (mut left, mut right) = (block >> 32, block & 0xffff_ffff);
    for key in keys {
        (left, right) = (right, left ^ round(right, *key, swapped));
    }
    pick(right << 32 | left, 64, &FINAL)
}

fn round(right: u64, key: u64, swapped: usize) -> u64 {
    // Expansion E: each group of four bits with its two neighbour bits.
    let expanded = (0..8).fold(0, |all, n: u32| {
        let turned = (right as u32).rotate_left(4 * n + 5) & 63;
        all << 6 | u64::from(turned)
    });
    let mixed = swap(expanded, swapped) ^ key;
    let boxed = BOXES.iter().enumerate().fold(0, |all, (n, table)| {
        let six = mixed >> (42 - 6 * n) & 63;
        let (row, column) = (six >> 4 & 2 | six & 1, six >> 1 & 15);
        all << 4 | u64::from(table[(row * 16 + column) as usize])
    });
    pick(boxed, 32, &SPREAD)
}

/// Swaps bits between the halves of an expansion. The lowest bit of the salt selects the highest bit of both halves.
fn swap(expanded: u64, swapped: usize) -> u64 {
    let mask = (0..12).filter(|n| swapped >> n & 1 == 1);
    let mask = mask.fold(0, |all, n| all | 1_u64 << (23 - n));
    let (high, low) = (expanded >> 24, expanded & 0xff_ffff);
    let differing = (high ^ low) & mask;
    (high ^ differing) << 24 | low ^ differing
}

const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of a hash with its salt, characters.
const HASH_LEN: usize = 13;
const HALF_KEY: u64 = (1 << 28) - 1;
const SHIFTS: [u32; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// IP.
const INITIAL: [u8; 64] = [
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6,
    64, 56, 48, 40, 32, 24, 16, 8, 57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61,
    53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
];
/// IP reversed.
const FINAL: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30,
    37, 5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];
/// P.
const SPREAD: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];
/// PC-1.
const KEY_CHOICE: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29,
    21, 13, 5, 28, 20, 12, 4,
];
/// PC-2.
const ROUND_CHOICE: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];
/// S1 to S8, row by row.
const BOXES: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12,
        11, 9, 5, 3, 8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9,
        1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1,
        10, 6, 9, 11, 5, 0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15,
        4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5,
        14, 12, 11, 15, 1, 13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6,
        9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2,
        12, 1, 10, 14, 9, 10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1,
        13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15,
        10, 3, 9, 8, 6, 4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14,
        2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13,
        14, 0, 11, 3, 8, 9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5,
        15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5,
        12, 2, 15, 8, 6, 1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4,
        10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6,
        11, 0, 14, 9, 2, 7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10,
        8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_seven_bits_of_eight_characters_count() {
        let hash = crypt("sa3tHJ3/KuYvI", b"password");
        assert_eq!(crypt("sa3tHJ3/KuYvI", b"password and more"), hash);
        assert_eq!(crypt("sa3tHJ3/KuYvI", b"\xf0assword"), hash);
        assert_ne!(crypt("sa3tHJ3/KuYvI", b"passwore"), hash);
    }

    #[test]
    fn what_is_no_hash_has_none() {
        for stored in [
            "",
            "sa",
            "sa3tHJ3/KuYv",
            "sa3tHJ3/KuYvI.",
            "s:3tHJ3/KuYvI",
            "\u{e4}3tHJ3/KuYvI",
        ] {
            assert_eq!(crypt(stored, b"password"), None, "{stored}");
        }
    }
}
