//! `hash` with `consistent`: ketama, as in the Perl library `Cache::Memcached::Fast` with 160 points.
//!
//! Each server has [`POINTS`] points for each unit of its weight on a circle of 32-bit numbers. A key belongs to the
//! server with the first point at the key's hash or behind it. If a server comes or goes, only its own keys move.
//!
//! Points of the configured servers are made at the load, and shared by all threads: 65,536 servers have 84 MB of them.
//! A list that differs, with servers resolved at run time, has points of its own. They take about a second to make, so
//! shared lists make them without their lock ([`Build`]). Until then the points before the change are used: those of a
//! server that has left count as unusable, and a new server gets no keys.
//!
//! Source: nginx documentation, `hash`; nginx's behaviour.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::ranges::TRIES_MAX;
use super::{Balance, Build, Candidates, Method};
use crate::peer::Peer;
use crate::server::Server;
use crate::weights::Weights;
use server_base::crc32::Crc32;

/// The method.
#[derive(Clone, Debug, Default)]
pub struct ConsistentHash {
    prepared: Arc<OnceLock<Arc<Circle>>>,
}

/// The points of a list of servers.
#[derive(Debug, Default)]
pub struct Circle {
    /// Name and weight of each peer of the list.
    list: Vec<NameAndWeight>,
    /// In ascending order of their hashes, once they are made.
    points: OnceLock<Box<[Point]>>,
}

type NameAndWeight = (Arc<[u8]>, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    hash: u32,
    /// Number of the server among the different names of the list.
    server: u32,
}

impl Method for ConsistentHash {
    fn name(&self) -> &'static str {
        "hash"
    }

    fn allows_backup(&self) -> bool {
        false
    }

    fn prepare(&self, servers: &[Server]) {
        let primary = servers.iter().filter(|server| !server.is_backup);
        let peers = primary.flat_map(|server| server.addresses.iter().map(move |_| server));
        let weight = |server: &Server| Weights::new(server.weight).weight.unsigned_abs();
        let list = peers.map(|server| (Arc::clone(&server.name), weight(server)));
        self.prepared.get_or_init(|| {
            let circle = Circle::new(list.collect());
            circle.points();
            Arc::new(circle)
        });
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State {
            prepared: Arc::clone(&self.prepared),
            ..State::default()
        })
    }

    fn make_after(&self, before: &dyn Balance) -> Box<dyn Balance> {
        Box::new(State {
            prepared: Arc::clone(&self.prepared),
            circle: circle_of(before).unwrap_or_default(),
            ..State::default()
        })
    }
}

#[derive(Debug, Default)]
struct State {
    prepared: Arc<OnceLock<Arc<Circle>>>,
    circle: Arc<Circle>,
    /// The numbers of the peers of each server of the circle.
    members: Vec<Vec<u32>>,
    /// The circle of the list, if it differs from `circle`, and its servers.
    next: Option<(Arc<NewCircle>, Vec<Vec<u32>>)>,
    /// Memory of a choice.
    free: Vec<u32>,
}

/// Returns the points of an earlier state, if it was one of this method.
fn circle_of(before: &dyn Balance) -> Option<Arc<Circle>> {
    before.shared_state()?.downcast().ok()
}

/// A circle that is made without a lock.
#[derive(Debug)]
struct NewCircle {
    circle: Arc<Circle>,
    /// The circle that it has replaced. Its memory is freed with the build, since that takes milliseconds.
    replaced: OnceLock<Arc<Circle>>,
}

impl Build for NewCircle {
    fn run(&self) {
        self.circle.points();
    }
}

impl Balance for State {
    fn set_list(&mut self, peers: &[Peer], list: &[u32]) {
        let peers = list.iter().map(|at| &peers[*at as usize]);
        let name_and_weight = |peer: &Peer| {
            let weight = peer.weights.weight.unsigned_abs();
            (Arc::clone(peer.server()), weight)
        };
        let list: Vec<_> = peers.map(name_and_weight).collect();
        self.members = self.circle.members(&list);
        if self.circle.list == list {
            self.next = None;
            return;
        }
        let begun = self.next.take().map(|(new, _)| new);
        let new = match begun.filter(|new| new.circle.list == list) {
            Some(begun) => begun,
            None => self.new_circle(&list),
        };
        let members = new.circle.members(&list);
        self.next = Some((new, members));
        if self.circle.list.is_empty() {
            // It has no memory to be freed.
            self.use_build();
        }
    }

    fn build(&self) -> Option<Arc<dyn Build>> {
        let (new, _) = self.next.as_ref()?;
        Some(Arc::clone(new) as Arc<dyn Build>)
    }

    fn use_build(&mut self) {
        let is_made = |new: &NewCircle| new.circle.points.get().is_some();
        if let Some((new, members)) = self.next.take_if(|(new, _)| is_made(new)) {
            let replaced = std::mem::replace(&mut self.circle, Arc::clone(&new.circle));
            self.members = members;
            let _ = new.replaced.set(replaced);
        }
    }

