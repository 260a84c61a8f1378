//! Responses by status.

/// Responses by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses(Vec<(u16, u64)>);

impl Statuses {
    /// Counts a response. Servers answer with few different statuses, so the search is short.
    #[inline]
    pub(super) fn count(&mut self, status: u16) {
        self.add_times(status, 1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (status, times) in &other.0 {
            self.add_times(*status, *times);
        }
    }

    #[inline]
    fn add_times(&mut self, status: u16, times: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += times,
            None => self.0.push((status, times)),
        }
    }

    /// Each status with its count, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_and_added() {
        let mut own = Statuses::default();
        let mut other = Statuses::default();
        [200, 404, 200].iter().for_each(|status| own.count(*status));
        [404, 503].iter().for_each(|status| other.count(*status));
        own.add(&other);
        let mut all: Vec<_> = own.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [(200, 2), (404, 2), (503, 1)]);
    }
}
