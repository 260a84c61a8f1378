//! Work of a method on a changed list of peers: done at once by a thread with its own list, and without the lock of a shared one.

use std::sync::Arc;

use super::PeerList;
use crate::balance::{Build, List};

impl PeerList {
    /// Returns work that the last change has left to the method ([`crate::balance::Balance::build`]).
    pub fn builds(&self) -> Vec<Arc<dyn Build>> {
        let lists = [&self.primary, &self.backup];
        lists.into_iter().filter_map(List::build).collect()
    }

    /// Makes choices by the results of [`Self::builds`] that are done.
    pub fn use_builds(&mut self) {
        self.primary.use_build();
        self.backup.use_build();
    }

    /// Does the work of the method, if the list belongs to this thread alone.
    pub(super) fn build_at_once(&mut self) {
        if !self.is_shared {
            self.builds().iter().for_each(|build| build.run());
            self.use_builds();
        }
    }
}
