//! The state of the cache in one pass to servers.

use std::sync::Arc;

use engines::http::{FileHandle, ResponseHead, SharedBytes};
use server_cache::fill::FillReader;
use server_cache::index::{FillToken, StoredEntry};
use server_cache::key::{CacheKey, EntryId};
use server_cache::memory::MemoryEntry;
use server_cache::response_head::HeadFormat;
use server_cache::rfc9111::{ForwardReason, RequestFacts};
use server_cache::stored_head::StoredHead;

use crate::cache::conf::CacheConf;
use crate::cache::zone::CacheZone;

/// The cache in one pass.
pub(crate) struct Caching {
    pub(crate) conf: Arc<CacheConf>,
    pub(crate) zone: Arc<CacheZone>,
    pub(crate) key: CacheKey,
    /// The entry of the key, or of the request's variant.
    pub(crate) id: EntryId,
    /// A variant for fields of the same meaning as those of this request.
    pub(crate) similar: Option<EntryId>,
    pub(crate) format: HeadFormat,
    /// Facts of the client's request, for the rules of RFC 9111.
    pub(crate) request: RequestFacts,
    /// Whether the response of the server may be stored. The request has no conditions and ranges of the client then.
    pub(crate) may_store: bool,
    /// Whether a successful response invalidates the entries of the key: the method is unsafe (RFC 9111 section 4.4).
    pub(crate) invalidates: bool,
    /// Whether it updates an entry in the background.
    pub(crate) is_update: bool,
    /// The reason to send the request to a server, or to wait for another one that does; `None` for a hit.
    pub(crate) forwarded: Option<ForwardReason>,
    /// The reason not to store the response of the server, if that was considered.
    pub(crate) not_stored: Option<&'static str>,
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
    pub(crate) stored: Arc<StoredHead>,
    /// Its entry in the index; `None` for a response that another request receives.
    pub(crate) entry: Option<StoredEntry>,
    pub(crate) body: StoredBody,
    /// The response head, which an update changes.
    pub(crate) head: Box<ResponseHead>,
}

/// The body of a stored response.
pub(crate) enum StoredBody {
    /// In the file of the response.
    File(FileHandle),
    /// In the worker's memory: the bytes of a small file.
    Bytes(SharedBytes),
    /// In memory for all threads.
    Copy(Arc<MemoryEntry>),
    /// In this file, as far as another request has received it.
    Fill(FileHandle),
}
