//! The stored response of a request: its entry in the index, and its file.
//!
//! A file that is damaged or of another key counts as missing, with a line in the log; the next response replaces it.
//!
//! Source: behaviour of nginx 1.31.4; RFC 9111 section 4.1 for variants.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::RequestHead;
use server_base::errlog::Level;
use server_base::files::OpenPolicy;
use server_cache::directory::{Directory, FileIdentity, FileStart, FileState};
use server_cache::index::{Lookup, PurgeFacts, PurgeMode, StoredEntry, StoredFile};
use server_cache::key::EntryId;
use server_cache::memory::MemoryEntry;
use server_cache::rfc9111::FieldList;
use server_cache::similar::normal_id;
use server_cache::stored_head::StoredHead;
use server_cache::vary::{self, Add, Selected};

use super::state::{Caching, StoredBody, StoredResponse};
use crate::exchange::{Ctx, Exchange};

/// The result of a search.
pub(super) enum Found {
    Stored(Box<StoredResponse>),
    /// The server has failed with this status a short time ago.
    Error(u16),
    /// There is none.
    Absent,
    /// There is none, and too few requests to store one.
    Scarce,
}

/// The result at one entry.
enum Looked {
    Found(Found),
    /// The entry of a variant has the response; the head at hand names the selecting fields.
    Variant(EntryId, Arc<StoredHead>),
}

/// Searches for the stored response of a request. The entry of the request is set to that of its variant.
pub(super) fn find(caching: &mut Caching, x: &Exchange, cx: &mut Ctx<'_>) -> Found {
    match look_at(caching, x, cx) {
        Looked::Found(found) => found,
        // From the key to the variant, no further.
        Looked::Variant(id, head) => {
            caching.id = id;
            match look_at(caching, x, cx) {
                Looked::Found(Found::Absent) => find_similar(caching, &head, x, cx),
                Looked::Found(found) => found,
                Looked::Variant(id, _) => {
                    caching.id = id;
                    Found::Absent
                }
            }
        }
    }
}

/// Searches for the response to another request. Its selecting fields have other text and the same meaning. `head` is that
/// of the entry of the key.
fn find_similar(caching: &mut Caching, head: &StoredHead, x: &Exchange, cx: &mut Ctx<'_>) -> Found {
    if !caching.conf.rules.rfc {
        return Found::Absent;
    }
    let (own, main, header) = (caching.id, caching.key.id(), head.header());
    let normal = normal_id(&main, header.vary, FieldList::from(&x.head));
    let Some(variant) = caching.zone.shared.similar.find(&normal) else {
        return Found::Absent;
    };
    caching.similar = Some(variant);
    // The first variant has the name of the key.
    caching.id = if header.variant == variant {
        main
    } else {
        variant
    };
    match look_at(caching, x, cx) {
        Looked::Found(found @ Found::Stored(_)) => found,
        _ => {
            (caching.id, caching.similar) = (own, None);
            Found::Absent
        }
    }
}

fn look_at(caching: &Caching, x: &Exchange, cx: &mut Ctx<'_>) -> Looked {
    let shared = &caching.zone.shared;
    let Some(directory) = shared.directory() else {
        return Looked::Found(Found::Absent);
    };
    let (id, main) = (&caching.id, caching.key.id());
    let now_s = now_s(cx);
    let looked = shared
        .index
        .look_up(id, &main, caching.conf.min_uses, now_s);
    let (entry, missing) = match looked {
        Lookup::Stored(entry) => (Some(entry), Found::Absent),
        Lookup::Unseen { is_scarce: true } => (None, Found::Scarce),
        Lookup::Unseen { is_scarce: false } => (None, Found::Absent),
        Lookup::Error { epoch, .. } if shared.index.is_error_purged(epoch, &caching.key) => {
            return Looked::Found(Found::Absent);
        }
        Lookup::Error { status, .. } => return Looked::Found(Found::Error(status)),
        Lookup::Scarce => return Looked::Found(Found::Scarce),
        Lookup::Absent => return Looked::Found(Found::Absent),
    };
    let lookup = EntryLookup {
        caching,
        directory,
        entry,
        now_s,
    };
    let copy = lookup.of_memory();
    let opened = copy
        .or_else(|| lookup.of_open_files(cx))
        .map_or_else(|| lookup.of_disk(x), Ok);
    match opened.and_then(|opened| lookup.verify(opened, x)) {
        Ok(looked) => looked,
        Err(()) => {
            if let Some(entry) = &entry {
                shared.index.forget_file(id, entry);
            }
            Looked::Found(missing)
        }
    }
}

/// The entry that a request looks at.
struct EntryLookup<'a> {
    caching: &'a Caching,
    directory: &'a Directory,
    entry: Option<StoredEntry>,
    now_s: u32,
}

