//! The begin of a file for a response that is received.
//!
//! The file has all bytes before its body before the client gets one, so other requests can read it while it grows. A failure
//! is logged; the client notices nothing.
//!
//! Source: nginx documentation, `proxy_cache_path`, `proxy_no_cache`; RFC 9111 section 3.3.

use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Chunk, FieldId, FileRange, Method, ResponseHead, parse_http_date};
use server_base::errlog::Level;
use server_base::files::{Keep, TempError};
use server_cache::disk::{Header, Notes, encode};
use server_cache::fill::FillHead;
use server_cache::index::{FillToken, PurgeMode};
use server_cache::key::EntryId;
use server_cache::response_head;
use server_cache::rfc9111::{FieldList, parse_age};
use server_cache::vary::variant_id;

use super::begin::any;
use super::conditions;
use super::filling::{Filling, log};
use super::open::values;
use super::rules::{Received, Storable};
use super::state::{Caching, Start, StoredResponse};
use crate::exchange::cache_record::RequestsPart;
use crate::exchange::{Ctx, Exchange, Upstream};
use crate::upstream::run::{Run, record};

/// Begins to store the response whose head is in the record and in the reply, if that is possible. `is_buffered`: the
/// response is read ahead of the client.
pub(crate) fn begin(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, is_buffered: bool) {
    let Some(mut caching) = run.cache.take() else {
        return;
    };
    caching.stored = None;
    if caching.invalidates && matches!(x.reply.status, 200..=399) {
        let now_s = cx.clock.unix_s();
        let shared = &caching.zone.shared;
        if let Err(error) = shared.purge_key(&caching.key, PurgeMode::Hard, now_s) {
            x.log(Level::Error, format_args!("{error}"));
        }
    }
    if let Some(token) = caching.token.take() {
        run.filling = fill(&caching, token, run, x, cx, is_buffered);
    }
    if run.filling.is_some() {
        // Conditions and ranges of the client were not sent.
        if let Some(head) = record(x).head.take() {
            conditions::apply(x, &head, caching.conf.rules.rfc, cx);
            record(x).head = Some(head);
        }
        let accepts = x.reply.fields.get(FieldId::AcceptRanges).is_some();
        let reply = &mut x.reply;
        let may_cut = accepts || caching.conf.rules.rfc && reply.status == 200;
        if may_cut && !reply.allow_ranges {
            (reply.allow_ranges, reply.single_range) = (true, true);
            reply.fields.remove(FieldId::AcceptRanges);
        }
    }
    run.cache = Some(caching);
}

/// Makes the file of a response, with all before its body. Without one, requests that wait send their own.
fn fill(
    caching: &Caching,
    token: FillToken,
    run: &Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    is_buffered: bool,
) -> Option<Filling> {
    match prepare(caching, token, run, x, cx, is_buffered) {
        Ok(filling) => Some(filling),
        Err(failed) => {
            give_up(failed, x);
            None
        }
    }
}

/// Requests that wait send their own.
fn give_up((token, error): Failed, x: &Exchange) {
    token.abandon();
    if let Some(TempError { error, path }) = error {
        log(x, error, &path);
    }
}

fn prepare(
    caching: &Caching,
    token: FillToken,
    run: &Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    is_buffered: bool,
) -> Result<Filling, Failed> {
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    let is_refused = !caching.may_store
        || !is_buffered
        || x.reply.status == SWITCHING_PROTOCOLS
        || any(&caching.conf.conditions.no_cache, x, cx);
    if is_refused {
        return Err((token, None));
    }
    let Some(head) = record(x).head.take() else {
        return Err((token, None));
    };
    let received = Received {
        conf: &caching.conf,
        ignored: conf.fields.ignored,
        request: &caching.request,
        wants_part: x.extensions.get::<RequestsPart>().is_some(),
        request_s: caching.request_ms.div_euclid(1000),
        now_s: cx.clock.unix_s(),
    };
    let storable = received.storable(&head);
    let has_body = x.target.method != Method::Head || caching.conf.rules.convert_head;
    let length = x.reply.content_length.filter(|_| has_body);
    let filling = match storable {
        Ok(storable) => write_start(caching, token, (&head, &storable), run, x, cx),
        Err(_) => Err((token, None)),
    };
    record(x).head = Some(head);
    let mut filling = filling?;
    filling.length = length;
    Ok(filling)
}

