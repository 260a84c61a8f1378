//! The clients of a run: sending, reading and leaving.

use sim::{Faults, Link, Random, Reading, Wire};

use super::checker::{Checker, RunContext};
use super::run::SimClient;
use super::script::{self, Request};

/// An HTTP/1 client.
pub(crate) struct Client {
    link: usize,
    checker: Checker,
    bytes: Vec<u8>,
    sent: usize,
    /// It sends at most this number of bytes.
    limit: usize,
    pace: SendPattern,
    reading: Reading,
    ending: Ending,
    gone: bool,
}

/// Pattern of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendPattern {
    /// Everything at once.
    Burst,
    /// In pieces of random length.
    Cut,
    /// One request after the previous response.
    Turns,
}

/// Action after everything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// None.
    Stay,
    /// Ends its side and continues reading.
    End,
    /// Resets.
    Reset,
    /// Closes. Later data is answered with a reset.
    Leave,
}

impl SimClient for Client {
    fn new(link: usize, random: &mut Random) -> Self {
        let count = 1 + random.below(6) as usize;
        let mut requests: Vec<Request> = (0..count).map(|_| script::request(random)).collect();
        if random.chance(20) {
            requests.splice(0..0, script::crowd(random));
        }
        let bytes: Vec<u8> = requests
            .iter()
            .flat_map(|r| r.wire.iter().copied())
            .collect();
        let limit = if random.chance(700) {
            bytes.len()
        } else {
            random.within(0..bytes.len() + 1)
        };
        let pace = *random.pick(&[
            SendPattern::Burst,
            SendPattern::Cut,
            SendPattern::Cut,
            SendPattern::Turns,
        ]);
        let reading = Reading::drawn(10, 3000, random);
        let ending = match random.below(10) {
            0..4 => Ending::Stay,
            4..8 => Ending::End,
            8 => Ending::Reset,
            _ => Ending::Leave,
        };
        Self {
            link,
            checker: Checker::new(requests),
            bytes,
            sent: 0,
            limit,
            pace,
            reading,
            ending,
            gone: false,
        }
    }

    fn link(&self) -> usize {
        self.link
    }

    fn act(&mut self, wire: &mut Wire, random: &mut Random) {
        match random.below(3) {
            0 | 1 => self.send(wire, random),
            _ => self.fetch(wire, random),
        }
    }

    fn finish(&mut self, wire: &mut Wire, random: &mut Random) -> bool {
        let before = (self.sent, wire.fetched(), self.gone);
        self.send(wire, random);
        self.reading.hurry();
        self.fetch(wire, random);
        before != (self.sent, wire.fetched(), self.gone)
    }

    fn look(&mut self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String> {
        self.checker.look(link, now_ms, context)
    }

    fn quiet(&self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String> {
        self.checker.quiet(link, now_ms, context)
    }

    fn story(&self, link: &Link) -> String {
        self.checker.story(link)
    }

    fn answered(&self) -> usize {
        self.checker.answered()
    }

    fn is_expired(&self) -> bool {
        self.checker.expired
    }
}

impl Client {
    fn send(&mut self, wire: &mut Wire, random: &mut Random) {
        let allowed = match self.pace {
            SendPattern::Turns => self.limit.min(self.checker.end_of(self.checker.answered())),
            _ => self.limit,
        };
        if self.sent < allowed {
            let len = match self.pace {
                SendPattern::Cut => random.piece(allowed - self.sent),
                _ => allowed - self.sent,
            };
            wire.push(&self.bytes[self.sent..self.sent + len]);
            self.sent += len;
        } else if self.sent == self.limit {
            self.leave(wire);
        }
    }

    fn leave(&mut self, wire: &mut Wire) {
        match self.ending {
            Ending::Stay => return,
            Ending::End => wire.end(),
            Ending::Reset => wire.reset(),
            Ending::Leave if wire.fetched() < wire.sent().len() => wire.reset(),
            Ending::Leave => wire.end(),
        }
        self.gone = true;
    }

    fn fetch(&mut self, wire: &mut Wire, random: &mut Random) {
        if self.gone && self.ending == Ending::Leave && wire.fetched() < wire.sent().len() {
            return wire.reset();
        }
        self.reading.fetch(wire, 400, random);
    }
}

/// Returns the faults of a connection: none, some, or many.
pub(crate) fn faults(random: &mut Random) -> Faults {
    Faults::drawn(|| match random.below(3) {
        0 => 0,
        1 => 50,
        _ => 400,
    })
}
