//! Groups of servers in the `http` block: their place in the configuration, and the thread's state of them.
//!
//! Groups themselves, and the choice of a server, are the crate [`server_upstream`].

use std::hash::Hasher;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use conf::ConfError;
use server_base::config::ConfigContext;
use server_base::hash::Fnv;
use server_upstream::balance::PickKey;
use server_upstream::group::{GroupId, Groups, Target};
use server_upstream::local::LocalGroup;
use server_upstream::picker::Picker;

use super::health::probe;
use crate::assemble::ConfigBuilder;
use crate::conf_core::{CoreSrv, ResolverLoc};
use crate::exchange::{Ctx, Exchange, Peer};
use crate::http::Http;
use crate::location::LocationKind;
use crate::settings_set::{Conf, Scope, SettingsDef};
use crate::value::Value;

impl Conf for Groups {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef = SettingsDef::new(Scope::Main, || Arc::new(Groups::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

/// Values of requests that the choice of a server depends on, by group.
#[derive(Default)]
pub struct GroupValues(Vec<Option<RequestValues>>);

/// Values of requests for the choices of one group.
#[derive(Default)]
pub struct RequestValues {
    /// The key of a method by hash.
    pub key: Option<KeySource>,
}

/// The source of a key.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Text with variables.
    Value(Value),
    /// The client's network: the first three bytes of an IPv4 address, or an IPv6 address.
    ClientNetwork,
}

impl Conf for GroupValues {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef =
            SettingsDef::new(Scope::Main, || Arc::new(GroupValues::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

impl GroupValues {
    /// Returns the values of a group for changes during its definition.
    pub fn entry(&mut self, id: GroupId) -> &mut RequestValues {
        if self.0.len() <= id.0 {
            self.0.resize_with(id.0 + 1, || None);
        }
        self.0[id.0].get_or_insert_default()
    }

    fn get(&self, id: GroupId) -> Option<&RequestValues> {
        self.0.get(id.0)?.as_ref()
    }
}

/// Returns the group of a target, if its choices depend on values of the request.
pub(super) fn with_values(x: &Exchange, target: &Target) -> Option<GroupId> {
    let Target::Group(id) = target else {
        return None;
    };
    let values = x.route.http.main::<GroupValues>().get(*id);
    values.map(|_| *id)
}

/// Returns the values of a request for choices of this group.
pub(super) fn pick_key(x: &mut Exchange, cx: &mut Ctx<'_>, id: GroupId) -> PickKey {
    let http = Rc::clone(&x.route.http);
    let mut key = PickKey::default();
    let Some(values) = http.main::<GroupValues>().get(id) else {
        return key;
    };
    match &values.key {
        Some(KeySource::Value(value)) => key.bytes = value.to_vec(x, cx),
        Some(KeySource::ClientNetwork) => key.bytes = client_network(x.client.peer),
        None => {}
    }
    key
}

/// Returns the bytes of the client's network. Clients of UNIX-domain sockets share one.
fn client_network(peer: Peer) -> Vec<u8> {
    match peer {
        Peer::Inet(addr) => match addr.ip() {
            IpAddr::V4(ip) => ip.octets()[..3].to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        },
        Peer::Unix => vec![0; 3],
    }
}

/// At the end of `http`: looks up the hosts of undefined groups, and checks each group as a whole.
///
/// # Errors
/// Those of [`Groups::finish`].
pub fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let resolver: &ResolverLoc = b.http_base_conf();
    let (servers, timeout_ms) = (resolver.servers.clone(), resolver.timeout.0);
    let mut groups = std::mem::take(b.conf_mut::<Groups>());
    let cx: &mut dyn ConfigContext = b;
    groups.finish(cx, (servers.as_ref(), timeout_ms))?;
    *b.conf_mut::<Groups>() = groups;
    Ok(())
}

/// A picker for these servers; for a health check, of the checked peer.
pub(super) fn picker(x: &Exchange, target: Target) -> Picker {
    if let Some(group) = probe::group(x) {
        return Picker::new(group);
    }
    Picker::new(match target {
        Target::Group(id) => {
            let http = &x.route.http;
            http.upstreams().group(http.main::<Groups>(), id)
        }
        Target::Addresses(addresses) => LocalGroup::of_addresses(addresses).into(),
        Target::Name(name, port) => {
            let conf: &ResolverLoc = x.route.loc();
            let by = (conf.servers.as_ref(), conf.timeout.0);
            LocalGroup::of_name(&name, port, by).into()
        }
    })
}

/// The digest of an exchange's location, for pools that locations do not share.
pub(super) fn location_digest(x: &Exchange) -> u64 {
    let location = x.route.location;
    let http = &x.route.http;
    let digest = || digest_of(http, location);
    http.upstreams().place_digest(location, digest)
}

/// Returns the digest of an exchange's server: its names, and its position among servers with these names. It is equal under
/// the next configuration, if the names are.
pub fn server_digest(x: &Exchange) -> u64 {
    let http = &x.route.http;
    let location = x.route.own_server().location;
    let digest = || digest_of(http, location);
    http.upstreams().place_digest(location, digest)
}

/// The digest of a location's name and kind, of the locations around it and of its server; never 0.
fn digest_of(http: &Http, location: usize) -> u64 {
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
            // Blocks have no names; they differ by their distance from the location around them.
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

#[cfg(test)]
#[path = "pool_tests.rs"]
mod pool_tests;
#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
