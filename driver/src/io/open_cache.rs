//! `open_file_cache`: descriptors and errors that are trusted for a while, by nginx's rules.
//!
//! An element is used unchecked for `valid`, then checked again. If the inode is the same, its descriptor stays; only
//! size and times are updated. An element is removed if it was unused for `inactive`, or as the least recently used one
//! of `max`. Below `min_uses`, its descriptor lives only as long as the requests that use it. Each pair of `max` and
//! `inactive` has its own cache. Source: nginx documentation, `ngx_http_core_module`, `open_file_cache`.

use std::rc::{Rc, Weak};

use server_base::files::{FileError, OpenFileCache, Opened, Symlinks};

use super::lru::Lru;
use super::open_path::{self, describe_opened};

/// Every `open_file_cache` of one thread.
#[derive(Debug)]
pub(crate) struct OpenCaches {
    caches: Vec<Cache>,
    /// Caches of earlier configurations, removed in parts.
    draining: Vec<Cache>,
    /// Number of elements used unchecked, and of those checked or made.
    lookups: (u64, u64),
}

#[derive(Debug)]
struct Cache {
    max: usize,
    inactive_ms: u64,
    elements: Lru<Element>,
    /// The last lookup used an element unchecked.
    hit: bool,
}

#[derive(Debug)]
struct Element {
    state: State,
    symlinks: Symlinks,
    checked_ms: u64,
    used_ms: u64,
    uses: u32,
}

#[derive(Debug)]
enum State {
    Kept(Rc<Opened>),
    /// Not used often enough to stay open without a request.
    Borrowed(Weak<Opened>),
    Failed(FileError),
}

impl OpenCaches {
    pub(crate) fn new() -> Self {
        Self {
            caches: Vec::new(),
            draining: Vec::new(),
            lookups: (0, 0),
        }
    }

    pub(crate) fn open(
        &mut self,
        path: &[u8],
        symlinks: &Symlinks,
        settings: &OpenFileCache,
        now_ms: u64,
    ) -> Result<Rc<Opened>, FileError> {
        let cache = self.cache(settings);
        cache.expire(now_ms, EXPIRED_PER_OPEN);
        let result = cache.open(path, symlinks, settings, now_ms);
        if cache.hit {
            self.lookups.0 += 1;
        } else {
            self.lookups.1 += 1;
        }
        result
    }

    /// Returns the numbers of lookups that used an element unchecked, and of the others.
    pub(crate) fn lookups(&self) -> (u64, u64) {
        self.lookups
    }

    /// Returns the number of elements of all caches.
    pub(crate) fn len(&self) -> usize {
        let caches = self.caches.iter().chain(&self.draining);
        caches.map(|cache| cache.elements.len()).sum()
    }

    /// Drops expired elements, and at most `most` elements of earlier configurations. Returns true if some of the
    /// latter remain.
    pub(crate) fn sweep(&mut self, now_ms: u64, most: usize) -> bool {
        for cache in &mut self.caches {
            cache.expire(now_ms, usize::MAX);
        }
        self.caches.retain(|cache| cache.elements.len() > 0);
        for _ in 0..most {
            let Some(cache) = self.draining.last_mut() else {
                return false;
            };
            if cache.elements.remove_oldest().is_none() {
                self.draining.pop();
            }
        }
        !self.draining.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.caches.is_empty() && self.draining.is_empty()
    }

    /// Starts with empty caches for a new configuration, as nginx's next worker does.
    pub(crate) fn retire(&mut self) {
        self.draining.append(&mut self.caches);
    }

    pub(crate) fn clear(&mut self) {
        self.caches.clear();
        self.draining.clear();
    }

    fn cache(&mut self, settings: &OpenFileCache) -> &mut Cache {
        let same =
            |cache: &Cache| cache.max == settings.max && cache.inactive_ms == settings.inactive_ms;
        let place = self.caches.iter().position(same).unwrap_or_else(|| {
            self.caches.push(Cache {
                max: settings.max,
                inactive_ms: settings.inactive_ms,
                elements: Lru::new(),
                hit: false,
            });
            self.caches.len() - 1
        });
        &mut self.caches[place]
    }
}

impl Cache {
    fn expire(&mut self, now_ms: u64, most: usize) {
        let inactive_ms = self.inactive_ms;
        let idle = |element: &Element| now_ms.saturating_sub(element.used_ms) > inactive_ms;
        for _ in 0..most {
            if !self.elements.oldest().is_some_and(idle) {
                return;
            }
            self.elements.remove_oldest();
        }
    }

    fn open(
        &mut self,
        path: &[u8],
        symlinks: &Symlinks,
        settings: &OpenFileCache,
        now_ms: u64,
    ) -> Result<Rc<Opened>, FileError> {
        let mut uses = 1;
        let mut known = None;
        self.hit = false;
        if let Some(element) = self.elements.get(path) {
            element.uses = element.uses.saturating_add(1);
            element.used_ms = now_ms;
            uses = element.uses;
            known = element.current();
            let fresh = now_ms.saturating_sub(element.checked_ms) < settings.valid_ms
                && element.symlinks == *symlinks;
            self.hit = fresh && known.is_some();
            if let (true, Some(result)) = (fresh, &known) {
                if let Ok(opened) = result {
                    element.state = State::holding(opened, uses, settings.min_uses);
                }
                return result.clone();
            }
        }
        let result = check_again(path, symlinks, known);
        let state = match &result {
            Ok(opened) => State::holding(opened, uses, settings.min_uses),
            Err(error) if settings.errors => State::Failed(*error),
            Err(_) => {
                self.elements.remove(path);
                return result;
            }
        };
        if uses == 1 && self.elements.len() >= self.max {
            self.elements.remove_oldest();
        }
        let element = Element {
            state,
            symlinks: symlinks.clone(),
            checked_ms: now_ms,
            used_ms: now_ms,
            uses,
        };
        self.elements.insert(path, element);
        result
    }
}

impl Element {
    /// Returns the element's result, unless its descriptor was closed.
    fn current(&self) -> Option<Result<Rc<Opened>, FileError>> {
        match &self.state {
            State::Kept(opened) => Some(Ok(Rc::clone(opened))),
            State::Borrowed(opened) => opened.upgrade().map(Ok),
            State::Failed(error) => Some(Err(*error)),
        }
    }
}

impl State {
    fn holding(opened: &Rc<Opened>, uses: u32, min_uses: u32) -> Self {
        // A directory holds no descriptor to release.
        if uses >= min_uses || opened.file.is_none() {
            Self::Kept(Rc::clone(opened))
        } else {
            Self::Borrowed(Rc::downgrade(opened))
        }
    }
}

/// Keeps the known descriptor if the path still leads to its inode. Otherwise opens the path again.
fn check_again(
    path: &[u8],
    symlinks: &Symlinks,
    known: Option<Result<Rc<Opened>, FileError>>,
) -> Result<Rc<Opened>, FileError> {
    if let Some(Ok(known)) = known {
        let meta = open_path::describe(path, symlinks, "open()")?;
        if meta == known.meta {
            return Ok(known);
        }
        if meta.is_dir || (meta.ino, meta.dev) == (known.meta.ino, known.meta.dev) {
            let file = if meta.is_dir {
                None
            } else {
                known.file.clone()
            };
            return Ok(Rc::new(Opened::new(file, meta)));
        }
    }
    open_path::open(path, symlinks).map(describe_opened)
}

/// Maximum number of expired elements dropped per request; nginx drops one or two.
const EXPIRED_PER_OPEN: usize = 2;
