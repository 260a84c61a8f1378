//! Connections of clients that have connections to servers of their own (`ntlm`).
//!
//! Absent: the connections to servers, which are in pools of their own ([`super::servers::pool`]).

use std::collections::HashMap;
use std::rc::Rc;

use server_upstream::connector::BoundClient;

/// The bound clients of a thread.
#[derive(Default)]
pub struct ClientBindings {
    /// By `$connection`.
    clients: HashMap<u64, Vec<Binding>>,
}

/// The server of a client in one group.
struct Binding {
    group: u64,
    server_id: Rc<[u8]>,
    /// The group of its idle connections ([`Pool::group`](server_upstream::route::Pool)).
    idle: u64,
}

impl ClientBindings {
    /// Returns the identifier of a client's server.
    pub fn server(&self, client: BoundClient) -> Option<Rc<[u8]>> {
        let bindings = self.clients.get(&client.connection)?;
        let binding = bindings.iter().find(|own| own.group == client.group)?;
        Some(Rc::clone(&binding.server_id))
    }

    /// Binds a client to a server, with the group of its idle connections.
    pub fn bind(&mut self, client: BoundClient, server_id: Rc<[u8]>, idle: u64) {
        let bindings = self.clients.entry(client.connection).or_default();
        let Some(binding) = bindings.iter_mut().find(|own| own.group == client.group) else {
            return bindings.push(Binding {
                group: client.group,
                server_id,
                idle,
            });
        };
        binding.server_id = server_id;
    }

    /// Ends the bindings of a client's connection. Returns the groups of its idle connections.
    pub fn end(&mut self, connection: u64) -> Vec<u64> {
        // Most threads have none.
        if self.clients.is_empty() {
            return Vec::new();
        }
        let bindings = self.clients.remove(&connection).unwrap_or_default();
        bindings.into_iter().map(|own| own.idle).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_server_in_each_group() {
        let mut bindings = ClientBindings::default();
        let client = |connection, group| BoundClient { connection, group };
        assert!(bindings.end(1).is_empty());
        for (connection, group, id, idle) in [(1, 7, b"a", 1), (1, 8, b"b", 2), (2, 7, b"c", 3)] {
            bindings.bind(client(connection, group), Rc::from(&id[..]), idle);
        }
        bindings.bind(client(1, 7), Rc::from(&b"d"[..]), 1);
        let shown = |bindings: &ClientBindings, connection, group| {
            let id = bindings.server(client(connection, group))?;
            Some(id[0])
        };
        assert_eq!(shown(&bindings, 1, 7), Some(b'd'), "another server");
        assert_eq!(shown(&bindings, 1, 8), Some(b'b'));
        assert_eq!(shown(&bindings, 1, 9), None);
        assert_eq!(bindings.end(1), [1, 2]);
        assert_eq!(
            (shown(&bindings, 1, 7), shown(&bindings, 2, 7)),
            (None, Some(b'c'))
        );
    }
}
