//! The merged settings of all levels of one scope, equal ones once.
//!
//! A level without a line for a struct inherits the settings of the level around it. All levels inside one level share
//! them. Levels of one depth share them, too, if no line around them is for that struct. Levels without any line, beside
//! each other, have one [`LayerId`]. So memory for ten thousand servers grows with their lines.

use std::ops::Range;
use std::sync::Arc;

use super::arena_lists::{ArenaList, ArenaLists};
use crate::settings_set::{
    AnyConf, Conf, PAGE, SettingsSet, SettingsSetBuilder, Unused, pages, typed, typed_mut, unshared,
};

/// All settings of one scope, and which of them each level has.
#[derive(Default)]
pub(super) struct Layers {
    /// By slot: all that were made of a definition, outer ones first.
    made: Vec<Vec<Arc<dyn AnyConf>>>,
    /// By depth and slot: those of levels that have nothing of their own, once there is such a level.
    common: Vec<Vec<Option<usize>>>,
    /// By depth: the slots of which all levels have something of their own so far.
    uncommon: Vec<Vec<usize>>,
    layers: Vec<Layer>,
    /// By layer, then by slot: the settings that are not common to the depth.
    own: Vec<(usize, usize)>,
    /// Settings derived for levels inside a layer that write nothing of a definition, by slot, unless they are
    /// common.
    derived: ArenaLists<(usize, usize)>,
}

/// The settings of a level, or of several equal ones.
struct Layer {
    depth: usize,
    /// Its own part of [`Layers::own`].
    own: Range<usize>,
    /// Its part of [`Layers::derived`].
    derived: ArenaList,
    /// The level inside that writes nothing.
    plain: Option<LayerId>,
}

/// A layer by its index.
#[derive(Clone, Copy, Default)]
pub(super) struct LayerId(usize);

/// Settings by slot and by index among those of the definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettingsIndex(usize, usize);

impl SettingsIndex {
    /// The second of the two.
    pub(super) fn index(self) -> usize {
        self.1
    }
}

impl LayerId {
    /// Its settings among those that [`Layers::finish`] gave.
    pub(super) fn of(self, all: &[SettingsSet]) -> SettingsSet {
        all[self.0].clone()
    }
}

impl Layers {
    /// Merges the level around all others, which has every definition.
    pub(super) fn outermost(&mut self, mut written: SettingsSetBuilder) -> LayerId {
        debug_assert!(self.layers.is_empty(), "there is one such level");
        written.merge();
        let mut defs = written.into_defs();
        defs.sort_by_key(|(slot, _)| *slot);
        self.made = defs.into_iter().map(|(_, conf)| vec![conf]).collect();
        self.common = vec![vec![Some(0); self.made.len()]];
        self.uncommon = vec![Vec::new()];
        self.push(0, 0)
    }

    /// Merges a level with the one around it.
    pub(super) fn inside(
        &mut self,
        around: LayerId,
        written: impl Iterator<Item = (usize, Arc<dyn AnyConf>)>,
    ) -> LayerId {
        let mut written = written.peekable();
        let is_plain = written.peek().is_none();
        if is_plain && let Some(plain) = self.layers[around.0].plain {
            return plain;
        }
        let start = self.own.len();
        for (slot, mut conf) in written {
            let outer = &self.made[slot][self.index(around, slot)];
            unshared(&mut conf).merge_any(Some(&**outer));
            self.made[slot].push(conf);
            self.own.push((slot, self.made[slot].len() - 1));
        }
        for at in self.layers[around.0].own.clone() {
            let (slot, outer) = self.own[at];
            if !self.is_own(start, slot) {
                let index = self.find_or_derive(around, slot, outer);
                self.own.push((slot, index));
            }
        }
        self.own[start..].sort_unstable();
        let depth = self.layers[around.0].depth + 1;
        self.add_common(depth, start);
        let id = self.push(depth, start);
        if is_plain {
            self.layers[around.0].plain = Some(id);
        }
        id
    }

