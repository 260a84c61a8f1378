//! Buckets: how far a key is over its rate.
//!
//! Amounts are thousandths of a request, times are milliseconds of the monotonic clock, which cannot be set.

use server_base::zone::Shard;

/// The state of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Time of the last counted request; `None` before the first.
    last_ms: Option<u64>,
    /// The excess at that time, thousandths of a request.
    excess: u64,
    /// Admitted requests that other limits still have to check; the bucket must not be removed.
    held: u32,
}

/// A bucket's verdict on one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The request is counted; the new excess.
    Counted(u64),
    /// The request is admitted; [`count`] or [`release`] has to follow.
    Pending,
    /// The request is refused; the excess would be this, above the burst.
    Over(u64),
    /// The zone has no room for the key.
    Full,
}

impl Bucket {
    /// Returns the excess with one more request, and the time since the last one, milliseconds.
    fn next(&self, now_ms: u64, rate: u64) -> (u64, u64) {
        let ms = elapsed(self.last_ms, now_ms);
        let leaked = rate.saturating_mul(ms) / 1000;
        (self.excess.saturating_add(1000).saturating_sub(leaked), ms)
    }

    fn count(&mut self, now_ms: u64, rate: u64) -> u64 {
        let (excess, ms) = self.next(now_ms, rate);
        self.excess = excess;
        if ms > 0 {
            self.last_ms = Some(now_ms);
        }
        excess
    }
}

/// Returns the time since the last count, milliseconds; the maximum if there is none. Clocks of threads differ
/// slightly: a time in the past counts as now.
fn elapsed(last_ms: Option<u64>, now_ms: u64) -> u64 {
    last_ms.map_or(u64::MAX, |last_ms| now_ms.saturating_sub(last_ms))
}

/// Checks one more request of a key; the last limit of a location counts it at once.
pub(crate) fn check(
    shard: &mut Shard<'_, Bucket>,
    key: &[u8],
    now_ms: u64,
    rate: u64,
    burst: u64,
    last: bool,
) -> Verdict {
    if let Some(bucket) = shard.get_mut(key) {
        let (excess, _) = bucket.next(now_ms, rate);
        if excess > burst {
            return Verdict::Over(excess);
        }
        if last {
            return Verdict::Counted(bucket.count(now_ms, rate));
        }
        bucket.held += 1;
        return Verdict::Pending;
    }
    expire(shard, now_ms, rate, false);
    let new = Bucket {
        last_ms: last.then_some(now_ms),
        excess: 0,
        held: u32::from(!last),
    };
    if shard.insert(key, new).is_err() {
        expire(shard, now_ms, rate, true);
        if shard.insert(key, new).is_err() {
            return Verdict::Full;
        }
    }
    if last {
        Verdict::Counted(0)
    } else {
        Verdict::Pending
    }
}

/// Counts a pending request; returns the excess.
pub(super) fn count(
    shard: &mut Shard<'_, Bucket>,
    key: &[u8],
    now_ms: u64,
    rate: u64,
) -> Option<u64> {
    let bucket = shard.get_mut(key)?;
    bucket.held = bucket.held.saturating_sub(1);
    Some(bucket.count(now_ms, rate))
}

/// Releases a pending request without counting it.
pub(super) fn release(shard: &mut Shard<'_, Bucket>, key: &[u8]) {
    if let Some(bucket) = shard.get_mut(key) {
        bucket.held = bucket.held.saturating_sub(1);
    }
}

/// Removes up to two keys that have been idle for a minute and are empty. With `force` the oldest key is removed first,
/// unless a request holds it.
fn expire(shard: &mut Shard<'_, Bucket>, now_ms: u64, rate: u64, force: bool) {
    for n in usize::from(!force)..3 {
        let Some(bucket) = shard.oldest() else { return };
        if bucket.held > 0 {
            return;
        }
        let ms = elapsed(bucket.last_ms, now_ms);
        if n > 0 && (ms < IDLE_MS || bucket.excess > rate.saturating_mul(ms) / 1000) {
            return;
        }
        shard.remove_oldest();
    }
}

/// A key is kept this long after its last request.
const IDLE_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use server_base::zone::Zone;

    const NOW: u64 = 1_000_000;

    #[test]
    fn the_excess_leaks_with_the_rate() {
        let zone = Zone::new(1 << 15, b"");
        let mut shard = zone.lock(b"k");
        let mut at = |ms: u64| check(&mut shard, b"k", NOW + ms, 1000, 2000, true);
        assert_eq!(at(0), Verdict::Counted(0));
        assert_eq!(at(0), Verdict::Counted(1000));
        assert_eq!(at(500), Verdict::Counted(1500));
        assert_eq!(at(500), Verdict::Over(2500));
        assert_eq!(at(1000), Verdict::Counted(2000));
        assert_eq!(at(9000), Verdict::Counted(0));
    }

    #[test]
    fn a_thread_that_is_behind_leaks_nothing() {
        assert_eq!(elapsed(Some(NOW), NOW + 1), 1);
        assert_eq!(elapsed(Some(NOW), NOW), 0);
        assert_eq!(elapsed(Some(NOW), NOW - 1), 0);
    }

    #[test]
    fn the_first_request_of_a_process_that_has_just_begun_is_within_its_rate() {
        let zone = Zone::new(1 << 15, b"");
        let mut shard = zone.lock(b"k");
        assert_eq!(check(&mut shard, b"k", 1, 1000, 0, false), Verdict::Pending);
        assert_eq!(count(&mut shard, b"k", 1, 1000), Some(0));
        assert_eq!(
            check(&mut shard, b"l", 1, 1000, 0, true),
            Verdict::Counted(0)
        );
        assert_eq!(
            check(&mut shard, b"l", 1, 1000, 0, true),
            Verdict::Over(1000)
        );
    }

    #[test]
    fn a_held_request_counts_when_all_limits_agree() {
        let zone = Zone::new(1 << 15, b"");
        let mut shard = zone.lock(b"k");
        assert_eq!(
            check(&mut shard, b"k", NOW, 1000, 0, false),
            Verdict::Pending
        );
        assert_eq!(count(&mut shard, b"k", NOW, 1000), Some(0));
        assert_eq!(
            check(&mut shard, b"k", NOW, 1000, 1000, false),
            Verdict::Pending
        );
        release(&mut shard, b"k");
        assert_eq!(
            check(&mut shard, b"k", NOW, 1000, 0, false),
            Verdict::Over(1000)
        );
    }

    #[test]
    fn a_full_zone_forgets_its_oldest_key_but_none_that_is_held() {
        let zone = Zone::new(1 << 15, b"");
        let mut shard = zone.lock(b"");
        let mut n = 0_u32;
        let counted = Bucket {
            last_ms: Some(0),
            ..Bucket::default()
        };
        while shard.insert(&n.to_be_bytes(), counted).is_ok() {
            n += 1;
        }
        assert_eq!(
            check(&mut shard, b"new", 1, 1000, 0, true),
            Verdict::Counted(0)
        );
        assert!(shard.get_mut(&0_u32.to_be_bytes()).is_none());
        if let Some(bucket) = shard.get_mut(&1_u32.to_be_bytes()) {
            bucket.held = 1;
        }
        for other in 2..n {
            shard.get_mut(&other.to_be_bytes());
        }
        assert_eq!(
            check(&mut shard, b"newer", 1, 1000, 0, true),
            Verdict::Counted(0)
        );
        assert_eq!(
            check(&mut shard, b"newer still", 1, 1000, 0, true),
            Verdict::Full
        );
        assert!(shard.get_mut(&1_u32.to_be_bytes()).is_some());
    }
}
