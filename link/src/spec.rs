//! A link in one word: `50ms,20mbit,queue=100,loss=0.1%,jitter=2ms,delack=200ms,seed=7`.
//!
//! Items are separated by commas. The first is the time of a round trip, of which each way has half; the others come in
//! any order. A `Spec` is displayed in a form that parses to an equal one. Source: of our own; docs/link.md.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::options::{
    ACK_HOLD_MAX, LOCALHOST_PORTS, MTU_MAX, MTU_MIN, ONE_WAY_MAX, Options, QUEUE_DEFAULT, QUEUE_MAX,
};
use crate::quantity::{self, Loss, Rate, Time};

/// Specification of a link, as typed by the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// `50ms` or `rtt=50ms`: the round trip, at most 20 s.
    pub round_trip: Duration,
    /// `20mbit` (both ways) or `up=5mbit`: from the client to the server.
    pub up: Option<Rate>,
    /// `20mbit` (both ways) or `down=50mbit`: from the server to the client.
    pub down: Option<Rate>,
    /// `queue=100`: packets that may wait before a rate, 1 to 10,000; 100 by default.
    pub queue_packets: Option<u32>,
    /// `loss=0.1%`: how many packets are lost, each way.
    pub loss: Loss,
    /// `jitter=2ms`: how much a round trip may differ, either way; each way has half. At most the round trip.
    pub jitter: Duration,
    /// `reorder`: jitter lets packets overtake each other.
    pub reorder: bool,
    /// `delack=200ms`: how long each end keeps acknowledgements that can leave with data; at most 1 s.
    pub ack_hold: Option<Duration>,
    /// `seed=7`: the seed of loss and jitter; random by default.
    pub seed: Option<u64>,
    /// `mtu=1500`: the largest packet with its IP header, 576 to 9216 bytes.
    pub mtu: Option<u16>,
    /// `pcap=FILE`: file to which packets are written as they leave the link.
    pub pcap: Option<PathBuf>,
}

/// Error in an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The item.
    pub item: String,
    /// Its offset, bytes.
    pub at: usize,
    why: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.at + 1;
        write!(f, "\"{}\" at character {place}: {}", self.item, self.why)
    }
}

impl std::error::Error for SpecError {}

/// Names of items with a value.
const NAMES: [&str; 11] = [
    "rtt", "rate", "up", "down", "queue", "loss", "jitter", "delack", "seed", "mtu", "pcap",
];

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut reader = Reader::default();
        let mut at = 0;
        for item in text.split(',') {
            reader.item(item, at).map_err(|why| error(item, at, why))?;
            at += item.len() + 1;
        }
        reader.finish(text)
    }
}

fn error(item: &str, at: usize, why: impl Into<String>) -> SpecError {
    SpecError {
        item: item.to_owned(),
        at,
        why: why.into(),
    }
}

