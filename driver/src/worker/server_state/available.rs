//! Connections with streams that take more requests, by pool and server.

use std::collections::HashMap;

use server_upstream::route::UpstreamAddr;

use crate::worker::slab::Key;

/// The connections of a thread that have free streams.
#[derive(Debug, Default)]
pub struct Available(HashMap<(u64, UpstreamAddr), Vec<Entry>>);

/// A connection, and the number of requests that it takes.
#[derive(Debug)]
struct Entry {
    key: Key,
    streams_left: usize,
}

impl Available {
    /// Records how many more requests a connection takes; with 0 it is forgotten.
    pub fn set(&mut self, pool: u64, addr: &UpstreamAddr, key: Key, streams_left: usize) {
        // A map looks up by a whole key.
        let place = (pool, addr.clone());
        let Some(entries) = self.0.get_mut(&place) else {
            if streams_left > 0 {
                self.0.insert(place, vec![Entry { key, streams_left }]);
            }
            return;
        };
        let found = entries.iter().position(|entry| entry.key == key);
        match (found, streams_left) {
            (Some(at), 0) => drop(entries.remove(at)),
            (Some(at), _) => entries[at].streams_left = streams_left,
            (None, 0) => {}
            (None, _) => entries.push(Entry { key, streams_left }),
        }
        if entries.is_empty() {
            self.0.remove(&place);
        }
    }

    /// Takes a stream of the oldest connection to a server.
    pub fn take(&mut self, pool: u64, addr: &UpstreamAddr) -> Option<Key> {
        let place = (pool, addr.clone());
        let entries = self.0.get_mut(&place)?;
        let first = entries.first_mut()?;
        let key = first.key;
        first.streams_left -= 1;
        if first.streams_left == 0 {
            entries.remove(0);
        }
        if entries.is_empty() {
            self.0.remove(&place);
        }
        Some(key)
    }

    /// Whether no connection has a free stream.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn addr(port: u16) -> UpstreamAddr {
        UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    fn key(index: u32) -> Key {
        Key { index, life: 1 }
    }

    #[test]
    fn streams_of_the_oldest_connection_are_taken_until_it_has_none() {
        let mut available = Available::default();
        available.set(1, &addr(80), key(0), 2);
        available.set(1, &addr(80), key(1), 1);
        available.set(1, &addr(81), key(2), 1);
        available.set(2, &addr(80), key(3), 1);
        let taken: Vec<_> = (0..4).map(|_| available.take(1, &addr(80))).collect();
        assert_eq!(taken, [Some(key(0)), Some(key(0)), Some(key(1)), None]);
        assert_eq!(available.take(1, &addr(81)), Some(key(2)));
        assert!(!available.is_empty());
        assert_eq!(available.take(2, &addr(80)), Some(key(3)));
        assert!(available.is_empty(), "an empty pool is forgotten");
    }

    #[test]
    fn a_connection_has_the_number_that_was_set_last() {
        let mut available = Available::default();
        available.set(1, &addr(80), key(0), 5);
        available.set(1, &addr(80), key(0), 1);
        assert_eq!(available.take(1, &addr(80)), Some(key(0)));
        assert_eq!(available.take(1, &addr(80)), None);
        available.set(1, &addr(80), key(0), 1);
        available.set(1, &addr(80), key(0), 0);
        available.set(1, &addr(80), key(9), 0);
        assert!(available.is_empty());
    }
}
