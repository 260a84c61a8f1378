//! The part of the cache in a request, for variables, logs and counts.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `$upstream_cache_status`.

use std::sync::Arc;

use crate::cache::counts::{CacheCounts, CacheResult};

/// Kept with an exchange whose requests to servers are for one part of the response each (`slice`): such a part may be stored.
#[derive(Clone, Copy, Debug)]
pub struct RequestsPart;

/// The part of the cache in a request.
#[derive(Clone, Debug, Default)]
pub struct CacheRecord {
    /// The way in which it took part; `None` if it did not.
    pub result: Option<CacheResult>,
    /// The counts of the cache, until the request is counted.
    pub counts: Option<Arc<CacheCounts>>,
    /// Bytes of the stored body that is sent.
    pub stored_bytes: Option<u64>,
    /// Age of the stored response that was sent, seconds.
    pub age_s: Option<u32>,
    /// Entity tag of the stored response that is validated; empty for none.
    pub etag: Vec<u8>,
    /// `Last-Modified` of the stored response that is validated, seconds since 1970.
    pub last_modified_s: Option<i64>,
}

impl CacheRecord {
    /// Counts the request, once. `received_bytes` is the length of the server's response body.
    pub fn count(&mut self, received_bytes: u64) {
        if let (Some(counts), Some(result)) = (self.counts.take(), self.result) {
            counts.count(result, self.stored_bytes.unwrap_or(received_bytes));
        }
    }
}
