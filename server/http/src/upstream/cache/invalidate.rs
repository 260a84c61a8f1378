//! Invalidation by successful requests with unsafe methods: of their URI, and of URIs that the response names.
//!
//! Keys are text of a configuration. The key of another URI is made only if it depends on scheme, host and URI alone.
//!
//! Source: RFC 9111 section 4.4.

use engines::http::{FieldId, Fields, Span, normalize};
use server_base::errlog::Level;
use server_cache::index::PurgeMode;
use server_cache::key::CacheKey;
use server_cache::rfc9111::{FieldList, TargetUri, invalidated_targets};

use super::begin;
use super::state::Caching;
use crate::conf_core::CoreSrv;
use crate::exchange::{Ctx, Exchange, UriOrigin};
use crate::reply::escape_location;
use crate::upstream::gateway::Gateway;

/// Removes the stored responses that the reply at hand invalidates.
pub(super) fn invalidate(
    caching: &Caching,
    gateway: &'static dyn Gateway,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) {
    if !caching.invalidates || !matches!(x.reply.status, 200..=399) {
        return;
    }
    purge(caching, &caching.key, x, cx);
    if !caching.conf.is_key_of_uri {
        return;
    }
    for target in other_targets(x) {
        if let Some(key) = key_of(&target, caching, gateway, x, cx) {
            purge(caching, &key, x, cx);
        }
    }
}

fn purge(caching: &Caching, key: &CacheKey, x: &Exchange, cx: &Ctx<'_>) {
    let (shared, now_s) = (&caching.zone.shared, cx.clock.unix_s());
    if let Err(error) = shared.purge_key(key, PurgeMode::Hard, now_s) {
        x.log(Level::Error, format_args!("{error}"));
    }
}

/// Returns the targets of `Location` and `Content-Location`, as the client sees them, with the origin of the request.
fn other_targets(x: &Exchange) -> Vec<Vec<u8>> {
    let scheme: &[u8] = if x.tls.is_some() { b"https" } else { b"http" };
    let authority = match x.head.authority.get() {
        Some(span) => x.head.bytes(span),
        None => x.head.field(FieldId::Host).unwrap_or_default(),
    };
    let base = TargetUri {
        scheme,
        authority,
        target: x.head.bytes(x.head.target),
    };
    let mut rewritten = Fields::default();
    if !x.reply.location.is_empty() {
        // It is no field yet: `proxy_redirect` has rewritten it.
        let location = escape_location(&x.reply.location);
        rewritten.push_id(FieldId::Location, b"Location", &location);
    }
    let lists = [
        FieldList::from(&rewritten),
        FieldList::from(&x.reply.fields),
    ];
    // The first one is that of the request.
    let others = lists.map(|list| invalidated_targets(&base, list).into_iter().skip(1));
    others.into_iter().flatten().take(OTHERS_MAX).collect()
}

/// Makes the key of another target in the location of the request; `None` without one.
fn key_of(
    target: &[u8],
    caching: &Caching,
    gateway: &'static dyn Gateway,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Option<CacheKey> {
    let merge = *x.route.srv::<CoreSrv>().merge_slashes;
    let mut uri = Vec::new();
    let parsed = normalize(target, merge, &mut uri).ok()?;
    let args = parsed.args.map_or(&b""[..], |args| &target[args]).to_vec();
    let (own_len, own_target) = (x.head.arena.len(), x.head.target);
    x.head.arena.extend_from_slice(target);
    x.head.target = Span::new(own_len, target.len());
    let of_target = &mut x.target;
    let own = (of_target.has_args, of_target.quoted_uri, of_target.origin);
    of_target.has_args = !args.is_empty();
    of_target.quoted_uri = parsed.quoted || uri.contains(&b'+');
    of_target.origin = UriOrigin::RequestLine;
    let own_uri = std::mem::replace(&mut of_target.uri, uri);
    let own_args = std::mem::replace(&mut of_target.args, args);
    let key = begin::key(gateway, x, cx, &caching.conf);
    let of_target = &mut x.target;
    (of_target.uri, of_target.args) = (own_uri, own_args);
    (of_target.has_args, of_target.quoted_uri, of_target.origin) = own;
    x.head.target = own_target;
    x.head.arena.truncate(own_len);
    key.ok().flatten()
}

/// Maximum number of other targets of one response. `Content-Location` may be repeated.
const OTHERS_MAX: usize = 4;
