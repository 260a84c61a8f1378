//! Servers of a visit: their addresses, their connections, and the resources that wait for one.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use sys::poll::Waker;

use super::options::CONNECTIONS_OF_H1;
use crate::client::{Protocol, Url, now_ns};
use crate::fetch::{Failure, resolve};

/// A server.
pub(super) struct Host {
    pub(super) url: Url,
    pub(super) addresses: Addresses,
    /// Looking it up, until a connection takes that as its own.
    pub(super) dns: Option<(u64, u64)>,
    /// The protocol of its connections, once it is known.
    pub(super) protocol: Option<Protocol>,
    /// Its connections that are not over, by their numbers.
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
    result: Result<Vec<SocketAddr>, Failure>,
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
    pub(super) fn place(&mut self, url: &Url, protocol: Option<Protocol>) -> usize {
        let key = (url.tls, url.host.clone(), url.port);
        *self.places.entry(key).or_insert_with(|| {
            self.all.push(Host {
                url: url.clone(),
                addresses: Addresses::Unknown,
                dns: None,
                protocol,
                connections: Vec::new(),
                is_refusing: false,
                waiting: BTreeSet::new(),
            });
            self.all.len() - 1
        })
    }

    /// Begins to look a server's addresses up.
    pub(super) fn look_up(&mut self, place: usize, timeout: Duration) {
        let host = &mut self.all[place];
        host.addresses = Addresses::Asked;
        host.dns = Some((now_ns(), 0));
        let (url, sender, waker) = (
            host.url.clone(),
            self.sender.clone(),
            Arc::clone(&self.waker),
        );
        let ask = move || {
            let result = resolve(&url, timeout).map(|found| found.addresses);
            let at_ns = now_ns();
            let _ = sender.send(Answer {
                place,
                result,
                at_ns,
            });
            waker.wake();
        };
        // An address in place of a name needs no thread, and no time.
        if self.all[place].url.host.parse::<std::net::IpAddr>().is_ok() {
            self.all[place].dns = None;
            ask();
        } else {
            thread::spawn(ask);
        }
    }

    /// Takes answers that have come.
    pub(super) fn take_answers(&mut self) {
        while let Ok(answer) = self.answers.try_recv() {
            let host = &mut self.all[answer.place];
            host.dns = host.dns.map(|(from, _)| (from, answer.at_ns));
            host.addresses = match answer.result {
                Ok(addresses) => Addresses::Known(addresses),
                Err(failure) => Addresses::Failed(failure),
            };
        }
    }
}

impl Host {
    /// How many connections it may have: until its protocol is known one, which shows it.
    pub(super) fn most_connections(&self) -> usize {
        match self.protocol {
            Some(Protocol::H1) => CONNECTIONS_OF_H1,
            _ => 1,
        }
    }
}
