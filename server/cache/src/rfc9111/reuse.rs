//! Whether a stored response may be used for a request: fresh, stale, or after validation.
//!
//! Absent: the choice of the stored response by key and `Vary`. Source: RFC 9111 sections 4, 4.2.4, 5.2.1, 5.2.2; RFC
//! 5861.

use engines::http::Method;

use super::age::current_age_s;
use super::directives::DirectiveSet;
use super::request_directives::RequestDirectives;
use super::response_directives::ResponseDirectives;

/// A mark of a stored response, made by an invalidation or a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// There is none.
    #[default]
    None,
    /// Stale from a time on: a soft purge, or a HEAD response that differs (RFC 9111 section 4.3.5).
    Stale {
        /// That time, in seconds since 1970.
        since_s: i64,
    },
    /// To be validated before any use (RFC 9111 section 4.4).
    Invalid,
}

/// The state of a stored response.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The directives of the response.
    pub directives: &'a ResponseDirectives,
    /// The freshness lifetime, in seconds.
    pub lifetime_s: u32,
    /// The age at reception or last validation, in seconds.
    pub initial_age_s: u32,
    /// The time of reception or last validation, in seconds since 1970.
    pub response_time_s: i64,
    /// A mark.
    pub mark: Mark,
}

impl Stored<'_> {
    /// The current age in seconds, the value of `Age` to send.
    #[must_use]
    pub fn age_s(&self, now_s: i64) -> u32 {
        current_age_s(self.initial_age_s, self.response_time_s, now_s)
    }

    /// Seconds for which the response stays fresh; 0 or less if it is stale.
    #[must_use]
    pub fn ttl_s(&self, now_s: i64) -> i64 {
        let ttl_s = i64::from(self.lifetime_s) - i64::from(self.age_s(now_s));
        match self.mark {
            Mark::None => ttl_s,
            // A clock that was set back makes no marked response fresh.
            Mark::Stale { since_s } => ttl_s.min(since_s.saturating_sub(now_s)).min(0),
            Mark::Invalid => ttl_s.min(0),
        }
    }

    /// Whether the response is fresh: its lifetime is greater than its age (RFC 9111 section 4.2).
    #[must_use]
    pub fn is_fresh(&self, now_s: i64) -> bool {
        self.ttl_s(now_s) > 0
    }

    /// The time at which the response becomes stale, in seconds since 1970: `valid_sec` of nginx's stored head. It is before
    /// the reception of a response that was stale then.
    #[must_use]
    pub fn fresh_until_s(&self) -> i64 {
        let left_s = i64::from(self.lifetime_s) - i64::from(self.initial_age_s);
        self.response_time_s.saturating_add(left_s)
    }

    /// Seconds after [`Self::fresh_until_s`] in which the response may be sent while it is updated: `updating_sec` of nginx's
    /// stored head. 0 without `stale-while-revalidate`, or if another directive forbids it.
    #[must_use]
    pub fn updating_s(&self) -> i64 {
        self.permitted_s(self.directives.stale_while_revalidate_s)
    }

    /// Seconds after [`Self::fresh_until_s`] in which the response may be sent after an error of the server: `error_sec` of
    /// nginx's stored head. 0 without `stale-if-error`, or if another directive forbids it.
    #[must_use]
    pub fn error_s(&self) -> i64 {
        self.permitted_s(self.directives.stale_if_error_s)
    }

    fn permitted_s(&self, stale_s: Option<u32>) -> i64 {
        let permitted = stale_s.filter(|_| !self.directives.requires_validation());
        permitted.map_or(0, i64::from)
    }

    /// Whether the response is at most `limit_s` seconds past its freshness.
    fn is_within(&self, limit_s: Option<u32>, now_s: i64) -> bool {
        limit_s.is_some_and(|limit_s| self.ttl_s(now_s) >= -i64::from(limit_s))
    }

    /// Whether no use without validation is permitted at all.
    fn needs_validation(&self) -> bool {
        self.mark == Mark::Invalid || self.directives.set.contains(DirectiveSet::NO_CACHE)
    }
}

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
    // A request with max-age or min-fresh wants no stale response.
    let wants_fresh = request.max_age_s.is_some() || request.min_fresh_s.is_some();
    if !wants_fresh && may_serve_while_updating(stored, false, now_s) {
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
    may_serve_stale(
        stored,
        stored.directives.stale_while_revalidate_s,
        configured,
        now_s,
    )
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
    let limit_s = stored
        .directives
        .stale_if_error_s
        .max(request.stale_if_error_s);
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
