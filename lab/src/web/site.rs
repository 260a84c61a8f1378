//! The data behind the pages.

use std::sync::Arc;

use store::Store;

use super::live::Live;

/// Opens the store that the pages show. Each thread that answers opens it once, and again after an error.
pub trait Source: Send + Sync {
    /// Opens the store for reading.
    ///
    /// # Errors
    /// The reason in a sentence, which pages show.
    fn open(&self) -> Result<Box<dyn Store>, String>;

    /// Name of the store for readers, without credentials.
    fn name(&self) -> String;
}

/// A site: the store and the figures of this moment.
#[derive(Clone)]
pub struct Site {
    /// The store.
    pub source: Arc<dyn Source>,
    /// Figures of the process that records; `None`: events come from the store, for example for a fleet.
    pub live: Option<Arc<Live>>,
}
