//! The requests of a connection that are in progress, found by stream identifier in one step.
//!
//! Numbers of a connection only grow, by 1 or 2, so the place of one is its distance from the oldest.

use std::collections::VecDeque;

/// A request and the state of its response; times are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When it should have been sent: at a constant rate by its schedule, else when it was.
    pub(crate) intended_ns: u64,
    /// When it was sent.
    pub(crate) sent_ns: u64,
    /// Time of the response head; 0 before.
    pub(crate) first_byte_ns: u64,
    /// The status in that head; 0 before.
    pub(crate) status: u16,
}

/// Requests in progress, by stream.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Number of the first place.
    base: u32,
    step: u32,
    places: VecDeque<Option<Exchange>>,
    count: usize,
}

impl InFlight {
    pub(crate) fn new(step: u32) -> Self {
        Self {
            base: 1,
            step,
            places: VecDeque::new(),
            count: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds the next one; numbers that were skipped have none.
    #[inline]
    pub(crate) fn push(&mut self, stream: u32, exchange: Exchange) {
        if self.places.is_empty() {
            self.base = stream;
        }
        while self.base + self.places.len() as u32 * self.step < stream {
            self.places.push_back(None);
        }
        self.places.push_back(Some(exchange));
        self.count += 1;
    }

    #[inline]
    pub(crate) fn get(&mut self, stream: u32) -> Option<&mut Exchange> {
        let at = stream.checked_sub(self.base)? / self.step;
        self.places.get_mut(at as usize)?.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, stream: u32) -> Option<Exchange> {
        let at = stream.checked_sub(self.base)? / self.step;
        let exchange = self.places.get_mut(at as usize)?.take()?;
        self.count -= 1;
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.base += self.step;
        }
        Some(exchange)
    }

    /// The one that was sent first.
    pub(crate) fn oldest(&self) -> Option<&Exchange> {
        self.places.front()?.as_ref()
    }

    /// Removes all; returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        self.places.clear();
        std::mem::take(&mut self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(sent_ns: u64) -> Exchange {
        Exchange {
            intended_ns: sent_ns,
            sent_ns,
            first_byte_ns: 0,
            status: 0,
        }
    }

    #[test]
    fn exchanges_are_found_in_any_order() {
        let mut in_flight = InFlight::new(2);
        for stream in [1, 3, 7] {
            in_flight.push(stream, exchange(u64::from(stream)));
        }
        assert_eq!(in_flight.len(), 3);
        assert_eq!(in_flight.remove(3).map(|one| one.sent_ns), Some(3));
        assert!(in_flight.remove(3).is_none() && in_flight.get(5).is_none());
        assert_eq!(in_flight.oldest().map(|one| one.sent_ns), Some(1));
        assert_eq!(in_flight.remove(1).map(|one| one.sent_ns), Some(1));
        assert_eq!(in_flight.oldest().map(|one| one.sent_ns), Some(7));
        assert_eq!(in_flight.clear(), 1);
        in_flight.push(9, exchange(9));
        assert_eq!(in_flight.get(9).map(|one| one.sent_ns), Some(9));
    }
}
