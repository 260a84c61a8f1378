//! `Cache-Status`: the part of the cache in a response, for its client.
//!
//! Reports of caches nearer to the server are lines of their own in front of this one. Absent: error pages and other
//! responses that were made here, which have no report.
//!
//! Source: RFC 9211 section 2.

use server_cache::rfc9111::{CacheStatus, ForwardReason, Outcome};

use super::state::Caching;
use crate::cache::conf::CacheConf;
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange};
use crate::upstream::run::{Run, record};

/// Reports on a stored response that is sent. `ttl_s`: seconds for which it stays fresh.
pub(super) fn of_stored(caching: &Caching, x: &mut Exchange, result: CacheResult, ttl_s: i64) {
    let attempt = record(x).last();
    let status = attempt.and_then(|attempt| attempt.head_ms.map(|_| attempt.status));
    let outcome = match (caching.forwarded, result) {
        (None, _) => Outcome::Hit,
        (Some(reason), CacheResult::Revalidated | CacheResult::Stale) => Outcome::Forward {
            reason,
            status,
            stored: false,
            collapsed: false,
        },
        // The response of another request, which this one has waited for.
        (Some(reason), _) => Outcome::Forward {
            reason,
            status: None,
            stored: false,
            collapsed: true,
        },
    };
    push(x, outcome, Some(ttl_s), None);
}

/// Reports on the response of a server, if the location wants that.
pub(crate) fn of_server(run: &Run, conf: &CacheConf, x: &mut Exchange, cx: &Ctx<'_>) {
    if !conf.sends_status {
        return;
    }
    let caching = run.cache.as_deref();
    let is_cached = conf.methods.contains(x.target.method);
    let reason = caching.and_then(|caching| caching.forwarded);
    let reason = reason.unwrap_or(match is_cached {
        true => ForwardReason::Bypass,
        false => ForwardReason::Method,
    });
    // A stage may make it a 304 or a 206.
    let status = record(x).head.as_ref().map(|head| head.status);
    let filling = run.filling.as_ref();
    let outcome = Outcome::Forward {
        reason,
        status,
        stored: filling.is_some(),
        collapsed: false,
    };
    let ttl_s = filling.map(|filling| filling.valid_s.saturating_sub(cx.clock.unix_s()));
    let detail = caching.and_then(|caching| caching.not_stored);
    push(x, outcome, ttl_s, detail);
}

fn push(x: &mut Exchange, outcome: Outcome, ttl_s: Option<i64>, detail: Option<&str>) {
    let status = CacheStatus {
        cache: CACHE_NAME,
        outcome,
        ttl_s,
        key: None,
        detail: detail.map(str::as_bytes),
    };
    let mut text = Vec::new();
    status.encode(std::iter::empty(), &mut text);
    x.reply.fields.push(b"Cache-Status", &text);
}

/// The name of this cache.
const CACHE_NAME: &[u8] = b"firstbyte";
