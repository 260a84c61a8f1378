//! One change of the configuration, and how far it has come.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use server_base::listen::Listen;
use server_http::http::Http;

use super::Reloads;
use crate::worker::conn::drain;
use crate::worker::event_loop::Client;
use crate::worker::readiness::Readiness;
use crate::worker::slab::Key;
use crate::worker::thread_config::ThreadConfig;

/// A change to another configuration.
pub struct Change<S> {
    stage: Stage,
    /// The next port or slot of this stage.
    next: usize,
    /// Target of the change; none once that is done.
    target: Option<(S, ThreadConfig)>,
    keep: bool,
    renew: bool,
    /// Changes of the ports of the configuration before, by index.
    ports: Vec<PortChange>,
    /// The next ports of connections without a port, by address.
    heirs: HashMap<SocketAddr, Option<usize>>,
    /// Connections up to this number were accepted before the change.
    last_serial: u64,
}

/// The change of a port by the next configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortChange {
    Stays,
    /// It is gone, and another port takes some of its addresses: 127.0.0.1:80 becomes *:80.
    Covered,
    Gone,
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
            ports: Vec::new(),
            heirs: HashMap::new(),
            last_serial: 0,
        }
    }

    /// Continues for at most `steps` steps; true if the change is made.
    pub(super) fn resume<L: Reloads<Setup = S>>(&mut self, at: &mut L, steps: &mut usize) -> bool {
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
        let mut covering = None;
        let before = at.parts().1.generation.ports.iter().enumerate();
        let ports = before.map(|(n, port)| {
            let next = config.ports.get(n);
            if next.is_some_and(|next| next.is_listening && next.listen.shares_socket(&port.listen))
            {
                return PortChange::Stays;
            }
            let covering = covering.get_or_insert_with(|| by_number(&config.http));
            let same_number = covering.get(&port.listen.addr.port());
            let mut same_number = same_number.into_iter().flatten();
            match port.is_listening && same_number.any(|next| next.overlaps(&port.listen)) {
                true => PortChange::Covered,
                false => PortChange::Gone,
            }
        });
        self.ports = ports.collect();
        self.enter(Stage::Leave);
    }

    /// Handles one port, or one slot of a connection.
    fn step<L: Reloads<Setup = S>>(&mut self, at: &mut L) {
        let n = self.next;
        self.next += 1;
        match self.stage {
            Stage::Leave => match &self.target {
                Some((setup, _)) if n < self.ports.len() => match self.ports[n] {
                    // It is left when its last connections have come.
                    PortChange::Covered => {}
                    PortChange::Stays | PortChange::Gone => at.leave_listener(n, setup),
                },
                _ if self.ports.iter().all(|change| *change == PortChange::Stays) => {
                    self.enter(Stage::Prepare);
                }
                _ => self.enter(Stage::End),
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

    /// Ends a connection without a port: at once if it is idle, else after its response.
    fn end<L: Reloads<Setup = S>>(&mut self, at: &mut L, key: Key) {
        if self.port_change(at, key) == PortChange::Stays {
            return;
        }
        let Some((_, config)) = &self.target else {
            return;
        };
        let next = Rc::clone(&config.http);
        if self.heir(at, key, &next).is_some() {
            return;
        }
        let Some(conn) = at.parts().0.clients.get_mut(key) else {
            return;
        };
        let closes = conn.is_idle() && !conn.sends_goaway();
        at.ending(key, true);
        if closes {
            return at.close::<Client<L>>(key);
        }
        if let Some(conn) = at.parts().0.clients.get_mut(key) {
            conn.on_listener_removed();
        }
        at.turn::<Client<L>>(key, Readiness::default());
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
        let next = Rc::clone(&config.http);
        let (old, timeout_ms) = at.switch(setup, config);
        self.move_covered(at, &next);
        let now_ms = at.parts().1.clock.mono_ms;
        let changes = at.changes();
        changes.retire(old);
        if let Some(timeout_ms) = timeout_ms {
            changes.order_sweep(now_ms + timeout_ms, number);
        }
    }

    fn port_change<L: Reloads<Setup = S>>(&self, at: &mut L, key: Key) -> PortChange {
        let conn = at.parts().0.clients.get_mut(key);
        let change = conn.and_then(|conn| self.ports.get(conn.port()));
        change.copied().unwrap_or(PortChange::Stays)
    }

    /// The port of the next configuration that takes a connection, if its own is covered.
    fn heir<L: Reloads<Setup = S>>(&mut self, at: &mut L, key: Key, next: &Http) -> Option<usize> {
        if self.port_change(at, key) != PortChange::Covered {
            return None;
        }
        let (tables, shared) = at.parts();
        let local = tables.clients.get_mut(key)?.local_addr(&mut shared.net)?;
        let heir = self.heirs.entry(local);
        *heir.or_insert_with(|| next.listening_port(local))
    }

    /// Moves connections of covered ports to those that have their addresses now. At once, because between the change and the
    /// move a request would find another server. The addresses were looked up before, but for the last connections.
    fn move_covered<L: Reloads<Setup = S>>(&mut self, at: &mut L, next: &Http) {
        if !self.ports.contains(&PortChange::Covered) {
            return;
        }
        for key in at.parts().0.clients.keys() {
            if self.port_change(at, key) != PortChange::Covered {
                continue;
            }
            let heir = self.heir(at, key, next);
            let Some(conn) = at.parts().0.clients.get_mut(key) else {
                continue;
            };
            match heir {
                Some(port) => conn.set_port(port),
                None if conn.is_idle() && !conn.sends_goaway() => at.close::<Client<L>>(key),
                None => conn.on_listener_removed(),
            }
        }
        for port in 0..self.ports.len() {
            if self.ports[port] == PortChange::Covered {
                at.leave_later(port);
            }
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
            at.decide::<Client<L>>(key, drain);
        }
    }
}

/// The addresses of a configuration that are listened on, by port number.
fn by_number(http: &Http) -> HashMap<u16, Vec<&Listen>> {
    let mut listens: HashMap<u16, Vec<&Listen>> = HashMap::new();
    for port in http.ports.iter().filter(|port| port.is_listening) {
        let listen = &port.listen;
        listens.entry(listen.addr.port()).or_default().push(listen);
    }
    listens
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
