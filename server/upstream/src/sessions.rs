//! Sessions of `sticky learn`: the servers of sessions, shared by all threads and kept over reloads.
//!
//! A session is known by the MD5 of its identifier, so its size does not depend on the identifier. A zone bounds the sessions;
//! if it is full, the least recently used session makes room. A session that no response confirmed during its timeout has
//! expired. Expired sessions are removed as they are found, and two with each new session.
//!
//! Absent: the values that identify sessions, which each kind of server takes from its requests.
//!
//! Source: nginx documentation, `sticky`, `learn`; nginx's behaviour.

use std::sync::Arc;

use md5::{Digest, Md5};
use server_base::zone::{self, Full, Zone};

use crate::server_id::SERVER_ID_BYTES;

/// The sessions of a group.
pub struct Sessions {
    zone: Arc<Zone<Session>>,
    timeout_ms: u64,
}

/// One session.
#[derive(Clone, Copy)]
struct Session {
    /// The time of the last response of its server, monotonic milliseconds.
    used_ms: u64,
    id_len: u8,
    id: [u8; SERVER_ID_BYTES],
}

/// Result of [`Sessions::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The session is stored, or did not exist and was not to be created.
    Done,
    /// The session is stored in the place of the least recently used one.
    Evicted,
    /// There is no room for the session.
    Full,
}

impl Sessions {
    /// Returns the sessions of the zone with this name and size in bytes, for the group. Sessions of an earlier configuration
    /// stay.
    ///
    /// # Errors
    /// The name of another group that uses the zone.
    pub fn attach(
        name: &[u8],
        size_bytes: u64,
        group: &[u8],
        timeout_ms: u64,
    ) -> Result<Self, Vec<u8>> {
        let zone = zone::attach(ZONE_USE, name, size_bytes, group)?;
        Ok(Self { zone, timeout_ms })
    }

    /// Returns the identifier of a session's server. `now_ms` is monotonic.
    pub fn find(&self, session: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        let key = Md5::digest(session);
        let mut shard = self.zone.lock(&key);
        let found = *shard.get_mut(&key)?;
        if found.has_expired(self.timeout_ms, now_ms) {
            shard.remove(&key);
            return None;
        }
        Some(found.id().to_vec())
    }

    /// Records that a server has answered a request of a session: an existing session is bound to the server and renewed. A new
    /// session is created only if `creates` is set. `now_ms` is monotonic.
    pub fn learn(&self, session: &[u8], server_id: &[u8], creates: bool, now_ms: u64) -> Learned {
        let key = Md5::digest(session);
        let Some(new) = Session::new(server_id, now_ms) else {
            return Learned::Done;
        };
        let mut shard = self.zone.lock(&key);
        let is_renewed = shard.get_mut(&key).is_some_and(|known| {
            let is_alive = !known.has_expired(self.timeout_ms, now_ms);
            if is_alive {
                *known = new;
            }
            is_alive
        });
        if is_renewed || !creates {
            return Learned::Done;
        }
        shard.remove(&key);
        for _ in 0..EXPIRED_AT_ONCE {
            let oldest = shard.oldest();
            if oldest.is_some_and(|oldest| oldest.has_expired(self.timeout_ms, now_ms)) {
                shard.remove_oldest();
            }
        }
        if shard.insert(&key, new).is_ok() {
            return Learned::Done;
        }
        match shard.remove_oldest().map(|_| shard.insert(&key, new)) {
            Some(Ok(())) => Learned::Evicted,
            Some(Err(Full)) | None => Learned::Full,
        }
    }

    /// Number of sessions, expired ones included.
    pub fn len(&self) -> usize {
        self.zone.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.zone.is_empty()
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (f.debug_struct("Sessions"))
            .field("timeout_ms", &self.timeout_ms)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Makes a session; `None` for an identifier that no server can have.
    fn new(server_id: &[u8], used_ms: u64) -> Option<Self> {
        let mut id = [0; SERVER_ID_BYTES];
        id.get_mut(..server_id.len())?.copy_from_slice(server_id);
        Some(Self {
            used_ms,
            id_len: server_id.len() as u8,
            id,
        })
    }

    fn id(&self) -> &[u8] {
        &self.id[..usize::from(self.id_len)]
    }

    /// As in nginx, a session ends at the last millisecond of its timeout.
    fn has_expired(&self, timeout_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) >= timeout_ms
    }
}

