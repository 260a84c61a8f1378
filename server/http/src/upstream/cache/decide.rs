//! The use of a stored response for a request.
//!
//! Source: RFC 9111 sections 4.2, 4.2.4, 5.2; RFC 5861; behaviour of nginx 1.31.4 with `*_cache_rfc off`.

use engines::http::ResponseHead;
use server_cache::index::{Begin, FillLock, FillToken, Now};
use server_cache::rfc9111::{
    ForwardReason, Mark, Reuse, StalePermission, Stored, ValidationReason,
    may_serve_while_updating, reuse,
};

use super::open::now_s;
use super::rules::Received;
use super::state::{Caching, StoredResponse};
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange};
use crate::upstream::conf::{IgnoredHeaders, NextUpstream};

/// The use of a stored response.
pub(super) enum Use {
    /// It is sent.
    Send(CacheResult),
    /// It is sent, and updated in the background.
    SendAndUpdate(FillToken),
    /// A server validates it, or sends another one.
    Validate(ForwardReason),
    /// The client wants a stored response only, and this one needs validation.
    GatewayTimeout,
}

/// Decides over a stored response. The right to validate it is kept in `caching`.
pub(super) fn decide(
    caching: &mut Caching,
    stored: &StoredResponse,
    ignored: IgnoredHeaders,
    x: &Exchange,
    cx: &Ctx<'_>,
) -> Use {
    let wanted = match caching.conf.rules.rfc {
        true => by_rfc(caching, stored, ignored, cx),
        false => by_nginx(caching, stored, cx),
    };
    let (may_send, reason) = match wanted {
        Wanted::Send(result) => return Use::Send(result),
        Wanted::GatewayTimeout => return Use::GatewayTimeout,
        Wanted::Update { may_send, reason } => {
            let may_send = may_send && !caching.is_update && !x.is_health_check();
            (may_send, reason)
        }
        Wanted::UpdateBehind => (!caching.is_update, ForwardReason::Stale),
    };
    if caching.token.is_some() {
        // An update in the background has it from its beginning.
        return Use::Validate(reason);
    }
    // Whether another request updates it, and how long, is no matter of `*_cache_lock`.
    match begin_fill(caching, FillLock::Age(u64::MAX), cx) {
        Begin::Started(token) => {
            let is_behind = matches!(wanted, Wanted::UpdateBehind);
            if may_send && (is_behind || caching.conf.rules.background_update) {
                return Use::SendAndUpdate(token);
            }
            caching.token = Some(token);
        }
        Begin::Joined(_) if may_send => return Use::Send(CacheResult::Updating),
        Begin::Joined(_) => match begin_fill(caching, FillLock::Off, cx) {
            Begin::Started(token) => caching.token = Some(token),
            Begin::Joined(_) | Begin::Full => caching.may_store = false,
        },
        Begin::Full => caching.may_store = false,
    }
    Use::Validate(reason)
}

/// The use of a stored response, before other requests are considered.
enum Wanted {
    Send(CacheResult),
    /// An update; the response may be sent if another request does it.
    Update {
        may_send: bool,
        reason: ForwardReason,
    },
    /// An update in the background; the response is sent in any case.
    UpdateBehind,
    GatewayTimeout,
}

impl Wanted {
    /// An update that this request waits for.
    const fn update(reason: ForwardReason) -> Self {
        Self::Update {
            may_send: false,
            reason,
        }
    }
}

/// Begins to receive the entry of a request.
pub(super) fn begin_fill(caching: &Caching, lock: FillLock, cx: &Ctx<'_>) -> Begin {
    let now = Now {
        mono_ms: cx.clock.mono_ms,
        unix_s: now_s(cx),
    };
    let index = &caching.zone.shared.index;
    index.begin_fill(caching.id, &caching.key, lock, now)
}

fn by_nginx(caching: &Caching, stored: &StoredResponse, cx: &Ctx<'_>) -> Wanted {
    let (header, now_s) = (stored.stored.header(), cx.clock.unix_s());
    let is_purged = stored.entry.is_some_and(|entry| entry.is_stale);
    if header.valid_s >= now_s && !is_purged {
        return Wanted::Send(CacheResult::Hit);
    }
    let by_field = header.valid_s.saturating_add(header.updating_s) >= now_s;
    let by_setting = caching.conf.use_stale.has(NextUpstream::UPDATING);
    Wanted::Update {
        may_send: by_field || by_setting,
        reason: ForwardReason::Stale,
    }
}

fn by_rfc(
    caching: &Caching,
    stored: &StoredResponse,
    ignored: IgnoredHeaders,
    cx: &Ctx<'_>,
) -> Wanted {
    let now_s = cx.clock.unix_s();
    let (directives, updating) = (
        &caching.request.directives,
        caching.conf.use_stale.has(NextUpstream::UPDATING),
    );
    let (reuse, while_updating) = with_stored(caching, stored, ignored, now_s, |stored| {
        let reuse = reuse(directives, Some(stored), now_s);
        (reuse, may_serve_while_updating(stored, updating, now_s))
    });
    match reuse {
        Reuse::Fresh => Wanted::Send(CacheResult::Hit),
        Reuse::Stale(StalePermission::MaxStale) => Wanted::Send(CacheResult::Stale),
        Reuse::Stale(StalePermission::WhileRevalidate) => Wanted::UpdateBehind,
        Reuse::Validate(ValidationReason::Stale) => Wanted::Update {
            may_send: while_updating && !directives.wants_fresh(),
            reason: ForwardReason::Stale,
        },
        Reuse::Validate(reason) => Wanted::update(reason.into()),
        Reuse::Miss => Wanted::update(ForwardReason::Stale),
        Reuse::GatewayTimeout => Wanted::GatewayTimeout,
    }
}

/// Calls a function with the state of a stored response by RFC 9111.
pub(super) fn with_stored<T>(
    caching: &Caching,
    stored: &StoredResponse,
    ignored: IgnoredHeaders,
    now_s: i64,
    f: impl FnOnce(&Stored<'_>) -> T,
) -> T {
    let received = Received {
        conf: &caching.conf,
        ignored,
        request: &caching.request,
        wants_part: false,
        request_s: now_s,
        now_s,
    };
    let head = &stored.stored;
    let facts_of = |head: &ResponseHead| received.facts(head);
    head.with_facts(ignored.0, facts_of, |facts| {
        let mut state = Stored::of_file(&head.header(), &head.notes(), facts);
        if stored.entry.is_some_and(|entry| entry.is_stale) {
            state.mark = Mark::Stale { since_s: now_s };
        }
        f(&state)
    })
}
