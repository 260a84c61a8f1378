//! The pools of idle connections: which requests share one.
//!
//! A pool's number is a digest of what its connections have in common: the name of the group and, if pools are local, the
//! place of the configuration that passes the request on. It refers to no configuration: after a reload the same names give the
//! same pool.

use std::hash::Hasher;

use server_base::hash::Fnv;

use crate::group::Keepalive;
use crate::route::Pool;

/// The digest of a group's name.
pub fn group_digest(name: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write_usize(name.len());
    hash.write(&name.to_ascii_lowercase());
    hash.finish()
}

/// The pool of a group for a place of the configuration, by their digests.
pub fn pool(group: u64, keepalive: &Keepalive, place: impl FnOnce() -> u64) -> Pool {
    let id = match keepalive.is_local {
        true => mix(group ^ mix(place())),
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

impl Pool {
    /// The part of the pool for connections of one kind, by its number. Kind 0 has the number of the pool itself.
    #[must_use]
    pub fn of_kind(self, kind: u8) -> Self {
        let id = match kind {
            0 => self.id,
            kind => mix(self.id ^ u64::from(kind)),
        };
        Self { id, ..self }
    }

    /// The part of the pool for connections with this in common, such as the address they come from.
    #[must_use]
    pub fn of_common(self, common: &[u8]) -> Self {
        let mut hash = Fnv::default();
        hash.write(&self.id.to_ne_bytes());
        hash.write(common);
        Self {
            id: hash.finish(),
            ..self
        }
    }
}

/// Spreads a digest over all bits, since tables use some of them alone.
fn mix(digest: u64) -> u64 {
    let mut mixed = digest.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FASTCGI, HTTP1, MEMCACHED, SCGI, UWSGI};

    #[test]
    fn a_pool_is_of_one_protocol() {
        let pool = Pool {
            id: 7,
            connections: 1,
            requests: 1,
            time_ms: 1,
            timeout_ms: 1,
        };
        let protocols = [&HTTP1, &FASTCGI, &MEMCACHED, &SCGI, &UWSGI];
        let mut ids = protocols.map(|protocol| pool.of_kind(protocol.id as u8).id);
        assert_eq!(ids[0], 7);
        ids.sort_unstable();
        assert!(ids.windows(2).all(|two| two[0] != two[1]));
    }
}
