//! User files and the formats of their passwords.
//!
//! The input is a user's name, a line end, a password, a line end, and a file. Any cuts of the file give the same
//! result. A hash made of the password matches it, and is made again from itself; its cost is known. That cost excludes
//! slow hashes, and most of the slower ones.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/secrets.rs"]
mod secrets;

#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/auth_basic"]
mod auth_basic {
    pub(crate) mod cost;
    pub(crate) mod crypt;
    pub(crate) mod des;
    pub(crate) mod entries;
    pub(crate) mod password;
}

use auth_basic::cost::cost_us;
use auth_basic::crypt::crypt;
use auth_basic::entries::{Entry, Search};
use auth_basic::password::{Verdict, compare, is_hashed};

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let (Some(user), Some(given), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let entry = search_file(file, user, file.len().max(1));
    let cut = given.first().map_or(1, |byte| usize::from(*byte) + 1);
    assert_eq!(entry, search_file(file, user, cut));
    assert!(entry.stored.is_none() || entry.costliest.is_some());
    let other = entry
        .costliest
        .as_ref()
        .filter(|_| entry.stored != entry.costliest);
    for stored in entry.stored.iter().chain(other) {
        assert!(
            !stored
                .iter()
                .any(|byte| matches!(byte, b':' | b'\n' | b'\r'))
        );
        check_password(stored, given);
    }
});

/// Returns the entry of a user in a file, read in pieces.
fn search_file(file: &[u8], user: &[u8], cut: usize) -> Entry {
    let mut search = Search::new(user);
    for piece in file.chunks(cut) {
        search.piece(piece);
    }
    search.end();
    search.entry
}

fn check_password(stored: &[u8], given: &[u8]) {
    let cost_us = cost_us(stored, given.len());
    let sum = stored
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if cost_us > COST_US_MAX || (cost_us > QUICK_US && sum % 8 != 0) {
        return;
    }
    let verdict = compare(stored, given);
    if !is_hashed(stored) || given.len() > HASHED_MAX || given.contains(&0) {
        assert_ne!(verdict, Verdict::Nobody);
        return;
    }
    let Some(hash) = crypt(stored, given) else {
        assert_eq!(verdict, Verdict::Unknown);
        return;
    };
    assert!(cost_us > 1 || stored.starts_with(b"$y$"), "{cost_us}");
    let hash = hash.as_bytes();
    assert!(hash.is_ascii());
    assert_eq!(verdict == Verdict::Right, hash == stored);
    assert_eq!(crypt(hash, given).as_deref().map(str::as_bytes), Some(hash));
}

/// Estimated cost above which nothing is hashed here, microseconds. bcrypt with its minimum cost takes less.
const COST_US_MAX: u64 = 1000;
/// Cost above which one eighth of the hashes is checked, microseconds.
const QUICK_US: u64 = 50;
/// Maximum length of a hashed password.
const HASHED_MAX: usize = 511;
