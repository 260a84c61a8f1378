//! A map that keeps its keys in the order of their last use.

use std::collections::HashMap;
use std::sync::Arc;

/// Values by key, and the keys in order of use.
pub(crate) struct Lru<V> {
    index: HashMap<Arc<[u8]>, u32>,
    nodes: Vec<Node<V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

struct Node<V> {
    newer: u32,
    older: u32,
    /// `None` if the node is free.
    entry: Option<(Arc<[u8]>, V)>,
}

impl<V> Default for Lru<V> {
    fn default() -> Self {
        Self {
            index: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }
}

impl<V> Lru<V> {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The value of a key, which becomes the one used last.
    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        self.unlink(at);
        self.link(at);
        self.nodes[at as usize]
            .entry
            .as_mut()
            .map(|(_, value)| value)
    }

    /// Adds a value as the one used last; the key must be new.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) {
        let key: Arc<[u8]> = key.into();
        let node = Node {
            newer: NONE,
            older: NONE,
            entry: Some((Arc::clone(&key), value)),
        };
        let at = if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            at
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        };
        self.index.insert(key, at);
        self.link(at);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let at = self.index.remove(key)?;
        self.unlink(at);
        self.free.push(at);
        self.nodes[at as usize].entry.take().map(|(_, value)| value)
    }

    /// The entry that was not used for the longest time.
    pub(crate) fn oldest(&self) -> Option<(&Arc<[u8]>, &V)> {
        let node = self.nodes.get(self.oldest as usize)?;
        node.entry.as_ref().map(|(key, value)| (key, value))
    }

    /// Links an unlinked node as the newest.
    fn link(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        self.nodes[at as usize].older = older;
        self.nodes[at as usize].newer = NONE;
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Node { newer, older, .. } = self.nodes[at as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }
}

/// No node: an index beyond any, since a zone's budget is below 2^32 entries.
const NONE: u32 = u32::MAX;
