//! Storing a response: by nginx's rules, or by RFC 9111.
//!
//! Absent: conditions of the request (`*_no_cache`), sizes, files.
//!
//! Source: nginx documentation, `proxy_cache_valid`; behaviour of nginx 1.31.4; RFC 9111 section 3.

use engines::http::{FieldId, Fields, Method, ResponseHead, parse_http_date};
use server_cache::disk::VARY_BYTES_MAX;
use server_cache::rfc9111::{
    CDN_CACHE_CONTROL, FieldList, FreshnessPolicy, Heuristic, IgnoredFields, RequestFacts,
    ResponseFacts, SetCookie, StorePolicy, Stored, check_storable, initial_age_s, lifetime,
    stored_fields, updated_fields,
};
use server_cache::tags::Tags;
use server_cache::vary::stored_vary;

use crate::cache::conf::CacheConf;
use crate::upstream::conf::IgnoredHeaders;

/// Times of a stored response, seconds since 1970 or after the end of freshness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// End of freshness.
    pub(crate) valid_s: i64,
    /// Time after that in which the response is sent while it is updated.
    pub(crate) updating_s: i64,
    /// Time after that in which the response is sent after an error.
    pub(crate) error_s: i64,
    /// Time at which its age was 0.
    pub(crate) date_s: i64,
}

/// A response that may be stored.
#[derive(Debug)]
pub(crate) struct Storable {
    pub(crate) times: Times,
    /// `Vary` as it is stored.
    pub(crate) vary: Vec<u8>,
    /// The fields to store.
    pub(crate) fields: Fields,
    pub(crate) tags: Tags,
}

/// Circumstances of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) conf: &'a CacheConf,
    pub(crate) ignored: IgnoredHeaders,
    pub(crate) request: &'a RequestFacts,
    /// The request to the server was for a part that is stored by itself (`slice`).
    pub(crate) wants_part: bool,
    /// Time of the request to the server, seconds since 1970.
    pub(crate) request_s: i64,
    /// Time of the response head, seconds since 1970.
    pub(crate) now_s: i64,
}

