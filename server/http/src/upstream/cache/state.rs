//! The state of the cache in one pass to servers.

use std::sync::Arc;

use engines::http::{FileHandle, ResponseHead};
use server_cache::directory::{FileIdentity, FileStart};
use server_cache::disk::{Prefix, parse_unknown};
use server_cache::fill::{Fill, FillReader};
use server_cache::index::{FillToken, StoredEntry};
use server_cache::key::{CacheKey, EntryId};
use server_cache::memory::MemoryEntry;
use server_cache::response_head::HeadFormat;
use server_cache::rfc9111::RequestFacts;

use crate::cache::conf::CacheConf;
use crate::cache::zone::CacheZone;

/// The cache in one pass.
pub(crate) struct Caching {
    pub(crate) conf: Arc<CacheConf>,
    pub(crate) zone: Arc<CacheZone>,
    pub(crate) key: CacheKey,
    /// The entry of the key, or of the request's variant.
    pub(crate) id: EntryId,
    pub(crate) format: HeadFormat,
    /// Facts of the client's request, for the rules of RFC 9111.
    pub(crate) request: RequestFacts,
    /// Whether the response of the server may be stored. The request has no conditions and ranges of the client then.
    pub(crate) may_store: bool,
    /// Whether a successful response invalidates the entries of the key: the method is unsafe (RFC 9111 section 4.4).
    pub(crate) invalidates: bool,
    /// Whether it updates an entry in the background.
    pub(crate) is_update: bool,
    /// The right to store the response.
    pub(crate) token: Option<FillToken>,
    /// A stored response that is sent, or that is validated.
    pub(crate) stored: Option<Box<StoredResponse>>,
    /// The fill of another request, whose head is awaited.
    pub(crate) awaited: Option<FillReader>,
    /// End of the wait for other requests (`*_cache_lock_timeout`), monotonic milliseconds.
    pub(crate) wait_until_ms: Option<u64>,
    /// Time of the request to the server, milliseconds since 1970.
    pub(crate) request_ms: i64,
}

/// A stored response.
pub(crate) struct StoredResponse {
    pub(crate) id: EntryId,
    pub(crate) start: Start,
    /// The file with the body; `None` if that is in memory.
    pub(crate) file: Option<FileHandle>,
    pub(crate) head: Box<ResponseHead>,
    /// Position of the body in the file.
    pub(crate) body_start: u64,
}

/// The bytes before a stored body.
pub(crate) enum Start {
    /// Of a file with its entry in the index.
    File(FileStart, StoredEntry),
    /// Of a copy in memory, with its entry in the index.
    Memory(Arc<MemoryEntry>, StoredEntry),
    /// Of a response that another request receives.
    Fill(Arc<Fill>),
}

impl StoredResponse {
    /// The parsed bytes before the body; `None` if they are damaged.
    pub(crate) fn prefix(&self) -> Option<Prefix<'_>> {
        match &self.start {
            Start::File(start, _) => start.parse().ok(),
            Start::Memory(copy, _) => copy.start.parse().ok(),
            Start::Fill(fill) => {
                let prefix = &fill.head()?.prefix;
                parse_unknown(prefix, prefix.len() as u64).ok()
            }
        }
    }

    /// The entry of the index; `None` for a response that is received.
    pub(crate) fn entry(&self) -> Option<(&StoredEntry, FileIdentity)> {
        match &self.start {
            Start::File(start, entry) => Some((entry, start.identity())),
            Start::Memory(copy, entry) => Some((entry, copy.start.identity())),
            Start::Fill(_) => None,
        }
    }
}