/// The token of a fill that could not begin, and the failure of its file.
type Failed = (FillToken, Option<TempError>);

/// Makes a file with all before the body, for a response of this head.
fn write_start(
    caching: &Caching,
    mut token: FillToken,
    (head, storable): (&ResponseHead, &Storable),
    run: &Run,
    x: &Exchange,
    cx: &mut Ctx<'_>,
) -> Result<Filling, Failed> {
    let prefix = prefix_of(caching, &mut token, head, storable, x, cx);
    let buffering = &run.conf(x, &x.route.http).buffering;
    let dir = caching.zone.temp_dir.as_ref();
    let dir = dir.or(buffering.temp_path.as_ref());
    let (Some((prefix, body_start)), Some(dir)) = (prefix, dir) else {
        return Err((token, None));
    };
    let mut file = match cx.files.create_temp(dir, FILE_MODE, Keep::WhileUsed) {
        Ok(file) => file,
        Err(error) => return Err((token, Some(error))),
    };
    if let Err(error) = file.append(&prefix) {
        let path = file.path.clone();
        return Err((token, Some(TempError { error, path })));
    }
    let (Ok(own), Ok(shared)) = (file.file.try_clone(), file.file.try_clone()) else {
        return Err((token, None));
    };
    token.fill().set_head(FillHead {
        prefix: prefix.into(),
        file: File::from(shared),
    });
    Ok(Filling {
        own: File::from(own),
        file,
        token,
        shared: Arc::clone(&caching.zone.shared),
        main: caching.key.id(),
        key: caching.key.text().into(),
        tags: storable.tags.text().to_vec(),
        body_start,
        valid_s: storable.times.valid_s,
        length: None,
        received: 0,
        result: x.upstream.as_ref().and_then(|u| u.cache.as_ref()?.result),
    })
}

/// Stores a response again with other fields: a new file with the body of the stored one takes its place.
pub(super) fn store_again(
    caching: &Caching,
    token: FillToken,
    updated: (&ResponseHead, &Storable),
    stored: &StoredResponse,
    run: &Run,
    x: &Exchange,
    cx: &mut Ctx<'_>,
) {
    let mut filling = match write_start(caching, token, updated, run, x, cx) {
        Ok(filling) => filling,
        Err(failed) => return give_up(failed, x),
    };
    if let Start::Memory(copy, _) = &stored.start {
        if filling.add(x, &Chunk::Owned(copy.body.to_vec())) {
            filling.length = Some(copy.body.len() as u64);
            filling.finish(x);
        }
        return;
    }
    let (Some(prefix), Some(file)) = (stored.prefix(), &stored.file) else {
        return;
    };
    let (mut offset, mut left) = (stored.body_start, prefix.body_len);
    while left > 0 {
        let len = left.min(COPIED_BYTES);
        let range = FileRange {
            file: Rc::clone(file),
            offset,
            len,
        };
        let Ok(bytes) = cx.files.read(&range) else {
            return;
        };
        if !filling.add(x, &Chunk::Owned(bytes)) {
            return;
        }
        (offset, left) = (offset + len, left - len);
    }
    filling.length = Some(prefix.body_len);
    filling.finish(x);
}

/// Bytes of a body that are copied at a time.
const COPIED_BYTES: u64 = 256 << 10;

