//! Which connection carries which request: as browsers choose it.

use sys::os_error;
use sys::poll::{Interest, Ready};

use super::{Carrier, Visitor, tls_options};
use crate::client::Protocol;
use crate::fetch::{Core, Dial, Event, Failure, FailureCause};
use crate::wire::hosts::Addresses;
use crate::wire::options::MAX_CONNECTIONS;
use crate::wire::request::{request, request_fields};
use crate::wire::row::Opening;

impl Visitor<'_> {
    /// Assigns waiting resources of a server to its connections, and opens others as far as it may have them.
    pub(super) fn dispatch(&mut self, place: usize) {
        loop {
            let host = &self.hosts.all[place];
            let Some(&waiting) = host.waiting.first() else {
                return;
            };
            match &host.addresses {
                Addresses::Unknown => {
                    self.hosts.look_up(place);
                    continue;
                }
                Addresses::Asked => return,
                Addresses::Failed(failure) => {
                    let failure = failure.clone();
                    return self.fail_waiting(place, &failure);
                }
                Addresses::Known(_) => {}
            }
            let host = &self.hosts.all[place];
            let free = host.connections.iter().copied();
            if let Some(number) = free.into_iter().find(|number| self.has_room(*number)) {
                self.hosts.all[place].waiting.remove(&waiting);
                self.assign(waiting.1, number);
                continue;
            }
            let opening = |number: &&usize| !self.carriers[**number].was_open;
            let dialed = host.connections.iter().filter(opening).count();
            let is_refused = host.is_refusing && !host.connections.is_empty();
            let is_full = host.connections.len() >= host.most_connections();
            // At most one connection per waiting request is opened, and each serves the first waiting request when it
            // is open.
            if is_refused || is_full || dialed >= host.waiting.len() || self.open >= MAX_CONNECTIONS
            {
                return;
            }
            self.open(place);
        }
    }

    fn has_room(&self, number: usize) -> bool {
        let carrier = &self.carriers[number];
        carrier.core.as_ref().is_some_and(|core| {
            let streams = core.record().protocol.is_some_and(Protocol::has_streams);
            core.is_open() && core.room() > 0 && (streams || core.in_progress() == 0)
        })
    }

    fn open(&mut self, place: usize) {
        let host = &mut self.hosts.all[place];
        let Addresses::Known(addresses) = &host.addresses else {
            return;
        };
        let Some(address) = addresses.first().copied() else {
            return;
        };
        let mut dial = Dial::new(&host.url, address, self.options.timeout);
        if let Some(protocol) = self.options.protocol_of(&host.url.host) {
            dial.protocols = vec![protocol];
        }
        let is_secure = host.url.tls;
        dial.tls = is_secure.then(|| tls_options(self.options, self.kept));
        let number = self.carriers.len();
        let core = Core::dial(&dial).and_then(|core| {
            let added = core
                .socket()
                .map(|socket| self.poller.add(socket, number as u64, Interest::Connection));
            match added {
                Some(Err(error)) => Err(Failure::new(
                    FailureCause::Connect,
                    format!("cannot create a poller: {}", os_error(&error)),
                )),
                _ => Ok(core),
            }
        });
        match core {
            Err(failure) => self.handle_dial_failure(place, failure),
            Ok(core) => {
                self.carriers.push(Carrier {
                    core: Some(core),
                    host: place,
                    remote: address,
                    was_open: false,
                    used: 0,
                    dns: host.dns.take(),
                    round_trip_ns: 0,
                    received_bytes: 0,
                });
                host.connections.push(number);
                self.open += 1;
            }
        }
    }

    /// Handles a connection that could not be opened: tries the next address, or opens no more connections to the server.
    fn handle_dial_failure(&mut self, place: usize, failure: Failure) {
        let host = &mut self.hosts.all[place];
        let Addresses::Known(addresses) = &mut host.addresses else {
            return;
        };
        if !host.connections.is_empty() {
            host.is_refusing = true;
        } else if addresses.len() > 1 {
            addresses.remove(0);
        } else {
            host.addresses = Addresses::Failed(failure);
        }
    }

    fn fail_waiting(&mut self, place: usize, failure: &Failure) {
        let waiting = std::mem::take(&mut self.hosts.all[place].waiting);
        for (_, number) in waiting {
            self.handle_failure(number, failure);
        }
    }

    /// Sends the request of a row on a connection.
    fn assign(&mut self, row: usize, number: usize) {
        let carrier = &mut self.carriers[number];
        let Some(core) = &mut carrier.core else {
            return;
        };
        let protocol = core.record().protocol.unwrap_or(Protocol::H1);
        let first = carrier.used == 0;
        carrier.used += 1;
        let row_number = row;
        let row = &mut self.rows[row_number];
        row.attempts += 1;
        row.opening = first.then(|| Opening::of(core.record(), carrier.dns.take()));
        let request = request(&row.url, row.resource.kind, protocol);
        let resource = &mut row.resource;
        resource.connection = Some(number as u64);
        resource.remote = Some(carrier.remote.to_string());
        resource.protocol = String::from_utf8_lossy(protocol.alpn()).into_owned();
        resource.request_fields = request_fields(&request);
        core.request(row_number, &request);
        core.flush(&mut self.buffer);
        self.take_events(number);
    }

    /// Does all possible work on a connection.
    pub(super) fn turn(&mut self, number: usize, ready: Option<Ready>) {
        let Some(carrier) = self.carriers.get_mut(number) else {
            return;
        };
        if let Some(core) = &mut carrier.core {
            core.ready(ready, &mut self.buffer);
            let received_bytes = core.record().received_bytes;
            self.received_bytes += received_bytes - carrier.received_bytes;
            carrier.received_bytes = received_bytes;
        }
        self.take_events(number);
    }

    /// Handles the events of a connection.
    pub(super) fn take_events(&mut self, number: usize) {
        let place = self.carriers[number].host;
        while let Some(event) = self.carriers[number].core.as_mut().and_then(Core::event) {
            match event {
                Event::Open(protocol) => {
                    self.carriers[number].was_open = true;
                    self.hosts.all[place].protocol = Some(protocol);
                }
                Event::Head(row) | Event::Data(row) => self.handle_data(number, row),
                Event::Done(row, Ok(response)) => self.handle_response(row, &response),
                Event::Done(row, Err(failure)) => self.handle_failure(row, &failure),
                Event::Closed(failure) => {
                    self.retire(number);
                    let is_wanted = !self.hosts.all[place].waiting.is_empty();
                    // A connection that carried no request counts as not opened: a server may close all of them like
                    // this.
                    if self.carriers[number].used == 0 && is_wanted {
                        let why = "the server closed the connection before a request";
                        let failure =
                            failure.unwrap_or_else(|| Failure::new(FailureCause::Closed, why));
                        // The connection that is opened next is the first one then.
                        self.hosts.all[place].dns = self.carriers[number].dns.take();
                        self.handle_dial_failure(place, failure);
                    }
                }
            }
        }
        let carrier = &self.carriers[number];
        let closing = carrier.core.as_ref();
        let closing = closing.filter(|core| carrier.was_open && !core.is_open());
        if let Some(in_progress) = closing.map(Core::in_progress) {
            // Requests in progress continue; waiting ones need another connection.
            self.hosts.all[place].release(number);
            if in_progress == 0 {
                self.retire(number);
            }
        }
    }

    /// A connection is over.
    fn retire(&mut self, number: usize) {
        let carrier = &mut self.carriers[number];
        if let Some(core) = carrier.core.take() {
            carrier.round_trip_ns = core.record().round_trip_ns();
            self.hosts.all[carrier.host].release(number);
            self.open -= 1;
        }
    }
}
