//! The resolver against scripted servers: each test consists of questions, messages and events.

mod failover;
mod limits;
mod messages;
mod resolving;
mod services;

use core::net::IpAddr;

use super::{Answer, Event, Failure, Key, Refused, Resolver, Route, Settings, Subject, Transport};

/// A resolver, its clock, and its sent queries.
struct Lab {
    resolver: Resolver,
    now_ms: u64,
    next_id: u16,
}

/// A query as a server sees it.
#[derive(Clone, Debug)]
struct Query {
    route: Route,
    message: Vec<u8>,
}

impl Lab {
    fn new(settings: Settings) -> Self {
        Self {
            resolver: Resolver::new(settings),
            now_ms: 1_000,
            next_id: 0x1000,
        }
    }

    /// Only IPv4 addresses are queried, at this many servers.
    fn v4(servers: usize) -> Self {
        Self::new(Settings {
            servers,
            ipv6: false,
            ..Settings::default()
        })
    }

    fn ask(&mut self, name: &str) -> Key {
        self.ask_for(Subject::Addresses(name.as_bytes()))
    }

    fn ask_for(&mut self, subject: Subject<'_>) -> Key {
        let key = self.resolver.ask(self.now_ms, subject, 30_000, 7);
        self.resolver.check_invariants();
        key
    }

    /// All queries that are to be sent now.
    fn sent(&mut self) -> Vec<Query> {
        let mut queries = Vec::new();
        let mut out = Vec::new();
        while let Some(route) = self.resolver.transmit(self.next_id, &mut out) {
            self.next_id += 1;
            let message = match route.transport {
                Transport::Udp => out.clone(),
                Transport::Tcp => {
                    assert_eq!(
                        usize::from(out[0]) << 8 | usize::from(out[1]),
                        out.len() - 2
                    );
                    out[2..].to_vec()
                }
            };
            queries.push(Query { route, message });
        }
        self.resolver.check_invariants();
        queries
    }

    /// The only query that is to be sent now.
    #[track_caller]
    fn sent_one(&mut self) -> Query {
        let mut queries = self.sent();
        assert_eq!(queries.len(), 1, "{queries:?}");
        queries.remove(0)
    }

    /// A server answers a query.
    fn answer(&mut self, query: &Query, message: &[u8]) -> Result<(), Refused> {
        let result = self.resolver.receive(self.now_ms, query.route, message);
        self.resolver.check_invariants();
        result
    }

    /// Answers the pending queries, one after the other, until nothing more is sent.
    fn serve(&mut self, server: impl Fn(&Query) -> Vec<u8>) -> usize {
        let mut count = 0;
        loop {
            let queries = self.sent();
            if queries.is_empty() {
                return count;
            }
            for query in queries {
                count += 1;
                let message = server(&query);
                self.answer(&query, &message).expect("the answer is sound");
            }
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.resolver.expire(self.now_ms);
        self.resolver.check_invariants();
    }

    #[track_caller]
    fn told(&mut self) -> Event {
        self.resolver.event().expect("something was told")
    }

    /// The reported addresses, as text.
    #[track_caller]
    fn addresses(&mut self) -> Vec<String> {
        match self.told() {
            Event::Resolved {
                answer: Answer::Addresses(list),
                ..
            } => list.iter().map(IpAddr::to_string).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn failure(&mut self) -> Failure {
        match self.told() {
            Event::Failed { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn told_nothing(&mut self) {
        assert_eq!(self.resolver.event(), None);
    }
}

impl Query {
    /// Name and type in the question.
    fn question(&self) -> (String, u16) {
        let mut labels = Vec::new();
        let mut at = 12;
        while self.message[at] != 0 {
            let next = at + 1 + usize::from(self.message[at]);
            labels.push(String::from_utf8_lossy(&self.message[at + 1..next]).into_owned());
            at = next;
        }
        let kind = u16::from_be_bytes([self.message[at + 1], self.message[at + 2]]);
        (labels.join("."), kind)
    }

    fn id(&self) -> u16 {
        u16::from_be_bytes([self.message[0], self.message[1]])
    }

    /// A response without answers.
    fn reply(&self) -> Reply {
        let mut bytes = self.message.clone();
        bytes[2..4].copy_from_slice(&0x8180_u16.to_be_bytes());
        Reply(bytes)
    }

    /// A response with an address of the requested type.
    fn address(&self, address: &str) -> Vec<u8> {
        self.reply().address(address, 60).0
    }
}

/// A response while it is written.
struct Reply(Vec<u8>);

impl Reply {
    fn code(mut self, code: u8) -> Self {
        self.0[3] |= code;
        self
    }

    fn truncated(mut self) -> Self {
        self.0[2] |= 2;
        self
    }

    /// A record of the requested name.
    fn record(self, kind: u16, ttl_s: u32, data: &[u8]) -> Self {
        self.record_of(&[0xc0, 12], kind, ttl_s, data)
    }

    fn record_of(mut self, owner: &[u8], kind: u16, ttl_s: u32, data: &[u8]) -> Self {
        self.0[7] += 1;
        self.0.extend_from_slice(owner);
        self.0.extend(kind.to_be_bytes());
        self.0.extend(1_u16.to_be_bytes());
        self.0.extend(ttl_s.to_be_bytes());
        self.0.extend((data.len() as u16).to_be_bytes());
        self.0.extend_from_slice(data);
        self
    }

    fn address(self, address: &str, ttl_s: u32) -> Self {
        match address.parse().expect("an address") {
            IpAddr::V4(ip) => self.record(A, ttl_s, &ip.octets()),
            IpAddr::V6(ip) => self.record(AAAA, ttl_s, &ip.octets()),
        }
    }

    fn alias(self, target: &str, ttl_s: u32) -> Self {
        self.record(CNAME, ttl_s, &wire(target))
    }
}

/// A name on the wire.
fn wire(name: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        wire.push(label.len() as u8);
        wire.extend_from_slice(label.as_bytes());
    }
    wire.push(0);
    wire
}

const A: u16 = 1;
const CNAME: u16 = 5;
const PTR: u16 = 12;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const DNAME: u16 = 39;
