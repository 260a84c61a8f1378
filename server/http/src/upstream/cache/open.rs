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

use engines::http::{RequestHead, ResponseHead};
use server_base::errlog::Level;
use server_cache::directory::{Directory, FileStart, FileState};
use server_cache::index::{Lookup, PurgeFacts, PurgeMode, StoredEntry, StoredFile};
use server_cache::key::EntryId;
use server_cache::memory::MemoryEntry;
use server_cache::response_head;
use server_cache::vary::{self, Add, Selected};

use super::state::{Caching, Start, StoredResponse};
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
    /// The entry of a variant has the response.
    Variant(EntryId),
}

/// Searches for the stored response of a request. The entry of the request is set to that of its variant.
pub(super) fn find(caching: &mut Caching, x: &Exchange, cx: &Ctx<'_>) -> Found {
    // From the key to the variant, no further.
    for _ in 0..2 {
        match look_at(caching, x, cx) {
            Looked::Found(found) => return found,
            Looked::Variant(id) => caching.id = id,
        }
    }
    Found::Absent
}

fn look_at(caching: &Caching, x: &Exchange, cx: &Ctx<'_>) -> Looked {
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
        Lookup::Error { epoch, .. } if shared.index.is_purged_since(epoch, &caching.key) => {
            return Looked::Found(Found::Absent);
        }
        Lookup::Error { status, .. } => return Looked::Found(Found::Error(status)),
        Lookup::Scarce => return Looked::Found(Found::Scarce),
        Lookup::Absent => return Looked::Found(Found::Absent),
    };
    if let Some(entry) = &entry
        && let Some(looked) = of_memory(caching, directory, entry, x, now_s)
    {
        return looked;
    }
    let body_start = entry.map_or(0, |entry| entry.body_start);
    let opened = directory.open_entry(id, body_start);
    let verified = match opened {
        Ok((file, start)) => of_file(caching, directory, entry, (file, start), x, now_s),
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                let path = directory.path_of(id);
                let (path, error) = (path.display(), conf::os_error(&error));
                let text = format_args!("open() \"{path}\" failed ({error})");
                x.log(Level::Crit, text);
            }
            Err(())
        }
    };
    match verified {
        Ok(looked) => looked,
        Err(()) => {
            if let Some(entry) = &entry {
                shared.index.forget_file(id, entry);
            }
            Looked::Found(missing)
        }
    }
}

/// The verdict on a stored response.
enum Verified {
    /// The request may use it; whether it was purged softly.
    Usable(bool),
    /// The entry of a variant has the response.
    Variant(EntryId),
}

/// Verifies key, purges and variant of a stored response.
///
/// # Errors
/// It is damaged or purged.
fn verify(
    caching: &Caching,
    directory: &Directory,
    entry: Option<StoredEntry>,
    start: &FileStart,
    x: &Exchange,
) -> Result<Verified, ()> {
    let (index, id, main) = (&caching.zone.shared.index, &caching.id, caching.key.id());
    let prefix = start.parse_for(&caching.key);
    let prefix = prefix.map_err(|why| log_damaged(directory, id, &why, x))?;
    let facts = PurgeFacts {
        main,
        key: caching.key.text(),
        tags: prefix.notes.tags,
    };
    let epoch = entry.map_or(0, |entry| entry.epoch_of(start.identity().uniq));
    let purged = index.check(epoch, &facts);
    if purged == Some(PurgeMode::Hard) {
        return Err(());
    }
    match vary::select(&prefix.header, &main, id, values(&x.head)) {
        Selected::This => Ok(Verified::Usable(purged.is_some())),
        Selected::Other(id) => Ok(Verified::Variant(id)),
        Selected::Mismatch => {
            log_damaged(directory, id, &"belongs to another variant", x);
            Err(())
        }
    }
}

fn log_damaged(directory: &Directory, id: &EntryId, why: &dyn std::fmt::Display, x: &Exchange) {
    let path = directory.path_of(id);
    let path = path.display();
    x.log(Level::Crit, format_args!("cache file \"{path}\" {why}"));
}