/// The purpose of these zones, in the registry of all zones.
const ZONE_USE: &str = "sticky";
/// Expired sessions that a new one removes: more than one, so that their number falls.
const EXPIRED_AT_ONCE: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(name: &str, size_bytes: u64) -> Sessions {
        let made = Sessions::attach(name.as_bytes(), size_bytes, b"g", 1000);
        made.expect("no other group has it")
    }

    fn found(sessions: &Sessions, session: &str, now_ms: u64) -> Option<String> {
        let id = sessions.find(session.as_bytes(), now_ms)?;
        Some(String::from_utf8(id).expect("text"))
    }

    #[test]
    fn a_session_leads_to_its_server_until_it_expires() {
        let all = sessions("expires", 1 << 15);
        assert_eq!(found(&all, "s", 0), None);
        assert_eq!(all.learn(b"s", b"a", false, 0), Learned::Done);
        assert_eq!(found(&all, "s", 0), None, "not created");
        assert_eq!(all.learn(b"s", b"a", true, 0), Learned::Done);
        assert_eq!(found(&all, "s", 999).as_deref(), Some("a"));
        assert_eq!(all.learn(b"s", b"b", false, 999), Learned::Done);
        assert_eq!(found(&all, "s", 1998).as_deref(), Some("b"), "renewed");
        assert_eq!(all.learn(b"s", b"c", false, 1999), Learned::Done);
        assert_eq!(found(&all, "s", 1999), None, "renewed too late");
        assert!(all.is_empty());
        assert_eq!(all.learn(b"s", b"a", true, 2000), Learned::Done);
        assert_eq!(all.learn(b"s", b"c", true, 3000), Learned::Done);
        assert_eq!(
            found(&all, "s", 3999).as_deref(),
            Some("c"),
            "created again"
        );
    }

    #[test]
    fn the_longest_identifier_of_a_server_is_stored_and_a_longer_one_is_not() {
        let all = sessions("long", 1 << 15);
        for len in [SERVER_ID_BYTES - 1, SERVER_ID_BYTES, SERVER_ID_BYTES + 1] {
            let id = "x".repeat(len);
            assert_eq!(
                all.learn(id.as_bytes(), id.as_bytes(), true, 0),
                Learned::Done
            );
            let stored = Some(id.clone()).filter(|id| id.len() <= SERVER_ID_BYTES);
            assert_eq!(found(&all, &id, 0), stored, "{len}");
        }
    }

    #[test]
    fn a_full_zone_makes_room_for_new_sessions() {
        // One shard.
        let size = 1 << 15;
        let all = sessions("full", size);
        let most = size / (zone::ENTRY_BYTES + 16);
        let learn = |n: u64, now_ms| all.learn(n.to_string().as_bytes(), b"a", true, now_ms);
        for n in 0..most {
            assert_eq!(learn(n, 0), Learned::Done, "{n} of {most}");
        }
        assert_eq!(found(&all, "0", 1).as_deref(), Some("a"), "it was used now");
        assert_eq!(learn(most, 1), Learned::Evicted);
        assert_eq!((found(&all, "1", 1), all.len() as u64), (None, most));
        assert!(found(&all, "0", 1).is_some());
        // Expired sessions go first.
        assert_eq!(learn(most + 1, 1000), Learned::Done);
        assert_eq!(all.len() as u64, most - 1);
    }

    #[test]
    fn sessions_outlive_a_reload_of_their_group_alone() {
        let first = sessions("reload", 1 << 15);
        first.learn(b"s", b"a", true, 0);
        let again = sessions("reload", 1 << 15);
        drop(first);
        assert_eq!(found(&again, "s", 0).as_deref(), Some("a"));
        let other = Sessions::attach(b"reload", 1 << 15, b"h", 1000);
        assert_eq!(other.err().as_deref(), Some(&b"g"[..]));
    }
}
