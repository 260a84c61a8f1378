//! The requests of a connection that are under way, found by the number of their stream in one step.
//!
//! Numbers of a connection only grow, by 1 or 2, so the place of one is its distance from the oldest.

use std::collections::VecDeque;

/// A request under way; times are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// When it should have been sent: at a constant rate by its schedule, else when it was.
    pub(crate) intended_ns: u64,
    /// When it was sent.
    pub(crate) sent_ns: u64,
    /// When its head came; 0 before.
    pub(crate) first_ns: u64,
    pub(crate) status: u16,
}

#[derive(Debug)]
pub(crate) struct Flights {
    /// Number of the first place.
    base: u32,
    step: u32,
    places: VecDeque<Option<Flight>>,
    count: usize,
}

impl Flights {
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
    pub(crate) fn push(&mut self, stream: u32, flight: Flight) {
        if self.places.is_empty() {
            self.base = stream;
        }
        while self.base + self.places.len() as u32 * self.step < stream {
            self.places.push_back(None);
        }
        self.places.push_back(Some(flight));
        self.count += 1;
    }

    #[inline]
    pub(crate) fn get(&mut self, stream: u32) -> Option<&mut Flight> {
        let at = stream.checked_sub(self.base)? / self.step;
        self.places.get_mut(at as usize)?.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, stream: u32) -> Option<Flight> {
        let at = stream.checked_sub(self.base)? / self.step;
        let flight = self.places.get_mut(at as usize)?.take()?;
        self.count -= 1;
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.base += self.step;
        }
        Some(flight)
    }

    /// The one that was sent first.
    pub(crate) fn oldest(&self) -> Option<&Flight> {
        self.places.front()?.as_ref()
    }

    /// Takes all.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Flight> {
        self.count = 0;
        self.places.drain(..).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(sent_ns: u64) -> Flight {
        Flight {
            intended_ns: sent_ns,
            sent_ns,
            first_ns: 0,
            status: 0,
        }
    }

    #[test]
    fn flights_are_found_in_any_order() {
        let mut flights = Flights::new(2);
        for stream in [1, 3, 7] {
            flights.push(stream, flight(u64::from(stream)));
        }
        assert_eq!(flights.len(), 3);
        assert_eq!(flights.remove(3).map(|one| one.sent_ns), Some(3));
        assert!(flights.remove(3).is_none() && flights.get(5).is_none());
        assert_eq!(flights.oldest().map(|one| one.sent_ns), Some(1));
        assert_eq!(flights.remove(1).map(|one| one.sent_ns), Some(1));
        assert_eq!(flights.oldest().map(|one| one.sent_ns), Some(7));
        assert_eq!(flights.drain().count(), 1);
        flights.push(9, flight(9));
        assert_eq!(flights.get(9).map(|one| one.sent_ns), Some(9));
    }
}
