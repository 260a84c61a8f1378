//! Which requests share idle connections, before and after a reload.

use server_upstream::group::{Groups, Keepalive};
use server_upstream::pool::{group_digest, pool};

use super::*;
use crate::module::Module;
use crate::testing::{PROBE, World};

const GROUPS: Module = Module {
    settings: &[<Groups as Conf>::def, <GroupValues as Conf>::def],
    ..Module::EMPTY
};

/// The number of the pool for a request to the group `g`.
fn id(inner: &str, target: &str, is_local: bool) -> u64 {
    let mut world = World::with(inner, &[&PROBE, &GROUPS]);
    let x = world.get(target);
    let keepalive = Keepalive {
        connections: 1,
        is_local,
        requests: 2,
        time_ms: 3,
        timeout_ms: 4,
    };
    let pool = pool(group_digest(b"g"), &keepalive, || location_digest(&x));
    assert_eq!((pool.requests, pool.time_ms, pool.timeout_ms), (2, 3, 4));
    pool.id
}

const SITE: &str = "server { listen 80; server_name localhost; location /a { location /a/b {} } location = /a {} location /c {} }";

#[test]
fn local_pools_are_told_apart_by_location_and_others_are_not() {
    let targets = ["/a/say/x", "/a/b/say/x", "/a", "/c/say/x", "/say/x"];
    let mut local: Vec<u64> = targets.iter().map(|to| id(SITE, to, true)).collect();
    local.sort_unstable();
    local.dedup();
    assert_eq!(local.len(), targets.len());
    let mut shared: Vec<u64> = targets.iter().map(|to| id(SITE, to, false)).collect();
    shared.dedup();
    assert_eq!(shared.len(), 1);
    assert_ne!(group_digest(b"g"), group_digest(b"h"));
    assert_eq!(group_digest(b"g"), group_digest(b"G"));
}

#[test]
fn a_pool_stays_when_other_servers_and_locations_come_and_go() {
    let other = "server { server_name other; listen 80; location /x {} }";
    let more = SITE.replace("location /c {}", "location /b {} location /c {}");
    let before = id(SITE, "/c/say/x", true);
    assert_eq!(id(&format!("{other} {more}"), "/c/say/x", true), before);
}

#[test]
fn servers_of_one_name_have_pools_of_their_own() {
    let digests = |inner: &str| {
        let http = World::http(inner).generation.http.clone();
        let all = (0..http.locations.len()).filter(|at| http.locations[*at].name == b"/c");
        all.map(|at| digest_of(&http, at)).collect::<Vec<_>>()
    };
    let twin = SITE.replace("listen 80", "listen 81");
    let both = digests(&format!("{SITE} {twin}"));
    assert!(both.len() == 2 && both[0] != both[1]);
    let other = "server { server_name other; listen 82; location /c {} }";
    let moved = digests(&format!("{other} {SITE} {twin}"));
    assert_eq!(moved[1..], both);
}
