//! Idle connections to servers, by the pool they belong to.
//!
//! Only keys are stored here; the connections stay in their table. The idle connections of a group are a list by age,
//! since `keepalive` limits the whole group: pools for TLS names that clients choose would have no common limit. The
//! connections of a pool to one server are a list by age, too. The most recently used one of a pool and server is taken
//! first, the least recently used one of a group is closed first. All operations take constant time. Numbers of groups
//! and pools refer to no configuration, so they outlive a reload. An empty group is forgotten when another one becomes
//! empty.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::SocketAddr;

use server_base::hash::Fnv;
use server_upstream::idle_counts::IdleCount;
use server_upstream::route::{Pool, UpstreamAddr};

use crate::worker::slab::Key;

/// The idle connections of a thread.
#[derive(Default)]
pub struct IdleConnections {
    /// By the index of the connection in its table.
    entries: Vec<Idle>,
    servers: Numbered<IdleServer>,
    groups: Numbered<IdleGroup>,
    len: usize,
    /// When groups above their limits are checked.
    surplus_due_ms: Option<u64>,
    /// Connections of abandoned groups.
    abandoned: Vec<Key>,
    /// A server with its last connection taken: in a calm group it comes back at once.
    emptied: Option<u32>,
}

/// Values with a digest, which stay in their places.
struct Numbered<T> {
    by_digest: HashMap<u64, u32, BuildHasherDefault<Digest>>,
    values: Vec<T>,
    free: Vec<u32>,
}

/// The connections of a pool to one server.
struct IdleServer {
    digest: u64,
    addr: UpstreamAddr,
    /// The number of the pool.
    pool: u64,
    group: u32,
    /// The connection that was used last.
    newest: u32,
}

/// The connections of a group, in all of its pools.
struct IdleGroup {
    id: u64,
    /// Its servers in each pool, also empty ones.
    servers: usize,
    oldest: u32,
    newest: u32,
    len: usize,
    /// Maximum number of idle connections.
    most: usize,
    /// The fewest since the last check.
    fewest: usize,
    /// Its part in the count of its group, if that is counted.
    count: Option<IdleCount>,
}

/// An idle connection.
#[derive(Clone, Copy)]
struct Idle {
    key: Key,
    since_ms: u64,
    /// [`NONE`]: the connection is not idle.
    server: u32,
    in_group: Links,
    in_server: Links,
}

/// The neighbours in a list by age.
#[derive(Clone, Copy)]
struct Links {
    older: u32,
    newer: u32,
}