    /// Whether the last layer has own settings at a slot; they begin at `start`.
    fn is_own(&self, start: usize, slot: usize) -> bool {
        self.own[start..].iter().any(|(known, _)| *known == slot)
    }

    fn push(&mut self, depth: usize, start: usize) -> LayerId {
        self.layers.push(Layer {
            depth,
            own: start..self.own.len(),
            derived: ArenaList::default(),
            plain: None,
        });
        LayerId(self.layers.len() - 1)
    }

    /// The settings of one slot for levels inside `around` that write none of them.
    fn find_or_derive(&mut self, around: LayerId, slot: usize, outer: usize) -> usize {
        let mut known = self.derived.iter(self.layers[around.0].derived);
        if let Some((_, index)) = known.find(|(known, _)| *known == slot) {
            return *index;
        }
        drop(known);
        let index = self.derive(slot, outer);
        let list = &mut self.layers[around.0].derived;
        self.derived.push(list, (slot, index));
        index
    }

    /// Derives the settings of a level that writes nothing of a definition.
    fn derive(&mut self, slot: usize, outer: usize) -> usize {
        let outer = &self.made[slot][outer];
        let mut conf = outer.create();
        unshared(&mut conf).merge_any(Some(&**outer));
        self.made[slot].push(conf);
        self.made[slot].len() - 1
    }

    /// Makes the settings that levels of this depth share if they write nothing. Only settings in use are made,
    /// since modules check all existing ones.
    fn add_common(&mut self, depth: usize, start: usize) {
        if self.common.len() == depth {
            self.common.push(vec![None; self.made.len()]);
            self.uncommon.push((0..self.made.len()).collect());
        }
        let mut uncommon = std::mem::take(&mut self.uncommon[depth]);
        uncommon.retain(|slot| {
            let is_own = self.is_own(start, *slot);
            if !is_own {
                let outer = self.common[depth - 1][*slot];
                let outer = outer.expect("the level around has nothing of its own either");
                self.common[depth][*slot] = Some(self.derive(*slot, outer));
            }
            is_own
        });
        self.uncommon[depth] = uncommon;
    }

