//! Requests bound to a server: the search for peers by their identifiers.
//!
//! A list of peers has an index of the identifiers ([`crate::server_id`]), made for the first bound request and again after a
//! change of the list. So the cost of a bound request does not grow with the list.
//!
//! Absent: the binding of a client (cookies, routes, sessions), which is known only to each kind of server.
//!
//! Source: nginx documentation, `sticky`, `route`; nginx's behaviour.

use std::collections::HashMap;

use crate::peer::Peer;

/// The numbers of peers in their list, by identifier.
#[derive(Debug, Default)]
pub(crate) struct IdIndex {
    by_id: HashMap<Box<[u8]>, Vec<u32>>,
}

impl IdIndex {
    /// Forgets the list, which has changed.
    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
    }

    /// Returns the number of the first peer of the list with an identifier that is usable.
    pub(crate) fn find(
        &mut self,
        id: &[u8],
        list: &[u32],
        peers: &[Peer],
        is_usable: impl Fn(u32, &Peer) -> bool,
    ) -> Option<u32> {
        if self.by_id.is_empty() {
            for (n, at) in (0..).zip(list) {
                let id = peers[*at as usize].server_id().into();
                self.by_id.entry(id).or_default().push(n);
            }
        }
        let mut named = self.by_id.get(id)?.iter().copied();
        named.find(|n| is_usable(*n, &peers[list[*n as usize] as usize]))
    }
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
