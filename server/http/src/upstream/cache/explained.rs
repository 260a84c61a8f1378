//! Steps of the cache in the report of `firstbyte explain`.
//!
//! Nothing is changed for a report: a request that purges does not, and files are read only. The index is empty then, so
//! each file is opened. Absent: storing, since no server is asked.

use engines::http::{FieldId, Method};
use server_base::errlog::Printable;
use server_cache::key::CacheKey;
use server_cache::rfc9111::ForwardReason;

use crate::cache::conf::CacheConf;
use crate::cache::counts::CacheResult;
use crate::cache::zone::CacheZone;
use crate::exchange::Exchange;
use crate::trace::Event;

/// The location has no cache.
pub(crate) fn without_cache(x: &Exchange) {
    x.record_event(|| Event::Cache("not used: the location has no cache".to_owned()));
}

/// The method or the body excludes the request.
pub(super) fn excluded(x: &Exchange, conf: &CacheConf) {
    x.record_event(|| {
        let text = match conf.methods.contains(x.target.method) {
            true => "not used: the request has a body".to_owned(),
            false => format!("not used: the method {} is not cached", method(x)),
        };
        Event::Cache(text)
    });
}

/// The zone is named by variables, which are empty or `off`.
pub(super) fn without_zone(x: &Exchange) {
    x.record_event(|| Event::Cache("not used: the name of its zone is empty or off".to_owned()));
}

/// Reports zone and key, and opens the directory; requests that are served use an open one alone. Returns whether the
/// cache has a part in the request. One that purges is not made.
pub(super) fn begin(x: &Exchange, zone: &CacheZone, key: &CacheKey, purges: bool) -> bool {
    let (name, text) = (Printable(&zone.name), Printable(key.text()));
    x.record_event(|| Event::Cache(format!("zone {name}, key \"{text}\"")));
    if purges {
        x.record_event(|| Event::Cache("purges the entries of the key".to_owned()));
        return false;
    }
    let opened = zone.shared.open();
    if let Err(error) = &opened {
        let error = conf::os_error(error);
        x.record_event(|| {
            Event::Cache(format!(
                "does not answer: its directory cannot be read ({error})"
            ))
        });
    }
    opened.is_ok()
}

/// A successful response invalidates the entries of the key.
pub(super) fn invalidates(x: &Exchange) {
    x.record_event(|| {
        let method = method(x);
        Event::Cache(format!(
            "not used: a successful {method} removes the stored response"
        ))
    });
}

/// A stored response is the answer.
pub(super) fn answers(x: &Exchange, result: CacheResult) {
    x.record_event(|| {
        Event::Cache(format!(
            "answers with the stored response: {}",
            result.text()
        ))
    });
}

/// The request goes to a server.
pub(super) fn forwards(x: &Exchange, reason: Option<ForwardReason>) {
    x.record_event(|| {
        let why = match reason {
            Some(ForwardReason::Bypass) => "a condition of cache_bypass is true",
            Some(ForwardReason::Stale) => "the stored response is stale",
            Some(ForwardReason::Request) if x.head.field(FieldId::CacheControl).is_some() => {
                "Cache-Control of the request excludes the stored response"
            }
            Some(ForwardReason::Request) => "the request excludes the stored response",
            Some(ForwardReason::VaryMiss) => "no stored response has the fields of the request",
            _ => "no response is stored",
        };
        Event::Cache(format!("does not answer: {why}"))
    });
}

/// The name of the method.
fn method(x: &Exchange) -> String {
    let name = match x.target.method == Method::Get {
        true => b"GET",
        false => x.head.bytes(x.head.method_name),
    };
    Printable(name).to_string()
}
