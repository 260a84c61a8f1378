//! Validation of a stored response: conditions of the request to the server, and its 304.
//!
//! Times are written over the old ones. A 304 that changes other fields leads to a new file, unless the body is large.
//!
//! Source: nginx documentation, `proxy_cache_revalidate`; RFC 9111 section 4.3.

use std::sync::Arc;

use engines::http::{Field, FieldId, Fields, ResponseHead, Span, http_date};
use server_base::errlog::Level;
use server_cache::directory::Directory;
use server_cache::disk::Header;
use server_cache::index::{Committed, FillToken, PurgeFacts};
use server_cache::response_head::HeadFormat;
use server_cache::rfc9111::{FieldList, Validators, confirms};
use server_cache::stored_head::StoredHead;

use super::rules::{Received, Times};
use super::state::{Caching, StoredResponse};
use super::store;
use crate::exchange::{Ctx, Exchange};
use crate::upstream::run::{Run, record};

/// Records the validators of the stored response at hand, which variables show.
pub(crate) fn set_validators(run: &Run, x: &mut Exchange) {
    let Some(caching) = &run.cache else {
        return;
    };
    let rules = &caching.conf.rules;
    let stored = caching.stored.as_ref();
    let Some(stored) = stored.filter(|_| rules.rfc || rules.revalidate) else {
        return;
    };
    let header = stored.stored.header();
    let cache = record(x).cache.get_or_insert_default();
    cache.etag = header.etag.to_vec();
    let modified_s = header.last_modified_s;
    cache.last_modified_s = (modified_s >= 0).then_some(modified_s);
}

/// Appends conditions to a request to the server that has none by its configuration.
pub(crate) fn add_conditions(run: &Run, x: &mut Exchange, fields: &mut Fields) {
    let Some(caching) = &run.cache else {
        return;
    };
    let is_http = caching.format == HeadFormat::Http;
    let Some(cache) = record(x).cache.as_ref() else {
        return;
    };
    if let Some(modified_s) = cache.last_modified_s {
        let names = [&b"If-Modified-Since"[..], b"HTTP_IF_MODIFIED_SINCE"];
        push_condition(fields, is_http, names, &http_date(modified_s));
    }
    if !cache.etag.is_empty() {
        let names = [&b"If-None-Match"[..], b"HTTP_IF_NONE_MATCH"];
        push_condition(fields, is_http, names, &cache.etag);
    }
}

/// Appends a condition as a field, or as a parameter of an application, unless the request has it.
fn push_condition(fields: &mut Fields, is_http: bool, [field, param]: [&[u8]; 2], value: &[u8]) {
    let name = if is_http { field } else { param };
    if fields.named(name).next().is_some() {
        return;
    }
    match is_http {
        true => fields.push(name, value),
        false => push_param(fields, name, value),
    }
}

/// Appends a parameter of an application; its name is no field.
fn push_param(fields: &mut Fields, name: &[u8], value: &[u8]) {
    let start = fields.arena.len();
    fields.arena.extend_from_slice(name);
    fields.arena.extend_from_slice(value);
    fields.fields.push(Field {
        name: Span::new(start, name.len()),
        value: Span::new(start + name.len(), value.len()),
        id: FieldId::Other,
    });
}

/// Whether the request to the server has conditions of the cache, so that its 304 is for the stored response.
pub(crate) fn is_conditional(run: &Run, x: &Exchange) -> bool {
    let cache = x
        .upstream
        .as_ref()
        .and_then(|upstream| upstream.cache.as_ref());
    let has_conditions =
        cache.is_some_and(|cache| !cache.etag.is_empty() || cache.last_modified_s.is_some());
    has_conditions
        && run
            .cache
            .as_ref()
            .is_some_and(|cache| cache.stored.is_some())
}

/// Whether a 304 with this head is about the stored response at hand. nginx takes each one for it.
pub(crate) fn is_about_stored(run: &Run, head: &ResponseHead) -> bool {
    let Some(caching) = run.cache.as_ref().filter(|cache| cache.conf.rules.rfc) else {
        return true;
    };
    caching.stored.as_ref().is_none_or(|stored| {
        let (received, stored) = (FieldList::from(head), FieldList::from(&*stored.head));
        confirms(Validators::of(received), Validators::of(stored))
    })
}

/// Drops the stored response at hand without a validation: the next request to the server has no conditions of the cache.
pub(crate) fn give_up(run: &mut Run, x: &mut Exchange) {
    if let Some(caching) = &mut run.cache {
        caching.stored = None;
    }
    if let Some(cache) = &mut record(x).cache {
        cache.etag.clear();
        cache.last_modified_s = None;
    }
}

