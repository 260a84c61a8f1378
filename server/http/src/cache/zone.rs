//! Caches: entries, directory and counts, shared by all threads and kept over reloads.
//!
//! A registry of the process has the shared state of caches by module, name, path and levels. A configuration that is
//! loaded finds the state of an earlier one there, and changes nothing of it: the size of `keys_zone` is applied by
//! [`upkeep`](super::upkeep), once the configuration is served.
//!
//! Absent: names of zones across modules, which [`server_base::zone`] checks.
//!
//! Source: nginx documentation, `proxy_cache_path`.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use server_base::files::TempDir;
use server_cache::directory::Directory;
use server_cache::index::{Index, entries_max};
use server_cache::names::Levels;

use super::work::Work;

/// One `*_cache_path` of a configuration.
#[derive(Debug)]
pub struct CacheZone {
    /// The name of its `keys_zone`.
    pub name: Box<[u8]>,
    /// The state that reloads keep.
    pub shared: Arc<SharedCache>,
    /// The directory of temporary files with `use_temp_path=off`; `None`: `*_temp_path` of the location.
    pub temp_dir: Option<TempDir>,
}

/// The caches of a module in a configuration.
#[derive(Clone, Debug, Default)]
pub struct Caches(Arc<[Arc<CacheZone>]>);

impl Caches {
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
    /// Counts of requests.
    pub counts: CacheCounts,
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

/// Numbers of requests by their use of a cache, and of bytes.
#[derive(Debug, Default)]
pub struct CacheCounts {
    /// Responses served fresh from the cache.
    pub hits: AtomicU64,
    /// Requests without a stored response.
    pub misses: AtomicU64,
    /// Requests with an expired response, sent to a server.
    pub expired: AtomicU64,
    /// Stale responses, served in the place of a failure.
    pub stale: AtomicU64,
    /// Stale responses, served during an update.
    pub updating: AtomicU64,
    /// Stored responses that a server confirmed.
    pub revalidated: AtomicU64,
    /// Requests with a true `*_cache_bypass`.
    pub bypass: AtomicU64,
    /// Bytes of responses served from the cache.
    pub bytes_sent: AtomicU64,
    /// Bytes of responses written to the cache.
    pub bytes_written: AtomicU64,
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
            counts: CacheCounts::default(),
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
    pub(super) fn open(&self) -> io::Result<&Directory> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let opened = Directory::open(&self.id.path, self.id.levels)?;
        Ok(self.directory.get_or_init(|| opened))
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
