//! A slab with generation-tagged keys, in chunks that never move.
//!
//! A key is valid for one life of a slot: a late event or timer of a closed connection finds nothing.

/// Identifies one life of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The slot.
    pub index: u32,
    /// Which of its lives.
    pub life: u32,
}

impl Key {
    /// The key of no value: tables have fewer slots.
    pub const NONE: Self = Self {
        index: u32::MAX,
        life: 0,
    };

    /// The key as the token of a poller.
    pub fn token(self) -> u64 {
        u64::from(self.life) << 32 | u64::from(self.index)
    }

    /// The key of a token, for entries of any kind.
    pub fn from_token(token: u64) -> Self {
        Self {
            index: token as u32,
            life: (token >> 32) as u32 & LIFE_MASK,
        }
    }
}

/// Values by key.
pub struct Slab<T> {
    chunks: Vec<Vec<Slot<T>>>,
    free: Vec<u32>,
    len: usize,
}

struct Slot<T> {
    life: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    /// Bytes of one value with its slot.
    pub const SLOT_BYTES: usize = size_of::<Slot<T>>();

    /// An empty slab.
    pub fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value.
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK];
            slot.value = Some(value);
            return Key {
                index,
                life: slot.life,
            };
        }
        if self.chunks.last().is_none_or(|c| c.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        chunk.push(Slot {
            life: 0,
            value: Some(value),
        });
        Key {
            index: (last * CHUNK + chunk.len() - 1) as u32,
            life: 0,
        }
    }

    /// The value of a key, if its life has not ended.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self
            .chunks
            .get_mut(key.index as usize / CHUNK)?
            .get_mut(key.index as usize % CHUNK)?;
        if slot.life == key.life {
            slot.value.as_mut()
        } else {
            None
        }
    }

    /// Takes a value out; its key is dead from here on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self
            .chunks
            .get_mut(key.index as usize / CHUNK)?
            .get_mut(key.index as usize % CHUNK)?;
        if slot.life != key.life {
            return None;
        }
        let value = slot.value.take()?;
        slot.life = slot.life.wrapping_add(1) & LIFE_MASK;
        self.free.push(key.index);
        self.len -= 1;
        Some(value)
    }

    /// The key of the value now in a slot.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self
            .chunks
            .get(index as usize / CHUNK)?
            .get(index as usize % CHUNK)?;
        slot.value.as_ref().map(|_| Key {
            index,
            life: slot.life,
        })
    }

    /// Returns the number of slots, used or free.
    pub fn slots(&self) -> u32 {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        (full + self.chunks.last().map_or(0, Vec::len)) as u32
    }

    /// The keys of all values.
    pub fn keys(&self) -> Vec<Key> {
        (0..self.slots())
            .filter_map(|index| self.key_at(index))
            .collect()
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Slots of one allocation.
const CHUNK: usize = 256;
/// Lives stay below the kind of a token ([`super::tables`]), and below the tokens that the loop uses for itself.
const LIFE_MASK: u32 = 0x0fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_key_finds_nothing() {
        let mut slab = Slab::new();
        let a = slab.insert('a');
        assert_eq!(slab.remove(a), Some('a'));
        let b = slab.insert('b');
        assert_eq!(a.index, b.index);
        assert_eq!(slab.get_mut(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.get_mut(b), Some(&mut 'b'));
        assert_eq!(Key::from_token(b.token()), b);
    }

    #[test]
    fn slots_grow_by_chunks_and_are_reused() {
        let mut slab = Slab::new();
        let keys: Vec<Key> = (0..600).map(|n| slab.insert(n)).collect();
        assert_eq!(slab.len(), 600);
        for key in &keys[100..200] {
            slab.remove(*key);
        }
        assert_eq!(slab.keys().len(), 500);
        assert!(slab.insert(1).index < 200);
    }
}
