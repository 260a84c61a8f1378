//! Whether a response may be stored.
//!
//! Absent: limits of size and number, `*_no_cache`, `*_cache_min_uses`. A body that ended early is another question
//! (`may_store_incomplete`). Source: RFC 9111 sections 3, 3.3, 3.5; RFC 9110 sections 9.3.3, 15; RFC 6585.

use engines::http::Method;

use super::directives::DirectiveSet;
use super::freshness::{Lifetime, LifetimeSource, is_heuristically_cacheable};
use super::message::{Expires, RequestFacts, ResponseFacts};
use super::response_directives::ResponseDirectives;
use super::vary::Vary;

/// Permission to store `Set-Cookie`, which RFC 9111 section 7.3 leaves to the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// A response with `Set-Cookie` is not stored, as in nginx.
    #[default]
    Refuse,
    /// It is stored if `public` or `s-maxage` shows that the server means shared caches.
    IfPublic,
    /// It is stored.
    Store,
}

/// Settings of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorePolicy<'a> {
    /// Methods that a configuration permits besides GET and HEAD. Their keys have to contain the request body.
    pub methods: &'a [Method],
    /// Permission to store `Set-Cookie`.
    pub set_cookie: SetCookie,
    /// Parts that were requested are stored: slices, or entries that are completed later.
    pub ranges: bool,
    /// Stale responses are validated, so that one with a validator is of use.
    pub validate: bool,
    /// Stale responses are used after errors of the server.
    pub use_stale: bool,
}

/// The reason not to store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// The method is not understood.
    Method,
    /// The status is interim, 101, or 304, which has no representation.
    NotFinal,
    /// RFC 6585 forbids the status: 428, 429, 431, 511.
    ForbiddenStatus,
    /// The status depends on `Range` or preconditions of this request: 206, 412, 416.
    OfThisRequest,
    /// `must-understand` with a status that is not understood.
    MustUnderstand,
    /// `no-store` of the request.
    RequestNoStore,
    /// `no-store` of the response.
    NoStore,
    /// `private` without names of fields.
    Private,
    /// A request with `Authorization`, without a directive that permits shared caches.
    Authorization,
    /// `Vary: *`: no request selects the response.
    VaryAny,
    /// `Set-Cookie` without permission.
    SetCookie,
    /// No explicit freshness, and a status for which none may be guessed.
    NoFreshness,
    /// The response could never be used: stale or `no-cache`, and nothing to validate it with.
    Useless,
}

impl NotStored {
    /// A token that names the reason, for `detail` of `Cache-Status`, logs and reports.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::NotFinal => "not-final",
            Self::ForbiddenStatus => "forbidden-status",
            Self::OfThisRequest => "of-this-request",
            Self::MustUnderstand => "must-understand",
            Self::RequestNoStore => "request-no-store",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::VaryAny => "vary-any",
            Self::SetCookie => "set-cookie",
            Self::NoFreshness => "no-freshness",
            Self::Useless => "useless",
        }
    }
}

/// Returns the method for which a response is stored; `None` if it depends on a configuration.
///
/// A response to POST is stored for GET if it has explicit freshness and represents the target: its `Content-Location` is
/// the target URI (RFC 9110 section 9.3.3).
#[must_use]
pub fn stored_method(
    method: Method,
    represents_target: bool,
    response: &ResponseFacts,
) -> Option<Method> {
    let has_lifetime = response.directives.max_age_s.is_some()
        || response.directives.s_maxage_s.is_some()
        || response.expires != Expires::Absent;
    match method {
        Method::Get | Method::Head => Some(method),
        Method::Post if represents_target && has_lifetime => Some(Method::Get),
        _ => None,
    }
}

