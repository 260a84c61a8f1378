//! `limit_req`: limits the rate of requests of each key; requests above it are delayed or refused.
//!
//! A leaky bucket for each key, in thousandths of a request and milliseconds, with nginx's arithmetic. All threads
//! share the buckets of a zone; time is that of the monotonic clock. Internal redirects, delays, subrequests, mirrors and post
//! actions do not count again.
//!
//! Source: nginx documentation, `ngx_http_limit_req_module`.

pub(crate) mod bucket;

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::{Level, Printable};
use server_base::zone;
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::decision::LimitResult;
use server_http::exchange::{Ctx, Exchange, State, Wait};
use server_http::module::{Handler, Module, Step};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;
use server_http::variables;

use crate::limits::{self, LimitCounts, LimitLevel, LimitZone, RejectStatus, UNAVAILABLE};
use bucket::{Bucket, Verdict};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: NAME,
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    settings: &[
        <LimitReqMain as server_http::settings_set::Conf>::def,
        <LimitReqLoc as server_http::settings_set::Conf>::def,
    ],
    variables: variables! {
        "limit_req_status": "PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or REJECTED_DRY_RUN"
            => |x, _, _, out| limits::write_result(x.vars.limits.rate, out);
    },
    handlers: &[Handler::PreAccess(handle)],
    on_demand: true,
    ..Module::EMPTY
};

const NAME: &str = "limit_req";

settings! {
    /// The zones.
    pub(crate) struct LimitReqMain: Main / MAIN_PLAIN {}
    extra {
        /// `limit_req_zone`.
        zones: Vec<ReqZone>
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct LimitReqLoc: Location / PLAIN {
        /// Whether requests are only counted and logged.
        dry_run "limit_req_dry_run": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Level of messages about refusals; those about delays are one less severe.
        log_level "limit_req_log_level": LimitLevel = LimitLevel::Error, "error", Contexts::HTTP_SERVER_LOCATION;
        /// Status of refused requests.
        status "limit_req_status": RejectStatus = UNAVAILABLE, "503", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `limit_req`.
        limits: Vec<Limit> = inherited
    }
}

impl LimitReqMain {
    /// Returns the zones with their names.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&[u8], &LimitCounts)> {
        let zones = self.zones.iter();
        zones.map(|zone| (zone.zone.name.as_slice(), &*zone.zone.counts))
    }
}

/// One `limit_req_zone`.
pub(crate) struct ReqZone {
    zone: LimitZone<Bucket>,
    /// Thousandths of a request per second.
    rate: u64,
}

/// One `limit_req`; numbers are thousandths of a request.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    zone: usize,
    burst: u64,
    delay: u64,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Declares a zone that keeps the requests of each key.
    directive "limit_req_zone": Contexts::HTTP, TAKE3, "", "key zone=name:size rate=rate" => limit_req_zone;

    /// Limits requests by a zone; `burst` more are delayed, or served at once.
    directive "limit_req": Contexts::HTTP_SERVER_LOCATION, TAKE123, "",
        "zone=name [burst=number] [nodelay | delay=number]" => limit_req;
}

fn limit_req_zone(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let key = Value::compile(b, d, d.word(0))?;
    let (mut place, mut rate) = (None, 1000);
    for word in &d.args[1..] {
        let text = word.text.as_slice();
        if let Some(text) = text.strip_prefix(b"zone=") {
            place = Some((word, zone::size_of(d, word, text)?));
        } else if let Some(text) = text.strip_prefix(b"rate=") {
            rate = parse_rate(text).ok_or_else(|| {
                ConfError::word(d, word, format!("invalid rate \"{}\"", word.as_str()))
            })?;
        } else {
            return Err(ConfError::parameter(d, word));
        }
    }
    let place = place.filter(|(_, (name, _))| !name.is_empty());
    let place = place.ok_or_else(|| limits::no_zone(d))?;
    let zone = LimitZone::declare(b, d, key, place, (NAME, NAME), |b, id| {
        let zones = &b.conf_mut::<LimitReqMain>().zones;
        let known = zones.iter().find(|known| known.zone.id == id);
        known.map(|known| known.zone.key_text())
    })?;
    let zones = &mut b.conf_mut::<LimitReqMain>().zones;
    zones.push(ReqZone { zone, rate });
    Ok(())
}

