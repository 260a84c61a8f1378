//! The step before servers: a stored response, the fill of another request, or a server.
//!
//! Source: nginx documentation, `proxy_cache_lock`, `proxy_cache_bypass`; RFC 9111 section 4.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use server_base::errlog::Level;
use server_cache::fill::{Fill, FillEnd, FillReader};
use server_cache::index::{Begin, FillLock};
use server_cache::rfc9111::{DirectiveSet, ForwardReason, Reuse, StalePermission, reuse};
use server_cache::vary::{self, Selected};

use super::begin::{any, begin, passes_range};
use super::decide::{self, Use, begin_fill};
use super::explained;
use super::open::{Found, find, values};
use super::state::{Caching, StoredBody, StoredResponse};
use super::update::{self, Update};
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;
use crate::upstream::conf::IgnoredHeaders;
use crate::upstream::run::{Flow, Run, Step, record};

/// Looks for a stored response.
pub(crate) fn step(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let mut caching = match run.cache.take() {
        Some(caching) => caching,
        None => {
            let Some(conf) = run.conf(x, &x.route.http).cache.clone() else {
                return Flow::Next(Step::Choose);
            };
            match begin(run, x, cx, &conf) {
                Ok(Some(mut caching)) if caching.invalidates => {
                    caching.forwarded = Some(ForwardReason::Method);
                    explained::invalidates(x);
                    run.cache = Some(caching);
                    return Flow::Next(Step::Choose);
                }
                Ok(Some(mut caching)) => {
                    if let Some(update) = x.extensions.take::<Update>() {
                        caching.is_update = true;
                        caching.id = update.id;
                        caching.similar = Some(update.variant);
                        caching.token = Some(update.token);
                    } else if any(&conf.conditions.bypass, x, cx) {
                        bypass(&mut caching, x, cx);
                        explained::forwards(x, caching.forwarded);
                        run.cache = Some(caching);
                        return Flow::Next(Step::Choose);
                    }
                    caching
                }
                Ok(None) => return Flow::Next(Step::Choose),
                Err(flow) => return flow,
            }
        }
    };
    let flow = look(&mut caching, run, x, cx);
    match &flow {
        Flow::Next(Step::Stored(result)) => explained::answers(x, *result),
        Flow::Next(_) => explained::forwards(x, caching.forwarded),
        _ => {}
    }
    run.cache = Some(caching);
    flow
}

/// The stored response is not used; the one of the server may replace it.
fn bypass(caching: &mut Caching, x: &mut Exchange, cx: &Ctx<'_>) {
    set_result(caching, x, CacheResult::Bypass);
    caching.forwarded = Some(ForwardReason::Bypass);
    if passes_range(&caching.conf, x) {
        caching.may_store = false;
    }
    if caching.may_store {
        match begin_fill(caching, FillLock::Off, cx) {
            Begin::Started(token) => caching.token = Some(token),
            Begin::Joined(_) | Begin::Full => caching.may_store = false,
        }
    }
}

/// Records the part of the cache in the request, for variables and counts.
pub(super) fn set_result(caching: &Caching, x: &mut Exchange, result: CacheResult) {
    let cache = record(x).cache.get_or_insert_default();
    cache.result = Some(result);
    cache
        .counts
        .get_or_insert_with(|| Arc::clone(&caching.zone.shared.counts));
}

fn look(caching: &mut Caching, run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let ignored = run.conf(x, &x.route.http).fields.ignored;
    if let Some(reader) = caching.awaited.take() {
        match wait(caching, reader, None, x, cx) {
            Waited::Flow(flow) => return flow,
            Waited::LookAgain => {}
        }
    }
    match find(caching, x, cx) {
        Found::Stored(stored) => {
            match decide::decide(caching, &stored, ignored, x, cx) {
                Use::Send(result) => {
                    caching.stored = Some(stored);
                    Flow::Next(Step::Stored(result))
                }
                Use::SendAndUpdate(token) => {
                    update::start(&stored, token, x, cx);
                    caching.stored = Some(stored);
                    Flow::Next(Step::Stored(CacheResult::Stale))
                }
                Use::Validate(reason) => {
                    set_result(caching, x, CacheResult::Expired);
                    caching.forwarded = Some(reason);
                    caching.stored = Some(stored);
                    Flow::Next(Step::Choose)
                }
                // The status is that of RFC 9111 section 5.2.1.7.
                Use::GatewayTimeout => Flow::Done(Content::Status(504)),
            }
        }
        Found::Error(status) => {
            set_result(caching, x, CacheResult::Hit);
            Flow::Done(Content::Status(status))
        }
        Found::Absent => miss(caching, ignored, x, cx),
        Found::Scarce => {
            set_result(caching, x, CacheResult::Miss);
            caching.forwarded = Some(ForwardReason::UriMiss);
            caching.may_store = false;
            Flow::Next(Step::Choose)
        }
    }
}

