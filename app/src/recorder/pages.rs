//! The thread that answers requests for the dashboard.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use lab::web::{Live, Site, Source, serve};
use server_base::errlog::Level;

use crate::console::Console;

/// Running threads of the dashboard. They end when it is dropped.
pub(super) struct Pages {
    live: Option<Arc<Live>>,
    /// The threads end when its other end is closed.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Pages {
    /// Starts the threads; `has_figures` adds figures of this moment. Errors are reported: the recorder works without pages.
    pub(super) fn start(
        listener: UnixListener,
        source: Arc<dyn Source>,
        has_figures: bool,
        console: &Console,
    ) -> Self {
        let live = has_figures.then(|| Arc::new(Live::default()));
        let mut pages = Self {
            live: live.clone(),
            stop: None,
            thread: None,
        };
        let log = console.clone();
        let started = sys::fdpass::pair().and_then(|(ours, theirs)| {
            pages.stop = Some(ours);
            let site = Site { source, live };
            let serve = move || {
                if let Err(error) = serve(listener, site, theirs) {
                    log.failed(Level::Alert, format_args!("serving lab_dashboard"), &error);
                }
            };
            let thread = std::thread::Builder::new().name("dashboard".to_owned());
            thread.spawn(serve)
        });
        match started {
            Ok(thread) => pages.thread = Some(thread),
            Err(error) => {
                let text = format_args!("starting the threads of lab_dashboard");
                console.failed(Level::Alert, text, &error);
            }
        }
        pages
    }

    /// Returns the figures of this moment that the pages show, if connections are recorded.
    pub(super) fn live(&self) -> Option<&Arc<Live>> {
        self.live.as_ref()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed.
            let _ = thread.join();
        }
    }
}
