//! Threads that build configurations, and free them when they are over.
//!
//! Each configuration has one thread, for its whole life, so it has an arena of the allocator for itself while there
//! are few. No other allocation is between its parts, and its memory returns to the kernel whole when it is freed. In
//! an arena shared by successive configurations each one fills the holes of the previous; memory then grows by half
//! over the first reloads. The threads have a lower priority than those that serve.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use conf::Memory;
use server_base::errlog;
use server_http::Cycle;
use server_http::http::Http;
use sys::poll::Waker;
use sys::{process, schedule};

use crate::bundle::Bundle;

/// The thread of one configuration.
pub(super) struct ConfigThread {
    http: Weak<Http>,
    /// Takes the last reference. Without this sender the thread ends.
    last: Option<Sender<Arc<Http>>>,
    /// Set when the configuration was freed, just before the thread ends.
    freed: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

/// A configuration that was built.
pub(super) struct Built {
    pub(super) bundle: Bundle,
    pub(super) cycle: Cycle,
    pub(super) thread: ConfigThread,
}

impl ConfigThread {
    /// Builds the configuration of a bundle, and returns its files, too; `waker` is woken when it was freed.
    ///
    /// # Errors
    /// Why it cannot be built, or no thread begun.
    pub(super) fn build(
        bundle: Bundle,
        load: impl FnOnce(&Bundle) -> Result<(Cycle, Memory), String> + Send + 'static,
        waker: &Arc<Waker>,
    ) -> Result<(Built, Memory), String> {
        let (waker, shown) = (Arc::clone(waker), process::thread_id());
        let freed = Arc::new(AtomicBool::new(false));
        let is_freed = Arc::clone(&freed);
        let (sender, receiver) = channel();
        let (last, rest) = channel();
        let body = move || {
            // Its log lines show the thread number of the main thread, which waits for it.
            errlog::set_thread(shown);
            let _ = schedule::run_in_background(NICENESS);
            let built = load(&bundle);
            let _ = sender.send(built.map(|built| (bundle, built)));
            free(&rest);
            is_freed.store(true, Ordering::Release);
            waker.wake();
        };
        let handle = std::thread::Builder::new()
            .name("config".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|error| format!("a thread could not start ({})", sys::os_error(&error)))?;
        let panicked = |_| Err("building the configuration panicked".to_owned());
        let (bundle, (cycle, texts)) = receiver.recv().unwrap_or_else(panicked)?;
        let thread = Self {
            http: Weak::new(),
            last: Some(last),
            freed,
            handle: Some(handle),
        };
        let built = Built {
            bundle,
            cycle,
            thread,
        };
        Ok((built, texts))
    }

    /// Records the configuration that it built, in its final form.
    pub(super) fn keep(&mut self, http: &Arc<Http>) {
        self.http = Arc::downgrade(http);
    }

    /// Takes the last reference to its configuration. Leaves a reference to another configuration, and one that is not
    /// the last.
    pub(super) fn take(&mut self, http: &mut Option<Arc<Http>>) -> bool {
        let is_last = |http: &mut Arc<Http>| {
            std::ptr::eq(Arc::as_ptr(http), self.http.as_ptr()) && Arc::strong_count(http) == 1
        };
        let Some(last) = http.take_if(is_last) else {
            return false;
        };
        if let Some(sender) = self.last.take() {
            let _ = sender.send(last);
        }
        true
    }

    /// Whether there is nothing more for it to do.
    pub(super) fn is_over(&self) -> bool {
        let is_unused = self.last.is_some() && self.http.strong_count() == 0;
        is_unused || self.freed.load(Ordering::Acquire)
    }
}

impl Drop for ConfigThread {
    /// Waits for the thread: it has nothing more to do than to end, and its arena is free for another one then.
    fn drop(&mut self) {
        self.last = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// Frees the configuration once it is sent; returns as well if the sender is gone.
fn free(last: &Receiver<Arc<Http>>) {
    drop(last.recv());
}

/// As large as that of the main thread usually is, on which the supervisor reads the same text.
const STACK_BYTES: usize = 8 << 20;
/// By how much later than the threads that serve it is scheduled: on a CPU that one of them wants for itself it gets a tenth.
const NICENESS: i32 = 10;
