//! The values of directives: one typed struct for each module and scope, found by its slot.
//!
//! A module declares a struct of [`Setting`](conf::Setting)s with `settings!`; the builder makes one for `http`, one for
//! each server or location, and merges child with parent at the end. At run time [`SettingsSet::get`] is an index
//! and a type check.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use server_base::config::ConfigContext;
use server_base::shared_list::SharedList;

/// At which level of nesting a struct of settings exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Once for `http`.
    Main,
    /// For `http` and each `server`.
    Server,
    /// For `http`, each `server`, each `location`, `if` and `limit_except`.
    Location,
}

/// A struct of settings.
pub trait Conf: Any + Send + Sync + Default {
    /// Its description and slot.
    fn def() -> &'static SettingsDef;

    /// Takes unset values from `parent`, else the defaults. Called once, parents first; without a parent it only
    /// fills in defaults.
    fn merge(&mut self, parent: Option<&Self>);
}

/// A configuration that is being read, as the rows of settings need it.
pub trait SettingsContext: ConfigContext + 'static {
    /// The settings of the innermost open level of their scope.
    fn settings<T: Conf>(&mut self) -> &mut T;
}

/// A value beside the plain settings that a level may lack.
pub trait Optional: Clone {
    /// Whether the level lacks it.
    fn is_missing(&self) -> bool;
}

impl<T: Clone> Optional for Option<T> {
    fn is_missing(&self) -> bool {
        self.is_none()
    }
}

