//! The pools of idle connections: which requests share one.
//!
//! A pool's number is a digest of what its connections have in common, the name of the group and, where pools are local,
//! the server and location that pass the request on. It refers to no configuration: after a reload the same names give the same
//! pool.

use std::hash::Hasher;

use engines::http::FieldId;
use server_base::hash::Fnv;
use server_upstream::request::RequestSpec;
use server_upstream::route::{Pool, UpstreamProtocol};

use super::LocalGroups;
use super::conf::Keepalive;
use crate::conf_core::CoreSrv;
use crate::exchange::Exchange;
use crate::http::Http;
use crate::location::LocationKind;

/// The digest of a group's name.
pub(super) fn group_digest(name: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write_usize(name.len());
    hash.write(&name.to_ascii_lowercase());
    hash.finish()
}

/// The pool for an exchange's location.
pub(super) fn pool(x: &Exchange, group: u64, keepalive: &Keepalive) -> Pool {
    let id = match keepalive.is_local {
        true => mix(group ^ mix(known_digest(x))),
        false => mix(group),
    };
    Pool {
        id,
        connections: keepalive.connections,
        requests: keepalive.requests,
        time_ms: keepalive.time_ms,
        timeout_ms: keepalive.timeout_ms,
    }
}

/// The pool for connections that speak a protocol; `None` where the connection serves this request alone. Groups may be used
/// by several modules: a connection that has spoken one protocol is never given to another.
pub(crate) fn of_protocol(
    pool: Pool,
    protocol: &UpstreamProtocol,
    request: &RequestSpec,
) -> Option<Pool> {
    let number = match protocol {
        UpstreamProtocol::Http1 { .. } if keeps(request) => 0,
        UpstreamProtocol::FastCgi { keep: true, .. } => 1,
        UpstreamProtocol::Memcached { .. } => 2,
        _ => return None,
    };
    let id = match number {
        0 => pool.id,
        number => mix(pool.id ^ number),
    };
    Some(Pool { id, ..pool })
}

/// Whether a connection may serve more than this request.
fn keeps(request: &RequestSpec) -> bool {
    let connection = request.fields.field(FieldId::Connection);
    let has = |token: &[u8]| {
        let mut tokens = connection.unwrap_or_default().split(|b| *b == b',');
        tokens.any(|named| named.trim_ascii().eq_ignore_ascii_case(token))
    };
    match request.http10 {
        true => has(b"keep-alive"),
        false => !has(b"close"),
    }
}

/// The digest of an exchange's location, computed when it is asked for first.
fn known_digest(x: &Exchange) -> u64 {
    let known = &LocalGroups::of(x).location_digests[x.route.location];
    if known.get() == 0 {
        known.set(location_digest(&x.route.http, x.route.location));
    }
    known.get()
}

/// The digest of a location's name and kind, of the locations around it and of its server; never 0.
fn location_digest(http: &Http, location: usize) -> u64 {
    let mut hash = Fnv::default();
    let mut at = location;
    while let Some(parent) = http.locations[at].parent {
        if let Some(server) = http.servers.iter().position(|s| s.location == at) {
            hash_server(http, server, &mut hash);
            break;
        }
        let place = &http.locations[at];
        hash.write(&place.name);
        match place.kind {
            // Blocks have no names: they are told apart by their distance from the location around them.
            LocationKind::Block => hash.write_usize(at - parent),
            LocationKind::Exact => hash.write(b"="),
            LocationKind::Prefix | LocationKind::PrefixOnly => hash.write(b" "),
            LocationKind::Regex(_) => hash.write(b"~"),
            LocationKind::Named => hash.write(b"@"),
        }
        hash.write(&[0]);
        at = parent;
    }
    hash.finish().max(1)
}

/// A server is known by its names, and by how many of the same names come before it.
fn hash_server(http: &Http, server: usize, hash: &mut Fnv) {
    let names = |server: usize| {
        let names = &http.servers[server].confs.get::<CoreSrv>().names;
        names.iter().map(|name| name.text.as_slice())
    };
    for name in names(server) {
        hash.write(name);
        hash.write(&[0]);
    }
    let same = (0..server).filter(|earlier| names(*earlier).eq(names(server)));
    hash.write_usize(same.count());
}

/// Spreads a digest over all bits, since tables use some of them alone.
fn mix(digest: u64) -> u64 {
    let mut mixed = digest.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
