//! A cache of passwords that fit a slow hash. A page with a hundred pictures then costs one computation instead of a
//! hundred, each of which would block a thread.
//!
//! An entry means that a password fits a stored hash, which never changes. The key is SHA-256 of both under a secret of
//! the thread, so a changed user file needs no invalidation. Neither password nor hash is stored. Failures are not
//! cached.
//!
//! Concurrent requests with an equal question share one comparison. The key of that comparison contains the name, so
//! that known and unknown names are indistinguishable.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use server_base::offload::{Job, WeakJob};
use sha2::{Digest, Sha256};

use super::password::Verdict;
use crate::secrets::equal;

/// Whether a password is cached as fitting a stored hash. `now_ms` is monotonic time.
pub(super) fn knows(stored: &[u8], given: &[u8], now_ms: u64) -> bool {
    THREAD.with_borrow_mut(|memory| memory.knows(stored, given, now_ms))
}

/// Caches that a password fits a stored hash.
pub(super) fn remember(stored: &[u8], given: &[u8], now_ms: u64) {
    THREAD.with_borrow_mut(|memory| memory.remember(stored, given, now_ms));
}

/// Joins the running comparison with an equal key, or begins one.
pub(super) fn join<E>(
    same: &[&[u8]],
    begin: impl FnOnce() -> Result<Job<Verdict>, E>,
) -> Result<Job<Verdict>, E> {
    THREAD.with_borrow_mut(|memory| memory.join(same, begin))
}

thread_local! {
    static THREAD: RefCell<Memory> = RefCell::new(Memory::new());
}

type Mark = [u8; 32];

/// The verified passwords of a thread.
struct Memory {
    secret: Mark,
    /// Digests and their times, milliseconds; the oldest first.
    marks: Vec<(Mark, u64)>,
    /// Comparisons that exchanges of this thread wait for.
    jobs: Vec<(Mark, WeakJob<Verdict>)>,
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
            jobs: Vec::new(),
        }
    }

    fn knows(&mut self, stored: &[u8], given: &[u8], now_ms: u64) -> bool {
        let mark = self.mark(&[stored, given]);
        self.marks
            .retain(|(_, since_ms)| now_ms.saturating_sub(*since_ms) < KEPT_MS);
        self.marks.iter().any(|(known, _)| equal(known, &mark))
    }

    fn remember(&mut self, stored: &[u8], given: &[u8], now_ms: u64) {
        let mark = self.mark(&[stored, given]);
        if self.marks.iter().any(|(known, _)| equal(known, &mark)) {
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            self.marks.remove(0);
        }
        self.marks.push((mark, now_ms));
    }

    fn join<E>(
        &mut self,
        same: &[&[u8]],
        begin: impl FnOnce() -> Result<Job<Verdict>, E>,
    ) -> Result<Job<Verdict>, E> {
        let mark = self.mark(same);
        self.jobs.retain(|(_, job)| job.upgrade().is_some());
        let found = self.jobs.iter().find(|(known, _)| equal(known, &mark));
        if let Some(job) = found.and_then(|(_, job)| job.upgrade()) {
            return Ok(job);
        }
        let job = begin()?;
        self.jobs.push((mark, job.downgrade()));
        Ok(job)
    }

    fn mark(&self, parts: &[&[u8]]) -> Mark {
        let mut sha = Sha256::new().chain_update(self.secret);
        for part in parts {
            // Lengths separate the parts, so that no two lists of parts have one digest.
            sha.update(part.len().to_le_bytes());
            sha.update(part);
        }
        sha.finalize().into()
    }
}

/// Lifetime of an entry, milliseconds.
const KEPT_MS: u64 = 60_000;
/// Maximum number of entries of a thread.
const MARKS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use server_base::offload::Full;
    use server_http::exchange::Env;

    use super::*;

    /// Returns whether the password had to be compared, and compares it.
    fn computed(memory: &mut Memory, stored: &str, given: &str, now_ms: u64) -> bool {
        let (stored, given) = (stored.as_bytes(), given.as_bytes());
        if memory.knows(stored, given, now_ms) {
            return false;
        }
        if given.starts_with(b"right") {
            memory.remember(stored, given, now_ms);
        }
        true
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
        assert_ne!(one.mark(&[b"$1$a"]), other.mark(&[b"$1$a"]));
    }

    #[test]
    fn the_same_comparison_is_made_once_while_somebody_waits_for_it() {
        let mut memory = Memory::new();
        let mut count = 0;
        let mut join = |parts: &[&[u8]]| {
            let begin = || {
                count += 1;
                Job::begin(&Env::default(), || Verdict::Wrong)
            };
            memory.join(parts, begin).expect("there is room")
        };
        let first = join(&[b"ab", b"c"]);
        let second = join(&[b"ab", b"c"]);
        let other = join(&[b"a", b"bc"]);
        drop((first, other));
        let third = join(&[b"ab", b"c"]);
        drop((second, third));
        join(&[b"ab", b"c"]);
        assert_eq!(count, 3);
        assert_eq!(memory.jobs.len(), 1, "what nobody waits for is forgotten");
        memory
            .join(&[b"d"], || Err::<Job<Verdict>, _>(Full))
            .expect_err("it is refused");
    }
}