impl IdleConnections {
    /// Adds a connection that has become idle to a pool. Returns one of the group that is to be closed at once.
    ///
    /// Under load connections are taken and returned within a turn, and a closed one would be missing a moment later.
    /// So up to twice the limit stay for [`SURPLUS_MS`], until the number of unneeded ones is known. For a small limit,
    /// as of a server with a thread for each connection, it is exact ([`EXACT_BELOW`]).
    pub fn insert(
        &mut self,
        pool: &Pool,
        addr: UpstreamAddr,
        key: Key,
        since_ms: u64,
    ) -> Option<Key> {
        let Some(server) = self.server(pool, addr) else {
            return Some(key);
        };
        let most = pool.connections;
        let at = key.index as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, Idle::ABSENT);
        }
        let own = &mut self.servers.values[server as usize];
        let group = &mut self.groups.values[own.group as usize];
        self.entries[at] = Idle {
            key,
            since_ms,
            server,
            in_group: Links::behind(group.newest),
            in_server: Links::behind(own.newest),
        };
        if own.newest != NONE {
            self.entries[own.newest as usize].in_server.newer = key.index;
        }
        match group.newest {
            NONE => group.oldest = key.index,
            newest => self.entries[newest as usize].in_group.newer = key.index,
        }
        (own.newest, group.newest) = (key.index, key.index);
        group.most = most;
        group.len += 1;
        match &mut group.count {
            Some(count) => count.add(),
            // Connections from before a reload count too: the group had no zone then.
            None if pool.counted != 0 => {
                group.count = Some(IdleCount::register(pool.counted, group.len as u64));
            }
            None => {}
        }
        self.len += 1;
        let (len, oldest) = (group.len, group.oldest);
        if len <= most {
            return None;
        }
        if most < EXACT_BELOW || len > most.saturating_mul(2) {
            return Some(self.unlink(oldest));
        }
        self.surplus_due_ms.get_or_insert(since_ms + SURPLUS_MS);
        None
    }

    /// Takes the connection of a pool to a server that was used last.
    #[inline]
    pub fn take(&mut self, pool: u64, addr: &UpstreamAddr) -> Option<Key> {
        let server = self.servers.number(digest(pool, addr))?;
        let own = &self.servers.values[server as usize];
        let is_same = own.pool == pool && own.addr == *addr;
        let newest = own.newest;
        (is_same && newest != NONE).then(|| self.unlink(newest))
    }

    /// Takes out a connection that is closed.
    pub fn remove(&mut self, pool: u64, key: Key) {
        // A thread with abandoned connections alone would not wait for events.
        if !self.abandoned.is_empty() {
            self.abandoned.retain(|abandoned| *abandoned != key);
        }
        let Some(idle) = self.entries.get(key.index as usize) else {
            return;
        };
        if idle.server == NONE || idle.key != key {
            return;
        }
        if self.servers.values[idle.server as usize].pool == pool {
            self.unlink(key.index);
        }
    }

    /// Takes the connections of a group that is not used again. [`Self::take_surplus`] returns them.
    pub fn abandon(&mut self, group: u64) {
        let Some(number) = self.groups.number(group) else {
            return;
        };
        for _ in 0..self.groups.values[number as usize].len {
            let oldest = self.groups.values[number as usize].oldest;
            let key = self.unlink(oldest);
            self.abandoned.push(key);
        }
    }

    /// When to call [`Self::take_surplus`].
    pub fn surplus_due_ms(&self) -> Option<u64> {
        match self.abandoned.is_empty() {
            true => self.surplus_due_ms,
            false => Some(0),
        }
    }

    /// Takes connections of abandoned groups, and unneeded ones beyond the limits of their groups, the least recently used
    /// first.
    pub fn take_surplus(&mut self, now_ms: u64) -> Vec<Key> {
        let mut taken = std::mem::take(&mut self.abandoned);
        if self.surplus_due_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return taken;
        }
        // A group may be forgotten on the way.
        for group in self.groups.numbers() {
            let own = &self.groups.values[group as usize];
            for _ in 0..own.fewest.saturating_sub(own.most) {
                let oldest = self.groups.values[group as usize].oldest;
                taken.push(self.unlink(oldest));
            }
        }
        let mut more = false;
        for group in self.groups.numbers() {
            let own = &mut self.groups.values[group as usize];
            own.fewest = own.len;
            more |= own.fewest > own.most;
        }
        self.surplus_due_ms = more.then_some(now_ms + SURPLUS_MS);
        taken
    }

    /// Takes the connection that was used longest ago.
    pub fn take_oldest(&mut self) -> Option<Key> {
        let numbers = self.groups.numbers();
        let oldest = numbers
            .into_iter()
            .map(|group| self.groups.values[group as usize].oldest);
        let idle = oldest.filter_map(|at| self.entries.get(at as usize));
        let index = idle.min_by_key(|idle| idle.since_ms)?.key.index;
        Some(self.unlink(index))
    }

    /// Returns the number of idle connections.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The connections of a pool to a server. `None`: another server has the same digest, so that there is no place for it.
    fn server(&mut self, pool: &Pool, addr: UpstreamAddr) -> Option<u32> {
        let digest = digest(pool.id, &addr);
        if let Some(server) = self.servers.number(digest) {
            let own = &self.servers.values[server as usize];
            let is_same = own.pool == pool.id && own.addr == addr;
            return is_same.then_some(server);
        }
        let number = self.groups.number(pool.group).unwrap_or_else(|| {
            let empty = IdleGroup {
                id: pool.group,
                servers: 0,
                oldest: NONE,
                newest: NONE,
                len: 0,
                most: 0,
                fewest: 0,
                count: None,
            };
            self.groups.add(pool.group, empty)
        });
        self.groups.values[number as usize].servers += 1;
        let server = IdleServer {
            digest,
            addr,
            pool: pool.id,
            group: number,
            newest: NONE,
        };
        Some(self.servers.add(digest, server))
    }

    /// Takes a connection out of its lists.
    fn unlink(&mut self, index: u32) -> Key {
        let idle = std::mem::replace(&mut self.entries[index as usize], Idle::ABSENT);
        let own = &mut self.servers.values[idle.server as usize];
        let group = &mut self.groups.values[own.group as usize];
        match idle.in_group.older {
            NONE => group.oldest = idle.in_group.newer,
            older => self.entries[older as usize].in_group.newer = idle.in_group.newer,
        }
        match idle.in_group.newer {
            NONE => group.newest = idle.in_group.older,
            newer => self.entries[newer as usize].in_group.older = idle.in_group.older,
        }
        if let Some(older) = self.entries.get_mut(idle.in_server.older as usize) {
            older.in_server.newer = idle.in_server.newer;
        }
        match idle.in_server.newer {
            NONE => own.newest = idle.in_server.older,
            newer => self.entries[newer as usize].in_server.older = idle.in_server.older,
        }
        group.len -= 1;
        if let Some(count) = &mut group.count {
            count.remove();
        }
        group.fewest = group.fewest.min(group.len);
        self.len -= 1;
        if self.len == 0 {
            // Without connections no look is needed, and a time that has passed would be waited for without a pause.
            self.surplus_due_ms = None;
        }
        if own.newest == NONE
            && self.emptied != Some(idle.server)
            && let Some(before) = self.emptied.replace(idle.server)
        {
            self.forget_if_empty(before);
        }
        idle.key
    }

    /// Forgets a server without connections, and its group with its last server.
    fn forget_if_empty(&mut self, server: u32) {
        let own = &self.servers.values[server as usize];
        if own.newest != NONE {
            return;
        }
        let (digest, number) = (own.digest, own.group);
        let group = &mut self.groups.values[number as usize];
        group.servers -= 1;
        let id = group.id;
        if group.servers == 0 {
            self.groups.remove(id, number);
        }
        self.servers.remove(digest, server);
    }
}

