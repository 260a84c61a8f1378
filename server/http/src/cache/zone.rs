//! Caches: entries, directory and counts, shared by all threads and kept over reloads.
//!
//! A registry of the process has the shared state of caches by module, name, path and levels. Loading a
//! configuration does not change this state. [`upkeep`](super::upkeep) applies the size of `keys_zone`, once the
//! configuration is served.
//!
//! Absent: names of zones across modules, which [`server_base::zone`] checks.
//!
//! Source: nginx documentation, `proxy_cache_path`.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use server_cache::directory::Directory;
use server_cache::index::{Index, PurgeError, PurgeMode, entries_max};
use server_cache::key::CacheKey;
use server_cache::memory::Memory;
use server_cache::names::Levels;
use server_cache::similar::SimilarVariants;

use super::counts::CacheCounts;
use super::work::Work;

/// One `*_cache_path` of a configuration.
#[derive(Debug)]
pub struct CacheZone {
    /// The name of its `keys_zone`.
    pub name: Box<[u8]>,
    /// The state that reloads keep.
    pub shared: Arc<SharedCache>,
    /// Whether temporary files are in `*_temp_path` of the location (`use_temp_path`), not beside their entry.
    pub uses_temp_path: bool,
    /// `max_size`, bytes.
    pub max_bytes: Option<u64>,
}

/// The caches of a module in a configuration.
#[derive(Clone, Debug, Default)]
pub struct Caches(Arc<[Arc<CacheZone>]>);

impl Caches {
    /// Returns each cache.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CacheZone>> {
        self.0.iter()
    }

    /// Returns the cache with a name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&Arc<CacheZone>> {
        self.0.iter().find(|zone| *zone.name == *name)
    }
}

impl FromIterator<Arc<CacheZone>> for Caches {
    fn from_iter<I: IntoIterator<Item = Arc<CacheZone>>>(zones: I) -> Self {
        Self(zones.into_iter().collect())
    }
}

/// The state of a cache that reloads keep.
pub struct SharedCache {
    /// The entries.
    pub index: Arc<Index>,
    /// Copies of small files.
    pub memory: Memory,
    /// Variants by the meaning of the fields of a request.
    pub similar: SimilarVariants,
    /// Counts of requests.
    pub counts: Arc<CacheCounts>,
    id: CacheId,
    directory: OnceLock<Directory>,
    /// Work is due before its time.
    is_woken: AtomicBool,
    pub(super) work: Mutex<Work>,
}

impl fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedCache").field(&self.id).finish()
    }
}

/// The identity of a cache: module, name, path and levels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CacheId {
    pub(super) module: &'static str,
    pub(super) name: Box<[u8]>,
    pub(super) path: PathBuf,
    pub(super) levels: Levels,
}

impl SharedCache {
    /// Returns the state of a cache that is in use, else a new one for a `keys_zone` of this size.
    pub(super) fn attach(id: CacheId, zone_bytes: u64) -> Arc<Self> {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let all = registry.get_or_insert_default();
        all.retain(|_, cache| cache.strong_count() > 0);
        if let Some(cache) = all.get(&id).and_then(Weak::upgrade) {
            return cache;
        }
        let cache = Arc::new(Self {
            index: Arc::new(Index::new(entries_max(zone_bytes))),
            memory: Memory::default(),
            similar: SimilarVariants::default(),
            counts: Arc::default(),
            id: id.clone(),
            directory: OnceLock::new(),
            is_woken: AtomicBool::new(false),
            work: Mutex::default(),
        });
        all.insert(id, Arc::downgrade(&cache));
        cache
    }

    /// Returns the directory once it is open; before, requests do not use the cache.
    #[inline]
    #[must_use]
    pub fn directory(&self) -> Option<&Directory> {
        self.directory.get()
    }

    /// Opens the directory, if it is not open.
    ///
    /// # Errors
    /// Those of [`Directory::open`].
    pub(crate) fn open(&self) -> io::Result<&Directory> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let opened = Directory::open(&self.id.path, self.id.levels)?;
        Ok(self.directory.get_or_init(|| opened))
    }

    /// Purges the entries of a key, and removes their files or makes them stale. Returns the number of entries that had a file. `now_s` is in
    /// seconds since 1970.
    ///
    /// # Errors
    /// Too many purges are in progress.
    pub fn purge_key(
        &self,
        key: &CacheKey,
        mode: PurgeMode,
        now_s: i64,
    ) -> Result<u64, PurgeError> {
        let purged = self.index.purge_key(key, mode)?;
        let Some(directory) = self.directory() else {
            return Ok(purged.entries);
        };
        for id in &purged.ids {
            // A file that stays is not served, and the next response takes its place.
            let _ = match mode {
                PurgeMode::Hard => {
                    let removed = self.index.remove_unused(id, || directory.remove(id));
                    removed.unwrap_or(Ok(false))
                }
                PurgeMode::Soft => directory.expire(id, None, now_s),
            };
        }
        Ok(purged.entries)
    }

    /// Returns the path of the directory, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.id.path
    }

    /// Work is due at once.
    pub(super) fn wake(&self) {
        self.is_woken.store(true, Ordering::Release);
    }

    /// Returns whether work is due before its time.
    pub(super) fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Returns whether work was due before its time, and forgets it. To be called before the work.
    pub(super) fn take_wake(&self) -> bool {
        self.is_woken.swap(false, Ordering::AcqRel)
    }
}

type Registry = HashMap<CacheId, Weak<SharedCache>>;

/// The caches used by any configuration.
static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
