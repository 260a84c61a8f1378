//! The pools of idle connections: which requests share one.
//!
//! A pool's number is a digest of the common properties of its connections: the name of the group and, if pools are
//! local, the location that passes the request on. It refers to no configuration: after a reload the same names have
//! the same pool. All pools of a group share its limit, as in nginx.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use server_base::hash::Fnv;

use crate::group::Keepalive;
use crate::protocol::ProtocolId;
use crate::route::{Pool, ServerTls};

/// Returns the digest of a group's name.
pub fn group_digest(name: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write_usize(name.len());
    hash.write(&name.to_ascii_lowercase());
    hash.finish()
}

/// Returns the digest of a group's name for connections of health checks.
pub fn check_digest(name: &[u8]) -> u64 {
    mix(group_digest(name))
}

/// Returns the pool of a group for a location, by their digests.
pub fn pool(group: u64, keepalive: &Keepalive, place: impl FnOnce() -> u64) -> Pool {
    let own = mix(group);
    Pool {
        id: match keepalive.is_local {
            true => mix(group ^ mix(place())),
            false => own,
        },
        group: own,
        connections: keepalive.connections,
        requests: keepalive.requests,
        time_ms: keepalive.time_ms,
        timeout_ms: keepalive.timeout_ms,
        counted: 0,
    }
}

/// Returns the pool of a group for the connections that are bound to a client's connection, by its number.
pub fn client_pool(group: u64, keepalive: &Keepalive, connection: u64) -> Pool {
    let own = Keepalive {
        is_local: true,
        ..*keepalive
    };
    let pool = pool(!group, &own, || connection);
    // The limit is that of each client.
    Pool {
        group: pool.id,
        ..pool
    }
}

impl Pool {
    /// The part of the pool for interchangeable connections: those with one protocol, TLS settings and local address.
    #[must_use]
    pub fn for_connections(
        self,
        protocol: ProtocolId,
        tls: Option<&ServerTls>,
        bind: Option<SocketAddr>,
    ) -> Self {
        let mut id = match protocol as u8 {
            0 => self.id,
            protocol => mix(self.id ^ u64::from(protocol)),
        };
        if let Some(tls) = tls {
            id = mix(id ^ tls.pool_digest());
        }
        if let Some(addr) = bind {
            let mut hash = Fnv::default();
            (id, addr).hash(&mut hash);
            id = mix(hash.finish());
        }
        Self { id, ..self }
    }
}

/// Spreads a digest over all bits, since hash tables use only some of them.
fn mix(digest: u64) -> u64 {
    let mut mixed = digest.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tls::{ClientConfig, ServerName, ServerTrust};

    use super::*;
    use crate::protocol::{FASTCGI, HTTP1, HTTP2, MEMCACHED, SCGI, UWSGI};

    const POOL: Pool = Pool {
        id: 7,
        group: 7,
        connections: 1,
        requests: 1,
        time_ms: 1,
        timeout_ms: 1,
        counted: 0,
    };

    fn tls(digest: u8, name: &'static str) -> Arc<ServerTls> {
        let config = ClientConfig::new(ServerTrust::Any, Vec::new(), 0);
        let name = ServerName::try_from(name).expect("a host name");
        let config = config.expect("it can be set up").into();
        Arc::new(ServerTls::new(config, [digest; 32], name))
    }

    fn are_distinct(mut ids: Vec<u64>) -> bool {
        ids.sort_unstable();
        ids.windows(2).all(|two| two[0] != two[1])
    }

    #[test]
    fn a_pool_is_of_one_protocol() {
        let protocols = [&HTTP1, &FASTCGI, &MEMCACHED, &SCGI, &UWSGI, &HTTP2];
        let ids = protocols.map(|protocol| POOL.for_connections(protocol.id, None, None).id);
        assert_eq!(ids[0], 7);
        assert!(are_distinct(ids.to_vec()));
    }

    #[test]
    fn each_client_has_a_pool_of_its_own_in_each_group() {
        let keepalive = Keepalive {
            connections: 1,
            is_local: false,
            requests: 1,
            time_ms: 1,
            timeout_ms: 1,
        };
        let mut pools = vec![pool(1, &keepalive, || 1)];
        for group in 1..4 {
            pools.extend((0..4).map(|client| client_pool(group, &keepalive, client)));
        }
        assert!(are_distinct(pools.iter().map(|pool| pool.id).collect()));
        assert!(are_distinct(pools.iter().map(|pool| pool.group).collect()));
    }

    #[test]
    fn all_pools_of_a_group_share_its_limit() {
        let keepalive = |is_local| Keepalive {
            connections: 1,
            is_local,
            requests: 1,
            time_ms: 1,
            timeout_ms: 1,
        };
        let of = |group, is_local, place| pool(group, &keepalive(is_local), || place);
        let all = [
            of(1, false, 1),
            of(1, true, 1),
            of(1, true, 2),
            of(1, true, 2).for_connections(HTTP2.id, None, Some(([127, 0, 0, 1], 0).into())),
            of(1, true, 2).for_connections(HTTP1.id, Some(&tls(1, "a.test")), None),
            of(1, true, 2).for_connections(HTTP1.id, Some(&tls(1, "b.test")), None),
        ];
        assert!(are_distinct(all.iter().map(|pool| pool.id).collect()));
        assert!(all.iter().all(|pool| pool.group == all[0].group));
        assert_ne!(of(2, false, 1).group, all[0].group);
    }

    #[test]
    fn a_pool_is_of_one_local_address_and_one_set_of_tls_settings() {
        let of = |tls: Option<Arc<_>>, bind| {
            let pool = POOL.for_connections(HTTP1.id, tls.as_deref(), bind);
            pool.id
        };
        let bind = Some(([127, 0, 0, 1], 0).into());
        let other_bind = Some(([127, 0, 0, 2], 0).into());
        let ids = vec![
            of(None, None),
            of(None, bind),
            of(None, other_bind),
            of(Some(tls(1, "a.test")), None),
            of(Some(tls(1, "b.test")), None),
            of(Some(tls(2, "a.test")), None),
            of(Some(tls(2, "a.test")), bind),
        ];
        assert!(are_distinct(ids));
        let reloaded = of(Some(tls(1, "a.test")), None);
        assert_eq!(reloaded, of(Some(tls(1, "a.test")), None));
    }
}
