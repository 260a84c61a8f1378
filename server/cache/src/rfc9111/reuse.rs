//! Whether a stored response may be used for a request: fresh, stale, or after validation.
//!
//! Absent: the choice of the stored response by key and `Vary`. Source: RFC 9111 sections 4, 4.2.4, 5.2.1, 5.2.2; RFC
//! 5861.

use engines::http::Method;

use super::directives::DirectiveSet;
use super::request_directives::RequestDirectives;
use super::stored::{Mark, Stored};

/// Permission to use a stale response without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalePermission {
    /// `max-stale` of the request.
    MaxStale,
    /// `stale-while-revalidate` of the response: it has to be validated in the background.
    WhileRevalidate,
}

/// The reason to validate a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationReason {
    /// It is stale.
    Stale,
    /// Its `no-cache`.
    NoCache,
    /// Its mark.
    Invalid,
    /// `no-cache`, `max-age` or `min-fresh` of the request.
    Request,
}

/// The use of a stored response for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It is sent.
    Fresh,
    /// It is sent although it is stale.
    Stale(StalePermission),
    /// It is sent only after validation.
    Validate(ValidationReason),
    /// There is no stored response: the request is forwarded.
    Miss,
    /// The answer is 504: `only-if-cached`, and no stored response may be sent (RFC 9111 section 5.2.1.7).
    GatewayTimeout,
}

/// Returns the use of a stored response, if there is one, for a request with a safe method.
#[must_use]
pub fn reuse(request: &RequestDirectives, stored: Option<&Stored<'_>>, now_s: i64) -> Reuse {
    let found = stored.map_or(Reuse::Miss, |stored| of_stored(request, stored, now_s));
    let only_stored = request.set.contains(DirectiveSet::ONLY_IF_CACHED);
    match found {
        Reuse::Miss | Reuse::Validate(_) if only_stored => Reuse::GatewayTimeout,
        found => found,
    }
}

fn of_stored(request: &RequestDirectives, stored: &Stored<'_>, now_s: i64) -> Reuse {
    let directives = stored.directives;
    if stored.mark == Mark::Invalid {
        return Reuse::Validate(ValidationReason::Invalid);
    }
    if stored.needs_validation() {
        return Reuse::Validate(ValidationReason::NoCache);
    }
    if refuses_age(request, stored, now_s) {
        return Reuse::Validate(ValidationReason::Request);
    }
    if stored.is_fresh(now_s) {
        return Reuse::Fresh;
    }
    if !directives.forbids_stale() && stored.is_within(request.max_stale_s, now_s) {
        return Reuse::Stale(StalePermission::MaxStale);
    }
    if !request.wants_fresh() && may_serve_while_updating(stored, false, now_s) {
        return Reuse::Stale(StalePermission::WhileRevalidate);
    }
    Reuse::Validate(ValidationReason::Stale)
}

/// Whether the request asks for validation or for a younger response.
fn refuses_age(request: &RequestDirectives, stored: &Stored<'_>, now_s: i64) -> bool {
    let age_s = stored.age_s(now_s);
    // Ages are whole seconds: a response of age 0 is older than max-age=0 permits.
    let is_too_old = request
        .max_age_s
        .is_some_and(|max_age_s| max_age_s == 0 || age_s > max_age_s);
    let is_short = request
        .min_fresh_s
        .is_some_and(|min_fresh_s| stored.ttl_s(now_s) < i64::from(min_fresh_s));
    request.set.contains(DirectiveSet::NO_CACHE) || is_too_old || is_short
}

/// Returns whether a stale response may be sent while it is validated.
///
/// `configured` is a setting of the server (`*_cache_use_stale updating`). `stale-while-revalidate` overrides the
/// prohibition in `s-maxage`, since servers send both to shared caches; the setting does not.
#[must_use]
pub fn may_serve_while_updating(stored: &Stored<'_>, configured: bool, now_s: i64) -> bool {
    may_serve_stale(stored, stored.stale_while_revalidate_s, configured, now_s)
}

/// Returns whether a stored response may be sent after an error of the server ([`is_error_status`], or no response).
///
/// `configured` is a setting of the server (`*_cache_use_stale`). A fresh response may be sent: the client's wish to
/// validate it cannot be met (RFC 5861 section 4). If the result is false for `must-revalidate`, the answer is 504 or the
/// error (RFC 9111 section 5.2.2.2).
#[must_use]
pub fn may_serve_on_error(
    request: &RequestDirectives,
    stored: &Stored<'_>,
    configured: bool,
    now_s: i64,
) -> bool {
    let limit_s = stored.stale_if_error_s.max(request.stale_if_error_s);
    may_serve_stale(stored, limit_s, configured, now_s)
}

fn may_serve_stale(
    stored: &Stored<'_>,
    limit_s: Option<u32>,
    configured: bool,
    now_s: i64,
) -> bool {
    if stored.needs_validation() {
        return false;
    }
    if stored.is_fresh(now_s) {
        return true;
    }
    let by_field = !stored.directives.requires_validation() && stored.is_within(limit_s, now_s);
    by_field || configured && !stored.directives.forbids_stale()
}

/// Whether a status is an error for `stale-if-error` (RFC 5861 section 4).
#[must_use]
pub const fn is_error_status(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether a response stored for one method answers a request with another (RFC 9111 section 4, RFC 9110 section 9.3.2).
#[must_use]
pub fn can_satisfy(stored: Method, request: Method) -> bool {
    stored == request || (stored, request) == (Method::Get, Method::Head)
}