/// Thousandths of a request per second.
fn parse_rate(text: &[u8]) -> Option<u64> {
    let (number, seconds) = match text {
        [number @ .., b'r', b'/', b's'] => (number, 1),
        [number @ .., b'r', b'/', b'm'] => (number, 60),
        _ => (text, 1),
    };
    Some(limits::positive(number)?.saturating_mul(1000) / seconds)
}

fn limit_req(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let (mut zone, mut burst, mut delay) = (None, 0, 0);
    let number = |word: &conf::Word, text: &[u8], what: &str| {
        limits::positive(text).ok_or_else(|| {
            let text = format!("invalid {what} value \"{}\"", word.as_str());
            ConfError::word(d, word, text)
        })
    };
    for word in &d.args {
        let text = word.text.as_slice();
        if let Some(name) = text.strip_prefix(b"zone=") {
            zone = Some(zone::refer(b, d, word, name, 0, NAME)?);
        } else if let Some(text) = text.strip_prefix(b"burst=") {
            burst = number(word, text, "burst")?;
        } else if let Some(text) = text.strip_prefix(b"delay=") {
            delay = number(word, text, "delay")?;
        } else if text == b"nodelay" {
            delay = u64::MAX;
        } else {
            return Err(ConfError::parameter(d, word));
        }
    }
    let zone = zone.ok_or_else(|| limits::no_zone(d))?;
    let limits = &mut b.conf_mut::<LimitReqLoc>().limits;
    conf::once(d, limits.iter().any(|limit| limit.zone == zone))?;
    limits.push(Limit {
        zone,
        burst: burst.saturating_mul(1000),
        delay: delay.saturating_mul(1000),
    });
    Ok(())
}

/// A limit that admits the request and counts it once all limits do.
struct Pending<'h> {
    zone: &'h ReqZone,
    limit: Limit,
    key: Vec<u8>,
}

/// The longest delay found, and why.
#[derive(Clone, Copy, Default)]
struct Delay<'h> {
    ms: u64,
    excess: u64,
    zone: Option<&'h ReqZone>,
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    let conf: &LimitReqLoc = x.loc(&http);
    // Counted already: before a delay or an internal redirect, or with the request that led to this one, as in nginx.
    if conf.limits.is_empty() || x.vars.limits.rate.is_some() {
        return Step::Next;
    }
    let main: &LimitReqMain = http.main();
    let now_ms = cx.clock.mono_ms;
    let mut pending: Vec<Pending<'_>> = Vec::new();
    let mut delay = Delay::default();
    let mut counted = None;
    for (n, limit) in conf.limits.iter().enumerate() {
        // The end of the block `http` has checked that used zones are declared.
        let Some(zone) = main.zones.iter().find(|zone| zone.zone.id == limit.zone) else {
            continue;
        };
        let Some(key) = zone.zone.key(x, cx, KEY_MAX_BYTES) else {
            continue;
        };
        let last = n + 1 == conf.limits.len();
        let mut shard = zone.zone.entries.lock(&key);
        let verdict = bucket::check(&mut shard, &key, now_ms, zone.rate, limit.burst, last);
        drop(shard);
        debug_http!(x, "limit_req[{n}]: {verdict:?}");
        match verdict {
            Verdict::Over(excess) => {
                give_up(&pending);
                return refuse(x, conf, zone, Some(excess));
            }
            Verdict::Full => {
                give_up(&pending);
                return refuse(x, conf, zone, None);
            }
            Verdict::Counted(excess) => {
                counted = Some(zone);
                delay.consider(zone, limit, excess);
            }
            Verdict::Pending => pending.push(Pending {
                zone,
                limit: *limit,
                key,
            }),
        }
    }
    if counted.is_none() && pending.is_empty() {
        return Step::Next;
    }
    for held in pending.iter().rev() {
        let mut shard = held.zone.zone.entries.lock(&held.key);
        if let Some(excess) = bucket::count(&mut shard, &held.key, now_ms, held.zone.rate) {
            delay.consider(held.zone, &held.limit, excess);
        }
    }
    for zone in pending.iter().map(|held| held.zone).chain(counted) {
        let is_delayed = delay.zone.is_some_and(|other| std::ptr::eq(other, zone));
        zone.zone.counts.count(match (is_delayed, *conf.dry_run) {
            (false, _) => LimitResult::Passed,
            (true, false) => LimitResult::Delayed,
            (true, true) => LimitResult::DelayedDryRun,
        });
    }
    pass(x, cx, conf, &delay)
}