impl Received<'_> {
    /// Returns the response as it may be stored.
    ///
    /// # Errors
    /// The reason not to store it, for `Cache-Status` and reports.
    pub(crate) fn storable(&self, head: &ResponseHead) -> Result<Storable, &'static str> {
        let tags = tags(head)?;
        let (times, vary, fields) = match self.conf.rules.rfc {
            true => self.by_rfc(head)?,
            false => self.by_nginx(head)?,
        };
        if vary.len() > VARY_BYTES_MAX {
            return Err("vary-too-long");
        }
        Ok(Storable {
            times,
            vary,
            fields,
            tags,
        })
    }

    fn by_rfc(&self, head: &ResponseHead) -> Result<(Times, Vec<u8>, Fields), &'static str> {
        let facts = self.facts(head);
        let list = FieldList::from(head);
        let policy = self.freshness(head, &facts)?;
        let lifetime = lifetime(&facts, self.request.has_query, self.now_s, &policy);
        let methods = match self.conf.methods.contains(Method::Post) {
            true => &[Method::Post][..],
            false => &[],
        };
        let store = StorePolicy {
            methods,
            set_cookie: SetCookie::Refuse,
            ranges: self.wants_part,
            validate: true,
            // A lifetime that was set for this cache is never useless.
            use_stale: self.conf.use_stale.0 != 0 || policy.override_s.is_some(),
        };
        let request = RequestFacts {
            has_range: self.wants_part,
            ..self.request.clone()
        };
        check_storable(&request, &facts, lifetime, &store).map_err(|why| why.text())?;
        let age_s = initial_age_s(facts.age_s, None, self.request_s, self.now_s);
        let stored = Stored::received(&facts.directives, lifetime.seconds, age_s, self.now_s);
        let times = Times {
            valid_s: stored.fresh_until_s,
            updating_s: stored.updating_s(),
            error_s: stored.error_s(),
            date_s: self.now_s.saturating_sub(i64::from(age_s)),
        };
        let vary = stored_vary(&facts.vary).ok_or("vary-any")?;
        // A cookie that is not refused was permitted.
        let fields = stored_fields(list, &facts.directives, true, self.now_s);
        Ok((times, vary, fields))
    }

    /// Returns the head of a stored response, updated by a 304 (RFC 9111 section 3.2).
    pub(crate) fn updated(&self, stored: &ResponseHead, head: &ResponseHead) -> ResponseHead {
        let directives = self.facts(head).directives;
        let (stored_list, list) = (FieldList::from(stored), FieldList::from(head));
        let fields = updated_fields(stored_list, list, &directives, true, self.now_s);
        let mut updated = ResponseHead {
            status: stored.status,
            ..ResponseHead::default()
        };
        updated.set_phrase(stored.status, stored.phrase());
        for field in &fields.fields {
            let (name, value) = (fields.bytes(field.name), fields.bytes(field.value));
            updated.push_id(field.id, name, value);
        }
        updated
    }

    /// Whether an update changes more than times, which are stored apart.
    pub(crate) fn needs_new_head(&self, before: &ResponseHead, updated: &ResponseHead) -> bool {
        let (old, new) = (self.facts(before), self.facts(updated));
        if !old.directives.differs_in_seconds_only(&new.directives) {
            return true;
        }
        let others = |head: &ResponseHead| {
            let fields = head
                .fields
                .iter()
                .filter(|f| !is_time(f.id, head.bytes(f.name)));
            let lines = fields.map(|f| {
                (
                    head.bytes(f.name).to_ascii_lowercase(),
                    head.bytes(f.value).to_vec(),
                )
            });
            lines.collect::<std::collections::BTreeSet<_>>()
        };
        others(before) != others(updated)
    }

    /// Facts of a response, without the fields that the configuration ignores.
    pub(crate) fn facts(&self, head: &ResponseHead) -> ResponseFacts {
        let targets = [CDN_CACHE_CONTROL];
        let ignored = ignored_fields(self.ignored);
        let list = FieldList::from(head);
        let mut facts = ResponseFacts::of(head.status, list, self.now_s, &targets, ignored);
        if matches!(self.accel_expires(head), AccelExpires::Until(_)) {
            // It is for this cache alone, and has the last word over all but the extensions.
            let own = std::mem::take(&mut facts.directives);
            facts.directives.stale_while_revalidate_s = own.stale_while_revalidate_s;
            facts.directives.stale_if_error_s = own.stale_if_error_s;
        }
        facts
    }

    /// Settings of the lifetime of a response.
    fn freshness(
        &self,
        head: &ResponseHead,
        facts: &ResponseFacts,
    ) -> Result<FreshnessPolicy, &'static str> {
        let override_s = match self.accel_expires(head) {
            AccelExpires::None => None,
            AccelExpires::Never => return Err("x-accel-expires"),
            AccelExpires::Until(until_s) => {
                let left_s = until_s.saturating_sub(self.now_s);
                Some(u32::try_from(left_s.max(0)).unwrap_or(u32::MAX))
            }
        };
        let may_guess = facts.has_validator && !self.request.has_query;
        Ok(FreshnessPolicy {
            override_s,
            default_s: self.conf.valid.seconds(head.status),
            heuristic: may_guess.then(Heuristic::default),
        })
    }

    /// Parses `X-Accel-Expires`.
    fn accel_expires(&self, head: &ResponseHead) -> AccelExpires {
        let value = head.named(b"X-Accel-Expires").next();
        match value.filter(|_| !self.ignored.has(IgnoredHeaders::XA_EXPIRES)) {
            None => AccelExpires::None,
            Some(value) => match (value.strip_prefix(b"@"), conf::parse_number(value)) {
                (Some(at), _) => conf::parse_number(at).map_or(AccelExpires::None, |at| {
                    AccelExpires::Until(i64::try_from(at).unwrap_or(i64::MAX))
                }),
                (None, Some(0)) => AccelExpires::Never,
                (None, Some(seconds)) => AccelExpires::Until(add(self.now_s, seconds)),
                (None, None) => AccelExpires::None,
            },
        }
    }

    fn by_nginx(&self, head: &ResponseHead) -> Result<(Times, Vec<u8>, Fields), &'static str> {
        let times = self.times_by_nginx(head)?;
        let refuses_cookie = !self.ignored.has(IgnoredHeaders::SET_COOKIE);
        if refuses_cookie && head.get(FieldId::SetCookie).is_some() {
            return Err("set-cookie");
        }
        let mut vary = Vec::new();
        if !self.ignored.has(IgnoredHeaders::VARY) {
            for field in head.fields.iter().filter(|f| f.id == FieldId::Vary) {
                let value = head.bytes(field.value);
                if value == b"*" {
                    return Err("vary-any");
                }
                if !vary.is_empty() {
                    vary.extend_from_slice(b", ");
                }
                vary.extend_from_slice(value);
            }
        }
        let valid_s = match times.valid_s {
            0 => {
                let seconds = self.conf.valid.seconds(head.status);
                let seconds = seconds.filter(|seconds| *seconds > 0);
                add(self.now_s, u64::from(seconds.ok_or("no-freshness")?))
            }
            valid_s => valid_s,
        };
        let mut fields = Fields::default();
        for field in head.fields.iter().filter(|f| !is_of_connection(f.id)) {
            fields.push_id(field.id, head.bytes(field.name), head.bytes(field.value));
        }
        let times = Times { valid_s, ..times };
        Ok((times, vary, fields))
    }

    /// Returns the times of a response by its fields, as nginx reads them: in their order, and later ones do not change a
    /// time that is known. `valid_s` is 0 without a time.
    ///
    /// # Errors
    /// The fields forbid storing.
    pub(crate) fn times_by_nginx(&self, head: &ResponseHead) -> Result<Times, &'static str> {
        let mut read = Read {
            now_s: self.now_s,
            ..Read::default()
        };
        for field in &head.fields {
            let (name, value) = (head.bytes(field.name), head.bytes(field.value));
            match field.id {
                FieldId::CacheControl if !self.ignored.has(IgnoredHeaders::CACHE_CONTROL) => {
                    read.cache_control(value)?;
                }
                FieldId::Expires if !self.ignored.has(IgnoredHeaders::EXPIRES) => {
                    read.expires(value);
                }
                FieldId::Other if name.eq_ignore_ascii_case(b"X-Accel-Expires") => {
                    read.has_accel_expires = true;
                    match self.accel_expires(head) {
                        AccelExpires::None => {}
                        AccelExpires::Never => return Err("x-accel-expires"),
                        AccelExpires::Until(until_s) => {
                            read.times.valid_s = until_s;
                            (read.is_forbidden, read.is_expired) = (false, false);
                        }
                    }
                }
                _ => {}
            }
        }
        if read.is_forbidden || read.is_expired {
            return Err("no-store");
        }
        Ok(Times {
            date_s: self.now_s,
            ..read.times
        })
    }
}

