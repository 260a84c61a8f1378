//! The location of an exchange, and settings of it that count at once.
//!
//! Source: nginx documentation, directive `location`.

use engines::http::{FieldId, Method};
use server_base::regex::MatchLimit;

use crate::conf_core::CoreLoc;
use crate::debug_http;
use crate::exchange::Exchange;
use crate::http::Http;
use crate::location::{LocationKind, LocationSet, Static, method_bit};
use crate::trace::Event;
use crate::user_agent::Browser;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// With the location of the exchange, unless an expression around it matches.
    Open,
    /// With the location of the exchange.
    Over,
    /// With a location that has the name of the URI and a slash.
    Slash,
}

/// Chooses the location of an exchange, starting from the server's own.
///
/// # Errors
/// A regular expression ran into its match limit.
#[inline(always)] // See `phases::phase`.
pub(crate) fn find_location(http: &Http, x: &mut Exchange) -> Result<Search, MatchLimit> {
    x.route.location = http.servers[x.route.server].location;
    descend(http, x)
}

/// Looks inside the current location.
fn descend(http: &Http, x: &mut Exchange) -> Result<Search, MatchLimit> {
    let set = &http.locations[x.route.location].inner;
    let mut try_regex = true;
    let found = set.find(&x.target.uri);
    if set.may_lack_slash(&x.target.uri)
        && !matches!(found, Static::Exact(_))
        && let Some(id) = set.find_slash(&x.target.uri)
    {
        x.record_event(|| Event::Compared(id, true));
        x.route.location = id;
        return Ok(Search::Slash);
    }
    match found {
        Static::Exact(id) => {
            debug_http!(x, "test location: \"{}\"", http.locations[id]);
            x.record_event(|| Event::Compared(id, true));
            x.route.location = id;
            return Ok(Search::Over);
        }
        Static::Prefix(id) => {
            debug_http!(x, "test location: \"{}\"", http.locations[id]);
            x.record_event(|| Event::Compared(id, true));
            x.route.location = id;
            try_regex = !matches!(http.locations[id].kind, LocationKind::PrefixOnly);
            match descend(http, x)? {
                Search::Open => {}
                ended => return Ok(ended),
            }
        }
        Static::None => {}
    }
    if try_regex && !set.regex.is_empty() {
        let uri = std::mem::take(&mut x.target.uri);
        let found = first_regex(http, set, x, &uri);
        x.target.uri = uri;
        if let Some(id) = found? {
            x.route.location = id;
            let slash = descend(http, x)? == Search::Slash;
            return Ok(if slash { Search::Slash } else { Search::Over });
        }
    }
    Ok(Search::Open)
}

fn first_regex(
    http: &Http,
    set: &LocationSet,
    x: &mut Exchange,
    uri: &[u8],
) -> Result<Option<usize>, MatchLimit> {
    for (regex, id) in &set.regex {
        debug_http!(x, "test location: ~ \"{}\"", http.locations[*id]);
        let hit = regex.exec(x, uri)?;
        x.record_event(|| Event::Compared(*id, hit));
        if hit {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}

/// Applies settings of a new location: `limit_except`, and whether the connection is kept.
pub fn location_changed(x: &mut Exchange) {
    if let Some((excluded, inner)) = x.route.http.locations[x.route.location].except
        && excluded & method_bit(x.target.method) != 0
    {
        x.route.location = inner;
        x.record_event(|| Event::Excluded(inner));
    }
    if !x.progress.keep_alive {
        return;
    }
    let loc = x.route.core_loc();
    let age_ms = x.started_ms.saturating_sub(x.client.since_ms);
    x.progress.keep_alive = loc.connection.keepalive().idle_ms != 0
        && x.client.requests < loc.connection.keepalive_requests.0
        && age_ms <= loc.connection.keepalive_time.0
        && !keepalive_disabled(x, loc);
}

fn keepalive_disabled(x: &Exchange, loc: &CoreLoc) -> bool {
    let disable = loc.connection.keepalive_disable.unwrap_or_default();
    let msie6 = disable.msie6 && x.target.method == Method::Post;
    // The name of the browser is searched only if it matters.
    if !msie6 && !disable.safari {
        return false;
    }
    match x.head.field(FieldId::UserAgent).map(Browser::of) {
        Some(Browser::Msie { old }) => msie6 && old,
        Some(Browser::Safari { mac }) => disable.safari && mac,
        _ => false,
    }
}
