//! Answering with a server's response: redirects, error pages in its place, or its fields and body.
//!
//! Source: nginx documentation, `proxy_intercept_errors`, `proxy_buffering`.

use std::cell::RefCell;
use std::rc::Rc;

use engines::http::{FieldId, ResponseHead};
use server_base::errlog::Level;
use server_upstream::request::UpstreamRequest;

use super::accel::{self, Accel};
use super::arrival;
use super::body::{Body, Stream};
use super::cache::{report, store as cache_store};
use super::conf::{Buffering, NextUpstream, UpstreamConf};
use super::fields;
use super::gateway::Verdict;
use super::next::next;
use super::response_buffer::{Limits, ResponseBuffer, Source};
use super::run::{Flow, Run, Step, record};
use super::store;
use super::tries::Failed;
use super::wording::Action;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::reply;
use crate::request_body::stream;
use server_upstream::picker::Outcome;

/// Whether an error page takes the place of a response with this status.
pub(super) fn intercepts(x: &Exchange, status: u16) -> bool {
    let pages = x.route.core_loc().errors.pages.as_ref();
    pages.is_some_and(|pages| pages.iter().any(|page| page.status == status))
}

/// Puts an error page in the place of the response.
pub(super) fn intercept(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) -> Flow {
    run.finish_attempt(x, cx, Outcome::Alive, Action::ReadingHead);
    if status == 401
        && let Some(head) = record(x).head.take()
    {
        let challenges = head.fields.iter();
        for field in challenges.filter(|f| f.id == FieldId::WwwAuthenticate) {
            let (name, value) = (head.bytes(field.name), head.bytes(field.value));
            x.reply.fields.push_id(field.id, name, value);
        }
        record(x).head = Some(head);
    }
    Flow::Done(Content::Status(status))
}

/// Answers with the response; its head is in the record.
pub(super) fn step(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    attempt: UpstreamRequest,
    accel: &Accel,
) -> Flow {
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    let Some(head) = record(x).head.take() else {
        return Flow::Done(Content::Status(500));
    };
    if let Some(binding) = &mut run.binding {
        binding.set_cookie(x);
    }
    let (to, verdict) = make_reply(run, x, cx, conf, accel, head);
    if verdict != Verdict::Pass {
        run.request = attempt.take_head();
        drop(attempt);
        x.clear_reply();
        if let Some(binding) = &mut run.binding {
            binding.drop_cookie();
        }
        let action = Action::ReadingHead;
        if let Verdict::Invalid(what) = verdict {
            x.log_while(Level::Error, action.text(), format_args!("upstream {what}"));
        }
        let failed = Failed::by_response(NextUpstream::INVALID_HEADER);
        return next(run, x, cx, failed, action);
    }
    if let Some(to) = to {
        drop(attempt);
        run.finish_attempt(x, cx, Outcome::Alive, Action::ReadingHead);
        x.body.on_arrival = None;
        return Flow::Done(accel::redirect(x, cx, &to));
    }
    send(run, x, cx, attempt, conf, accel.buffers(conf))
}

/// Makes the reply of a response head, which is in the record afterwards. Returns the target of an internal redirect that
/// takes the place of the response, and whether the head is valid.
pub(super) fn make_reply(
    run: &Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &UpstreamConf,
    accel: &Accel,
    head: Box<ResponseHead>,
) -> (Option<Vec<u8>>, Verdict) {
    let to = accel.redirect(conf);
    match to {
        Some(_) => fields::copy_for_redirect(x, conf, &head),
        None => fields::copy(x, conf, &head),
    }
    let verdict = run.gateway.head(x, cx, &head);
    record(x).head = Some(head);
    (to.map(<[u8]>::to_vec), verdict)
}

