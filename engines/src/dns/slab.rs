//! Values by generation-tagged key: a key of a removed value finds nothing.

/// Identifies one value as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    life: u32,
}

impl Key {
    /// The key as a number, for callers that keep it in one.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        u64::from(self.life) << 32 | u64::from(self.index)
    }
}

/// Values by key.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    life: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a value. The limits of the resolver keep the slots far below 2^32.
    pub(super) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                life: 0,
                value: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        Key {
            index,
            life: slot.life,
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        slot.value.as_ref().filter(|_| slot.life == key.life)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        let life = slot.life;
        slot.value.as_mut().filter(|_| life == key.life)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.life != key.life {
            return None;
        }
        let value = slot.value.take()?;
        slot.life = slot.life.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let key = Key {
                index: index as u32,
                life: slot.life,
            };
            Some((key, slot.value.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlives_nothing() {
        let mut slab = Slab::new();
        let a = slab.insert('a');
        assert_eq!(slab.remove(a), Some('a'));
        let b = slab.insert('b');
        assert_eq!(slab.get(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!((slab.get(b), slab.len()), (Some(&'b'), 1));
        assert_ne!(a.to_bits(), b.to_bits());
        assert_eq!(slab.iter().count(), 1);
    }
}
