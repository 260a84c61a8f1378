//! What modules keep with an exchange until it ends: what they decided about it, what they hold for it.

use std::any::Any;

/// Values of modules, by their type; dropped when the exchange ends.
#[derive(Default)]
pub struct Guards(Vec<Box<dyn Any>>);

impl Guards {
    /// The value of a type, the first where there are several.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|guard| guard.downcast_ref())
    }

    /// The same, to be changed.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|guard| guard.downcast_mut())
    }

    /// Adds a value beside those of its type.
    pub fn push<T: Any>(&mut self, guard: T) {
        self.0.push(Box::new(guard));
    }

    /// Adds a value in the place of those of its type.
    pub fn set<T: Any>(&mut self, guard: T) {
        self.drop_all::<T>();
        self.push(guard);
    }

    /// Drops the values of a type.
    pub fn drop_all<T: Any>(&mut self) {
        self.0.retain(|guard| !guard.is::<T>());
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_type() {
        let mut guards = Guards::default();
        guards.push(1_u8);
        guards.push(2_u8);
        guards.push(3_u16);
        assert_eq!(guards.get::<u8>(), Some(&1));
        guards.set(4_u8);
        assert_eq!(guards.get::<u8>(), Some(&4));
        guards.drop_all::<u8>();
        assert_eq!((guards.get::<u8>(), guards.get::<u16>()), (None, Some(&3)));
    }
}
