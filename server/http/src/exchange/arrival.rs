//! Arrivals while a response is being sent: wakes, and more of the request body.
//!
//! A body that is only pulled would never be read ahead of a slow client. A request body must be passed on even if
//! the client reads nothing. So a handler with an upstream request gets a callback for arrivals, even while the
//! client's queue is full.

use super::{Ctx, Exchange, State};

/// The callback for arrivals while the response is on its way. A call too many is harmless.
pub type OnArrival = fn(&mut Exchange, &mut Ctx<'_>);

impl Exchange {
    /// Notifies the exchange, and the subrequests of its body, that something may have arrived. An exchange that
    /// waits in a phase is run again instead.
    pub fn arrived(&mut self, cx: &mut Ctx<'_>) {
        if self.progress.state != State::Responding {
            return;
        }
        self.forget_wakes();
        if let Some(on_arrival) = self.body.on_arrival {
            on_arrival(self, cx);
        }
        if self.subrequests.has_queue() {
            self.subrequests_arrived(cx);
        }
    }

    /// Notifies the exchange of the `unsent_bytes` of its response while its client reads nothing. So a server is
    /// not read faster than the client.
    pub fn stalled(&mut self, unsent_bytes: u64, cx: &mut Ctx<'_>) {
        self.body.unsent_bytes = unsent_bytes;
        self.arrived(cx);
    }
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
