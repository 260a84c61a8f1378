//! Health checks of a thread: their begin and end with a configuration.
//!
//! Absent: the times of checks, which belong to the prober of server/http.

use server_http::exchange::DetachedEnd;
use server_http::upstream::health::Prober;

use super::Thread;
use crate::worker::detached::DetachedExchange;
use crate::worker::event_loop::EventLoop;

impl Thread {
    /// Ends the health checks in progress, and begins those of the configuration, if this thread makes them.
    pub(super) fn begin_checks(&mut self) {
        if self.prober.take().is_some() {
            // A check of a server that hangs would keep its configuration, and the thread, for long.
            self.end_queued_checks();
            for key in self.tables.detached.keys() {
                let request = self.tables.detached.get_mut(key);
                if request.is_some_and(|request| request.is_health_check()) {
                    self.abort::<DetachedExchange>(key);
                }
            }
        }
        let probes = self.setup.probes && self.quit.is_none();
        let http = Some(&self.shared.generation.http).filter(|_| probes);
        self.prober = http.and_then(Prober::of);
    }

    /// Ends the health checks that were started and have had no turn so far.
    fn end_queued_checks(&mut self) {
        for request in self.shared.queues.take_detached() {
            match request.exchange.is_health_check() {
                true => self.shared.end_detached(request, DetachedEnd::Closed),
                false => self.shared.queues.start(request),
            }
        }
    }
}
