//! The caches of one configuration, in the order of their directives.
//!
//! Absent: names of zones that other directives use, which [`server_base::zone`] checks.
//!
//! Source: nginx documentation, `proxy_cache_path`; errors are nginx's.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::periodic_task::PeriodicTask;

use super::path::CachePath;
use super::upkeep::Maintenance;
use super::zone::{CacheId, CacheZone, Caches, SharedCache};

/// The caches of one configuration.
#[derive(Default)]
pub struct DeclaredCaches(Vec<DeclaredCache>);

struct DeclaredCache {
    /// The prefix of the directive.
    module: &'static str,
    written: CachePath,
    path: PathBuf,
    zone: Arc<CacheZone>,
    /// The directive, for errors.
    at: Directive,
}

impl DeclaredCaches {
    /// Adds a cache. `module` is the prefix of the directive. `refer` declares the zone among those of all modules.
    ///
    /// # Errors
    /// Another cache has the path or the name; the error of `refer`.
    pub fn add(
        &mut self,
        d: &Directive,
        module: &'static str,
        written: CachePath,
        refer: impl FnOnce(&CachePath) -> Result<usize, String>,
    ) -> Result<(), ConfError> {
        if let Some(other) = self
            .0
            .iter()
            .find(|other| other.written.path == written.path)
        {
            return Err(ConfError::at(d, same_path(&other.written, &other.at)));
        }
        refer(&written).map_err(|text| ConfError::at(d, text))?;
        let is_same =
            |other: &DeclaredCache| other.module == module && other.written.name == written.name;
        if self.0.iter().any(is_same) {
            let name = String::from_utf8_lossy(&written.name);
            return Err(ConfError::at(d, format!("duplicate zone \"{name}\"")));
        }
        let path = PathBuf::from(OsString::from_vec(written.path.clone()));
        let id = CacheId {
            module,
            name: written.name.clone().into(),
            path: path.clone(),
            levels: written.levels,
        };
        let zone = Arc::new(CacheZone {
            name: id.name.clone(),
            shared: SharedCache::attach(id, written.zone_bytes),
            max_bytes: written.limits.max_bytes,
            uses_temp_path: written.uses_temp_path,
        });
        self.0.push(DeclaredCache {
            module,
            written,
            path,
            zone,
            at: d.owned_head(),
        });
        Ok(())
    }

    /// Returns the caches of all modules.
    #[must_use]
    pub fn all(&self) -> Caches {
        self.0.iter().map(|cache| Arc::clone(&cache.zone)).collect()
    }

    /// Returns the caches of a module.
    #[must_use]
    pub fn of_module(&self, module: &str) -> Caches {
        let own = self.0.iter().filter(|cache| cache.module == module);
        own.map(|cache| Arc::clone(&cache.zone)).collect()
    }

    /// Adds the directories of all caches to those that are made for temporary files.
    ///
    /// # Errors
    /// A directory is one for temporary files.
    pub fn add_directories(&self, temp_paths: &mut BTreeSet<PathBuf>) -> Result<(), ConfError> {
        for cache in &self.0 {
            if !temp_paths.insert(cache.path.clone()) {
                let path = cache.path.display();
                let text = format!("the same path name \"{path}\" is used for temporary files");
                return Err(ConfError::at(&cache.at, text));
            }
        }
        Ok(())
    }

    /// Returns the periodic work of all caches.
    pub fn tasks(&self) -> impl Iterator<Item = Arc<dyn PeriodicTask>> {
        let task = |cache: &DeclaredCache| -> Arc<dyn PeriodicTask> {
            Arc::new(Maintenance::new(&cache.zone.shared, &cache.written))
        };
        self.0.iter().map(task)
    }
}

/// The begin of nginx's error; its place follows.
fn same_path(other: &CachePath, at: &Directive) -> String {
    let path = String::from_utf8_lossy(&other.path);
    let place = ConfError::at(at, "").to_string();
    let place = place.trim_start_matches(" in ");
    format!("the same path name \"{path}\" used in {place} and")
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