    fn index(&self, layer: LayerId, slot: usize) -> usize {
        let layer = &self.layers[layer.0];
        let own = &self.own[layer.own.clone()];
        match own.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(at) => own[at].1,
            Err(_) => self.common[layer.depth][slot].expect("made with the level"),
        }
    }

    /// The index of a level's settings of type `T`.
    pub(super) fn place<T: Conf>(&self, layer: LayerId) -> SettingsIndex {
        let slot = T::def().slot();
        SettingsIndex(slot, self.index(layer, slot))
    }

    /// The settings of a place.
    pub(super) fn at_mut<T: Conf>(&mut self, place: SettingsIndex) -> &mut T {
        typed_mut(&mut self.made[place.0][place.1])
    }

    /// The settings `T` of a level.
    pub(super) fn get<T: Conf>(&self, layer: LayerId) -> &T {
        let SettingsIndex(slot, index) = self.place::<T>(layer);
        typed(&*self.made[slot][index]).expect("settings are read at their own scope")
    }

    /// Number of settings `T`, of which each is one of a [`SettingsIndex`].
    pub(super) fn count<T: Conf>(&self) -> usize {
        self.made[T::def().slot()].len()
    }

    /// Makes room for more levels.
    pub(super) fn reserve(&mut self, levels: usize) {
        self.layers.reserve(levels);
    }

    /// All settings `T`.
    pub(super) fn all_mut<T: Conf>(&mut self) -> impl Iterator<Item = &mut T> {
        self.made[T::def().slot()].iter_mut().map(typed_mut)
    }

    /// The finished settings of all layers, by [`LayerId`].
    pub(super) fn finish(mut self) -> Vec<SettingsSet> {
        let unused: Arc<dyn AnyConf> = Arc::new(Unused);
        let common = self.common.iter().map(|common| {
            pages(|slot| {
                let at = common.get(slot).copied().flatten();
                Arc::clone(at.map_or(&unused, |at| &self.made[slot][at]))
            })
        });
        let common: Vec<_> = common.collect();
        // By slot and index: the number of layers that use them. The last layer takes them: reference counts would
        // touch memory all over the heap.
        let mut users: Vec<Vec<u32>> = self.made.iter().map(|made| vec![0; made.len()]).collect();
        for (slot, at) in &self.own {
            users[*slot][*at] += 1;
        }
        let confs = self.layers.iter().map(|layer| {
            let mut pages = common[layer.depth].clone();
            for (slot, at) in &self.own[layer.own.clone()] {
                let (made, users) = (&mut self.made[*slot][*at], &mut users[*slot][*at]);
                *users -= 1;
                let page = Arc::make_mut(&mut pages[slot / PAGE]);
                page[slot % PAGE] = match *users {
                    0 => std::mem::replace(made, Arc::clone(&unused)),
                    _ => Arc::clone(made),
                };
            }
            SettingsSet::new(pages)
        });
        confs.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::settings_set::{PAGES, SLOTS_MAX, Scope, SettingsDef};

    /// Settings at slot `N`.
    #[derive(Default)]
    struct At<const N: usize>(Option<u32>);

    /// As many definitions as a level has places; those without a test have the settings of the first.
    static DEFS: LazyLock<Vec<&'static SettingsDef>> = LazyLock::new(|| {
        let defs = (0..SLOTS_MAX).map(|slot| {
            let create: fn() -> Arc<dyn AnyConf> = match slot {
                7 => || Arc::new(At::<7>::default()),
                8 => || Arc::new(At::<8>::default()),
                63 => || Arc::new(At::<63>::default()),
                _ => || Arc::new(At::<0>::default()),
            };
            &*Box::leak(Box::new(SettingsDef::new(Scope::Location, create)))
        });
        let defs: Vec<_> = defs.collect();
        SettingsDef::number(&defs);
        defs
    });

    impl<const N: usize> Conf for At<N> {
        fn def() -> &'static SettingsDef {
            DEFS[N]
        }

        fn merge(&mut self, parent: Option<&Self>) {
            let around = parent.and_then(|parent| parent.0);
            self.0 = self.0.or(around).or(Some(0));
        }
    }

    fn values(set: &SettingsSet) -> [Option<u32>; 4] {
        [
            set.get::<At<0>>().0,
            set.get::<At<7>>().0,
            set.get::<At<8>>().0,
            set.get::<At<63>>().0,
        ]
    }

    #[test]
    fn a_level_has_pages_of_its_own_where_it_writes() {
        let mut layers = Layers::default();
        let outer = layers.outermost(SettingsSetBuilder::of_all(&DEFS, Scope::Location));
        let plain = layers.inside(outer, std::iter::empty());
        let mut written = SettingsSetBuilder::default();
        written.get_mut::<At<7>>().0 = Some(7);
        let first = layers.inside(outer, written.into_defs().into_iter());
        let mut written = SettingsSetBuilder::default();
        written.get_mut::<At<8>>().0 = Some(8);
        written.get_mut::<At<63>>().0 = Some(9);
        let second = layers.inside(outer, written.into_defs().into_iter());
        let inner = layers.inside(second, std::iter::empty());
        let all = layers.finish();
        let [plain, first, second, inner] = [plain, first, second, inner].map(|id| id.of(&all));
        assert_eq!(values(&plain), [0, 0, 0, 0].map(Some));
        assert_eq!(values(&first), [0, 7, 0, 0].map(Some));
        assert_eq!(values(&second), [0, 0, 8, 9].map(Some));
        assert_eq!(values(&inner), [0, 0, 8, 9].map(Some));
        let own = |set: &SettingsSet| {
            let pages = (0..PAGES).filter(|page| !plain.shares_page(set, *page));
            pages.collect::<Vec<_>>()
        };
        assert_eq!(own(&first), [0]);
        assert_eq!(own(&second), [1, 7]);
    }

    #[test]
    #[should_panic(expected = "more definitions than a level has places")]
    fn one_definition_more_than_there_are_places_is_refused() {
        let more = [DEFS.as_slice(), &DEFS[..1]].concat();
        SettingsDef::number(&more);
    }
}