/// Makes all bytes before the body, and moves the fill to the entry that the response belongs to.
fn prefix_of(
    caching: &Caching,
    token: &mut FillToken,
    head: &ResponseHead,
    storable: &Storable,
    x: &Exchange,
    cx: &Ctx<'_>,
) -> Option<(Vec<u8>, u16)> {
    let main = caching.key.id();
    let variant = match storable.vary.is_empty() {
        true => EntryId::default(),
        false => variant_id(&main, &storable.vary, values(&x.head)),
    };
    if token.id() != main
        && (storable.vary.is_empty() || variant != token.id())
        && !token.move_to_main()
    {
        return None;
    }
    let has_validators = matches!(head.status, 200 | 206);
    let validator = |id| head.get(id).filter(|_| has_validators);
    let times = storable.times;
    let header = Header {
        valid_s: times.valid_s,
        updating_s: times.updating_s,
        error_s: times.error_s,
        date_s: times.date_s,
        last_modified_s: validator(FieldId::LastModified)
            .and_then(parse_http_date)
            .unwrap_or(-1),
        etag: validator(FieldId::Etag).unwrap_or_default(),
        vary: &storable.vary,
        variant,
        ..Header::default()
    };
    let notes = Notes {
        request_ms: Some(caching.request_ms),
        response_ms: i64::try_from(cx.clock.unix_ms).ok(),
        age_s: parse_age(FieldList::from(head)),
        tags: storable.tags.text(),
        body_len: None,
    };
    let fields = FieldList::from(&storable.fields);
    let encoded = response_head::encode(head, fields, caching.format);
    let prefix = encode(&header, &caching.key, &encoded, Some(&notes)).ok()?;
    let body_start = u16::try_from(prefix.len()).ok()?;
    Some((prefix, body_start))
}

/// The pass ends with a redirect: requests that wait send their own.
pub(crate) fn redirected(run: &mut Run) {
    let token = run.cache.as_mut().and_then(|caching| caching.token.take());
    if let Some(token) = token {
        token.abandon();
    }
}

/// The pass ends with this status: requests that wait send their own, or get the status while it is stored.
pub(crate) fn fail(run: &mut Run, x: &Exchange, cx: &Ctx<'_>, status: u16) {
    // Most passes have no cache.
    if run.cache.is_none() {
        return;
    }
    let ignored = run.conf(x, &x.route.http).fields.ignored;
    let Some(caching) = &mut run.cache else {
        return;
    };
    let Some(token) = caching.token.take() else {
        return;
    };
    let upstream = x.upstream.as_deref();
    let has_head = |u: &&Upstream| u.head.is_some() && u.has_status(status);
    let is_intercepted = upstream.filter(has_head).is_some();
    if !caching.may_store || !(is_intercepted || matches!(status, 502 | 504)) {
        // After a failure one of the waiting requests is the next; other results are for this request alone.
        if status < 500 {
            token.abandon();
        }
        return;
    }
    let now_s = cx.clock.unix_s();
    let by_setting = || {
        let seconds = caching.conf.valid.seconds(status)?;
        Some(now_s.saturating_add(i64::from(seconds)))
    };
    let head = x
        .upstream
        .as_ref()
        .and_then(|upstream| upstream.head.as_ref());
    let valid_s = match head.filter(|_| is_intercepted) {
        None => by_setting(),
        Some(head) => {
            let received = Received {
                conf: &caching.conf,
                ignored,
                request: &caching.request,
                wants_part: false,
                request_s: caching.request_ms.div_euclid(1000),
                now_s,
            };
            let storable = received.storable(head).ok();
            storable.map(|storable| storable.times.valid_s)
        }
    };
    match valid_s {
        Some(valid_s) => token.commit_error(&caching.key, status, valid_s),
        None if is_intercepted => token.abandon(),
        None => {}
    }
}

/// Only the worker reads it.
const FILE_MODE: u32 = 0o600;
/// The status of a response behind which both sides speak another protocol.
const SWITCHING_PROTOCOLS: u16 = 101;