/// The server has confirmed the stored response with this 304, which updates its times and fields.
pub(crate) fn confirm(run: &mut Run, x: &Exchange, cx: &mut Ctx<'_>, head: &ResponseHead) {
    let Some(mut caching) = run.cache.take() else {
        return;
    };
    let (token, stored) = (caching.token.take(), caching.stored.take());
    if let (Some(token), Some(mut stored)) = (token, stored) {
        update(&mut caching, token, &mut stored, head, run, x, cx);
        caching.stored = Some(stored);
    }
    run.cache = Some(caching);
}

fn update(
    caching: &mut Caching,
    token: FillToken,
    stored: &mut Box<StoredResponse>,
    head: &ResponseHead,
    run: &Run,
    x: &Exchange,
    cx: &mut Ctx<'_>,
) {
    let received = Received {
        conf: &caching.conf,
        ignored: run.conf(x, &x.route.http).fields.ignored,
        request: &caching.request,
        wants_part: stored.head.status == 206,
        request_s: caching.request_ms.div_euclid(1000),
        now_s: cx.clock.unix_s(),
    };
    if !caching.conf.rules.rfc {
        if let Some(times) = received.confirmed(&stored.head, head) {
            set_times(caching, token, stored, times, x, cx);
        }
        return;
    }
    let updated = received.updated(&stored.head, head);
    // The client gets the fields of the 304 in any case.
    let before = std::mem::replace(&mut *stored.head, updated);
    let Ok(storable) = received.storable(&stored.head) else {
        return;
    };
    let body_bytes = stored.stored.body_len();
    if received.needs_new_head(&before, &stored.head) && body_bytes <= REWRITTEN_BYTES_MAX {
        let head = (&*stored.head, &storable);
        store::store_again(caching, token, head, stored, run, x, cx);
    } else {
        set_times(caching, token, stored, storable.times, x, cx);
    }
}

/// Sets the times in the stored file.
fn set_times(
    caching: &Caching,
    token: FillToken,
    stored: &mut StoredResponse,
    times: Times,
    x: &Exchange,
    cx: &Ctx<'_>,
) {
    let shared = &caching.zone.shared;
    // Its copy has the times of before.
    shared.memory.remove(&stored.id);
    let (Some(directory), Some(entry)) = (shared.directory(), &stored.entry) else {
        return;
    };
    let (head, identity) = (&stored.stored, stored.stored.identity());
    let newer = Header {
        valid_s: times.valid_s,
        updating_s: times.updating_s,
        error_s: times.error_s,
        date_s: times.date_s,
        valid_ms: 0,
        ..head.header()
    };
    match directory.update_header(&stored.id, identity, &newer) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            let path = directory.path_of(&stored.id);
            let (path, error) = (path.display(), conf::os_error(&error));
            let text = format_args!("write() \"{path}\" failed ({error})");
            return x.log(Level::Crit, text);
        }
    }
    let facts = PurgeFacts {
        main: caching.key.id(),
        key: caching.key.text(),
        tags: head.tags(),
    };
    let refreshed = token.refresh(entry, &facts, times.valid_s);
    let _ = match refreshed {
        Committed::Stale => {
            let now_s = cx.clock.unix_s();
            directory.expire(&stored.id, Some(identity), now_s)
        }
        Committed::Purged => {
            let remove = || directory.remove(&stored.id);
            shared
                .index
                .remove_unused(&stored.id, remove)
                .unwrap_or(Ok(false))
        }
        Committed::Stored | Committed::Replaced | Committed::Refused | Committed::Failed => {
            Ok(true)
        }
    };
    // Its age counts from now on.
    reread(caching, directory, stored);
}

/// Reads the head of the stored file again, since its times have changed.
fn reread(caching: &Caching, directory: &Directory, stored: &mut StoredResponse) {
    let Some(entry) = &mut stored.entry else {
        return;
    };
    if let Ok((_, start)) = directory.open_entry(&stored.id, entry.body_start)
        && start.identity() == stored.stored.identity()
        && let Ok(head) = StoredHead::parse(
            start.bytes(),
            start.identity(),
            &caching.key,
            caching.format,
        )
    {
        entry.is_stale = false;
        stored.stored = Arc::new(head);
    }
}

impl Received<'_> {
    /// Returns the times of a stored response that a 304 has confirmed, by nginx's rules; `None` without a time.
    fn confirmed(&self, stored: &ResponseHead, head: &ResponseHead) -> Option<Times> {
        let times = match self.times_by_nginx(head) {
            Ok(times) if times.valid_s != 0 => times,
            _ => self.times_by_nginx(stored).unwrap_or_default(),
        };
        let valid_s = match times.valid_s {
            0 => {
                let seconds = self.conf.valid.seconds(stored.status)?;
                self.now_s.saturating_add(i64::from(seconds))
            }
            valid_s => valid_s,
        };
        Some(Times {
            valid_s,
            date_s: self.now_s,
            ..times
        })
    }
}

/// Largest body that is copied for a 304 with other fields, bytes. Times of larger ones are updated alone.
const REWRITTEN_BYTES_MAX: u64 = 4 << 20;
