//! Choosing a server, and beginning an attempt with it.

use std::rc::Rc;
use std::sync::Arc;

use engines::http::Fields;
use server_base::errlog::{Level, Printable};
use server_base::name_servers::NameServers;
use server_upstream::connector::BoundClient;
use server_upstream::group::Groups;
use server_upstream::peer::SelectedPeer;
use server_upstream::picker::{Outcome, Pick, Picker};
use server_upstream::protocol::{ProtocolId, ProtocolSpec};
use server_upstream::queue::Queued;
use server_upstream::request::{AttemptWatch, RequestSpec};
use server_upstream::retry_budget::CountedRequest;
use server_upstream::route::{Pool, Route, SocketOptions, UpstreamAddr};

use super::arrival::arrived;
use super::cache::validate;
use super::conf::{Computed, NextUpstream, UpstreamConf, local_address};
use super::gateway::Outgoing;
use super::group;
use super::health::probe;
use super::next::next;
use super::ntlm;
use super::run::{Flow, Run, Step, record};
use super::tries::{Failed, Tries, reason_of};
use super::wording::Action;
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;

/// Chooses a server and begins an attempt with it.
pub(super) fn step(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    // The first time the request is made before there is a server: it is one for all of them.
    if run.request.is_none()
        && conf.retry.request == Computed::Once
        && let Err(status) = make_request(run, x, cx)
    {
        return Flow::Done(Content::Status(status));
    }
    let now_ms = cx.clock.mono_ms;
    let peer = match pick(run, x, cx) {
        Ok(peer) => peer,
        Err(flow) => return flow,
    };
    let Some(picker) = &mut run.picker else {
        return Flow::Done(Content::Status(500));
    };
    run.queued_ms = picker.leave_queue(now_ms);
    run.tries.get_or_insert_with(|| {
        if conf.retry.budget.is_some() {
            let others = || &http.main::<Groups>().others;
            let counts = picker.counts().unwrap_or_else(others);
            run.counted = Some(CountedRequest::new(counts));
        }
        // As in nginx, the time for further attempts includes the wait for the first server.
        let began_ms = now_ms.saturating_sub(run.queued_ms.unwrap_or(0));
        Tries::new(picker.tries(), &conf.retry, began_ms)
    });
    use_peer(run, x, cx, conf, peer)
}

/// Begins an attempt with this server, unless `*_allow_upstream` denies it.
fn use_peer(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &UpstreamConf,
    peer: Rc<SelectedPeer>,
) -> Flow {
    let is_unix = matches!(peer.addr, UpstreamAddr::Unix(_));
    let scheme = run.gateway.scheme(x);
    record(x).choose(scheme, &peer.name, &peer.server, is_unix);
    let allowed = &conf.retry.allow_upstream;
    let name = peer.name.clone();
    run.peer = Some(peer);
    if let Some(binding) = &mut run.binding
        && let Some(id) = run.peer.as_ref().and_then(|peer| peer.id.as_deref())
    {
        binding.choose(id, x, cx);
    }
    if !allowed.iter().all(|value| value.is_true(x, cx)) {
        begin_attempt(run, x, cx, name, None);
        let text = format_args!("access to upstream server denied");
        x.log_while(Level::Error, Action::Connecting.text(), text);
        return next(
            run,
            x,
            cx,
            Failed::before_sending(NextUpstream::DENIED),
            Action::Connecting,
        );
    }
    begin(run, x, cx, conf)
}

