//! The probe: events of connections and exchanges, told to the modules that subscribe.
//!
//! A module subscribes by its row in the module table. Where nobody does, the driver emits nothing and reads no clock: each
//! event costs a branch. An exchange keeps the times of its events ([`crate::timing`]).

use std::rc::Rc;

use engines::http::probe::{Point, ProbeEvent};

use crate::build::Build;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Handler;
use crate::timing::ALL;

/// Takes an event, with its exchange if that has not ended.
pub type Subscriber = fn(&ProbeEvent, Option<&mut Exchange>);

/// How a module subscribes. It is asked only where one of its directives is written or one of its variables is used.
pub struct Subscription {
    /// Returns what it wants under a configuration; the argument says whether one of its variables is used.
    pub wants: fn(&mut Build, bool) -> Wants,
    /// Takes the events; `None` for a module that only reads the times that exchanges keep.
    pub subscriber: Option<Subscriber>,
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Share of the requests whose events are wanted, in hundredths of a percent: [`ALL`], or, where they are wanted for samples
    /// alone, the largest share that is sampled, so that the clock is not read for the others.
    pub share: u64,
    /// Some responses are sampled ([`crate::timing::Sampled`]).
    pub samples: bool,
    /// The log of a sampled response waits for what the kernel tells.
    pub holds_log: bool,
}

/// What a configuration wants, and who is told.
#[derive(Default)]
pub struct Probe {
    /// What any module wants.
    pub wants: Wants,
    subscribers: Vec<Subscriber>,
}

impl Wants {
    /// Returns those of all requests, or none.
    pub fn all(wanted: bool) -> Self {
        let share = if wanted { ALL } else { 0 };
        Self {
            share,
            ..Self::default()
        }
    }

    /// Whether any events are wanted.
    #[inline]
    pub fn any(&self) -> bool {
        self.share != 0
    }
}

impl Probe {
    /// Adds what a module wants.
    pub(crate) fn subscribe(&mut self, wants: Wants, subscriber: Option<Subscriber>) {
        if wants.any() {
            self.wants.share = self.wants.share.max(wants.share);
            self.wants.samples |= wants.samples;
            self.wants.holds_log |= wants.holds_log;
            self.subscribers.extend(subscriber);
        }
    }

    /// The handler that emits [`Point::End`], ahead of the others of the log phase.
    pub(crate) fn handlers(&self) -> Option<(&'static str, &'static [Handler])> {
        const HANDLERS: &[Handler] = &[Handler::Log(end)];
        self.wants.any().then_some(("probe", HANDLERS))
    }

    /// Tells the subscribers of an event.
    pub fn notify(&self, event: &ProbeEvent, mut x: Option<&mut Exchange>) {
        for subscriber in &self.subscribers {
            subscriber(event, x.as_deref_mut());
        }
    }
}

impl Exchange {
    /// Emits an event of the exchange.
    #[cold]
    pub fn emit(&mut self, point: Point, at_us: u64) {
        self.timings.note(point, at_us);
        let (event, http) = (self.probe_event(point, at_us), Rc::clone(&self.http));
        http.probe.notify(&event, Some(self));
    }

    /// An event of the exchange, as subscribers are told of it.
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
    let at_us = match x.timings.ended_us {
        0 => cx.env.now_us(),
        at_us => at_us,
    };
    x.emit(Point::End, at_us);
}
