//! Counts of responses by their status.

/// Numbers of responses by status, in ascending order of the status. Memory grows with the number of different statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeCounts(Vec<(u16, u64)>);

impl CodeCounts {
    /// No responses.
    pub const EMPTY: Self = Self(Vec::new());

    /// Counts a response.
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.add_of(status, 1);
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (status, count) in &other.0 {
            self.add_of(*status, *count);
        }
    }

    /// Returns the statuses that were counted, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.0.iter().copied()
    }

    /// Returns the number of all responses.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Returns the numbers of responses with statuses 1xx to 5xx.
    pub fn classes(&self) -> [u64; 5] {
        let mut classes = [0; 5];
        for (status, count) in &self.0 {
            let class = usize::from(status / 100).checked_sub(1);
            if let Some(sum) = class.and_then(|class| classes.get_mut(class)) {
                *sum += count;
            }
        }
        classes
    }

    fn add_of(&mut self, status: u16, count: u64) {
        match self.0.binary_search_by_key(&status, |(known, _)| *known) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (status, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_in_order_and_by_class() {
        let mut counts = CodeCounts::EMPTY;
        for status in [404, 200, 599, 200, 100, 999, 0] {
            counts.count(status);
        }
        let all: Vec<(u16, u64)> = counts.iter().collect();
        assert_eq!(
            all,
            [(0, 1), (100, 1), (200, 2), (404, 1), (599, 1), (999, 1)]
        );
        assert_eq!(counts.classes(), [1, 2, 0, 1, 1]);
        assert_eq!(counts.total(), 7);
        let mut sum = counts.clone();
        sum.add(&counts);
        assert_eq!(sum.total(), 14);
        assert_eq!(sum.classes(), [2, 4, 0, 2, 2]);
    }
}