/// Chooses a server by the values of the request. An error is the way to go on without a server.
fn pick(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Rc<SelectedPeer>, Flow> {
    let key = (run.values_of.take()).map(|id| group::pick_key(x, cx, id));
    let Some(picker) = &mut run.picker else {
        return Err(Flow::Done(Content::Status(500)));
    };
    if let Some(key) = key {
        picker.set_key(key);
    }
    let now_ms = cx.clock.mono_ms;
    if let Some(id) = ntlm::server(picker, x, cx) {
        picker.bind(Some(id.to_vec()));
    } else if let Some(binding) = &run.binding {
        picker.bind(binding.server(cx));
    }
    let mut resolve = |by: Option<&Arc<NameServers>>, name: &str, timeout_ms| {
        let waker = x.waker(cx);
        cx.connector.resolve(by, name, timeout_ms, waker)
    };
    match picker.pick(now_ms, &mut resolve) {
        Pick::Selected(peer) => Ok(peer),
        Pick::None => Err(queue(run, x, cx)),
        Pick::Wait => Err(wait_for_names(run, x, cx)),
        Pick::Unresolved(why) => {
            x.log(Level::Error, format_args!("{why}"));
            Err(Flow::Done(Content::Status(502)))
        }
    }
}

/// Begins an attempt with the selected server, with a new request if each attempt has its own.
fn begin(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, conf: &UpstreamConf) -> Flow {
    if conf.retry.request == Computed::EachAttempt
        && let Err(status) = make_request(run, x, cx)
    {
        return Flow::Done(Content::Status(status));
    }
    let may_reuse = run.tries.is_none_or(Tries::may_reuse);
    call(run, x, cx, conf, may_reuse)
}

/// Retries with the server that was chosen last, or chooses another one if that has left or is excluded meanwhile.
pub(super) fn same(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let picker = run.picker.as_ref();
    if picker.is_some_and(|picker| picker.may_stay(cx.clock.mono_ms)) {
        let http = Rc::clone(&x.route.http);
        let conf = run.conf(x, &http);
        return begin(run, x, cx, conf);
    }
    run.finish_attempt(x, cx, Outcome::Failed, Action::Connecting);
    Flow::Next(Step::Choose)
}

/// Asks the server that was chosen last once more, over a new connection.
pub(super) fn again(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    call(run, x, cx, conf, false)
}

/// Waits for names without which no server can be chosen. The wait ends with that in the queue, and with the time for further
/// attempts.
fn wait_for_names(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let queue_end_ms = run.picker.as_ref().and_then(Picker::queue_end_ms);
    let queue_end_ms = queue_end_ms.unwrap_or(u64::MAX);
    let retry_until_ms = run.tries.map_or(u64::MAX, Tries::until_ms);
    let end_ms = queue_end_ms.min(retry_until_ms);
    if cx.clock.mono_ms < end_ms {
        return wait_until(x, end_ms);
    }
    let is_expired = retry_until_ms < queue_end_ms;
    let ended = if is_expired {
        Queued::Expired
    } else {
        Queued::TimedOut
    };
    without_server(run, x, cx, ended)
}

/// No server can be chosen now: waits in the queue of the group, if it has one.
fn queue(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let now_ms = cx.clock.mono_ms;
    let retry_until_ms = run.tries.map_or(u64::MAX, Tries::until_ms);
    let queued = match &mut run.picker {
        Some(picker) => picker.queue(now_ms, retry_until_ms, || x.waker(cx)),
        None => Queued::Never,
    };
    match queued {
        Queued::Until(until_ms) => wait_until(x, until_ms),
        _ => without_server(run, x, cx, queued),
    }
}

/// Chooses again at a wake, at this time in monotonic milliseconds at the latest.
fn wait_until(x: &mut Exchange, until_ms: u64) -> Flow {
    x.progress.state = State::Waiting(Wait::woken_or_until(until_ms));
    Flow::Wait(Step::Choose)
}

/// Ends the request without a server. Beyond the time for further attempts, the failure of the last one is the answer.
fn without_server(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, queued: Queued) -> Flow {
    let (why, reason) = match queued {
        Queued::Full => ("upstream queue is full", NextUpstream::NO_LIVE),
        Queued::TimedOut => ("upstream queue timed out", NextUpstream::NO_LIVE),
        Queued::Expired => {
            let last = record(x).last().map(|attempt| attempt.status);
            let reason = last.and_then(reason_of).unwrap_or(NextUpstream::NO_LIVE);
            ("no upstream was chosen in the time for retries", reason)
        }
        Queued::Never | Queued::Until(_) => ("no live upstreams", NextUpstream::NO_LIVE),
    };
    let now_ms = cx.clock.mono_ms;
    run.queued_ms = (run.picker.as_mut()).and_then(|picker| picker.leave_queue(now_ms));
    let name = run.picker.as_ref().map_or(&b""[..], Picker::name).into();
    let scheme = run.gateway.scheme(x);
    record(x).choose(scheme, &name, &name, false);
    begin_attempt(run, x, cx, name, None);
    let text = format_args!("{why}");
    x.log_while(Level::Error, Action::Connecting.text(), text);
    let failed = Failed::before_sending(reason);
    next(run, x, cx, failed, Action::Connecting)
}

/// Sends the request to the same server again, without conditions of the cache. Its 304 did not concern the stored
/// response (RFC 9111 section 4.3.4).
pub(super) fn without_conditions(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let text = format_args!("upstream sent 304 with other validators than those of the request");
    x.log_while(Level::Warn, Action::ReadingHead.text(), text);
    validate::give_up(run, x);
    if run.body.is_gone() {
        run.finish_attempt(x, cx, Outcome::Alive, Action::ReadingHead);
        return Flow::Done(Content::Status(502));
    }
    run.count_retried(x, cx.clock.mono_ms);
    if let Err(status) = make_request(run, x, cx) {
        return Flow::Done(Content::Status(status));
    }
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    call(run, x, cx, conf, true)
}

fn make_request(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let cache = run.cache.as_ref();
    let is_cached = cache.is_some_and(|cache| cache.may_store);
    let outgoing = Outgoing {
        body: run.body.length(x),
        is_pooled: run.picker.as_ref().is_some_and(Picker::has_pool),
        is_cached,
        gets_body: is_cached && cache.is_some_and(|cache| cache.conf.rules.convert_head),
    };
    if is_cached {
        validate::set_validators(run, x);
    }
    let made = run.gateway.request(x, cx, &outgoing);
    let mut request = made.inspect_err(|_| probe::fail(x, Action::Sending, cx.clock.mono_ms))?;
    if is_cached {
        validate::add_conditions(run, x, &mut request.fields);
    }
    record(x).set_uri(path(&request.fields));
    run.request = Some(request);
    Ok(())
}

/// `:path` of a request.
fn path(fields: &Fields) -> &[u8] {
    fields.named(b":path").next().unwrap_or_default()
}

/// Begins an attempt with the selected server.
fn call(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &UpstreamConf,
    may_reuse: bool,
) -> Flow {
    let Some(peer) = &run.peer else {
        return Flow::Done(Content::Status(500));
    };
    let (name, addr, server_id) = (peer.name.clone(), peer.addr.clone(), peer.id.clone());
    let options = match &run.options {
        Some(options) if conf.socket.bind_computed == Computed::Once => options.clone(),
        _ => socket_options(conf, x, cx),
    };
    let Some(request) = run.request.take() else {
        return Flow::Done(Content::Status(500));
    };
    let protocol = run.gateway.protocol();
    let tls = match run.gateway.tls(x, cx) {
        Ok(tls) => tls,
        Err(status) => {
            begin_attempt(run, x, cx, name, None);
            record(x).close(cx.clock.mono_ms);
            // Without a result the server would keep its state for ever.
            probe::fail(x, Action::Handshaking, cx.clock.mono_ms);
            return Flow::Done(Content::Status(status));
        }
    };
    let client = run.picker.as_ref().filter(|_| may_reuse && request.keep);
    let client = client.and_then(|picker| ntlm::binds(picker, x, cx));
    let pool = match may_reuse {
        true => pool(run, x, protocol, &request, client),
        false => None,
    };
    let pool = pool.map(|pool| pool.for_connections(protocol.id, tls.as_deref(), options.bind));
    if let (Some(client), Some(id), Some(pool)) = (client, server_id, pool) {
        cx.connector.bind_client(client, id, pool.group);
    }
    let route = Route {
        addr,
        protocol,
        head_bytes: run.gateway.head_bytes(conf),
        pool,
        group: run.picker.as_ref().map_or(0, Picker::group_digest),
        tls,
        options: options.clone(),
        timeouts: conf.timeouts,
    };
    run.options = Some(options);
    x.body.on_arrival = Some(arrived);
    // A response that is stored is useful without its client.
    x.progress.ignore_abort = conf.ignore_client_abort || may_store(run, conf, cx);
    let waker = x.waker(cx);
    let attempt = cx.connector.call(route, request, waker);
    if conf.buffering.limit_rate.0.is_some() || !conf.buffering.reads_ahead {
        // The bytes that come with the head are limited to a buffer too.
        attempt.set_window(conf.buffering.head_bytes.unwrap_or(HEAD_WINDOW_BYTES));
    }
    run.attempt_until_ms = match conf.retry.attempt_ms {
        0 => u64::MAX,
        attempt_ms => cx.clock.mono_ms.saturating_add(attempt_ms),
    };
    begin_attempt(run, x, cx, name, Some(attempt.watch()));
    run.body.begin(&attempt);
    Flow::Next(Step::Head(attempt))
}

/// Whether the response may be stored. The cache notes the time of the request.
fn may_store(run: &mut Run, conf: &UpstreamConf, cx: &Ctx<'_>) -> bool {
    match &mut run.cache {
        Some(cache) => {
            cache.request_ms = i64::try_from(cx.clock.unix_ms).unwrap_or(i64::MAX);
            cache.may_store
        }
        None => conf.store.path.is_some(),
    }
}

/// Returns the pool for a request; `client` has connections of its own. A request that ends its connection may be the last one of an idle connection.
fn pool(
    run: &Run,
    x: &Exchange,
    protocol: &ProtocolSpec,
    request: &RequestSpec,
    client: Option<BoundClient>,
) -> Option<Pool> {
    let is_last = !request.keep;
    if is_last && (protocol.id != ProtocolId::Http1 || request.http10) {
        return None;
    }
    let picker = run.picker.as_ref()?;
    let pool = match client {
        Some(client) => picker.client_pool(client.connection),
        None => picker.pool(|| group::location_digest(x)),
    }?;
    Some(match is_last {
        true => Pool {
            requests: 0,
            ..pool
        },
        false => pool,
    })
}

/// Records an attempt, with the time that the request was queued for it.
fn begin_attempt(
    run: &mut Run,
    x: &mut Exchange,
    cx: &Ctx<'_>,
    name: Rc<[u8]>,
    watch: Option<AttemptWatch>,
) {
    let upstream = record(x);
    upstream.begin_attempt(name, cx.clock.mono_ms, watch);
    if let Some(attempt) = upstream.last() {
        attempt.queued_ms = run.queued_ms.take();
    }
}

/// How connections are made.
fn socket_options(conf: &UpstreamConf, x: &mut Exchange, cx: &mut Ctx<'_>) -> SocketOptions {
    let mut options = conf.socket.options.clone();
    let Some(value) = &conf.socket.bind else {
        return options;
    };
    let text = value.to_vec(x, cx);
    options.bind = local_address(&text);
    if options.bind.is_none() && !text.is_empty() {
        let text = Printable(&text);
        x.log(
            Level::Error,
            format_args!("invalid local address \"{text}\""),
        );
    }
    options
}

/// Bytes of a body that may come with their head, if reading is limited and no buffer size is written.
const HEAD_WINDOW_BYTES: u64 = 4 << 10;
