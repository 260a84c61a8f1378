//! Sessions with servers, to be resumed: of one policy, by the address and the name of the server.
//!
//! The address is part of the key, because servers of a group that share a name need not share sessions. rustls knows
//! only the name, so [`ClientConn`](super::ClientConn) sets the address for the thread while rustls uses the store.
//!
//! Source: RFC 8446 section 4.6.1, RFC 5246 section 7.3.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

thread_local! {
    static PEER: Cell<u64> = const { Cell::new(0) };
}

/// Runs a part of a connection to the server with this address, as a digest.
pub(crate) fn with_peer<T>(peer: u64, part: impl FnOnce() -> T) -> T {
    // A panic leaves the address of a connection that is over: each part sets its own.
    PEER.set(peer);
    part()
}

/// Sessions of one policy.
pub(crate) struct ServerSessions {
    servers_max: usize,
    table: Mutex<Table>,
}

/// A server: the digest of its address, and its name.
type Id = (u64, ServerName<'static>);

#[derive(Default)]
struct Table {
    servers: HashMap<Id, Server>,
    /// The servers, the oldest first.
    order: VecDeque<Id>,
}

/// Facts about a server from its last handshakes.
#[derive(Default)]
struct Server {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// Tickets of TLS 1.3, the oldest first; each is used once.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl fmt::Debug for ServerSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSessions").finish_non_exhaustive()
    }
}

impl Default for ServerSessions {
    fn default() -> Self {
        Self {
            servers_max: SERVERS_MAX,
            table: Mutex::default(),
        }
    }
}

impl ServerSessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, name: ServerName<'static>, change: impl FnOnce(&mut Server)) {
        let id = (PEER.get(), name);
        let mut table = self.table();
        if let Some(server) = table.servers.get_mut(&id) {
            return change(server);
        }
        if table.servers.len() >= self.servers_max
            && let Some(oldest) = table.order.pop_front()
        {
            table.servers.remove(&oldest);
        }
        table.order.push_back(id.clone());
        change(table.servers.entry(id).or_default());
    }

    fn read<T>(
        &self,
        name: &ServerName<'_>,
        use_server: impl FnOnce(&mut Server) -> Option<T>,
    ) -> Option<T> {
        let id = (PEER.get(), name.to_owned());
        self.table().servers.get_mut(&id).and_then(use_server)
    }
}

impl ClientSessionStore for ServerSessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.update(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.read(name, |server| server.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.update(name, |server| server.tls12 = Some(value));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.read(name, |server| server.tls12.clone())
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.read(name, |server| server.tls12.take());
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.update(name, |server| {
            if server.tls13.len() >= TICKETS_MAX {
                server.tls13.pop_front();
            }
            server.tls13.push_back(value);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.read(name, |server| server.tls13.pop_back())
    }
}

/// Maximum number of servers with sessions. Names may be chosen by clients (`proxy_ssl_name $host`).
const SERVERS_MAX: usize = 1024;
/// Maximum number of tickets of a server: most servers send one or two with each handshake.
const TICKETS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ServerName<'static> {
        ServerName::try_from(name.to_owned()).expect("a host name")
    }

    fn group(sessions: &ServerSessions, peer: u64, of: &str) -> Option<NamedGroup> {
        with_peer(peer, || sessions.kx_hint(&name(of)))
    }

    #[test]
    fn servers_with_one_name_and_two_addresses_are_two() {
        let sessions = ServerSessions::default();
        with_peer(1, || {
            sessions.set_kx_hint(name("a.test"), NamedGroup::X25519)
        });
        assert_eq!(group(&sessions, 1, "a.test"), Some(NamedGroup::X25519));
        assert_eq!(group(&sessions, 2, "a.test"), None);
        assert_eq!(group(&sessions, 1, "b.test"), None);
    }

    #[test]
    fn oldest_server_makes_room() {
        let sessions = ServerSessions {
            servers_max: 2,
            ..ServerSessions::default()
        };
        for peer in 1..=3 {
            with_peer(peer, || {
                sessions.set_kx_hint(name("a.test"), NamedGroup::X25519)
            });
        }
        let known: Vec<bool> = (1..=3)
            .map(|peer| group(&sessions, peer, "a.test").is_some())
            .collect();
        assert_eq!(known, [false, true, true]);
    }
}
