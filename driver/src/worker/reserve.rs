//! Descriptors that the process keeps for control messages, however many clients there are.
//!
//! A message brings descriptors (listeners, logs, data), and the kernel drops those without room in the table. So the
//! main thread holds as many as the last message brought, and some more. It closes them before it takes a message, and
//! takes them again after it. While some are missing, threads accept a connection only in the place of another one
//! ([`Counters::descriptors_short`]), and they leave some descriptors to files ([`ceiling`]). Source: unix(7),
//! SCM_RIGHTS; getrlimit(2).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sys::poll::Waker;
use sys::process;

use super::thread_commands::Counters;

/// Descriptors that are held.
pub(super) struct Reserve {
    held: Vec<OwnedFd>,
    wanted: usize,
    /// The held descriptors are duplicates of this one.
    source: Arc<Waker>,
    counters: Arc<Counters>,
    /// Maximum number held: half of those free when the worker had started.
    most: Option<usize>,
}

impl Reserve {
    /// Holds nothing yet.
    pub(super) fn new(source: Arc<Waker>, counters: Arc<Counters>) -> Self {
        Self {
            held: Vec::new(),
            wanted: 0,
            source,
            counters,
            most: None,
        }
    }

    /// Makes room for a message. If few others are free, threads take none meanwhile.
    pub(super) fn release(&mut self) {
        let limit = process::rlimit_nofile().unwrap_or(u64::MAX);
        let left = limit.saturating_sub(process::open_files());
        let short = left < PLENTY;
        self.counters
            .descriptors_short
            .store(short, Ordering::Relaxed);
        self.held.clear();
    }

    /// Holds as many descriptors as a message may bring, once the table has room for them.
    pub(super) fn hold(&mut self, descriptors: usize, threads: usize) {
        let wanted = descriptors + threads + SLACK;
        let most = *self.most.get_or_insert_with(|| free(&self.source) / 2);
        self.wanted = wanted.min(most);
        self.refill();
    }

    /// Takes the missing descriptors, as far as the table has room.
    pub(super) fn refill(&mut self) {
        while self.is_short() {
            let Ok(fd) = self.source.as_fd().try_clone_to_owned() else {
                break;
            };
            self.held.push(fd);
        }
        let short = self.is_short();
        self.counters
            .descriptors_short
            .store(short, Ordering::Relaxed);
    }

    /// Returns the time for which the main thread may wait, milliseconds: short if descriptors are missing.
    pub(super) fn wait_ms(&self, most_ms: u64) -> u64 {
        match self.is_short() {
            true => most_ms.min(RETRY_MS),
            false => most_ms,
        }
    }

    fn is_short(&self) -> bool {
        self.held.len() < self.wanted
    }
}

/// The descriptor number from which on a connection is accepted only in the place of another one, so that files of
/// connections find room.
pub(super) fn ceiling() -> i32 {
    let limit = process::rlimit_nofile().unwrap_or(u64::MAX);
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    limit - (limit / FILES_SHARE).min(FILES_MOST)
}

/// Number of free descriptors, from the lowest free number: correct while none was closed yet.
fn free(source: &Waker) -> usize {
    let lowest = source.as_fd().try_clone_to_owned();
    let used = lowest.map_or(u64::MAX, |fd| u64::from(fd.as_raw_fd().unsigned_abs()));
    let limit = process::rlimit_nofile().unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(used)).unwrap_or(usize::MAX)
}

/// Descriptors beside those of a message: a log in memory, sockets of name servers, connections accepted meanwhile.
const SLACK: usize = 8;
/// Number of free descriptors that threads do not use up while the main thread has a message.
const PLENTY: u64 = 256;
/// When descriptors that could not be had are tried again.
const RETRY_MS: u64 = 100;
/// The part of the table that connections leave to files, and the most of it.
const FILES_SHARE: i32 = 16;
const FILES_MOST: i32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back_for_a_message_and_taken_again() {
        let counters = Arc::new(Counters::default());
        let waker = Arc::new(Waker::new().expect("an eventfd"));
        let mut reserve = Reserve::new(waker, Arc::clone(&counters));
        let short = || counters.descriptors_short.load(Ordering::Relaxed);
        reserve.hold(3, 1);
        assert_eq!((reserve.held.len(), short()), (3 + 1 + SLACK, false));
        assert_eq!(reserve.wait_ms(1000), 1000);
        reserve.release();
        assert_eq!(reserve.held.len(), 0);
        assert_eq!(reserve.wait_ms(1000), RETRY_MS);
        reserve.hold(0, 1);
        assert_eq!((reserve.held.len(), short()), (1 + SLACK, false));
    }

    #[test]
    fn no_more_than_half_of_what_is_free_is_held() {
        let waker = Arc::new(Waker::new().expect("an eventfd"));
        let mut reserve = Reserve::new(waker, Arc::default());
        reserve.most = Some(5);
        reserve.hold(100, 1);
        assert_eq!((reserve.held.len(), reserve.is_short()), (5, false));
    }
}