/// `X-Accel-Expires`.
enum AccelExpires {
    None,
    /// 0.
    Never,
    /// Seconds since 1970.
    Until(i64),
}

/// Fields of a response as far as they were read.
#[derive(Default)]
struct Read {
    now_s: i64,
    times: Times,
    has_accel_expires: bool,
    is_forbidden: bool,
    is_expired: bool,
}

impl Read {
    fn cache_control(&mut self, value: &[u8]) -> Result<(), &'static str> {
        if self.times.valid_s == 0 || !self.has_accel_expires {
            let has = |word: &[u8]| find(value, word).is_some();
            if has(b"no-cache") || has(b"no-store") || has(b"private") {
                self.is_forbidden = true;
                return Ok(());
            }
            let max_age = find(value, b"s-maxage=").or_else(|| find(value, b"max-age="));
            match max_age.map(seconds) {
                None => {}
                Some(None) => return Err("invalid-max-age"),
                Some(Some(0)) => {
                    self.is_forbidden = true;
                    return Ok(());
                }
                Some(Some(seconds)) => {
                    self.times.valid_s = add(self.now_s, seconds);
                    self.is_expired = false;
                }
            }
        }
        if let Some(text) = find(value, b"stale-while-revalidate=") {
            let seconds = seconds(text).ok_or("invalid-stale-while-revalidate")?;
            (self.times.updating_s, self.times.error_s) = (limited(seconds), limited(seconds));
        }
        if let Some(text) = find(value, b"stale-if-error=") {
            self.times.error_s = limited(seconds(text).ok_or("invalid-stale-if-error")?);
        }
        Ok(())
    }

    fn expires(&mut self, value: &[u8]) {
        if self.times.valid_s != 0 {
            return;
        }
        match parse_http_date(value) {
            Some(at_s) if at_s >= self.now_s => self.times.valid_s = at_s,
            _ => self.is_expired = true,
        }
    }
}