/// Items parsed so far: names with the items and their positions.
#[derive(Default)]
struct Reader {
    spec: Spec,
    seen: Vec<(&'static str, String, usize)>,
}

impl Reader {
    fn item(&mut self, item: &str, at: usize) -> Result<(), String> {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name, value),
            None if item == "reorder" => ("reorder", item),
            None if at == 0 => ("rtt", item),
            None if item.ends_with("bit") => ("rate", item),
            None if item.is_empty() => return Err("an item is missing".to_owned()),
            None => {
                return Err(format!(
                    "an item is a rate, reorder, or NAME=VALUE with one of {}",
                    NAMES.join(", ")
                ));
            }
        };
        let known = NAMES.iter().find(|known| **known == name);
        let name = match known {
            Some(known) => *known,
            None if value == "reorder" && name == "reorder" => "reorder",
            None => {
                return Err(format!(
                    "there is no such item; there are {}",
                    NAMES.join(", ")
                ));
            }
        };
        self.once(name)?;
        self.seen.push((name, item.to_owned(), at));
        Ok(self.value(name, value)?)
    }

    /// Refuses a repeated item. A rate sets both directions.
    fn once(&self, name: &str) -> Result<(), String> {
        let same = |other: &str| {
            other == name
                || (name == "rate" && matches!(other, "up" | "down"))
                || (other == "rate" && matches!(name, "up" | "down"))
        };
        match self.seen.iter().find(|(other, ..)| same(other)) {
            Some((_, before, _)) => Err(format!("\"{before}\" says that already")),
            None => Ok(()),
        }
    }

    fn value(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let spec = &mut self.spec;
        let time_up_to = |most: Duration, otherwise| {
            let time = quantity::time(value)?;
            (time <= most).then_some(time).ok_or(otherwise)
        };
        match name {
            "rtt" => spec.round_trip = time_up_to(2 * ONE_WAY_MAX, "a round trip is at most 20s")?,
            "rate" => {
                spec.up = Some(value.parse()?);
                spec.down = spec.up;
            }
            "up" => spec.up = Some(value.parse()?),
            "down" => spec.down = Some(value.parse()?),
            "queue" => {
                let packets = quantity::digits(value).filter(|n| (1..=QUEUE_MAX).contains(n));
                spec.queue_packets = Some(packets.ok_or("a queue has 1 to 10000 packets")?);
            }
            "loss" => spec.loss = value.parse()?,
            "jitter" => {
                spec.jitter = time_up_to(2 * ONE_WAY_MAX, "jitter is at most the round trip")?
            }
            "delack" => {
                let most = "acknowledgements are kept for at most 1s";
                spec.ack_hold = Some(time_up_to(ACK_HOLD_MAX, most)?);
            }
            "seed" => {
                let seed = quantity::digits(value);
                spec.seed = Some(seed.ok_or("a seed is a number from 0 to 18446744073709551615")?);
            }
            "mtu" => {
                let bytes = quantity::digits(value);
                let bytes = bytes.filter(|bytes| (MTU_MIN..=MTU_MAX).contains(bytes));
                spec.mtu = Some(bytes.ok_or("an MTU is 576 to 9216 bytes")?);
            }
            "pcap" if value.is_empty() => return Err("a file is missing"),
            "pcap" => spec.pcap = Some(value.into()),
            _ => spec.reorder = true,
        }
        Ok(())
    }

    /// Checks conditions on several items.
    fn finish(self, text: &str) -> Result<Spec, SpecError> {
        let Self { spec, seen } = self;
        let wrong = |name: &str, why: &str| {
            let found = seen.iter().find(|(seen, ..)| *seen == name);
            let (item, at) = found.map_or((text, 0), |(_, item, at)| (item.as_str(), *at));
            Err(error(item, at, why))
        };
        if !seen.iter().any(|(name, ..)| *name == "rtt") {
            return wrong(
                "rtt",
                "the time of a round trip is missing; it is the first item, 50ms",
            );
        }
        if spec.jitter > spec.round_trip {
            return wrong("jitter", "jitter is at most the round trip");
        }
        if spec.reorder && spec.jitter.is_zero() {
            return wrong("reorder", "without jitter=TIME nothing overtakes");
        }
        if spec.queue_packets.is_some() && spec.up.is_none() && spec.down.is_none() {
            return wrong("queue", "without a rate nothing waits; say one, 20mbit");
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Time(self.round_trip))?;
        match (self.up, self.down) {
            (Some(up), Some(down)) if up == down => write!(f, ",{up}")?,
            (up, down) => {
                item(f, "up", up)?;
                item(f, "down", down)?;
            }
        }
        item(f, "queue", self.queue_packets)?;
        item(
            f,
            "loss",
            (self.loss != Loss::default()).then_some(self.loss),
        )?;
        item(
            f,
            "jitter",
            (!self.jitter.is_zero()).then_some(Time(self.jitter)),
        )?;
        if self.reorder {
            write!(f, ",reorder")?;
        }
        item(f, "delack", self.ack_hold.map(Time))?;
        item(f, "seed", self.seed)?;
        item(f, "mtu", self.mtu)?;
        item(f, "pcap", self.pcap.as_ref().map(|path| path.display()))
    }
}

fn item(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, ",{name}={value}"),
        None => Ok(()),
    }
}

impl Spec {
    /// Sets the seed, unless the specification has one.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed.get_or_insert(seed);
        self
    }

    /// Options of the link for a browser's view: `localhost` of the client is the server's, at [`LOCALHOST_PORTS`]. The
    /// default seed is 0; see [`Spec::seeded`].
    #[must_use]
    pub fn options(&self) -> Options {
        let default = Options::default();
        Options {
            one_way: self.round_trip / 2,
            jitter: self.jitter / 2,
            reorder: self.reorder,
            loss: self.loss,
            seed: self.seed.unwrap_or(0),
            client_ack_hold: self.ack_hold,
            server_ack_hold: self.ack_hold,
            up: self.up,
            down: self.down,
            queue_packets: self.queue_packets.unwrap_or(QUEUE_DEFAULT),
            mtu: self.mtu.unwrap_or(default.mtu),
            pcap: self.pcap.clone(),
            localhost: vec![LOCALHOST_PORTS],
            realtime_server: false,
            trace: false,
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