    fn shared_state(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(&self.circle) as _)
    }

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        let points = self
            .circle
            .points
            .get()
            .map_or(&[][..], |points| &points[..]);
        if candidates.key.bytes.is_empty() || points.is_empty() {
            return candidates.turn();
        }
        let hash = Crc32::new().update(&candidates.key.bytes).value();
        let first = points.partition_point(|point| point.hash < hash);
        while candidates.progress.tries <= TRIES_MAX {
            let at = (first + candidates.progress.tries as usize) % points.len();
            let members = &self.members[points[at].server as usize];
            let free = members.iter().filter(|n| candidates.is_free(**n));
            self.free.clear();
            self.free.extend(free);
            if !self.free.is_empty() {
                return candidates.turn_of(&self.free);
            }
            candidates.progress.tries += 1;
        }
        candidates.turn()
    }
}

impl State {
    /// Returns the circle of a list: the one made at the load, or one without points so far.
    fn new_circle(&self, list: &[NameAndWeight]) -> Arc<NewCircle> {
        let prepared = self.prepared.get().filter(|circle| circle.list == list);
        let circle = match prepared {
            Some(circle) => Arc::clone(circle),
            None => Arc::new(Circle::new(list.to_vec())),
        };
        Arc::new(NewCircle {
            circle,
            replaced: OnceLock::new(),
        })
    }
}

/// Numbers of different names, in the order of their first occurrence.
#[derive(Default)]
struct Servers<'a>(HashMap<&'a [u8], u32>);

impl<'a> Servers<'a> {
    fn number(&mut self, name: &'a [u8]) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

impl Circle {
    /// Makes a circle without points so far.
    fn new(list: Vec<NameAndWeight>) -> Self {
        Self {
            list,
            points: OnceLock::new(),
        }
    }

    /// Returns the points, which are made with the first call.
    fn points(&self) -> &[Point] {
        self.points.get_or_init(|| points_of(&self.list))
    }

    /// Returns the numbers of the peers of each server of the circle, in a list that may be another one.
    fn members(&self, list: &[NameAndWeight]) -> Vec<Vec<u32>> {
        let mut servers = Servers::default();
        for (name, _) in &self.list {
            servers.number(name);
        }
        let mut members = vec![Vec::new(); servers.0.len()];
        for (n, (name, _)) in (0..).zip(list) {
            if let Some(server) = servers.0.get(&**name) {
                members[*server as usize].push(n);
            }
        }
        members
    }
}

/// Returns the points of a list of servers, in ascending order of their hashes.
fn points_of(list: &[NameAndWeight]) -> Box<[Point]> {
    // Sums cannot overflow: weights are at most 2^31, and lists have at most 2^32 peers.
    let scale = scale(list.iter().map(|(_, weight)| weight).sum());
    let mut servers = Servers::default();
    // The hash of each server's next point, and its number of points so far.
    let mut made: Vec<(Series, u64)> = Vec::new();
    let mut points = Vec::new();
    for (name, weight) in list {
        let server = servers.number(name);
        if made.len() == server as usize {
            made.push((Series::new(name), 0));
        }
        let (series, count) = &mut made[server as usize];
        // Peers of one server have equal points: only further ones are added.
        let wanted = point_count(*weight, scale);
        for _ in *count..wanted {
            points.push(Point {
                hash: series.next(),
                server,
            });
        }
        *count = wanted.max(*count);
    }
    // Of equal points the first one of the list stays.
    points.sort_by_key(|point| point.hash);
    points.dedup_by_key(|point| point.hash);
    points.into()
}

/// Returns the number by which weights with this sum are divided.
fn scale(weight_sum: u64) -> u64 {
    weight_sum.div_ceil(WEIGHT_SUM_MAX).max(1)
}

/// Returns the number of points of a server with this weight.
fn point_count(weight: u64, scale: u64) -> u64 {
    (weight / scale).max(1) * POINTS
}

/// The hashes of a server's points: each is the checksum of the server's name and the hash before.
struct Series {
    name: Crc32,
    last: u32,
}

impl Series {
    fn new(name: &[u8]) -> Self {
        let (host, port) = host_and_port(name);
        Self {
            name: Crc32::new().update(host).update(&[0]).update(port),
            last: 0,
        }
    }

    fn next(&mut self) -> u32 {
        self.last = self.name.update(&self.last.to_le_bytes()).value();
        self.last
    }
}

/// Splits the name of a server as written; without a port the second part is empty.
fn host_and_port(name: &[u8]) -> (&[u8], &[u8]) {
    if let Some((unix, path)) = name.split_at_checked(UNIX.len())
        && unix.eq_ignore_ascii_case(UNIX)
    {
        return (path, b"");
    }
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let port = name.len() - digits.count();
    match port.checked_sub(1) {
        Some(colon) if name[colon] == b':' => (&name[..colon], &name[port..]),
        _ => (name, b""),
    }
}

/// Points for each unit of weight.
const POINTS: u64 = 160;
/// The largest sum of weights with exact numbers of points; a larger sum is scaled down. It bounds the memory.
const WEIGHT_SUM_MAX: u64 = 1 << 16;
/// Prefix of the name of a UNIX-domain socket.
const UNIX: &[u8] = b"unix:";

#[cfg(test)]
#[path = "ketama_tests.rs"]
mod tests;