/// Sends the head, and leaves the body to be pulled; `buffers`: the body is read ahead of the client.
fn send(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    attempt: UpstreamRequest,
    conf: &UpstreamConf,
    buffers: bool,
) -> Flow {
    // No retry follows, and a long response is no reason for more retries of other requests.
    run.counted = None;
    let is_tunnel = x.reply.status == SWITCHING_PROTOCOLS;
    if is_tunnel && let Err(why) = open_tunnel(run, x, cx) {
        x.log(Level::Error, format_args!("{why}"));
        return Flow::Done(Content::Status(502));
    }
    let buffers = buffers && !is_tunnel;
    if !buffers && !is_tunnel {
        // As nginx: an unbuffered response is not delayed by the client's rate limit.
        x.response.rate.set(0);
    }
    if run.cache.is_some() {
        cache_store::begin(run, x, cx, buffers);
        x.progress.ignore_abort = conf.ignore_client_abort || run.filling.is_some();
    }
    if let Some(cache) = &conf.cache {
        report::of_server(run, cache, x, cx);
    }
    if !is_tunnel
        && conf.store.path.is_none()
        && run.filling.is_none()
        && let Some(bytes) = attempt.take_whole(&mut x.body.chunks)
    {
        // The body came with its head: a small one needs no buffer, and is compressed as a whole.
        if let Some(attempt) = record(x).last() {
            attempt.body_bytes = bytes;
        }
        run.finish_attempt(x, cx, Outcome::Alive, Action::Reading);
        x.body.on_arrival = None;
        return send_head(run, x, cx);
    }
    let limits = match buffers {
        true => buffer_limits(&conf.buffering, x, cx),
        false => Limits::unbuffered(conf.buffering.head_bytes.unwrap_or(UNBUFFERED_BYTES)),
    };
    let mut buffer = ResponseBuffer::new(attempt, limits, is_tunnel, cx.clock.mono_ms);
    if let Some(filling) = &run.filling {
        let (file, start) = filling.body();
        buffer.set_backing(file, start);
    }
    let buffer = Rc::new(RefCell::new(buffer));
    run.buffer = Some(Rc::clone(&buffer));
    run.storing = store::begin(run, x, cx);
    arrival::take(run, x, cx);
    x.body.source = Some(Box::new(Source(buffer)));
    send_head(run, x, cx)
}

/// Changes the protocol between client and server.
fn open_tunnel(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), &'static str> {
    if x.is_subrequest() {
        return Err("connection upgrade in subrequest");
    }
    x.progress.keep_alive = false;
    if !stream::open_tunnel(x, cx) {
        return Err("upstream switched protocols before the request was complete");
    }
    run.body = Body::Stream(Stream::tunnel());
    Ok(())
}

/// Sends the head of the response.
pub(super) fn send_head(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    // Fields made of variables are made while the response still comes, even if all of it is here.
    let ended_ms = record(x).last().and_then(|attempt| attempt.ended_ms.take());
    x.progress.action = crate::exchange::Action::SendingToClient;
    reply::send(x, cx, None);
    if let Some(attempt) = record(x).last() {
        attempt.ended_ms = attempt.ended_ms.or(ended_ms);
    }
    run.step = Step::Answered;
    Flow::Done(Content::Sent)
}

/// The limits of reading ahead of the client.
fn buffer_limits(conf: &Buffering, x: &mut Exchange, cx: &mut Ctx<'_>) -> Limits {
    let rate = conf.limit_rate.0.as_ref();
    let rate = x.size(cx, rate);
    let (count, size) = conf.buffers;
    let memory = count.saturating_mul(size).max(1);
    Limits {
        memory,
        stalled: memory,
        file: match conf.temp_path {
            Some(_) => conf.max_temp_file_size,
            None => 0,
        },
        ahead: conf.temp_file_write_size.max(size).max(1),
        rate,
    }
}

/// Size of a read without buffering and without a written buffer size, bytes: the default size of all buffers.
const UNBUFFERED_BYTES: u64 = 32 << 10;
/// The status of a response behind which both sides speak another protocol.
const SWITCHING_PROTOCOLS: u16 = 101;
