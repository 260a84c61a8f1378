//! The probe: passes events of connections and exchanges to the modules that subscribe by [`Handler::Event`].
//!
//! If no module subscribes ([`Wants`](crate::wants::Wants)), the driver emits nothing and reads no clock: each
//! event costs a branch. An exchange keeps the times of its events ([`crate::timing`]).

use std::rc::Rc;

use engines::http::probe::{Point, ProbeEvent};

use crate::exchange::{Ctx, Exchange};
use crate::handler::Handler;
use crate::http::Http;
use crate::timing::ALL;

/// The handlers that emit events of their own, ahead of those of the modules.
pub(crate) const HANDLERS: &[Handler] = &[Handler::Log(end)];

/// Passes an event to the subscribers, with its exchange if that has not ended.
pub fn notify(http: &Http, event: &ProbeEvent, mut x: Option<&mut Exchange>) {
    for subscriber in &http.handlers.event {
        subscriber(event, x.as_deref_mut());
    }
}

impl Exchange {
    /// Emits an event of the exchange.
    #[cold]
    pub fn emit(&mut self, point: Point, at_us: u64) {
        self.timings.record(point, at_us);
        let (event, http) = (self.probe_event(point, at_us), Rc::clone(&self.route.http));
        notify(&http, &event, Some(self));
    }

    /// Returns an event of the exchange, as subscribers receive it.
    pub fn probe_event(&self, point: Point, at_us: u64) -> ProbeEvent {
        ProbeEvent {
            point,
            connection: self.client.connection,
            stream: self.client.wake.stream,
            at_us,
            head_us: self.timings.head_read_us,
        }
    }

    /// Whether its events are wanted.
    #[inline]
    pub fn is_probed(&self) -> bool {
        self.timings.head_read_us != 0
    }
}

/// The exchange ends now, unless it has before and its log had to wait.
fn end(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if x.route.http.wants.share != ALL && !x.is_probed() {
        return;
    }
    let at_us = match x.timings.ended_us {
        0 => cx.env.now_us(),
        at_us => at_us,
    };
    x.emit(Point::End, at_us);
}
