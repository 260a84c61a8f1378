//! Short lists of many owners in one buffer.
//!
//! With ten thousand levels, a buffer for each list would fragment the heap, since it is freed after the build.

use std::num::NonZero;

/// Elements of all lists; each list is known by its [`ArenaList`].
pub(super) struct ArenaLists<T>(Vec<Link<T>>);

/// The last element of a list, by its place in [`ArenaLists`]; an empty list by default.
#[derive(Clone, Copy, Default)]
pub(super) struct ArenaList(Option<NonZero<u32>>);

struct Link<T> {
    value: T,
    before: ArenaList,
}

impl<T> Default for ArenaLists<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ArenaLists<T> {
    /// Adds an element to a list.
    pub(super) fn push(&mut self, list: &mut ArenaList, value: T) {
        let before = *list;
        self.0.push(Link { value, before });
        let place = u32::try_from(self.0.len()).expect("a configuration has fewer settings");
        list.0 = NonZero::new(place);
    }

    /// The elements of a list, the last one first.
    pub(super) fn iter(&self, list: ArenaList) -> impl Iterator<Item = &T> {
        self.places(list).map(|at| &self.0[at].value)
    }

    /// The element of a list for which `is` returns true; of several, the last.
    pub(super) fn find_mut(&mut self, list: ArenaList, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        let at = self.places(list).find(|at| is(&self.0[*at].value))?;
        Some(&mut self.0[at].value)
    }

    fn places(&self, list: ArenaList) -> impl Iterator<Item = usize> {
        let at = |list: ArenaList| list.0.map(|place| place.get() as usize - 1);
        std::iter::successors(at(list), move |place| at(self.0[*place].before))
    }

    /// Takes the elements of a list out, the last one first.
    pub(super) fn take(&mut self, list: ArenaList) -> impl Iterator<Item = T>
    where
        T: Default,
    {
        let mut next = list;
        std::iter::from_fn(move || {
            let link = &mut self.0[next.0?.get() as usize - 1];
            next = link.before;
            Some(std::mem::take(&mut link.value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_a_buffer() {
        let mut all = ArenaLists::default();
        let (mut first, mut second) = (ArenaList::default(), ArenaList::default());
        for number in 0..4 {
            all.push(&mut first, number);
            all.push(&mut second, 10 * number);
        }
        assert!(all.iter(first).eq(&[3, 2, 1, 0]));
        assert!(all.iter(second).eq(&[30, 20, 10, 0]));
        *all.find_mut(first, |number| *number == 2).unwrap() = 7;
        assert!(all.find_mut(first, |number| *number == 20).is_none());
        assert!(all.take(first).eq([3, 7, 1, 0]));
        assert!(all.take(ArenaList::default()).next().is_none());
        assert!(all.iter(second).eq(&[30, 20, 10, 0]));
    }
}
