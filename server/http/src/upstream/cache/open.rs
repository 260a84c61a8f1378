//! The stored response of a request: its entry in the index, and its file.
//!
//! A file that is damaged or of another key counts as missing, with a line in the log; the next response replaces it.
//!
//! Source: behaviour of nginx 1.31.4; RFC 9111 section 4.1 for variants.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use engines::http::RequestHead;
use server_base::errlog::Level;
use server_cache::directory::{Directory, FileStart};
use server_cache::index::{Lookup, PurgeFacts, PurgeMode, StoredEntry, StoredFile};
use server_cache::key::EntryId;
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
    let body_start = entry.map_or(0, |entry| entry.body_start);
    let opened = directory.open_entry(id, body_start);
    let verified = match opened {
        Ok((file, start)) => verify(caching, directory, entry, (file, start), x, now_s),
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                let path = directory.path_of(id);
                let (path, error) = (path.display(), conf::os_error(&error));
                x.log(
                    Level::Crit,
                    format_args!("open() \"{path}\" failed ({error})"),
                );
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

/// Verifies an opened file.
///
/// # Errors
/// It is damaged or purged.
fn verify(
    caching: &Caching,
    directory: &Directory,
    entry: Option<StoredEntry>,
    (file, start): (File, FileStart),
    x: &Exchange,
    now_s: u32,
) -> Result<Looked, ()> {
    let (index, id, main) = (&caching.zone.shared.index, &caching.id, caching.key.id());
    let damaged = |why: &dyn std::fmt::Display| {
        let path = directory.path_of(id);
        let path = path.display();
        x.log(Level::Crit, format_args!("cache file \"{path}\" {why}"));
    };
    let identity = start.identity();
    let prefix = start.parse_for(&caching.key).map_err(|why| damaged(&why))?;
    let facts = PurgeFacts {
        main,
        key: caching.key.text(),
        tags: prefix.notes.tags,
    };
    let epoch = entry.map_or(0, |entry| entry.epoch_of(identity.uniq));
    let purged = index.check(epoch, &facts);
    if purged == Some(PurgeMode::Hard) {
        return Err(());
    }
    match vary::select(&prefix.header, &main, id, values(&x.head)) {
        Selected::This => {}
        Selected::Other(id) => return Ok(Looked::Variant(id)),
        Selected::Mismatch => {
            damaged(&"belongs to another variant");
            return Err(());
        }
    }
    let head = response_head::parse(prefix.head, caching.format);
    let head = head.ok_or_else(|| damaged(&"contains invalid header"))?;
    let body_start = prefix.header.body_start;
    let found = StoredFile {
        blocks: 0,
        uniq: identity.uniq,
        body_start,
        valid_s: prefix.header.valid_s,
    };
    let mut entry = known_entry(caching, directory, entry, found, &file, now_s);
    // An entry of the index is stale before its file is.
    entry.is_stale |= purged == Some(PurgeMode::Soft);
    Ok(Looked::Found(Found::Stored(Box::new(StoredResponse {
        id: *id,
        body_start: u64::from(body_start),
        start: Start::File(start, entry),
        file: Rc::new(OwnedFd::from(file)),
        head: Box::new(head),
    }))))
}

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
