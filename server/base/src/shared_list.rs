//! Lists of settings that a level shares with its inner levels, so that ten thousand locations do not copy a list of the
//! server.

use std::ops::Deref;
use std::sync::Arc;

/// A list; cheap to clone, without an allocation while empty.
#[derive(Debug)]
pub struct SharedList<T>(Option<Arc<Vec<T>>>);

impl<T: Clone> SharedList<T> {
    /// Adds an item; a list that is shared is copied before.
    pub fn push(&mut self, item: T) {
        Arc::make_mut(self.0.get_or_insert_default()).push(item);
    }

    /// Adds the items of another list; an empty list shares them.
    pub fn append(&mut self, other: &Self) {
        match &mut self.0 {
            Some(own) => Arc::make_mut(own).extend_from_slice(other),
            None => self.0.clone_from(&other.0),
        }
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<'l, T> IntoIterator for &'l SharedList<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> Self {
        Self((!list.is_empty()).then(|| Arc::new(list)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_adds_to_its_list_leaves_that_of_the_level_around_it() {
        let mut outer = SharedList::default();
        outer.push(1);
        let mut inner = SharedList::default();
        inner.append(&outer);
        assert!(std::ptr::eq(&*inner, &*outer), "it is the same list");
        inner.push(2);
        assert_eq!((&*outer, &*inner), (&[1][..], &[1, 2][..]));
        inner.append(&outer);
        assert_eq!(&*inner, &[1, 2, 1]);
    }
}