impl Idle {
    /// The place of a connection that is not idle.
    const ABSENT: Self = Self {
        key: Key { index: 0, life: 0 },
        since_ms: 0,
        server: NONE,
        in_group: Links::behind(NONE),
        in_server: Links::behind(NONE),
    };
}

impl Links {
    /// The links of the newest entry of a list.
    const fn behind(older: u32) -> Self {
        Self { older, newer: NONE }
    }
}

impl<T> Numbered<T> {
    fn number(&self, digest: u64) -> Option<u32> {
        self.by_digest.get(&digest).copied()
    }

    fn add(&mut self, digest: u64, value: T) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                self.values[number as usize] = value;
                number
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        };
        self.by_digest.insert(digest, number);
        number
    }

    /// Forgets a value; its place is reused.
    fn remove(&mut self, digest: u64, number: u32) {
        self.by_digest.remove(&digest);
        self.free.push(number);
    }

    /// The numbers of all values.
    fn numbers(&self) -> Vec<u32> {
        self.by_digest.values().copied().collect()
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            by_digest: HashMap::default(),
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// A digest of a pool and a server's address.
#[inline]
fn digest(pool: u64, addr: &UpstreamAddr) -> u64 {
    let bits = match addr {
        UpstreamAddr::Inet(SocketAddr::V4(addr)) => {
            u64::from(addr.ip().to_bits()) << 16 | u64::from(addr.port())
        }
        addr => {
            let mut hash = Fnv::default();
            addr.hash(&mut hash);
            hash.finish()
        }
    };
    let mixed = (pool.wrapping_mul(ODD) ^ bits).wrapping_mul(ODD);
    // The table takes low bits, and addresses may differ in high ones alone.
    mixed ^ mixed >> 32
}

/// Minimum time for which connections beyond a group's limit stay, milliseconds. It is longer than busy clients take from
/// a response to their next request, and short for a server with an unneeded connection.
pub const SURPLUS_MS: u64 = 20;
/// Minimum limit of a group that may have more for a moment.
pub const EXACT_BELOW: usize = 16;

/// Digests need no further hash.
#[derive(Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// No connection, no server.
const NONE: u32 = u32::MAX;
/// A factor that spreads low bits to high ones: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes of an idle connection in its pool.
pub const IDLE_BYTES: usize = size_of::<Idle>();

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