/// A stored response that was read.
struct OpenedEntry {
    head: Arc<StoredHead>,
    body: StoredBody,
}

/// The parsed head of a file that the worker keeps open.
struct KeptHead {
    /// Epoch of the response. A later file may have the same inode number.
    epoch: u64,
    head: Arc<StoredHead>,
}

impl EntryLookup<'_> {
    /// Returns the copy in memory, if its file is unchanged.
    fn of_memory(&self) -> Option<OpenedEntry> {
        let (entry, id) = (self.entry.as_ref()?, &self.caching.id);
        let memory = &self.caching.zone.shared.memory;
        let copy = memory.get(id)?;
        let is_checked = copy.checked_s.load(Ordering::Relaxed) == self.now_s;
        let is_unchanged = || {
            self.directory
                .state(id)
                .is_ok_and(|state| state == copy.state)
        };
        let is_current =
            self.is_of_entry(entry, &copy.head, copy.epoch) && (is_checked || is_unchanged());
        if !is_current {
            memory.remove(id);
            return None;
        }
        copy.checked_s.store(self.now_s, Ordering::Relaxed);
        Some(OpenedEntry {
            head: Arc::clone(&copy.head),
            body: StoredBody::Copy(copy),
        })
    }

    /// Opens the file through the worker's cache of open files. `None`: it is not the file that the index has. The check of
    /// an open file may be as old as the last read of a socket.
    fn of_open_files(&self, cx: &mut Ctx<'_>) -> Option<OpenedEntry> {
        let (entry, key) = (self.entry.as_ref()?, &self.caching.key);
        let path = self.directory.path_bytes(&self.caching.id);
        let opened = cx.files.open(&path, &OpenPolicy::default()).ok()?;
        let identity = FileIdentity {
            uniq: opened.meta.ino,
            len: opened.meta.size,
        };
        let content = opened.content();
        let kept = opened.derived::<KeptHead>();
        let kept = kept.filter(|kept| kept.head.is_of(key, self.caching.format));
        let (epoch, head) = match kept {
            Some(kept) => (kept.epoch, Arc::clone(&kept.head)),
            None => {
                let parse = |bytes: &[u8]| {
                    StoredHead::parse(bytes, identity, key, self.caching.format).ok()
                };
                let head = match (&content, &opened.file) {
                    (Some(content), _) => parse(content)?,
                    (None, Some(file)) => {
                        let start = FileStart::read(file, identity, entry.body_start).ok()?;
                        parse(start.bytes())?
                    }
                    (None, None) => return None,
                };
                let (epoch, head) = (entry.epoch, Arc::new(head));
                opened.set_derived(KeptHead {
                    epoch,
                    head: Arc::clone(&head),
                });
                (epoch, head)
            }
        };
        if !self.is_of_entry(entry, &head, epoch) {
            return None;
        }
        let body = match (content, &opened.file) {
            (Some(content), _) => {
                let start = u32::from(head.header().body_start);
                StoredBody::Bytes(content.starting_at(start))
            }
            (None, Some(file)) => StoredBody::File(Rc::clone(file)),
            (None, None) => return None,
        };
        Some(OpenedEntry { head, body })
    }

    /// Whether a response read before is the present one of the index.
    fn is_of_entry(&self, entry: &StoredEntry, head: &StoredHead, epoch: u64) -> bool {
        // The loader reads neither inode numbers nor times.
        [0, head.identity().uniq].contains(&entry.uniq)
            && [0, head.header().valid_s].contains(&entry.valid_s)
            && epoch == entry.epoch
    }

    /// Reads the file of the entry.
    ///
    /// # Errors
    /// It is missing or damaged.
    fn of_disk(&self, x: &Exchange) -> Result<OpenedEntry, ()> {
        let id = &self.caching.id;
        let body_start = self.entry.map_or(0, |entry| entry.body_start);
        let (file, start) = self.directory.open_entry(id, body_start).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                let path = self.directory.path_of(id);
                let (path, error) = (path.display(), conf::os_error(&error));
                let text = format_args!("open() \"{path}\" failed ({error})");
                x.log(Level::Crit, text);
            }
        })?;
        let (key, format) = (&self.caching.key, self.caching.format);
        let head = StoredHead::parse(start.bytes(), start.identity(), key, format);
        let head = head.map_err(|why| self.log_damaged(&why, x))?;
        Ok(OpenedEntry {
            head: Arc::new(head),
            body: StoredBody::File(Rc::new(OwnedFd::from(file))),
        })
    }

    /// Checks purges and the variant of a response.
    ///
    /// # Errors
    /// It is purged, or damaged.
    fn verify(&self, opened: OpenedEntry, x: &Exchange) -> Result<Looked, ()> {
        let (index, id) = (&self.caching.zone.shared.index, &self.caching.id);
        let (main, head) = (self.caching.key.id(), &opened.head);
        let facts = PurgeFacts {
            main,
            key: self.caching.key.text(),
            tags: head.tags(),
        };
        let purged = index.check_hit(self.entry.as_ref(), head.identity().uniq, &facts);
        if purged == Some(PurgeMode::Hard) {
            return Err(());
        }
        if self.caching.similar == Some(head.header().variant) {
            return self.found(opened, purged.is_some());
        }
        match vary::select(&head.header(), &main, id, values(&x.head)) {
            Selected::This => self.found(opened, purged.is_some()),
            Selected::Other(id) => Ok(Looked::Variant(id, opened.head)),
            Selected::Mismatch => {
                self.log_damaged(&"belongs to another variant", x);
                Err(())
            }
        }
    }

    fn log_damaged(&self, why: &dyn std::fmt::Display, x: &Exchange) {
        let path = self.directory.path_of(&self.caching.id);
        let path = path.display();
        x.log(Level::Crit, format_args!("cache file \"{path}\" {why}"));
    }

    /// Returns the response, which is copied into memory if it is used often.
    ///
    /// # Errors
    /// Its body cannot be read.
    fn found(&self, opened: OpenedEntry, is_stale: bool) -> Result<Looked, ()> {
        let OpenedEntry { head, mut body } = opened;
        let memory = &self.caching.zone.shared.memory;
        let mut entry = self.known_entry(&head, &body);
        let is_used = self.entry.is_some_and(|entry| entry.uses >= MEMORY_USES);
        let is_copy = matches!(body, StoredBody::Copy(_));
        if is_used && !is_copy && !is_stale && memory.takes(head.body_len()) {
            let copy = self.copy_of(&head, &body, entry.epoch);
            let copy = Arc::new(copy.map_err(|_| ())?);
            memory.insert(self.caching.id, Arc::clone(&copy));
            body = StoredBody::Copy(copy);
        }
        entry.is_stale |= is_stale;
        Ok(Looked::Found(Found::Stored(Box::new(StoredResponse {
            id: self.caching.id,
            head: Box::new(head.head().clone()),
            stored: head,
            entry: Some(entry),
            body,
        }))))
    }

    /// Copies a response into memory.
    fn copy_of(
        &self,
        head: &Arc<StoredHead>,
        body: &StoredBody,
        epoch: u64,
    ) -> io::Result<MemoryEntry> {
        let mut copied = vec![0; usize::try_from(head.body_len()).unwrap_or(usize::MAX)];
        let state = match body {
            StoredBody::File(file) => {
                let file = File::from(file.try_clone()?);
                file.read_exact_at(&mut copied, head.body_start())?;
                FileState::of(&file.metadata()?)
            }
            StoredBody::Bytes(bytes) => {
                copied.copy_from_slice(bytes);
                self.directory.state(&self.caching.id)?
            }
            StoredBody::Copy(_) | StoredBody::Fill(_) => return Err(ErrorKind::Other.into()),
        };
        Ok(MemoryEntry {
            head: Arc::clone(head),
            body: copied.into(),
            state,
            epoch,
            checked_s: AtomicU32::new(self.now_s),
        })
    }

    /// Returns the entry of a file. A file without an entry gets one.
    fn known_entry(&self, head: &StoredHead, body: &StoredBody) -> StoredEntry {
        let (index, id) = (&self.caching.zone.shared.index, &self.caching.id);
        let main = self.caching.key.id();
        if let Some(entry) = self.entry {
            if !entry.is_known {
                index.learn(id, &main);
            }
            return entry;
        }
        let blocks = match body {
            StoredBody::File(file) => self.directory.blocks_of(file),
            StoredBody::Bytes(_) | StoredBody::Copy(_) | StoredBody::Fill(_) => 0,
        };
        let found = StoredFile {
            blocks,
            uniq: head.identity().uniq,
            body_start: head.header().body_start,
            valid_s: head.header().valid_s,
        };
        index.add_found(id, &main, found, self.now_s);
        StoredEntry {
            body_start: found.body_start,
            uniq: found.uniq,
            epoch: 0,
            walked: 0,
            valid_s: found.valid_s,
            is_stale: false,
            is_updating: false,
            is_known: true,
            uses: 1,
        }
    }
}

/// Number of requests for an entry from which on it is kept in memory.
const MEMORY_USES: u16 = 2;

/// Values of the fields of a request, for variants.
pub(super) fn values(head: &RequestHead) -> impl FnMut(&[u8], &mut Add<'_>) {
    move |name, add| {
        for field in &head.fields {
            if head.bytes(field.name).eq_ignore_ascii_case(name) {
                add(head.bytes(field.value));
            }
        }
    }
}

/// The time of the index, seconds since 1970.
pub(super) fn now_s(cx: &Ctx<'_>) -> u32 {
    u32::try_from(cx.clock.unix_s()).unwrap_or(u32::MAX)
}