impl<T: Clone> Optional for Vec<T> {
    fn is_missing(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Clone> Optional for SharedList<T> {
    fn is_missing(&self) -> bool {
        self.is_empty()
    }
}

/// Takes the parent's value if a level lacks one: the merge of most values beside the plain settings.
pub fn inherited<T: Optional>(own: &mut T, parent: Option<&T>) {
    if let Some(parent) = parent
        && own.is_missing()
    {
        own.clone_from(parent);
    }
}

/// The type-erased form of [`Conf`].
pub trait AnyConf: Any + Send + Sync {
    /// See [`Conf::merge`].
    fn merge_any(&mut self, parent: Option<&dyn AnyConf>);

    /// Empty settings of the same definition.
    fn create(&self) -> Arc<dyn AnyConf>;
}

impl<T: Conf> AnyConf for T {
    fn merge_any(&mut self, parent: Option<&dyn AnyConf>) {
        self.merge(parent.and_then(typed));
    }

    fn create(&self) -> Arc<dyn AnyConf> {
        (T::def().create)()
    }
}

/// The struct of settings behind its erased form.
pub(crate) fn typed<T: Conf>(conf: &dyn AnyConf) -> Option<&T> {
    let any: &dyn Any = conf;
    any.downcast_ref()
}

/// The description of a struct of settings: its scope, its constructor and the slot it was given.
#[derive(Debug)]
pub struct SettingsDef {
    /// The kind of levels that have it.
    pub scope: Scope,
    /// Makes an empty one.
    pub create: fn() -> Arc<dyn AnyConf>,
    slot: AtomicUsize,
}

impl SettingsDef {
    /// Describes a struct of settings.
    pub const fn new(scope: Scope, create: fn() -> Arc<dyn AnyConf>) -> Self {
        Self {
            scope,
            create,
            slot: AtomicUsize::new(usize::MAX),
        }
    }

    /// Its index in every [`SettingsSet`] of its scope.
    pub fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    /// Assigns each definition its index among those of its scope; it is equal at each load of a configuration, since the list of
    /// modules is fixed.
    pub fn number(defs: &[&'static Self]) {
        for scope in [Scope::Main, Scope::Server, Scope::Location] {
            let of_scope = defs.iter().filter(|def| def.scope == scope);
            for (slot, def) in of_scope.enumerate() {
                assert!(slot < SLOTS_MAX, "more definitions than a level has places");
                def.slot.store(slot, Ordering::Relaxed);
            }
        }
    }
}

/// The settings that are written at one level while the configuration is read: of most definitions none are.
#[derive(Default)]
pub struct SettingsSetBuilder(Vec<(usize, Arc<dyn AnyConf>)>);

impl SettingsSetBuilder {
    /// Empty settings of every definition that exists at this scope, for the outermost level.
    pub fn of_all(defs: &[&'static SettingsDef], scope: Scope) -> Self {
        let of_scope = defs.iter().filter(|def| def.scope == scope);
        Self(of_scope.map(|u| (u.slot(), (u.create)())).collect())
    }

    /// The settings of one definition; created empty at the first use.
    pub fn get_mut<T: Conf>(&mut self) -> &mut T {
        let def = T::def();
        let slot = def.slot();
        let known = self.0.iter().position(|(known, _)| *known == slot);
        let at = known.unwrap_or_else(|| {
            self.0.push((slot, (def.create)()));
            self.0.len() - 1
        });
        typed_mut(&mut self.0[at].1)
    }

    /// The settings of one definition of the outermost level.
    pub fn get<T: Conf>(&self) -> &T {
        let slot = T::def().slot();
        let known = self.0.iter().find(|(known, _)| *known == slot);
        known
            .and_then(|(_, conf)| typed(&**conf))
            .expect("settings are read at their own scope")
    }

    /// Fills in the defaults of the outermost level.
    pub fn merge(&mut self) {
        for (_, conf) in &mut self.0 {
            unshared(conf).merge_any(None);
        }
    }

    /// The settings that were written, by slot.
    pub(crate) fn into_defs(self) -> Vec<(usize, Arc<dyn AnyConf>)> {
        self.0
    }

    /// The finished settings of the outermost level.
    pub fn finish(mut self) -> SettingsSet {
        self.0.sort_by_key(|(slot, _)| *slot);
        let unused: Arc<dyn AnyConf> = Arc::new(Unused);
        let all: Vec<_> = self.0.into_iter().map(|(_, conf)| conf).collect();
        SettingsSet::new(pages(|slot| Arc::clone(all.get(slot).unwrap_or(&unused))))
    }
}

/// Unshares settings, which have one owner while a configuration is read.
pub(crate) fn unshared(conf: &mut Arc<dyn AnyConf>) -> &mut dyn AnyConf {
    Arc::get_mut(conf).expect("settings are shared only once they are finished")
}

/// The struct of settings of a definition, to write to.
pub(crate) fn typed_mut<T: Conf>(conf: &mut Arc<dyn AnyConf>) -> &mut T {
    let any: &mut dyn Any = unshared(conf);
    any.downcast_mut()
        .expect("settings are read at their own scope")
}

/// The merged settings of one level, in pages by slot. Levels of one kind that write nothing share all pages. A
/// level that writes something still shares the pages without its settings: ten thousand servers leave most
/// definitions unset.
#[derive(Clone)]
pub struct SettingsSet([Page; PAGES]);

/// Settings of neighbouring slots; a slot without a definition has an [`Unused`].
pub(crate) type Page = Arc<[Arc<dyn AnyConf>; PAGE]>;

/// Slots of a page.
pub(crate) const PAGE: usize = 8;
/// Pages of a level.
pub(crate) const PAGES: usize = 8;
/// Maximum number of definitions of a scope.
pub(crate) const SLOTS_MAX: usize = PAGE * PAGES;

/// Placeholder of a slot without settings.
#[derive(Default)]
pub(crate) struct Unused;

impl AnyConf for Unused {
    fn merge_any(&mut self, _: Option<&dyn AnyConf>) {}

    fn create(&self) -> Arc<dyn AnyConf> {
        Arc::new(Self)
    }
}

impl SettingsSet {
    /// The settings of a level.
    pub(crate) fn new(pages: [Page; PAGES]) -> Self {
        Self(pages)
    }

    /// The settings of one definition.
    pub fn get<T: Conf>(&self) -> &T {
        typed(&**self.at::<T>()).expect("settings are read at their own scope")
    }

    /// The settings of one definition; `None` if no module of this build has it.
    pub fn find<T: Conf>(&self) -> Option<&T> {
        let slot = T::def().slot();
        let page = self.0.get(slot / PAGE)?;
        typed(&*page[slot % PAGE])
    }

    /// The settings of one definition, which others share.
    pub(crate) fn shared<T: Conf>(&self) -> Arc<T> {
        let any: Arc<dyn Any + Send + Sync> = Arc::<dyn AnyConf>::clone(self.at::<T>());
        any.downcast()
            .expect("settings are read at their own scope")
    }

    /// Whether a page is the same one in another level.
    #[cfg(test)]
    pub(crate) fn shares_page(&self, other: &Self, page: usize) -> bool {
        Arc::ptr_eq(&self.0[page], &other.0[page])
    }

    fn at<T: Conf>(&self) -> &Arc<dyn AnyConf> {
        let slot = T::def().slot();
        // Below `PAGES` for each slot (`SettingsDef::number`); said here, so that it is not checked each time.
        &self.0[slot / PAGE % PAGES][slot % PAGE]
    }
}

/// Returns pages with the settings that `of` names for each slot.
pub(crate) fn pages(of: impl Fn(usize) -> Arc<dyn AnyConf>) -> [Page; PAGES] {
    std::array::from_fn(|page| Arc::new(std::array::from_fn(|at| of(page * PAGE + at))))
}
