//! A stored response as the response of a request.
//!
//! Its head goes through all that a server's head goes through: hidden fields, `X-Accel-*`, redirects, cookies. Its body is a
//! range of its file.
//!
//! Source: RFC 9111 sections 4, 4.3.2, 5.1; behaviour of nginx 1.31.4.

use std::rc::Rc;

use engines::http::{Chunk, FieldId, FileRange, Method, ResponseHead, push_decimal};
use server_cache::rfc9111::{CacheStatus, FieldList, Outcome, ResponseFacts, parse_age};

use super::conditions;
use super::decide::with_facts;
use super::look::set_result;
use super::reader::FillBody;
use super::state::{Caching, Start, StoredResponse};
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::upstream::accel::{self, Accel};
use crate::upstream::answer::{make_reply, send_head};
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
    let ttl_s = set_age(&caching, &stored, &mut head, x, cx);
    drop_repeated(x, &mut head);
    let accel = Accel::of(&head);
    if let Some(status) = run.gateway.received(x, cx, &head) {
        return Flow::Done(Content::Status(status));
    }
    accel::apply(x, conf, &accel);
    let accepts_ranges = head.get(FieldId::AcceptRanges).is_some();
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
        record(x).head = Some(head);
    }
    let reply = &mut x.reply;
    let may_cut = accepts_ranges || by_rfc && reply.status == 200;
    // A whole body may be sent in any order.
    reply.single_range &= matches!(stored.start, Start::Fill(_));
    if may_cut && !reply.allow_ranges {
        reply.allow_ranges = true;
        // The range stage sends its own.
        reply.fields.remove(FieldId::AcceptRanges);
    }
    if caching.conf.sends_status {
        push_status(x, result, ttl_s);
    }
    set_body(&mut caching, &stored, x, cx);
    run.cache = Some(caching);
    send_head(run, x, cx)
}

/// Sets `Age` and the age of the record, by RFC 9111. Returns the seconds for which the response stays fresh.
fn set_age(
    caching: &Caching,
    stored: &StoredResponse,
    head: &mut ResponseHead,
    x: &mut Exchange,
    cx: &Ctx<'_>,
) -> Option<i64> {
    let now_s = cx.clock.unix_s();
    // Times need no other fact.
    let facts = ResponseFacts {
        age_s: parse_age(FieldList::from(&*head)),
        ..ResponseFacts::default()
    };
    let times = with_facts(stored, &facts, now_s, |stored| {
        (stored.age_s(now_s), stored.ttl_s(now_s))
    });
    let (age_s, ttl_s) = times?;
    record(x).cache.get_or_insert_default().age_s = Some(age_s);
    if caching.conf.rules.rfc {
        let mut text = Vec::new();
        push_decimal(&mut text, u64::from(age_s));
        head.set(b"Age", &text);
    }
    Some(ttl_s)
}

/// Appends `Cache-Status`.
fn push_status(x: &mut Exchange, result: CacheResult, ttl_s: Option<i64>) {
    let outcome = match result {
        CacheResult::Revalidated => return,
        _ => Outcome::Hit,
    };
    let status = CacheStatus {
        cache: CACHE_NAME,
        outcome,
        ttl_s,
        key: None,
        detail: None,
    };
    let mut text = Vec::new();
    status.encode(std::iter::empty(), &mut text);
    x.reply.fields.push(b"Cache-Status", &text);
}

fn set_body(caching: &mut Caching, stored: &StoredResponse, x: &mut Exchange, cx: &Ctx<'_>) {
    if x.reply.status == 304 {
        return;
    }
    let offset = stored.body_start;
    let len = match &stored.start {
        Start::Memory(copy, _) => copy.body.len() as u64,
        Start::File(start, _) => start.identity().len.saturating_sub(offset),
        Start::Fill(_) => {
            if let (Some(reader), Some(file)) = (caching.awaited.take(), &stored.file) {
                let waker = x.waker(cx).remote();
                let body = FillBody::new(reader, Rc::clone(file), offset, waker);
                x.body.source = Some(Box::new(body));
            }
            return;
        }
    };
    // The stored response to HEAD has no body.
    if x.head.method != Method::Head || len > 0 {
        x.reply.content_length = Some(len);
    }
    record(x).cache.get_or_insert_default().stored_bytes = Some(len);
    if len == 0 {
        return;
    }
    let chunk = match (&stored.start, &stored.file) {
        (Start::Memory(copy, _), _) => Some(Chunk::Owned(copy.body.to_vec())),
        (_, Some(file)) => Some(Chunk::File(FileRange {
            file: Rc::clone(file),
            offset,
            len,
        })),
        (_, None) => None,
    };
    x.body.chunks.extend(chunk);
}

/// The name of this cache in `Cache-Status`.
const CACHE_NAME: &[u8] = b"firstbyte";
