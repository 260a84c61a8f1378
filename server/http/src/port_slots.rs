//! Ports keep their index while configurations change.
//!
//! A connection knows its port by the index in [`Http::ports`]. If a reload changed indices, every connection would
//! have to be updated at that moment. So a port of a new configuration gets the slot of the earlier port with the
//! same address. The slot of a closed port stays empty for at least one configuration, so that its last connections
//! do not find another port.

use std::collections::HashMap;

use engines::http::Protocols;
use server_base::listen::Listen;

use crate::http::{Http, Port, PortAddr};
use crate::names::ServerNames;

/// The places of ports, over all configurations of a process.
#[derive(Debug, Default)]
pub struct PortSlots(Vec<PortSlot>);

#[derive(Debug)]
struct PortSlot {
    listen: Listen,
    /// The latest configuration listens here.
    taken: bool,
}

impl PortSlots {
    /// Puts the ports of the next configuration into their places.
    pub fn arrange(&mut self, http: &mut Http) {
        if http.servers.is_empty() {
            // A place without a port refers to a server.
            return;
        }
        let mut known: HashMap<String, usize> = HashMap::with_capacity(self.0.len());
        let mut empty = Vec::new();
        for (at, place) in self.0.iter_mut().enumerate() {
            known.insert(place.listen.key(), at);
            if !std::mem::take(&mut place.taken) {
                empty.push(at);
            }
        }
        let ports = std::mem::take(&mut http.ports);
        let mut arranged: Vec<(usize, Port)> = Vec::with_capacity(ports.len());
        let mut strangers = Vec::new();
        for port in ports {
            match known.get(&port.listen.key()) {
                Some(at) => {
                    self.0[*at].taken = true;
                    arranged.push((*at, port));
                }
                None => strangers.push(port),
            }
        }
        // A returning address keeps its old slot; new addresses get the lowest free slots.
        empty.retain(|at| !self.0[*at].taken);
        let mut empty = empty.into_iter();
        for port in strangers {
            let place = PortSlot {
                listen: port.listen.clone(),
                taken: true,
            };
            let at = empty.next().unwrap_or(self.0.len());
            match self.0.get_mut(at) {
                Some(former) => *former = place,
                None => self.0.push(place),
            }
            arranged.push((at, port));
        }
        arranged.sort_unstable_by_key(|(at, _)| *at);
        let mut arranged = arranged.into_iter().peekable();
        http.ports = (0..self.0.len())
            .map(|at| match arranged.next_if(|(place, _)| *place == at) {
                Some((_, port)) => port,
                None => nowhere(&self.0[at].listen),
            })
            .collect();
    }
}

/// A port without a listener.
fn nowhere(listen: &Listen) -> Port {
    Port {
        listen: listen.clone(),
        addrs: vec![PortAddr {
            addr: None,
            default_server: 0,
            names: ServerNames::default(),
            protocols: Protocols::default(),
            ssl: false,
            proxy_protocol: false,
            listens: Vec::new(),
        }],
        needs_local_addr: false,
        is_listening: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::http_of;

    fn arranged(places: &mut PortSlots, ports: &[u16]) -> Vec<(u16, bool)> {
        let listen: String = ports
            .iter()
            .map(|port| format!("listen 127.0.0.1:{port};"))
            .collect();
        let mut http = http_of(&format!("server {{ {listen} }}"));
        places.arrange(&mut http);
        let shown = |port: &Port| (port.listen.addr.port(), port.is_listening);
        http.ports.iter().map(shown).collect()
    }

    #[test]
    fn a_port_keeps_its_place_whatever_its_order_in_the_text() {
        let mut places = PortSlots::default();
        arranged(&mut places, &[1, 2, 3]);
        let again = arranged(&mut places, &[3, 4, 2, 1]);
        assert_eq!(again, [(1, true), (2, true), (3, true), (4, true)]);
    }

    #[test]
    fn a_place_is_empty_for_one_configuration_before_another_port_gets_it() {
        let mut places = PortSlots::default();
        arranged(&mut places, &[1, 2, 3]);
        let second = arranged(&mut places, &[3, 4]);
        assert_eq!(second, [(1, false), (2, false), (3, true), (4, true)]);
        let third = arranged(&mut places, &[4, 3, 5, 1]);
        assert_eq!(third, [(1, true), (5, true), (3, true), (4, true)]);
    }
}
