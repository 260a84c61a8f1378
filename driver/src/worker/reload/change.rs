//! One change of the configuration, and how far it has come.

use super::Reloads;
use crate::worker::config::ThreadConfig;
use crate::worker::conn::{Readiness, drain};
use crate::worker::slab::Key;

/// A change to another configuration.
pub struct Change<S> {
    stage: Stage,
    /// The next port or slot of this stage.
    next: usize,
    /// Target of the change; none once that is done.
    target: Option<(S, ThreadConfig)>,
    keep: bool,
    renew: bool,
    /// Of each port of the configuration before, whether it is gone.
    gone: Vec<bool>,
    /// Connections up to this number were accepted before the change.
    last_serial: u64,
}

/// See the documentation of the module above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Leave,
    End,
    Prepare,
    Join,
    Visit,
    Done,
}

impl<S> Change<S> {
    /// A change to this configuration, prepared or not. Connections are drained unless they are to be kept; `renew`:
    /// each of them gets the new setup.
    pub fn new(setup: S, config: ThreadConfig, keep: bool, renew: bool) -> Self {
        Self {
            stage: Stage::Begin,
            next: 0,
            target: Some((setup, config)),
            keep,
            renew,
            gone: Vec::new(),
            last_serial: 0,
        }
    }

    /// Continues for at most `steps` steps; true if the change is made.
    pub(super) fn go_on<L: Reloads<Setup = S>>(&mut self, at: &mut L, steps: &mut usize) -> bool {
        while *steps > 0 && self.stage != Stage::Done {
            match self.stage {
                Stage::Begin => self.begin(at),
                Stage::Prepare => self.prepare(at, steps),
                _ => {
                    *steps -= 1;
                    self.step(at);
                }
            }
        }
        self.stage == Stage::Done
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.next) = (stage, 0);
    }

    /// Compares the ports: that costs less than a step for each.
    fn begin<L: Reloads<Setup = S>>(&mut self, at: &mut L) {
        let Some((_, config)) = &self.target else {
            return self.enter(Stage::Done);
        };
        let ports = at.parts().1.generation.ports.iter().enumerate();
        let stays = |(n, port): (usize, &server_http::http::Port)| {
            let next = config.ports.get(n);
            next.is_some_and(|next| next.is_listening && next.listen.addr == port.listen.addr)
        };
        self.gone = ports.map(|port| !stays(port)).collect();
        self.enter(Stage::Leave);
    }

    /// One port, or one slot of a connection.
    fn step<L: Reloads<Setup = S>>(&mut self, at: &mut L) {
        let n = self.next;
        self.next += 1;
        match self.stage {
            Stage::Leave => match &self.target {
                Some((setup, _)) if n < self.gone.len() => at.leave_listener(n, setup),
                _ if self.gone.contains(&true) => self.enter(Stage::End),
                _ => self.enter(Stage::Prepare),
            },
            Stage::End => match slot(at, n) {
                Slot::Taken(key) => self.end(at, key),
                Slot::Empty => {}
                Slot::None => self.enter(Stage::Prepare),
            },
            Stage::Join => match n < at.parts().1.generation.ports.len() {
                true => at.join_listener(n),
                false if self.keep && !self.renew => self.enter(Stage::Done),
                false => self.enter(Stage::Visit),
            },
            Stage::Visit => match slot(at, n) {
                Slot::Taken(key) => self.visit(at, key),
                Slot::Empty => {}
                Slot::None => self.enter(Stage::Done),
            },
            Stage::Begin | Stage::Prepare | Stage::Done => {}
        }
    }

    /// Ends a connection whose port is gone: at once if it is idle, else after its response.
    fn end<L: Reloads<Setup = S>>(&self, at: &mut L, key: Key) {
        let Some(conn) = at.parts().0.clients.get_mut(key) else {
            return;
        };
        if !self.gone.get(conn.port()).is_some_and(|gone| *gone) {
            return;
        }
        let closes = conn.is_idle() && !conn.sends_goaway();
        at.ending(key, true);
        if closes {
            return at.close(key);
        }
        if let Some(conn) = at.parts().0.clients.get_mut(key) {
            conn.on_listener_removed();
        }
        at.turn(key, Readiness::default());
    }

    /// Prepares ports, and changes the configuration when all are.
    fn prepare<L: Reloads<Setup = S>>(&mut self, at: &mut L, steps: &mut usize) {
        if let Some((_, config)) = &mut self.target {
            config.prepare(steps);
        }
        if *steps == 0 {
            return;
        }
        self.enter(Stage::Join);
        let Some((setup, config)) = self.target.take() else {
            return;
        };
        let number = config.http.number;
        self.last_serial = at.last_serial();
        let (old, timeout_ms) = at.switch(setup, config);
        let now_ms = at.parts().1.clock.mono_ms;
        let changes = at.changes();
        changes.retire(old);
        if let Some(timeout_ms) = timeout_ms {
            changes.order_sweep(now_ms + timeout_ms, number);
        }
    }

    fn visit<L: Reloads<Setup = S>>(&self, at: &mut L, key: Key) {
        let conn = at.parts().0.clients.get_mut(key);
        if conn.is_none_or(|conn| conn.serial() > self.last_serial) {
            return;
        }
        if self.renew {
            at.renew(key);
        }
        if !self.keep {
            at.ending(key, false);
            at.decide(key, drain);
        }
    }
}

/// Returns the entry in a slot of the table of clients.
enum Slot {
    Taken(Key),
    Empty,
    /// There are no more slots.
    None,
}

fn slot<L: Reloads>(at: &mut L, n: usize) -> Slot {
    let clients = &at.parts().0.clients;
    match clients.key_at(n as u32) {
        _ if n >= clients.slots() as usize => Slot::None,
        Some(key) => Slot::Taken(key),
        None => Slot::Empty,
    }
}
