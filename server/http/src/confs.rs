//! Where the values of directives live: one typed struct a module and scope, found by its slot.
//!
//! A module declares a struct of [`Setting`](conf::Setting)s with `settings!`; the builder makes one for `http`, one for
//! each server or location, and merges child with parent at the end. At run time [`Confs::get`] is an index
//! and a type check.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::conf_core::CoreLoc;

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
    fn unit() -> &'static Unit;

    /// Takes from `parent` what is not set here, else the defaults. Called once, parents first; without a
    /// parent it only fills in defaults.
    fn merge(&mut self, parent: Option<&Self>);
}

/// The type-erased form of [`Conf`].
pub trait AnyConf: Any + Send + Sync {
    /// See [`Conf::merge`].
    fn merge_any(&mut self, parent: Option<&dyn AnyConf>);
}

impl<T: Conf> AnyConf for T {
    fn merge_any(&mut self, parent: Option<&dyn AnyConf>) {
        self.merge(parent.and_then(typed));
    }
}

/// The struct of settings behind its erased form.
fn typed<T: Conf>(conf: &dyn AnyConf) -> Option<&T> {
    let any: &dyn Any = conf;
    any.downcast_ref()
}

/// The description of a struct of settings: its scope, its constructor and the slot it was given.
#[derive(Debug)]
pub struct Unit {
    /// Where it exists.
    pub scope: Scope,
    /// Makes an empty one.
    pub create: fn() -> Box<dyn AnyConf>,
    slot: AtomicUsize,
}

impl Unit {
    /// Describes a struct of settings.
    pub const fn new(scope: Scope, create: fn() -> Box<dyn AnyConf>) -> Self {
        Self {
            scope,
            create,
            slot: AtomicUsize::new(usize::MAX),
        }
    }

    /// Its index in every [`Confs`].
    pub fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    /// Gives it its index; the same at each load of a configuration, since the list of modules is fixed.
    pub fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
    }
}

/// The settings of one level while the configuration is read.
pub struct ConfsDraft(Vec<Option<Box<dyn AnyConf>>>);

impl ConfsDraft {
    /// Empty settings of every unit that exists at this scope.
    pub fn new(units: &[&'static Unit], scope: Scope) -> Self {
        Self(
            units
                .iter()
                .map(|u| (u.scope == scope).then(u.create))
                .collect(),
        )
    }

    /// The settings of one unit.
    pub fn get_mut<T: Conf>(&mut self) -> &mut T {
        self.0[T::unit().slot()]
            .as_deref_mut()
            .and_then(|conf| {
                let any: &mut dyn Any = conf;
                any.downcast_mut()
            })
            .expect("a unit is asked for at its own scope")
    }

    /// The settings of one unit.
    pub fn get<T: Conf>(&self) -> &T {
        self.0[T::unit().slot()]
            .as_deref()
            .and_then(typed)
            .expect("a unit is asked for at its own scope")
    }

    /// Merges every unit with its parent's.
    pub fn merge(&mut self, parent: Option<&Confs>) {
        for (slot, conf) in self.0.iter_mut().enumerate() {
            if let Some(conf) = conf {
                conf.merge_any(parent.and_then(|p| p.units[slot].as_deref()));
            }
        }
    }

    /// Merges every unit with that of the level around it.
    pub fn merge_with(&mut self, parent: &Self) {
        for (slot, conf) in self.0.iter_mut().enumerate() {
            if let Some(conf) = conf {
                conf.merge_any(parent.0[slot].as_deref());
            }
        }
    }

    /// The finished settings.
    pub fn finish(self) -> Confs {
        let units: Box<[Option<Arc<dyn AnyConf>>]> =
            self.0.into_iter().map(|c| c.map(Arc::from)).collect();
        let core = units.get(CoreLoc::unit().slot()).cloned().flatten();
        let core = core.and_then(|conf| {
            let any: Arc<dyn Any + Send + Sync> = conf;
            any.downcast().ok()
        });
        Confs { units, core }
    }
}

/// The merged settings of one level.
#[derive(Clone)]
pub struct Confs {
    units: Box<[Option<Arc<dyn AnyConf>>]>,
    /// One of the units, which is asked for many times a request.
    core: Option<Arc<CoreLoc>>,
}

impl Confs {
    /// The settings of one unit.
    pub fn get<T: Conf>(&self) -> &T {
        self.units[T::unit().slot()]
            .as_deref()
            .and_then(typed)
            .expect("a unit is asked for at its own scope")
    }

    /// The core's settings of a location.
    #[inline]
    pub fn core_loc(&self) -> &CoreLoc {
        let core = self.core.as_deref();
        core.expect("the core's settings exist wherever a location's do")
    }
}
