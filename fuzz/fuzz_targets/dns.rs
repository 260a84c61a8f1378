//! DNS: a resolver between clients and servers that send any bytes. Each question gets one event or is cancelled, the
//! tables agree after each step, and nothing panics; a stream gives the same messages with any cuts.
//!
//! The first two bytes choose settings; then each byte is a step, followed by its operands.
#![no_main]

use engines::dns::{Event, Frames, Key, Resolver, Route, Settings, Subject, Transport};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};

fuzz_target!(|input: &[u8]| {
    let Some((&[settings, valid], bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    frames(bytes);
    let mut world = World {
        resolver: Resolver::new(Settings {
            servers: usize::from(settings & 3),
            ipv4: settings & 4 == 0,
            ipv6: settings & 8 == 0,
            rotate: settings & 16 == 0,
            gives_up: settings & 32 != 0,
            valid_ms: (valid > 0).then(|| u64::from(valid) * 500),
            ..Settings::default()
        }),
        now_ms: 1,
        id: 0,
        sent: Vec::new(),
        open: BTreeSet::new(),
        asked: BTreeMap::new(),
    };
    world.run(bytes);
});

/// Checks that a stream in pieces has the same messages.
fn frames(bytes: &[u8]) {
    let events = |step: usize| {
        let mut frames = Frames::default();
        let mut messages = Vec::new();
        for piece in bytes.chunks(step) {
            frames.receive(piece);
            while let Some(message) = frames.message() {
                messages.push(message.to_vec());
            }
        }
        messages
    };
    assert_eq!(events(bytes.len().max(1)), events(3));
}

struct World {
    resolver: Resolver,
    now_ms: u64,
    id: u16,
    /// Sent queries.
    sent: Vec<(Route, Vec<u8>)>,
    /// Questions without an event so far.
    open: BTreeSet<Key>,
    /// The timeout of each question.
    asked: BTreeMap<Key, u64>,
}

impl World {
    fn run(&mut self, mut rest: &[u8]) {
        let mut steps = 0;
        while let [step, more @ ..] = rest
            && steps < STEPS_MAX
        {
            steps += 1;
            rest = self.step(*step, more);
            self.fetch();
        }
        // At the end every question with a timeout has its event.
        self.now_ms += 1_000_000;
        self.resolver.expire(self.now_ms);
        self.fetch();
        for (key, timeout_ms) in &self.asked {
            assert!(
                *timeout_ms == 0 || !self.open.contains(key),
                "nobody is forgotten"
            );
        }
    }

    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        match step % 8 {
            0 | 1 => self.send_query(step >> 3),
            2 => {
                let keys: Vec<Key> = self.open.iter().copied().collect();
                if let Some(key) = keys.get(usize::from(step >> 3) % keys.len().max(1)) {
                    self.resolver.cancel(*key);
                    self.open.remove(key);
                }
            }
            3 => {
                self.now_ms += u64::from(step >> 3) * 400;
                self.resolver.expire(self.now_ms);
                let next = self.resolver.deadline();
                assert!(
                    next.is_none_or(|at| at > self.now_ms),
                    "what was due is done"
                );
            }
            4 => {
                if let Some((route, _)) = self.sent.get(usize::from(step >> 3)) {
                    self.resolver.unreachable(self.now_ms, *route);
                }
            }
            5 => {
                let (message, rest) = cut(rest);
                let route = Route {
                    server: usize::from(step >> 3 & 3),
                    transport: transport(step),
                };
                // This target does not check refusals.
                let _ = self.resolver.receive(self.now_ms, route, message);
                return rest;
            }
            _ => return self.reply(step, rest),
        }
        rest
    }

    fn send_query(&mut self, which: u8) {
        let name = NAMES[usize::from(which) % NAMES.len()];
        let subject = match which / 8 {
            0 | 1 => Subject::Addresses(name),
            2 => Subject::Service {
                service: b"http",
                name,
            },
            _ => Subject::Pointer([192, 0, 2, which].into()),
        };
        let timeout_ms = u64::from(which % 3) * 4_000;
        let key = self
            .resolver
            .ask(self.now_ms, subject, timeout_ms, u64::from(which));
        assert!(self.open.insert(key), "a key is nobody else's");
        self.asked.insert(key, timeout_ms);
    }

    /// Answers one of the last queries. The input has flags, the number of answers, and the bytes after the question.
    fn reply<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let back = usize::from(step >> 3 & 7) + 1;
        let Some((route, query)) = self.sent.len().checked_sub(back).map(|n| &self.sent[n]) else {
            return rest;
        };
        let (answers, more) = cut(rest);
        let [flags, count, answers @ ..] = answers else {
            return more;
        };
        let mut message = query.clone();
        message[2] = 0x81 | (flags >> 5 & 2);
        message[3] = 0x80 | (flags & 7);
        message[7] = count & 7;
        message.extend_from_slice(answers);
        let _ = self.resolver.receive(self.now_ms, *route, &message);
        more
    }

    fn fetch(&mut self) {
        let mut out = Vec::new();
        while let Some(route) = self.resolver.transmit(self.id, &mut out) {
            self.id = self.id.wrapping_add(1);
            let start = if route.transport == Transport::Tcp {
                2
            } else {
                0
            };
            self.sent.push((route, out[start..].to_vec()));
        }
        while let Some(event) = self.resolver.event() {
            let (Event::Resolved { key, .. } | Event::Failed { key, .. }) = event;
            assert!(self.open.remove(&key), "one event for each question");
        }
        self.resolver.check_invariants();
    }
}

/// Splits off a number of bytes; the first byte is the number.
fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes {
        [length, rest @ ..] => rest.split_at(usize::from(*length).min(rest.len())),
        [] => (&[], &[]),
    }
}

fn transport(step: u8) -> Transport {
    if step & 0x80 == 0 {
        Transport::Udp
    } else {
        Transport::Tcp
    }
}

const NAMES: [&[u8]; 8] = [
    b"a.test",
    b"b.test",
    b"www.a.test",
    b"192.0.2.1",
    b"",
    b"x..y",
    b"A.TEST.",
    b"c",
];
/// Maximum number of steps per input.
const STEPS_MAX: usize = 100;
