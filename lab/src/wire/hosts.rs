//! Servers of a visit: their addresses, their connections, and the resources that wait for one.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use sys::poll::Waker;

use super::options::{CONNECTIONS_OF_H1, Options};
use crate::client::{Protocol, Url, now_ns};
use crate::fetch::{Failure, FailureCause};

/// A server.
pub(super) struct Host {
    pub(super) url: Url,
    pub(super) addresses: Addresses,
    /// Span of its lookup, until a connection includes it.
    pub(super) dns: Option<(u64, u64)>,
    /// The protocol of its connections, once it is known.
    pub(super) protocol: Option<Protocol>,
    /// Numbers of its connections that accept requests, or will.
    pub(super) connections: Vec<usize>,
    /// It refuses more connections than it has.
    pub(super) is_refusing: bool,
    /// Resources that wait, by rank and place.
    pub(super) waiting: BTreeSet<(u8, usize)>,
}

/// State of a server's addresses.
pub(super) enum Addresses {
    Unknown,
    Asked,
    /// They are tried in turn.
    Known(Vec<SocketAddr>),
    Failed(Failure),
}

/// All servers of a visit.
pub(super) struct Hosts {
    pub(super) all: Vec<Host>,
    places: HashMap<(bool, String, u16), usize>,
    answers: Receiver<Answer>,
    sender: Sender<Answer>,
    waker: Arc<Waker>,
}

/// The answer for the server of a place.
struct Answer {
    place: usize,
    result: Result<Vec<SocketAddr>, String>,
    at_ns: u64,
}

impl Hosts {
    /// None; the waker is woken when an address is known.
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        let (sender, answers) = channel();
        Self {
            all: Vec::new(),
            places: HashMap::new(),
            answers,
            sender,
            waker,
        }
    }

    /// The place of a URL's server.
    pub(super) fn place(&mut self, url: &Url, options: &Options) -> usize {
        let key = (url.tls, url.host.clone(), url.port);
        *self.places.entry(key).or_insert_with(|| {
            let known = options.address_of(&url.host);
            let known = known.map(|address| vec![SocketAddr::new(address, url.port)]);
            self.all.push(Host {
                url: url.clone(),
                addresses: known.map_or(Addresses::Unknown, Addresses::Known),
                dns: None,
                protocol: options.protocol_of(&url.host),
                connections: Vec::new(),
                is_refusing: false,
                waiting: BTreeSet::new(),
            });
            self.all.len() - 1
        })
    }

    /// Begins the lookup of a server; an address needs none.
    pub(super) fn look_up(&mut self, place: usize) {
        let host = &mut self.all[place];
        if host.url.is_address() {
            host.addresses = Addresses::of(host.url.addresses());
            return;
        }
        host.addresses = Addresses::Asked;
        host.dns = Some((now_ns(), 0));
        let (url, sender, waker) = (
            host.url.clone(),
            self.sender.clone(),
            Arc::clone(&self.waker),
        );
        // The system's call cannot be interrupted: if the visit ends earlier, its thread goes on alone.
        thread::spawn(move || {
            let (result, at_ns) = (url.addresses(), now_ns());
            let _ = sender.send(Answer {
                place,
                result,
                at_ns,
            });
            waker.wake();
        });
    }

    /// Handles finished lookups.
    pub(super) fn take_answers(&mut self) {
        while let Ok(answer) = self.answers.try_recv() {
            let host = &mut self.all[answer.place];
            host.dns = host.dns.map(|(from, _)| (from, answer.at_ns));
            host.addresses = Addresses::of(answer.result);
        }
    }
}

impl Addresses {
    fn of(found: Result<Vec<SocketAddr>, String>) -> Self {
        match found {
            Ok(addresses) => Self::Known(addresses),
            Err(why) => Self::Failed(Failure::new(FailureCause::Name, why)),
        }
    }
}

impl Host {
    /// Removes a connection that accepts no more requests.
    pub(super) fn release(&mut self, number: usize) {
        self.connections.retain(|other| *other != number);
    }

    /// How many connections it may have: until its protocol is known one, which shows it.
    pub(super) fn most_connections(&self) -> usize {
        match self.protocol {
            Some(Protocol::H1) => CONNECTIONS_OF_H1,
            _ => 1,
        }
    }
}
