//! The open streams of a connection, by their numbers.
//!
//! Numbers of each side only grow, so a sorted list is searched by bisection and grows at or near its end. Removed
//! values are kept for the next stream, so that their memory is reused.

/// Streams by number.
#[derive(Debug)]
pub struct StreamTable<T> {
    /// Number and place, sorted by number.
    index: Vec<(u32, u32)>,
    places: Vec<T>,
    free: Vec<u32>,
    /// Number and place of the last stream looked up; most calls look it up again. Number 0 is no stream.
    recent: (u32, u32),
}

impl<T> Default for StreamTable<T> {
    fn default() -> Self {
        Self {
            index: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            recent: (0, 0),
        }
    }
}

impl<T> StreamTable<T> {
    /// Bytes of memory of the table, without memory that streams refer to.
    pub(crate) fn memory_bytes(&self) -> usize {
        let places = self.places.capacity() * size_of::<T>();
        places + self.index.capacity() * 8 + self.free.capacity() * 4
    }

    /// Returns the number of streams.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the table is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Adds a stream and returns its value to be filled: a removed stream's value for reuse, or a new one.
    pub fn insert_with(&mut self, id: u32, make: impl FnOnce() -> T) -> &mut T {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(make());
            (self.places.len() - 1) as u32
        });
        match self.index.last() {
            // Server and client number their streams separately, so the new number may be lower than the last.
            Some((last, _)) if *last > id => {
                let at = self.index.partition_point(|(other, _)| *other < id);
                self.index.insert(at, (id, place));
            }
            _ => self.index.push((id, place)),
        }
        self.recent = (id, place);
        &mut self.places[place as usize]
    }

    /// The stream of a number.
    #[inline]
    pub fn get(&mut self, id: u32) -> Option<&mut T> {
        if self.recent.0 != id || id == 0 {
            self.recent = self.index[self.at(id)?];
        }
        self.places.get_mut(self.recent.1 as usize)
    }

    /// Removes a stream; its value is reused for the next one.
    pub fn remove(&mut self, id: u32) -> bool {
        let Some(at) = self.at(id) else { return false };
        let (_, place) = self.index.remove(at);
        self.recent = (0, 0);
        self.free.push(place);
        true
    }

    /// Every stream with its number, in the order of numbers.
    pub fn each(&mut self, mut visit: impl FnMut(u32, &mut T)) {
        for (id, place) in &self.index {
            visit(*id, &mut self.places[*place as usize]);
        }
    }

    /// The numbers of all streams.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.index.iter().map(|(id, _)| *id)
    }

    fn at(&self, id: u32) -> Option<usize> {
        self.index.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_removed_and_used_again() {
        let mut table = StreamTable::default();
        for id in [1, 3, 5] {
            *table.insert_with(id, || 0) = id * 10;
        }
        assert!(table.remove(3) && !table.remove(3));
        assert_eq!(table.get(3), None);
        assert_eq!(table.get(5).copied(), Some(50));
        assert_eq!(*table.insert_with(7, || 0), 30);
        *table.insert_with(2, || 0) = 20;
        assert_eq!(table.ids().collect::<Vec<_>>(), [1, 2, 5, 7]);
        assert_eq!((table.get(2).copied(), table.len()), (Some(20), 4));
    }
}