/// Returns the response in a file.
///
/// # Errors
/// It is damaged or purged.
fn of_file(
    caching: &Caching,
    directory: &Directory,
    entry: Option<StoredEntry>,
    (file, start): (File, FileStart),
    x: &Exchange,
    now_s: u32,
) -> Result<Looked, ()> {
    let id = &caching.id;
    let is_stale = match verify(caching, directory, entry, &start, x)? {
        Verified::Variant(id) => return Ok(Looked::Variant(id)),
        Verified::Usable(is_stale) => is_stale,
    };
    let prefix = start.parse().map_err(|_| ())?;
    let head = response_head::parse(prefix.head, caching.format);
    let head = head.ok_or_else(|| log_damaged(directory, id, &"contains invalid header", x))?;
    let (body_start, body_len) = (prefix.header.body_start, prefix.body_len);
    let found = StoredFile {
        blocks: 0,
        uniq: start.identity().uniq,
        body_start,
        valid_s: prefix.header.valid_s,
    };
    let is_used = entry.is_some_and(|entry| entry.uses >= MEMORY_USES);
    let mut entry = known_entry(caching, directory, entry, found, &file, now_s);
    entry.is_stale |= is_stale;
    let memory = &caching.zone.shared.memory;
    if is_used && !is_stale && memory.takes(body_len) {
        let body = (u64::from(body_start), body_len);
        if let Ok(copy) = copy_of(&file, start, head, body, (entry.epoch, now_s)) {
            let copy = Arc::new(copy);
            memory.insert(*id, Arc::clone(&copy));
            return Ok(found_copy(*id, copy, entry));
        }
        return Err(());
    }
    Ok(Looked::Found(Found::Stored(Box::new(StoredResponse {
        id: *id,
        body_start: u64::from(body_start),
        start: Start::File(start, entry),
        file: Some(Rc::new(OwnedFd::from(file))),
        head: Box::new(head),
    }))))
}

/// Reads the body of a file for a copy in memory.
fn copy_of(
    file: &File,
    start: FileStart,
    head: ResponseHead,
    (body_start, body_len): (u64, u64),
    (epoch, now_s): (u64, u32),
) -> io::Result<MemoryEntry> {
    let mut body = vec![0; usize::try_from(body_len).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut body, body_start)?;
    Ok(MemoryEntry {
        start,
        head,
        body: body.into(),
        state: FileState::of(&file.metadata()?),
        epoch,
        checked_s: AtomicU32::new(now_s),
    })
}

fn found_copy(id: EntryId, copy: Arc<MemoryEntry>, entry: StoredEntry) -> Looked {
    Looked::Found(Found::Stored(Box::new(StoredResponse {
        id,
        body_start: u64::from(entry.body_start),
        head: Box::new(copy.head.clone()),
        start: Start::Memory(copy, entry),
        file: None,
    })))
}

/// Returns the response in memory, if its file is unchanged. `None`: the file is read.
fn of_memory(
    caching: &Caching,
    directory: &Directory,
    entry: &StoredEntry,
    x: &Exchange,
    now_s: u32,
) -> Option<Looked> {
    let (memory, id) = (&caching.zone.shared.memory, &caching.id);
    let copy = memory.get(id)?;
    let is_checked = copy.checked_s.load(Ordering::Relaxed) == now_s;
    // The loader does not read inode numbers.
    let is_of_entry = [0, copy.start.identity().uniq].contains(&entry.uniq);
    let is_current = is_of_entry
        && copy.epoch == entry.epoch
        && (is_checked || directory.state(id).is_ok_and(|state| state == copy.state));
    if !is_current {
        memory.remove(id);
        return None;
    }
    copy.checked_s.store(now_s, Ordering::Relaxed);
    match verify(caching, directory, Some(*entry), &copy.start, x).ok()? {
        Verified::Variant(id) => Some(Looked::Variant(id)),
        Verified::Usable(is_stale) => {
            let mut entry = *entry;
            entry.is_stale |= is_stale;
            entry.body_start = copy.start.parse().ok()?.header.body_start;
            Some(found_copy(*id, copy, entry))
        }
    }
}

/// Number of requests for an entry from which on it is kept in memory.
const MEMORY_USES: u16 = 2;

/// Returns the entry of a file, which is added to the index if that did not know it.
fn known_entry(
    caching: &Caching,
    directory: &Directory,
    entry: Option<StoredEntry>,
    found: StoredFile,
    file: &File,
    now_s: u32,
) -> StoredEntry {
    let (index, id, main) = (&caching.zone.shared.index, &caching.id, caching.key.id());
    if let Some(entry) = entry {
        if !entry.is_known {
            index.learn(id, &main);
        }
        return entry;
    }
    let blocks = file.metadata().map_or(0, |meta| directory.blocks(&meta));
    index.add_found(id, &main, StoredFile { blocks, ..found }, now_s);
    StoredEntry {
        body_start: found.body_start,
        uniq: found.uniq,
        epoch: 0,
        valid_s: found.valid_s,
        is_stale: false,
        is_updating: false,
        is_known: true,
        uses: 1,
    }
}

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
