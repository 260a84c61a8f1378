//! A stored response as the response of a request.
//!
//! Its head goes through all that a server's head goes through: hidden fields, `X-Accel-*`, redirects, cookies. Its body is a
//! range of its file.
//!
//! Source: RFC 9111 sections 4, 4.3.2, 5.1; behaviour of nginx 1.31.4.

use std::rc::Rc;

use engines::http::{Chunk, FieldId, FileRange, Method, ResponseHead, push_decimal};

use super::conditions;
use super::decide::with_stored;
use super::look::set_result;
use super::reader::FillBody;
use super::report;
use super::state::{Caching, StoredBody, StoredResponse};
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::upstream::accel::{self, Accel};
use crate::upstream::answer::{make_reply, send_head};
use crate::upstream::conf::IgnoredHeaders;
use crate::upstream::fields::drop_repeated;
use crate::upstream::gateway::Verdict;
use crate::upstream::run::{Flow, Run, record};

/// Answers with the stored response at hand.
pub(crate) fn step(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, result: CacheResult) -> Flow {
    let Some(mut caching) = run.cache.take() else {
        return Flow::Done(Content::Status(500));
    };
    let Some(mut stored) = caching.stored.take() else {
        return Flow::Done(Content::Status(500));
    };
    // A pass that has failed before may have left arrivals.
    x.body.on_arrival = None;
    x.progress.ignore_abort = false;
    set_result(&caching, x, result);
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    let mut head = std::mem::take(&mut stored.head);
    let ttl_s = set_age(&caching, &stored, conf.fields.ignored, &mut head, x, cx);
    drop_repeated(x, &mut head);
    let accel = Accel::of(&head);
    if let Some(status) = run.gateway.received(x, cx, &head) {
        return Flow::Done(Content::Status(status));
    }
    accel::apply(x, conf, &accel);
    let (redirect, verdict) = make_reply(run, x, cx, conf, &accel, head);
    if verdict != Verdict::Pass {
        x.clear_reply();
        return Flow::Done(Content::Status(500));
    }
    if let Some(to) = redirect {
        return Flow::Done(accel::redirect(x, cx, &to));
    }
    let by_rfc = caching.conf.rules.rfc;
    if let Some(head) = record(x).head.take() {
        conditions::apply(x, &head, by_rfc, cx);
        let has_date = x.reply.fields.get(FieldId::Date).is_some();
        if let Some(date) = head.get(FieldId::Date).filter(|_| by_rfc && !has_date) {
            // The age counts from it.
            x.reply.fields.push_id(FieldId::Date, b"Date", date);
        }
        let is_whole = !matches!(stored.body, StoredBody::Fill(_));
        conditions::allow_ranges(&mut x.reply, &head, by_rfc, is_whole);
        record(x).head = Some(head);
    }
    if caching.conf.sends_status {
        report::of_stored(&caching, x, result, ttl_s);
    }
    set_body(&mut caching, &stored, x, cx);
    run.cache = Some(caching);
    send_head(run, x, cx)
}

/// Sets `Age` and the age of the record, by RFC 9111. Returns the seconds for which the response stays fresh.
fn set_age(
    caching: &Caching,
    stored: &StoredResponse,
    ignored: IgnoredHeaders,
    head: &mut ResponseHead,
    x: &mut Exchange,
    cx: &Ctx<'_>,
) -> i64 {
    let now_s = cx.clock.unix_s();
    let (age_s, ttl_s) = with_stored(caching, stored, ignored, now_s, |stored| {
        (stored.age_s(now_s), stored.ttl_s(now_s))
    });
    record(x).cache.get_or_insert_default().age_s = Some(age_s);
    if caching.conf.rules.rfc {
        let mut text = Vec::new();
        push_decimal(&mut text, u64::from(age_s));
        head.set(b"Age", &text);
    }
    ttl_s
}

fn set_body(caching: &mut Caching, stored: &StoredResponse, x: &mut Exchange, cx: &Ctx<'_>) {
    if x.reply.status == 304 {
        return;
    }
    let (offset, len) = (stored.stored.body_start(), stored.stored.body_len());
    if let StoredBody::Fill(file) = &stored.body {
        if let Some(reader) = caching.awaited.take() {
            let waker = x.waker(cx).remote();
            let body = FillBody::new(reader, Rc::clone(file), offset, waker);
            x.body.source = Some(Box::new(body));
        }
        return;
    }
    // The stored response to HEAD has no body.
    if x.head.method != Method::Head || len > 0 {
        x.reply.content_length = Some(len);
    }
    record(x).cache.get_or_insert_default().stored_bytes = Some(len);
    if len == 0 {
        return;
    }
    x.body.chunks.push_back(match &stored.body {
        StoredBody::Bytes(bytes) => Chunk::Shared(bytes.clone()),
        StoredBody::Copy(copy) => Chunk::Owned(copy.body.to_vec()),
        StoredBody::File(file) | StoredBody::Fill(file) => Chunk::File(FileRange {
            file: Rc::clone(file),
            offset,
            len,
        }),
    });
}
