//! Generations by which workers may still serve, until one of them is ready for the current generation.
//!
//! Several may be sent to a worker before it answers. It answers for each in turn. `Ready` for one makes all before it
//! unnecessary. A refused one is removed, and if it is the newest, the one before it becomes current again. Absent: the
//! content of a generation.

/// Generations with their numbers, oldest first: the one that a worker was ready for, and those sent since.
#[derive(Debug)]
pub(super) struct PendingGenerations<G>(Vec<(u64, G)>);

impl<G> PendingGenerations<G> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the one that was current until now. Past `PENDING_MAX` one goes that no worker was ready for; it is
    /// given back.
    pub(super) fn push(&mut self, number: u64, generation: G) -> Option<G> {
        let unanswered = (self.0.len() == PENDING_MAX).then(|| self.0.remove(1).1);
        self.0.push((number, generation));
        unanswered
    }

    /// Notes that a worker is ready for this generation; returns those before it.
    pub(super) fn settle(&mut self, number: u64) -> Vec<G> {
        let older = self.0.iter().take_while(|(other, _)| *other < number);
        let count = older.count();
        self.0.drain(..count).map(|(_, one)| one).collect()
    }

    /// A worker has refused this one.
    pub(super) fn remove(&mut self, number: u64) -> Option<G> {
        let at = self.0.iter().position(|(other, _)| *other == number)?;
        Some(self.0.remove(at).1)
    }

    /// The number of the newest.
    pub(super) fn last(&self) -> Option<u64> {
        self.0.last().map(|(number, _)| *number)
    }

    /// Removes the newest, which becomes current again.
    pub(super) fn pop(&mut self) -> Option<G> {
        self.0.pop().map(|(_, one)| one)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &G> {
        self.0.iter().map(|(_, one)| one)
    }

    /// Removes all.
    pub(super) fn clear(&mut self) -> Vec<G> {
        self.settle(u64::MAX)
    }
}

/// Maximum number of earlier generations that a worker may still serve.
const PENDING_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(numbers: impl IntoIterator<Item = u64>) -> PendingGenerations<u64> {
        let mut earlier = PendingGenerations::new();
        for number in numbers {
            assert_eq!(earlier.push(number, number), None);
        }
        earlier
    }

    #[test]
    fn refusal_of_the_newest_goes_back_to_what_the_worker_took_last() {
        // Two were sent before an answer: the worker accepts 2 and refuses 3, which is current.
        let mut earlier = earlier([1, 2]);
        assert_eq!(earlier.settle(2), [1]);
        assert_eq!((earlier.last(), earlier.pop()), (Some(2), Some(2)));
        assert!(earlier.is_empty());
    }

    #[test]
    fn refusal_of_one_between_leaves_the_others() {
        let mut earlier = earlier([1, 2, 3]);
        assert_eq!(earlier.remove(2), Some(2));
        assert_eq!(earlier.remove(2), None);
        assert_eq!(earlier.settle(3), [1]);
        assert_eq!(earlier.clear(), [3]);
    }

    #[test]
    fn being_ready_for_the_current_one_leaves_none() {
        let mut earlier = earlier([1, 2]);
        assert_eq!(earlier.settle(3), [1, 2]);
        assert_eq!(earlier.iter().count(), 0);
    }

    #[test]
    fn past_the_limit_one_without_an_answer_goes() {
        let most = PENDING_MAX as u64;
        let mut earlier = earlier(1..=most);
        assert_eq!(earlier.push(most + 1, most + 1), Some(2));
        assert_eq!(earlier.settle(3), [1]);
        assert_eq!(earlier.iter().count(), PENDING_MAX - 1);
    }
}