/// There is no stored response: the request receives it, or reads that of another request.
fn miss(
    caching: &mut Caching,
    ignored: IgnoredHeaders,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Flow {
    set_result(caching, x, CacheResult::Miss);
    caching.forwarded = Some(match caching.id == caching.key.id() {
        true => ForwardReason::UriMiss,
        false => ForwardReason::VaryMiss,
    });
    let wanted = caching.request.directives.set;
    if wanted.contains(DirectiveSet::ONLY_IF_CACHED) {
        return Flow::Done(Content::Status(504));
    }
    if passes_range(&caching.conf, x) {
        caching.may_store = false;
    }
    if !caching.may_store || caching.token.is_some() {
        return Flow::Next(Step::Choose);
    }
    let lock = match caching.conf.lock.is_on {
        true => FillLock::Age(caching.conf.lock.age_ms),
        false => FillLock::Off,
    };
    match begin_fill(caching, lock, cx) {
        Begin::Started(token) => {
            caching.token = Some(token);
            Flow::Next(Step::Choose)
        }
        Begin::Joined(fill) => join(caching, &fill, ignored, x, cx),
        Begin::Full => pass(caching),
    }
}

/// Asks the server, and stores nothing.
fn pass(caching: &mut Caching) -> Flow {
    caching.may_store = false;
    Flow::Next(Step::Choose)
}

fn join(
    caching: &mut Caching,
    fill: &Arc<Fill>,
    ignored: IgnoredHeaders,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Flow {
    let timeout_ms = caching.conf.lock.timeout_ms;
    let until_ms = cx.clock.mono_ms.saturating_add(timeout_ms);
    caching.wait_until_ms.get_or_insert(until_ms);
    match FillReader::join(fill) {
        Ok(reader) if timeout_ms > 0 => match wait(caching, reader, Some(ignored), x, cx) {
            Waited::Flow(flow) => flow,
            // It has ended in this moment.
            Waited::LookAgain => {
                x.waker(cx).wake();
                x.progress.state = State::Waiting(Wait::woken());
                Flow::Wait(Step::Look)
            }
        },
        _ => pass(caching),
    }
}

/// The result of a wait.
enum Waited {
    Flow(Flow),
    LookAgain,
}

/// Waits for the head of a response that another request receives. `joined`: the request has just joined it. A head from
/// before that belongs to a stored response, a later one to a response to this request.
fn wait(
    caching: &mut Caching,
    reader: FillReader,
    joined: Option<IgnoredHeaders>,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Waited {
    let until_ms = caching.wait_until_ms.unwrap_or(u64::MAX);
    loop {
        let seen = reader.progress();
        // As in nginx, without the RFC's rules a response is shown once it is whole.
        if caching.conf.rules.rfc && seen.has_head && seen.end != Some(FillEnd::Failed) {
            let id = caching.id;
            return match of_fill(caching, reader.fill(), x) {
                Some(stored)
                    if joined.is_some_and(|ignored| !may_use(caching, &stored, ignored, cx)) =>
                {
                    Waited::Flow(ask_too(caching, cx))
                }
                Some(stored) => {
                    caching.awaited = Some(reader);
                    caching.stored = Some(stored);
                    Waited::Flow(Flow::Next(Step::Stored(CacheResult::Hit)))
                }
                // The entry of another variant, or a head that cannot be read.
                None if caching.id != id => Waited::LookAgain,
                None => Waited::Flow(pass(caching)),
            };
        }
        match seen.end {
            Some(FillEnd::NotStorable) => return Waited::Flow(pass(caching)),
            Some(_) => return Waited::LookAgain,
            None => {}
        }
        if cx.clock.mono_ms >= until_ms {
            x.log(Level::Info, format_args!("cache lock timeout"));
            return Waited::Flow(pass(caching));
        }
        let age_ms = caching.conf.lock.age_ms;
        let old_ms = reader.fill().started_ms().saturating_add(age_ms);
        if cx.clock.mono_ms >= old_ms {
            return Waited::LookAgain;
        }
        if reader.wait(seen, || x.waker(cx).remote()) {
            x.progress.state = State::Waiting(Wait::woken_or_until(until_ms.min(old_ms)));
            caching.awaited = Some(reader);
            return Waited::Flow(Flow::Wait(Step::Look));
        }
    }
}

/// Whether a response in progress may be sent without validation.
fn may_use(
    caching: &Caching,
    stored: &StoredResponse,
    ignored: IgnoredHeaders,
    cx: &Ctx<'_>,
) -> bool {
    let (directives, now_s) = (&caching.request.directives, cx.clock.unix_s());
    let reused = decide::with_stored(caching, stored, ignored, now_s, |stored| {
        reuse(directives, Some(stored), now_s)
    });
    matches!(
        reused,
        Reuse::Fresh | Reuse::Stale(StalePermission::MaxStale)
    )
}

/// Asks the server beside another request, and stores the response.
fn ask_too(caching: &mut Caching, cx: &Ctx<'_>) -> Flow {
    match begin_fill(caching, FillLock::Off, cx) {
        Begin::Started(token) => {
            caching.token = Some(token);
            Flow::Next(Step::Choose)
        }
        Begin::Joined(_) | Begin::Full => pass(caching),
    }
}

/// Returns the response of a fill, if the request selects it. The entry of the request is set to that of its variant.
fn of_fill(caching: &mut Caching, fill: &Arc<Fill>, x: &Exchange) -> Option<Box<StoredResponse>> {
    let start = fill.head()?;
    let head = start.parse(&caching.key, caching.format)?;
    let main = caching.key.id();
    match vary::select(&head.header(), &main, &main, values(&x.head)) {
        Selected::This => {}
        Selected::Other(id) => {
            caching.id = id;
            return None;
        }
        Selected::Mismatch => return None,
    }
    let file = start.file().try_clone().ok()?;
    Some(Box::new(StoredResponse {
        id: caching.id,
        entry: None,
        body: StoredBody::Fill(Rc::new(OwnedFd::from(file))),
        head: Box::new(head.head().clone()),
        stored: head,
    }))
}
