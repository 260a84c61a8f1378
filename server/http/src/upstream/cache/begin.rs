//! The begin of the cache's part in a request: conditions, zone and key.
//!
//! Source: nginx documentation, `proxy_cache`, `proxy_cache_key`, `proxy_cache_methods`, `proxy_cache_bypass`.

use std::sync::Arc;

use engines::http::{BodyLength, FieldId, Method};
use server_base::errlog::{Level, Printable};
use server_cache::key::{CacheKey, KEY_BYTES_MAX};
use server_cache::rfc9111::{FieldList, RequestFacts, is_safe};

use super::explained;
use super::purge;
use super::state::Caching;
use crate::cache::conf::{CacheConf, ZoneChoice};
use crate::cache::zone::CacheZone;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::upstream::gateway::Gateway;
use crate::upstream::run::{Flow, Run};
use crate::value::Value;

/// Returns the cache of a request; `None` if it has no part in it.
///
/// # Errors
/// The way to go on without servers: the request purges, or the cache is not known.
pub(super) fn begin(
    run: &Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &Arc<CacheConf>,
) -> Result<Option<Box<Caching>>, Flow> {
    if x.is_health_check() {
        return Ok(None);
    }
    let purges = any(&conf.conditions.purge, x, cx);
    // The body of a GET has no meaning, but some servers read it: its response is not that of the URI.
    let is_get = matches!(x.target.method, Method::Get | Method::Head);
    let has_body = conf.rules.rfc && is_get && x.head.body != BodyLength::None;
    let is_cached = conf.methods.contains(x.target.method) && !has_body;
    let invalidates = conf.rules.rfc && !is_cached && !is_safe(x.target.method);
    if !purges && !is_cached && !invalidates {
        explained::excluded(x, conf);
        return Ok(None);
    }
    let Some(zone) = zone(conf, x, cx)? else {
        explained::without_zone(x);
        return Ok(None);
    };
    // The directory of a report is opened after its key is known.
    if zone.shared.directory().is_none() && x.trace.is_none() {
        return Ok(None);
    }
    let Some(key) = key(run.gateway, x, cx, conf)? else {
        return Ok(None);
    };
    if x.trace.is_some() && !explained::begin(x, &zone, &key, purges) {
        return Ok(None);
    }
    if purges {
        return Err(purge::purge(x, cx, &zone, &key));
    }
    let converts = x.target.method == Method::Head && conf.rules.convert_head;
    let may_store_head = converts || conf.has_method_in_key;
    let request = match conf.rules.rfc {
        true => request_facts(x, converts),
        false => RequestFacts::default(),
    };
    Ok(Some(Box::new(Caching {
        conf: Arc::clone(conf),
        zone,
        id: key.id(),
        similar: None,
        key,
        format: run.gateway.head_format(),
        request,
        // The response to HEAD is no response to GET.
        may_store: is_cached
            && (!conf.rules.rfc || x.target.method != Method::Head || may_store_head),
        invalidates,
        is_update: false,
        forwarded: None,
        not_stored: None,
        token: None,
        stored: None,
        awaited: None,
        wait_until_ms: None,
        request_ms: 0,
    })))
}

/// Returns the facts of the request to the server; `converts`: it is a GET in the place of HEAD.
fn request_facts(x: &Exchange, converts: bool) -> RequestFacts {
    let method = if converts {
        Method::Get
    } else {
        x.target.method
    };
    let mut facts = RequestFacts::of(method, FieldList::from(&x.head), x.target.has_args);
    // Neither is sent to the server.
    (facts.has_range, facts.has_precondition) = (false, false);
    facts
}

/// Whether a value is neither empty nor 0.
pub(super) fn any(values: &[Value], x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
    values.iter().any(|value| value.is_true(x, cx))
}

fn zone(
    conf: &CacheConf,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Result<Option<Arc<CacheZone>>, Flow> {
    match &conf.zone {
        ZoneChoice::Fixed(zone) => Ok(Some(Arc::clone(zone))),
        ZoneChoice::Computed(value, all) => {
            let name = value.to_vec(x, cx);
            if name.is_empty() || name == b"off" {
                return Ok(None);
            }
            let found = all.find(&name);
            if found.is_none() {
                let name = Printable(&name);
                x.log(Level::Error, format_args!("cache \"{name}\" not found"));
                return Err(Flow::Done(Content::Status(500)));
            }
            Ok(found.cloned())
        }
    }
}

/// Makes the key of a request; `None` if it is too long, which has been logged.
///
/// # Errors
/// The way to go on without a key.
pub(super) fn key(
    gateway: &'static dyn Gateway,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &CacheConf,
) -> Result<Option<CacheKey>, Flow> {
    let text = match &conf.key {
        Some(value) => value.to_vec(x, cx),
        None => (gateway.cache_key(x, cx)).map_err(|status| Flow::Done(Content::Status(status)))?,
    };
    let bytes = text.len();
    let key = CacheKey::new(text).ok();
    if key.is_none() {
        x.log(
            Level::Error,
            format_args!("cache key of {bytes} bytes is longer than {KEY_BYTES_MAX}, not cached"),
        );
    }
    Ok(key)
}

/// Whether the range of a request begins beyond `*_cache_max_range_offset`, or at its end: it is passed on, and the
/// response is not stored.
pub(super) fn passes_range(conf: &CacheConf, x: &Exchange) -> bool {
    let (Some(max), Some(range)) = (conf.max_range_offset, x.head.field(FieldId::Range)) else {
        return false;
    };
    if max == 0 {
        return true;
    }
    let Some((unit, ranges)) = range.split_at_checked(UNIT.len()) else {
        return false;
    };
    if !unit.eq_ignore_ascii_case(UNIT) {
        return false;
    }
    let ranges = ranges.trim_ascii_start();
    if ranges.starts_with(b"-") {
        return true;
    }
    let end = ranges.iter().position(|byte| !byte.is_ascii_digit());
    let digits = &ranges[..end.unwrap_or(ranges.len())];
    conf::parse_number(digits).is_some_and(|offset| offset >= max)
}

const UNIT: &[u8] = b"bytes=";
