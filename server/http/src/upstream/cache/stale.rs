//! A stale response in the place of a failure.
//!
//! Source: nginx documentation, `proxy_cache_use_stale`; RFC 9111 section 4.2.4; RFC 5861 section 4.

use server_cache::rfc9111::{is_error_status, may_serve_on_error};

use super::decide::with_stored;
use crate::exchange::{Ctx, Exchange};
use crate::upstream::run::Run;

/// Whether the stored response at hand is sent in the place of a failure with this reason of `*_next_upstream`, or of a
/// response with this status.
pub(crate) fn may_send(
    run: &Run,
    x: &Exchange,
    cx: &Ctx<'_>,
    reason: u32,
    response_status: Option<u16>,
) -> bool {
    let Some(caching) = &run.cache else {
        return false;
    };
    let Some(stored) = &caching.stored else {
        return false;
    };
    if caching.is_update {
        return false;
    }
    let by_setting = caching.conf.use_stale.has(reason);
    let now_s = cx.clock.unix_s();
    if !caching.conf.rules.rfc {
        let by_field = || {
            let header = stored.stored.header();
            header.valid_s.saturating_add(header.error_s) >= now_s
        };
        // As in nginx, `stale-if-error` concerns failures, and no responses.
        return by_setting || response_status.is_none() && by_field();
    }
    if response_status.is_some_and(|status| !is_error_status(status)) && !by_setting {
        return false;
    }
    let ignored = run.conf(x, &x.route.http).fields.ignored;
    let directives = &caching.request.directives;
    with_stored(caching, stored, ignored, now_s, |stored| {
        may_serve_on_error(directives, stored, by_setting, now_s)
    })
}
