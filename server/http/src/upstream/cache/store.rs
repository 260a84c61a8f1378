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
use server_base::files::{ENOENT, Keep, TempDir, TempError, TempFile};
use server_cache::disk::{Header, Notes, body_length_at, encode};
use server_cache::fill::FillHead;
use server_cache::index::FillToken;
use server_cache::key::EntryId;
use server_cache::response_head;
use server_cache::rfc9111::{FieldList, parse_age};
use server_cache::similar::normal_id;
use server_cache::vary::variant_id;

use super::begin::any;
use super::conditions;
use super::filling::{Filling, log};
use super::invalidate::invalidate;
use super::open::values;
use super::rules::{Received, Storable};
use super::state::{Caching, StoredBody, StoredResponse};
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
    invalidate(&caching, run.gateway, x, cx);
    if let Some(token) = caching.token.take() {
        run.filling = fill(&mut caching, token, run, x, cx, is_buffered);
    }
    if run.filling.is_some() {
        // Conditions and ranges of the client were not sent.
        if let Some(head) = record(x).head.take() {
            let by_rfc = caching.conf.rules.rfc;
            conditions::apply(x, &head, by_rfc, cx);
            conditions::allow_ranges(&mut x.reply, &head, by_rfc, false);
            record(x).head = Some(head);
        }
    }
    run.cache = Some(caching);
}

/// Makes the file of a response, with all before its body. Without one, requests that wait send their own.
fn fill(
    caching: &mut Caching,
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
    caching: &mut Caching,
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
        Ok(storable) => write_start(caching, token, (&head, &storable), length, run, x, cx),
        Err(why) => {
            caching.not_stored = Some(why);
            Err((token, None))
        }
    };
    record(x).head = Some(head);
    filling
}

/// The token of a fill that could not begin, and the failure of its file.
type Failed = (FillToken, Option<TempError>);

/// Makes a file with all before the body, for a response of this head. `length` is that of the body, if it is known.
fn write_start(
    caching: &Caching,
    mut token: FillToken,
    (head, storable): (&ResponseHead, &Storable),
    length: Option<u64>,
    run: &Run,
    x: &Exchange,
    cx: &mut Ctx<'_>,
) -> Result<Filling, Failed> {
    let prefix = prefix_of(caching, &mut token, head, storable, x, cx);
    let Some((mut prefix, body_start)) = prefix else {
        return Err((token, None));
    };
    let temp_path = run.conf(x, &x.route.http).buffering.temp_path.as_ref();
    let mut file = match create_file(caching, &token.id(), temp_path, cx) {
        Ok(file) => file,
        Err(error) => return Err((token, error)),
    };
    // The file gets its length at once; other requests receive one without.
    let noted = usize::try_from(body_length_at(body_start)).unwrap_or(usize::MAX);
    let unknown = set_length(&mut prefix, noted, length.map(u64::to_le_bytes));
    if let Err(error) = file.append(&prefix) {
        let path = file.path.clone();
        return Err((token, Some(TempError { error, path })));
    }
    set_length(&mut prefix, noted, unknown);
    let Ok(own) = file.file.try_clone() else {
        return Err((token, None));
    };
    let own = Arc::new(File::from(own));
    let head = FillHead::new(prefix.into(), Arc::clone(&own));
    token.fill().set_head(head);
    Ok(Filling {
        own,
        has_length: length.is_some(),
        file,
        token,
        shared: Arc::clone(&caching.zone.shared),
        main: caching.key.id(),
        key: caching.key.text().into(),
        tags: storable.tags.text().to_vec(),
        body_start,
        valid_s: storable.times.valid_s,
        length,
        received: 0,
        result: x.upstream.as_ref().and_then(|u| u.cache.as_ref()?.result),
    })
}

/// Replaces the noted length of a body, and returns the one before.
fn set_length(prefix: &mut [u8], at: usize, length: Option<[u8; 8]>) -> Option<[u8; 8]> {
    let noted = prefix.get_mut(at..)?.first_chunk_mut::<8>()?;
    Some(std::mem::replace(noted, length?))
}

/// Creates the temporary file of a response. With `use_temp_path=off` it is beside its entry: some file systems put files of
/// one directory together, and search longer for a free inode in a large one.
fn create_file(
    caching: &Caching,
    id: &EntryId,
    temp_path: Option<&TempDir>,
    cx: &mut Ctx<'_>,
) -> Result<TempFile, Option<TempError>> {
    if caching.zone.uses_temp_path {
        let dir = temp_path.ok_or(None)?;
        let created = cx.files.create_temp(dir, FILE_MODE, Keep::WhileUsed);
        return created.map_err(Some);
    }
    let directory = caching.zone.shared.directory().ok_or(None)?;
    let dir = TempDir {
        path: directory.parent_bytes(id),
        levels: [0; 3],
    };
    let mut create = || cx.files.create_temp(&dir, FILE_MODE, Keep::WhileUsed);
    match create() {
        Err(failed) if failed.error.errno == ENOENT && directory.create_parents(id).is_ok() => {
            create().map_err(Some)
        }
        created => created.map_err(Some),
    }
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
    let body_len = stored.stored.body_len();
    let mut filling = match write_start(caching, token, updated, Some(body_len), run, x, cx) {
        Ok(filling) => filling,
        Err(failed) => return give_up(failed, x),
    };
    let bytes = match &stored.body {
        StoredBody::Copy(copy) => Some(&copy.body[..]),
        StoredBody::Bytes(bytes) => Some(&bytes[..]),
        StoredBody::File(_) | StoredBody::Fill(_) => None,
    };
    if let Some(bytes) = bytes {
        if filling.add(x, &Chunk::Owned(bytes.to_vec())) {
            filling.finish(x);
        }
        return;
    }
    let (StoredBody::File(file) | StoredBody::Fill(file)) = &stored.body else {
        return;
    };
    let (mut offset, mut left) = (stored.stored.body_start(), body_len);
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
    filling.finish(x);
}

/// Bytes of a body that are copied at a time.
const COPIED_BYTES: u64 = 256 << 10;

/// Returns the variant of the request, and notes it for requests with fields of the same meaning.
fn variant_of(caching: &Caching, vary: &[u8], x: &Exchange) -> EntryId {
    if vary.is_empty() {
        return EntryId::default();
    }
    let main = caching.key.id();
    let variant = variant_id(&main, vary, values(&x.head));
    if caching.conf.rules.rfc {
        let normal = normal_id(&main, vary, FieldList::from(&x.head));
        caching.zone.shared.similar.insert(normal, variant);
    }
    variant
}

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
    let variant = variant_of(caching, &storable.vary, x);
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
