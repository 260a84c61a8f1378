//! The judge: whether a client may have received a response, by the ledger.
//!
//! Ages count from the first byte that the server sent, in milliseconds. The cache counts whole seconds, and from earlier
//! times, so a fresh response is younger than its lifetime. A limit that includes its last second permits one second more.

use super::ledger::{Giving, Ledger, Version, etag, modified};
use super::request::{Action, ClientRequest, Directive};

/// A response, or the received part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_whole: bool,
    /// When its first byte was sent to the client, monotonic milliseconds.
    pub(crate) head_ms: u64,
}

impl ReceivedResponse {
    fn field(&self, name: &str) -> Option<&str> {
        let mut found = self
            .fields
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

/// The origin of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A response to this request itself.
    Own,
    /// A 304 to this request has confirmed it.
    Confirmed,
    /// Another request has received it meanwhile.
    Joined,
    /// It was stored, and is fresh.
    Reused,
    /// It was stored, and is stale.
    Stale,
    /// It is no version.
    Other,
}

/// Judges a response.
///
/// # Errors
/// Why the client may not have received it.
pub(crate) fn judge(
    book: &Ledger,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<Origin, String> {
    match request.action {
        Action::Post => return judge_post(book, request, got),
        Action::Purge(_) => {
            return match got.status {
                204 | 200 => Ok(Origin::Other),
                status => Err(format!("a purge is answered with {status}")),
            };
        }
        _ => {}
    }
    let number = got.field("X-Version").filter(|_| got.status != 416);
    let Some(number) = number else {
        return judge_other(book, request, got);
    };
    let number: usize = number.parse().map_err(|_| "no number".to_owned())?;
    let Some(version) = book.versions.get(number) else {
        return Err(format!("version {number} does not exist"));
    };
    if version.resource != request.resource {
        return Err(format!("version {number} is of another resource"));
    }
    check_fields(number, version, got)?;
    check_body(number, version, request, got)?;
    let origin = origin(book, number, request, got)?;
    let failed = || book.givings_of(number).any(|giving| giving.fails);
    if !got.is_whole && !failed() {
        return Err(format!("version {number} breaks off without a reason"));
    }
    Ok(origin)
}

fn judge_post(
    book: &Ledger,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<Origin, String> {
    let is_own = book.posted.iter().any(|(id, _)| *id == request.id);
    match got.status {
        200 | 500 if is_own => Ok(Origin::Other),
        502 | 504 if book.has_failed_since(request.begun) => Ok(Origin::Other),
        status => Err(format!("a POST is answered with {status}")),
    }
}

/// Judges a response without a version.
fn judge_other(
    book: &Ledger,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<Origin, String> {
    let is_permitted = match got.status {
        502 => book.has_failed_since(request.begun),
        504 => request.directive == Directive::OnlyIfCached || book.has_failed_since(request.begun),
        416 => {
            let unsatisfied = got
                .field("Content-Range")
                .and_then(|v| v.strip_prefix("bytes */"));
            let len = unsatisfied.and_then(|len| len.parse::<usize>().ok());
            let of_resource = |v: &&Version| v.resource == request.resource && Some(v.len) == len;
            let is_known = book.versions.iter().any(|version| of_resource(&version));
            matches!(request.action, Action::Range(first, _) if len.is_some_and(|len| first >= len))
                && is_known
        }
        _ => false,
    };
    if is_permitted {
        return Ok(Origin::Other);
    }
    Err(format!("{} without a reason", got.status))
}

/// Checks that all fields are of one version.
fn check_fields(number: usize, version: &Version, got: &ReceivedResponse) -> Result<(), String> {
    let validators = [
        ("ETag", version.has_etag, etag(number)),
        ("Last-Modified", version.has_date, modified(number)),
    ];
    for (name, has, expected) in validators {
        let expected = has.then_some(expected.as_str());
        // A 304 needs no date beside a tag (RFC 9110 section 15.4.5).
        let may_miss = got.status == 304 && name == "Last-Modified";
        let value = got.field(name);
        if value != expected && !(may_miss && value.is_none()) {
            return Err(format!("version {number} has {name} {value:?}"));
        }
    }
    Ok(())
}

fn check_body(
    number: usize,
    version: &Version,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<(), String> {
    let whole = version.body(number);
    let expected = match (got.status, &request.action) {
        (304, Action::Condition(condition)) if *condition == number && version.has_etag => &[][..],
        (206, Action::Range(first, last)) if version.status == 200 && *first < whole.len() => {
            let last = (*last).min(whole.len() - 1);
            let range = format!("bytes {first}-{last}/{}", whole.len());
            if got.field("Content-Range") != Some(&range) {
                let range = got.field("Content-Range");
                return Err(format!("version {number} has range {range:?}"));
            }
            &whole[*first..=last]
        }
        (status, _) if status == version.status => &whole[..],
        (status, action) => return Err(format!("{action:?} of version {number} is {status}")),
    };
    let length = got.field("Content-Length");
    let length_is_right = |text: &str| text.parse() == Ok(expected.len()) || got.status == 304;
    if length.is_some_and(|text| !length_is_right(text)) {
        return Err(format!("version {number} has length {length:?}"));
    }
    let expected = if request.is_head() { &[] } else { expected };
    let is_right = match got.is_whole {
        true => got.body == expected,
        false => expected.starts_with(&got.body),
    };
    if is_right {
        return Ok(());
    }
    let pairs = got.body.iter().zip(expected);
    let same = pairs.take_while(|(a, b)| a == b).count();
    let (len, right) = (got.body.len(), expected.len());
    Err(format!(
        "version {number} has {len} bytes of {right}, wrong from {same} on"
    ))
}

/// Returns how the client may have received a version.
///
/// # Errors
/// No response of a server permits it.
fn origin(
    book: &Ledger,
    number: usize,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<Origin, String> {
    let mut refused = Vec::new();
    for giving in book.givings_of(number).filter(|g| g.given.is_some()) {
        match permit(book, giving, request, got) {
            Ok(origin) => return Ok(origin),
            Err(why) => refused.push(why),
        }
    }
    refused.sort_unstable();
    refused.dedup();
    let why = refused.join(", ");
    Err(format!(
        "version {number} at {} ms is not permitted: {why}",
        got.head_ms
    ))
}

fn permit(
    book: &Ledger,
    giving: &Giving,
    request: &ClientRequest,
    got: &ReceivedResponse,
) -> Result<Origin, String> {
    let version = &book.versions[giving.version];
    if giving.varies && version.variant != request.variant {
        return Err("another variant".to_owned());
    }
    if giving.request == request.id && giving.asked >= request.begun {
        return Ok(match giving.is_304 {
            true => Origin::Confirmed,
            false => Origin::Own,
        });
    }
    if giving.is_head {
        return Err("a response to HEAD".to_owned());
    }
    if giving.policy.no_store {
        return Err("no-store".to_owned());
    }
    if giving.asked >= request.begun {
        return Ok(Origin::Joined);
    }
    let mut is_purged = false;
    for purge in &book.purges {
        let is_concerned = purge.resources.contains(&version.resource)
            && (giving.is_tagged || !purge.by_tag)
            && purge.answered < request.begun
            && giving.asked < purge.begun;
        if is_concerned && !purge.is_soft {
            return Err(format!("purged before request {}", request.id));
        }
        is_purged |= is_concerned;
    }
    let given = giving.given.unwrap_or_default();
    // It had joined before the head came.
    if giving.read.is_none_or(|read| read >= request.begun) && !is_purged {
        return Ok(Origin::Joined);
    }
    let age_ms = got.head_ms.saturating_sub(given.ms);
    if let Some(age_s) = got.field("Age").and_then(|v| v.parse::<u64>().ok())
        && (age_s + 1) * 1000 <= age_ms
    {
        return Err(format!("Age {age_s} after {age_ms} ms"));
    }
    match age_is_permitted(book, giving, request, age_ms, is_purged) {
        Some(origin) => Ok(origin),
        None => Err(format!(
            "{age_ms} ms old, {}{}",
            giving.policy.text(),
            if is_purged { ", purged softly" } else { "" }
        )),
    }
}

/// Whether a stored response of this age may be used. `is_purged`: a soft purge has made it stale.
fn age_is_permitted(
    book: &Ledger,
    giving: &Giving,
    request: &ClientRequest,
    age_ms: u64,
    is_purged: bool,
) -> Option<Origin> {
    let (policy, location) = (&giving.policy, request.location());
    if policy.no_cache {
        return None;
    }
    let within = |seconds: u64| age_ms < (seconds + 1) * 1000;
    let is_fresh = !is_purged && age_ms < policy.max_age_s * 1000;
    let is_wanted = match request.directive {
        Directive::NoCache | Directive::MaxAge(0) => false,
        Directive::MaxAge(seconds) => within(seconds),
        _ => true,
    };
    if is_fresh && is_wanted {
        return Some(Origin::Reused);
    }
    // Of a failure, or a 500 that came instead.
    let has_500 = || {
        let mut all = book.givings.iter();
        all.any(|g| g.asked >= request.begun && book.versions[g.version].status == 500)
    };
    let has_failed = book.has_failed_since(request.begun) || has_500();
    let may_be_stale = !policy.must_revalidate;
    let if_error = location.stale_on_error && may_be_stale
        || policy
            .if_error_s
            .is_some_and(|s| may_be_stale && within(policy.max_age_s + s))
        // Validation has failed (RFC 9111 section 4.3.3).
        || is_fresh;
    if has_failed && if_error {
        return Some(Origin::Stale);
    }
    let max_stale = match request.directive {
        Directive::MaxStale(seconds) => within(policy.max_age_s + seconds),
        _ => false,
    };
    let by_policy = policy
        .while_revalidate_s
        .is_some_and(|seconds| within(policy.max_age_s + seconds));
    // A request with a limit wants no stale response.
    let has_limit = matches!(request.directive, Directive::MaxAge(_) | Directive::NoCache);
    let while_updating = (location.stale_while_updating || by_policy) && !has_limit;
    let is_permitted = may_be_stale && (max_stale || while_updating);
    is_permitted.then_some(Origin::Stale)
}
