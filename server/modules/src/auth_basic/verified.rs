//! Passwords that were found to fit a slow hash: they are remembered for a while, so that a page with a hundred pictures
//! costs one computation and not a hundred, each of which would hold up a thread.
//!
//! What is remembered is that a password fits a stored hash, which stays true for ever. It is looked up by both, so an
//! entry of the user file that is changed or gone finds nothing, and needs no invalidation. The key of the look-up is
//! SHA-256 under a secret of the thread; neither password nor hash is kept. Failures are not remembered.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use sha2::{Digest, Sha256};

use super::password::{self, Verdict};
use crate::secrets::equal;

/// As [`password::compare`], at a monotonic time in milliseconds.
pub(super) fn verify(stored: &[u8], given: &[u8], now_ms: u64) -> Verdict {
    if !password::is_hashed(stored) {
        return password::compare(stored, given);
    }
    THREAD.with_borrow_mut(|memory| memory.verify(stored, given, now_ms, password::compare))
}

thread_local! {
    static THREAD: RefCell<Memory> = RefCell::new(Memory::new());
}

type Mark = [u8; 32];

/// What one thread remembers.
struct Memory {
    secret: Mark,
    /// Marks and when they were made, oldest first.
    marks: Vec<(Mark, u64)>,
}

impl Memory {
    fn new() -> Self {
        let random = RandomState::new();
        let mut secret = Mark::default();
        for (n, part) in secret.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(&random.hash_one(n).to_le_bytes());
        }
        Self {
            secret,
            marks: Vec::new(),
        }
    }

    fn verify(
        &mut self,
        stored: &[u8],
        given: &[u8],
        now_ms: u64,
        compare: impl FnOnce(&[u8], &[u8]) -> Verdict,
    ) -> Verdict {
        let mark = self.mark(stored, given);
        self.marks
            .retain(|(_, since_ms)| now_ms.saturating_sub(*since_ms) < KEPT_MS);
        if self.marks.iter().any(|(known, _)| equal(known, &mark)) {
            return Verdict::Right;
        }
        let verdict = compare(stored, given);
        if verdict == Verdict::Right {
            if self.marks.len() >= MARKS_MAX {
                self.marks.remove(0);
            }
            self.marks.push((mark, now_ms));
        }
        verdict
    }

    fn mark(&self, stored: &[u8], given: &[u8]) -> Mark {
        // The length says where one ends and the other begins.
        Sha256::new()
            .chain_update(self.secret)
            .chain_update(stored.len().to_le_bytes())
            .chain_update(stored)
            .chain_update(given)
            .finalize()
            .into()
    }
}

/// How long a password is remembered, milliseconds.
const KEPT_MS: u64 = 60_000;
/// How many passwords a thread remembers.
const MARKS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the password was looked at anew.
    fn computed(memory: &mut Memory, stored: &str, given: &str, now_ms: u64) -> bool {
        let mut computed = false;
        memory.verify(stored.as_bytes(), given.as_bytes(), now_ms, |_, given| {
            computed = true;
            if given.starts_with(b"right") {
                Verdict::Right
            } else {
                Verdict::Wrong
            }
        });
        computed
    }

    #[test]
    fn a_password_that_fits_is_computed_once_in_a_while() {
        let mut memory = Memory::new();
        assert!(computed(&mut memory, "$1$a", "right", 0));
        assert!(!computed(&mut memory, "$1$a", "right", KEPT_MS - 1));
        assert!(computed(&mut memory, "$1$a", "right", KEPT_MS));
        assert!(!computed(&mut memory, "$1$a", "right", KEPT_MS + 1));
    }

    #[test]
    fn another_hash_or_password_is_computed_anew() {
        let mut memory = Memory::new();
        assert!(computed(&mut memory, "$1$a", "right", 0));
        assert!(computed(&mut memory, "$1$b", "right", 0));
        assert!(computed(&mut memory, "$1$a", "right2", 0));
        assert!(computed(&mut memory, "$1$ar", "ight", 0));
        assert!(computed(&mut memory, "$1$a", "wrong", 0));
        assert!(computed(&mut memory, "$1$a", "wrong", 0));
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let mut memory = Memory::new();
        for n in 0..MARKS_MAX {
            assert!(computed(&mut memory, &format!("$1${n}"), "right", 0));
        }
        assert!(!computed(&mut memory, "$1$0", "right", 0));
        assert!(computed(&mut memory, "$1$more", "right", 0));
        assert_eq!(memory.marks.len(), MARKS_MAX);
        assert!(!computed(&mut memory, "$1$1", "right", 0));
        assert!(computed(&mut memory, "$1$0", "right", 0));
    }

    #[test]
    fn marks_of_two_threads_differ() {
        let (one, other) = (Memory::new(), Memory::new());
        assert_ne!(one.mark(b"$1$a", b"x"), other.mark(b"$1$a", b"x"));
    }
}