/// Returns the text behind a word, found in any case.
fn find<'v>(value: &'v [u8], word: &[u8]) -> Option<&'v [u8]> {
    let mut parts = value.windows(word.len());
    let at = parts.position(|part| part.eq_ignore_ascii_case(word))?;
    Some(&value[at + word.len()..])
}

/// Parses seconds at the begin of a text; `None` for other characters before `,`, `;` or a space.
fn seconds(text: &[u8]) -> Option<u64> {
    let ends = |byte: &u8| matches!(byte, b',' | b';' | b' ');
    let end = text.iter().position(ends).unwrap_or(text.len());
    let digits = text[..end].iter();
    digits.into_iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit))
    })
}

fn limited(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

fn add(now_s: i64, seconds: u64) -> i64 {
    now_s.saturating_add(limited(seconds))
}

/// Whether a field is about the time or the freshness of a response.
fn is_time(id: FieldId, name: &[u8]) -> bool {
    match id {
        FieldId::Date | FieldId::Expires | FieldId::CacheControl => true,
        FieldId::Other => name.eq_ignore_ascii_case(b"Age"),
        _ => false,
    }
}

/// Whether a field is about the connection or the framing of a message.
fn is_of_connection(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::Connection | FieldId::KeepAlive | FieldId::TransferEncoding | FieldId::Upgrade
    )
}

/// The fields that RFC 9111's rules ignore by `*_ignore_headers`.
pub(crate) fn ignored_fields(ignored: IgnoredHeaders) -> IgnoredFields {
    IgnoredFields {
        cache_control: ignored.has(IgnoredHeaders::CACHE_CONTROL),
        expires: ignored.has(IgnoredHeaders::EXPIRES),
        set_cookie: ignored.has(IgnoredHeaders::SET_COOKIE),
        vary: ignored.has(IgnoredHeaders::VARY),
    }
}

/// Returns the tags of a response. One with too many is not stored, since purges would miss it.
fn tags(head: &ResponseHead) -> Result<Tags, &'static str> {
    let mut tags = Tags::default();
    for field in head.fields.iter().filter(|f| f.id == FieldId::Other) {
        let (name, value) = (head.bytes(field.name), head.bytes(field.value));
        let added = if name.eq_ignore_ascii_case(b"Cache-Tag") {
            tags.add_cache_tag(value)
        } else if name.eq_ignore_ascii_case(b"Surrogate-Key") {
            tags.add_surrogate_key(value)
        } else {
            Ok(())
        };
        added.map_err(|_| "too-many-tags")?;
    }
    Ok(tags)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
