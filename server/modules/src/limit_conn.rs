//! `limit_conn`: limits the number of concurrent requests of each key.
//!
//! A connection is counted while a request is in progress, from the end of its head on. The count is released with the
//! exchange. Internal redirects, subrequests, mirrors and post actions do not count again.
//!
//! Source: nginx documentation, `ngx_http_limit_conn_module`.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::Shown;
use server_base::zone::{self, Full, Zone};
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::decision::LimitResult;
use server_http::exchange::{Ctx, DropGuard, Exchange};
use server_http::module::{Handler, Module, Step};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;
use server_http::variables;

use crate::limits::{self, LimitCounts, LimitLevel, LimitZone, RejectStatus, UNAVAILABLE};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: NAME,
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    settings: &[
        <LimitConnMain as server_http::settings_set::Conf>::def,
        <LimitConnLoc as server_http::settings_set::Conf>::def,
    ],
    variables: variables! {
        "limit_conn_status": "PASSED, REJECTED or REJECTED_DRY_RUN"
            => |x, _, _, out| limits::write_result(x.vars.limits.connections, out);
    },
    handlers: &[Handler::PreAccess(handle)],
    on_demand: true,
    ..Module::EMPTY
};

const NAME: &str = "limit_conn";

settings! {
    /// The zones.
    pub(crate) struct LimitConnMain: Main / MAIN_PLAIN {}
    extra {
        /// `limit_conn_zone`.
        zones: Vec<ConnZone>
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct LimitConnLoc: Location / PLAIN {
        /// Whether connections are only counted and logged.
        dry_run "limit_conn_dry_run": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Level of messages about refusals.
        log_level "limit_conn_log_level": LimitLevel = LimitLevel::Error, "error", Contexts::HTTP_SERVER_LOCATION;
        /// Status of refused requests.
        status "limit_conn_status": RejectStatus = UNAVAILABLE, "503", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `limit_conn`.
        limits: Vec<Limit> = inherited
    }
}

impl LimitConnMain {
    /// Returns the zones with their names.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&[u8], &LimitCounts)> {
        let zones = self.zones.iter();
        zones.map(|zone| (zone.name.as_slice(), &*zone.counts))
    }
}

/// One `limit_conn_zone`, with the number of connections of each key.
type ConnZone = LimitZone<u64>;

/// One `limit_conn`.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    zone: usize,
    most: u64,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Declares a zone that keeps the number of connections of each key.
    directive "limit_conn_zone": Contexts::HTTP, TAKE2, "", "key zone=name:size" => limit_conn_zone;

    /// Limits connections with a request in progress by a zone.
    directive "limit_conn": Contexts::HTTP_SERVER_LOCATION, TAKE2, "", "zone number" => limit_conn;
}

fn limit_conn_zone(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let key = Value::compile(b, d, d.word(0))?;
    let word = d.word(1);
    let Some(text) = word.text.strip_prefix(b"zone=") else {
        return Err(ConfError::parameter(d, word));
    };
    let (name, size) = zone::size_of(d, word, text)?;
    if name.is_empty() {
        return Err(limits::no_zone(d));
    }
    let place = (word, (name, size));
    let zone = LimitZone::declare(b, d, key, place, (NAME, "limit_conn_zone"), |b, id| {
        let zones = &b.conf_mut::<LimitConnMain>().zones;
        zones
            .iter()
            .find(|zone| zone.id == id)
            .map(LimitZone::key_text)
    })?;
    b.conf_mut::<LimitConnMain>().zones.push(zone);
    Ok(())
}

fn limit_conn(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let zone = zone::refer(b, d, d.word(0), d.arg(0), 0, NAME)?;
    let limits = &mut b.conf_mut::<LimitConnLoc>().limits;
    conf::once(d, limits.iter().any(|limit| limit.zone == zone))?;
    let most = limits::positive(d.arg(1)).ok_or_else(|| {
        let text = format!("invalid number of connections \"{}\"", d.arg_str(1));
        ConfError::word(d, d.word(1), text)
    })?;
    if most > LIMIT_MAX {
        let text = "connection limit must be less 65536";
        return Err(ConfError::word(d, d.word(1), text));
    }
    limits.push(Limit { zone, most });
    Ok(())
}

/// One counted connection, kept with the exchange; dropping it decrements the count.
struct CountedConnection {
    counts: Arc<Zone<u64>>,
    key: Vec<u8>,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut shard = self.counts.lock(&self.key);
        match shard.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                shard.remove(&self.key);
            }
        }
    }
}

/// Why a connection was not counted.
enum Refused {
    Over,
    Full,
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    let conf: &LimitConnLoc = x.loc(&http);
    // Counted already: before an internal redirect, or with the request that led to this one, as in nginx.
    if conf.limits.is_empty() || x.vars.limits.connections.is_some() {
        return Step::Next;
    }
    let main: &LimitConnMain = http.main();
    let mut passed = Vec::with_capacity(conf.limits.len());
    for limit in &conf.limits {
        // The end of the block `http` has checked that used zones are declared.
        let Some(zone) = main.zones.iter().find(|zone| zone.id == limit.zone) else {
            continue;
        };
        let Some(key) = zone.key(x, cx, KEY_MAX_BYTES) else {
            continue;
        };
        debug_http!(x, "limit conn: \"{}\" of {}", Shown(&key), limit.most);
        x.vars.limits.connections = Some(LimitResult::Passed);
        match acquire(zone, key, limit.most) {
            Ok(held) => {
                x.extensions.push(DropGuard::new(held));
                passed.push(zone);
            }
            Err(why) => return refuse(x, conf, zone, &why),
        }
    }
    for zone in passed {
        zone.counts.count(LimitResult::Passed);
    }
    Step::Next
}

/// Counts one more connection of a key.
fn acquire(zone: &ConnZone, key: Vec<u8>, most: u64) -> Result<CountedConnection, Refused> {
    let mut shard = zone.entries.lock(&key);
    match shard.get_mut(&key) {
        Some(count) if *count >= most => return Err(Refused::Over),
        Some(count) => *count += 1,
        None => shard.insert(&key, 1).map_err(|Full| Refused::Full)?,
    }
    drop(shard);
    Ok(CountedConnection {
        counts: Arc::clone(&zone.entries),
        key,
    })
}

fn refuse(x: &mut Exchange, conf: &LimitConnLoc, zone: &ConnZone, why: &Refused) -> Step {
    let dry = *conf.dry_run;
    if matches!(why, Refused::Over) {
        x.log(
            conf.log_level.level(),
            format_args!(
                "limiting connections{} by zone \"{}\"",
                if dry { ", dry run," } else { "" },
                String::from_utf8_lossy(&zone.name)
            ),
        );
    }
    // Only these counts: the other resources of the exchange stay in use.
    x.extensions.release_each::<CountedConnection>();
    if dry {
        zone.counts.count(LimitResult::RejectedDryRun);
        x.vars.limits.connections = Some(LimitResult::RejectedDryRun);
        return Step::Next;
    }
    zone.counts.count(LimitResult::Rejected);
    x.vars.limits.connections = Some(LimitResult::Rejected);
    Step::Status(conf.status.0)
}

/// Longest key, as in nginx.
const KEY_MAX_BYTES: usize = 255;
/// Highest limit, as in nginx.
const LIMIT_MAX: u64 = 65_535;
