//! Figures of lines: by country, with the number of damaged lines.

use std::net::IpAddr;

use super::client::Client;
use super::line::{Fault, LineFormat, Record, Rtt, Sample};
use super::{Countries, LINE_BYTES_MAX};
use crate::map::{CountryCode, CountryFigures, RttMap};

/// A damaged line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damaged {
    /// The number of its file, from 0.
    pub input: usize,
    /// The number of the line in its file, from 1.
    pub line: u64,
    /// Why.
    pub fault: Fault,
    /// Its begin.
    pub text: Vec<u8>,
}

/// Numbers of lines and samples.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Lines, without empty ones.
    pub lines: u64,
    /// Damaged lines.
    pub damaged: u64,
    /// The first damaged line, in the order of the files.
    pub first_damaged: Option<Damaged>,
    /// Samples of `$tcpinfo_min_rtt`.
    pub minimum: u64,
    /// Samples of `$tcpinfo_rtt`.
    pub smoothed: u64,
    /// Samples of lines without `$connection_requests`.
    pub unnumbered: u64,
    /// Times of connections of proxies, left out.
    pub proxied: u64,
}

impl Counts {
    /// Lines that were read.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.lines - self.damaged
    }

    fn merge(&mut self, other: &Self) {
        self.lines += other.lines;
        self.damaged += other.damaged;
        self.minimum += other.minimum;
        self.smoothed += other.smoothed;
        self.unnumbered += other.unnumbered;
        self.proxied += other.proxied;
        let both = self.first_damaged.take().into_iter();
        self.first_damaged = both.chain(other.first_damaged.clone()).min();
    }
}

/// Figures of one thread.
#[derive(Debug)]
pub(super) struct Tally {
    counts: Counts,
    /// Figures with their countries, in the order of their first clients.
    figures: Vec<(Option<CountryCode>, CountryFigures)>,
    /// Places of countries in `figures`, by the bytes of the code.
    places: Box<[u16]>,
    /// Clients of late with places in `figures`: logs have many lines of a client, near each other.
    recent: Box<[(IpAddr, u16)]>,
}

/// The place of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The number of the file, from 0.
    pub(super) input: usize,
    /// The number of the first line.
    pub(super) line: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            // The first place is that of unknown countries.
            figures: vec![(None, CountryFigures::default())],
            places: vec![0; 1 << 16].into(),
            recent: vec![(IpAddr::from([0; 4]), NOWHERE); RECENT].into(),
        }
    }
}

impl Tally {
    /// Counts the lines of a block.
    pub(super) fn block(
        &mut self,
        block: &[u8],
        origin: Origin,
        formats: &[LineFormat],
        countries: Countries<'_>,
    ) {
        let has_nul = memchr::memchr(0, block).is_some();
        let (mut begin, mut number) = (0, origin.line);
        let ends = memchr::memchr_iter(b'\n', block);
        let is_open = block.last() != Some(&b'\n');
        for end in ends.chain(is_open.then_some(block.len())) {
            let line = &block[begin..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            begin = end + 1;
            if !line.is_empty() {
                self.counts.lines += 1;
                match read(line, formats, has_nul) {
                    Ok(record) => self.count(&record, countries),
                    Err(fault) => self.damage(line, fault, (origin.input, number)),
                }
            }
            number += 1;
        }
    }

    fn count(&mut self, record: &Record, countries: Countries<'_>) {
        let place = match record.client {
            Client::Address(ip) => self.place(ip, countries),
            Client::Unknown => UNKNOWN,
        };
        let (_, figures) = &mut self.figures[usize::from(place)];
        figures.requests += 1;
        match record.sample {
            Sample::None => {}
            Sample::Proxied => self.counts.proxied += 1,
            Sample::Time(kind, us) => {
                figures.rtt.add(us.into());
                self.counts.unnumbered += u64::from(!record.is_numbered);
                match kind {
                    Rtt::Minimum => self.counts.minimum += 1,
                    Rtt::Smoothed => self.counts.smoothed += 1,
                }
            }
        }
    }

    /// The place of a client's country in `figures`.
    fn place(&mut self, ip: IpAddr, countries: Countries<'_>) -> u16 {
        let slot = &mut self.recent[slot(ip)];
        if slot.0 == ip && slot.1 != NOWHERE {
            return slot.1;
        }
        let place = match countries(ip) {
            None => UNKNOWN,
            Some(code) => {
                let known = &mut self.places[usize::from(u16::from_be_bytes(code))];
                // A database without letters in its codes could use up all places.
                if *known == UNKNOWN && self.figures.len() < usize::from(NOWHERE) {
                    *known = self.figures.len() as u16;
                    self.figures.push((Some(code), CountryFigures::default()));
                }
                *known
            }
        };
        *slot = (ip, place);
        place
    }

    fn damage(&mut self, line: &[u8], fault: Fault, (input, number): (usize, u64)) {
        self.counts.damaged += 1;
        let first = self.counts.first_damaged.as_ref();
        if first.is_none_or(|first| (input, number) < (first.input, first.line)) {
            self.counts.first_damaged = Some(Damaged {
                input,
                line: number,
                fault,
                text: line[..line.len().min(SHOWN_BYTES_MAX)].to_vec(),
            });
        }
    }

    /// Adds the figures to others.
    pub(super) fn add_to(&self, map: &mut RttMap, counts: &mut Counts) {
        counts.merge(&self.counts);
        for (code, own) in &self.figures {
            if own.requests > 0 {
                let figures = map.country_mut(*code);
                figures.requests += own.requests;
                figures.rtt.merge(&own.rtt);
            }
        }
    }
}

/// Reads a line by the first format that it has.
fn read(line: &[u8], formats: &[LineFormat], has_nul: bool) -> Result<Record, Fault> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Fault::Length);
    }
    if has_nul && memchr::memchr(0, line).is_some() {
        return Err(Fault::Nul);
    }
    let mut fault = Fault::Form;
    for format in formats {
        match format.read(line) {
            Ok(record) => return Ok(record),
            // A line of a form with another client is nearer.
            Err(own) => fault = fault.max(own),
        }
    }
    Err(fault)
}

/// The slot of a client in the list of those of late.
fn slot(ip: IpAddr) -> usize {
    let number = match ip {
        IpAddr::V4(ip) => u64::from(u32::from(ip)),
        IpAddr::V6(ip) => {
            let number = u128::from(ip);
            (number >> 64) as u64 ^ number as u64
        }
    };
    // Source: Knuth, The Art of Computer Programming, volume 3, section 6.4, "multiplicative hashing".
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - RECENT.ilog2())) as usize
}

/// Number of clients of late; 160 KiB.
const RECENT: usize = 1 << 13;
/// The place of clients of unknown countries.
const UNKNOWN: u16 = 0;
/// No place.
const NOWHERE: u16 = u16::MAX;
/// Bytes of a damaged line that are shown.
const SHOWN_BYTES_MAX: usize = 80;

#[cfg(test)]
mod tests;