impl<'h> Delay<'h> {
    fn consider(&mut self, zone: &'h ReqZone, limit: &Limit, excess: u64) {
        let over = excess.saturating_sub(limit.delay);
        // Avoids a division by zero: a rate below a thousandth of a request per second is 0.
        let ms = over.saturating_mul(1000) / zone.rate.max(1);
        if ms > self.ms {
            *self = Self {
                ms,
                excess,
                zone: Some(zone),
            };
        }
    }
}

/// Releases the limits that had admitted the request before another refused it.
fn give_up(pending: &[Pending<'_>]) {
    for held in pending {
        bucket::release(&mut held.zone.zone.entries.lock(&held.key), &held.key);
    }
}

/// Refuses a request that is over a limit, or for which the zone has no room.
fn refuse(x: &mut Exchange, conf: &LimitReqLoc, zone: &ReqZone, excess: Option<u64>) -> Step {
    let dry = *conf.dry_run;
    let name = Printable(&zone.zone.name);
    match excess {
        Some(excess) => x.log(
            conf.log_level.level(),
            format_args!(
                "limiting requests{}, excess: {}.{:03} by zone \"{name}\"",
                if dry { ", dry run" } else { "" },
                excess / 1000,
                excess % 1000
            ),
        ),
        None => x.log(
            Level::Alert,
            format_args!("could not allocate node in limit_req zone \"{name}\""),
        ),
    }
    if dry {
        zone.zone.counts.count(LimitResult::RejectedDryRun);
        x.vars.limits.rate = Some(LimitResult::RejectedDryRun);
        return Step::Next;
    }
    zone.zone.counts.count(LimitResult::Rejected);
    x.vars.limits.rate = Some(LimitResult::Rejected);
    Step::Status(conf.status.0)
}

/// Continues with a request, at once or after the delay.
fn pass(x: &mut Exchange, cx: &Ctx<'_>, conf: &LimitReqLoc, delay: &Delay<'_>) -> Step {
    let Some(zone) = delay.zone else {
        x.vars.limits.rate = Some(LimitResult::Passed);
        return Step::Next;
    };
    let dry = *conf.dry_run;
    x.log(
        conf.log_level.milder(),
        format_args!(
            "delaying request{}, excess: {}.{:03}, by zone \"{}\"",
            if dry { ", dry run" } else { "" },
            delay.excess / 1000,
            delay.excess % 1000,
            Printable(&zone.zone.name)
        ),
    );
    if dry {
        x.vars.limits.rate = Some(LimitResult::DelayedDryRun);
        return Step::Next;
    }
    x.vars.limits.rate = Some(LimitResult::Delayed);
    x.progress.state = State::Waiting(Wait::until(cx.clock.mono_ms.saturating_add(delay.ms)));
    Step::Wait
}

/// Longest key, as in nginx.
const KEY_MAX_BYTES: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_thousandths_of_a_request_per_second() {
        assert_eq!(parse_rate(b"1r/s"), Some(1000));
        assert_eq!(parse_rate(b"30r/m"), Some(500));
        assert_eq!(parse_rate(b"1r/m"), Some(16));
        assert_eq!(parse_rate(b"5"), Some(5000));
        assert_eq!(parse_rate(b"0r/s"), None);
        assert_eq!(parse_rate(b"r/s"), None);
        assert_eq!(parse_rate(b"5r/h"), None);
    }
}