/// Checks whether a shared cache may store a response.
///
/// `request` is the request sent to the server, with the method of [`stored_method`]. `lifetime` is that of the response.
///
/// # Errors
/// The first reason against it.
pub fn check_storable(
    request: &RequestFacts,
    response: &ResponseFacts,
    lifetime: Lifetime,
    policy: &StorePolicy<'_>,
) -> Result<(), NotStored> {
    let is_understood_method = matches!(request.method, Method::Get | Method::Head)
        || policy.methods.contains(&request.method);
    if !is_understood_method {
        return Err(NotStored::Method);
    }
    check_status(request, response, policy)?;
    check_directives(request, response)?;
    if response.vary == Vary::Any {
        return Err(NotStored::VaryAny);
    }
    if response.has_set_cookie && !keeps_set_cookie(&response.directives, policy.set_cookie) {
        return Err(NotStored::SetCookie);
    }
    let is_permitted = response.is_explicitly_cacheable()
        || matches!(
            lifetime.source,
            LifetimeSource::Override | LifetimeSource::Default
        )
        || is_heuristically_cacheable(response.status);
    if !is_permitted {
        return Err(NotStored::NoFreshness);
    }
    if is_useless(response, lifetime, policy) {
        return Err(NotStored::Useless);
    }
    Ok(())
}

fn check_status(
    request: &RequestFacts,
    response: &ResponseFacts,
    policy: &StorePolicy<'_>,
) -> Result<(), NotStored> {
    match response.status {
        ..200 | 304 => Err(NotStored::NotFinal),
        428 | 429 | 431 | 511 => Err(NotStored::ForbiddenStatus),
        206 if !(policy.ranges && request.has_range && response.content_range.is_some()) => {
            Err(NotStored::OfThisRequest)
        }
        416 if request.has_range => Err(NotStored::OfThisRequest),
        412 if request.has_precondition => Err(NotStored::OfThisRequest),
        status => {
            let set = response.directives.set;
            if set.contains(DirectiveSet::MUST_UNDERSTAND) && !is_understood_status(status) {
                return Err(NotStored::MustUnderstand);
            }
            Ok(())
        }
    }
}

fn check_directives(request: &RequestFacts, response: &ResponseFacts) -> Result<(), NotStored> {
    let directives = &response.directives;
    if request.directives.set.contains(DirectiveSet::NO_STORE) {
        return Err(NotStored::RequestNoStore);
    }
    // The status is understood here, so that must-understand replaces no-store (RFC 9111 section 5.2.2.3).
    let no_store = directives.set.contains(DirectiveSet::NO_STORE);
    if no_store && !directives.set.contains(DirectiveSet::MUST_UNDERSTAND) {
        return Err(NotStored::NoStore);
    }
    if directives.set.contains(DirectiveSet::PRIVATE) {
        return Err(NotStored::Private);
    }
    if request.has_authorization && !directives.allows_authorized() {
        return Err(NotStored::Authorization);
    }
    Ok(())
}

/// Whether a response with `Set-Cookie` and these directives is stored with it.
#[must_use]
pub const fn keeps_set_cookie(directives: &ResponseDirectives, policy: SetCookie) -> bool {
    match policy {
        SetCookie::Refuse => false,
        SetCookie::IfPublic => directives.means_shared_caches(),
        SetCookie::Store => true,
    }
}

/// Whether no later request could use the response.
fn is_useless(response: &ResponseFacts, lifetime: Lifetime, policy: &StorePolicy<'_>) -> bool {
    let directives = &response.directives;
    let stale_s = directives
        .stale_while_revalidate_s
        .max(directives.stale_if_error_s)
        .unwrap_or(0);
    let becomes_usable_stale = !directives.requires_validation() && stale_s > 0
        || !directives.forbids_stale() && policy.use_stale;
    let is_fresh = lifetime.seconds > 0 && !directives.set.contains(DirectiveSet::NO_CACHE);
    let is_validated = policy.validate && response.has_validator;
    !is_fresh && !becomes_usable_stale && !is_validated
}

/// Whether the caching rules of a status are implemented: the statuses of RFC 9110 section 15.
const fn is_understood_status(status: u16) -> bool {
    matches!(
        status,
        200..=206
            | 300..=303
            | 305
            | 307
            | 308
            | 400..=417
            | 421
            | 422
            | 426
            | 500..=505
    )
}
