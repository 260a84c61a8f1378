//! How clients read.

use super::{Random, Wire};

/// How a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Reads everything.
    Eager,
    /// In small pieces.
    Slow,
    /// Reads nothing after this many bytes.
    Stalled(usize),
}

impl Reading {
    /// Draws a manner: three of `of` are slow, and one stalls before `stalled_before` bytes unless that is 0.
    pub fn drawn(of: u64, stalled_before: usize, random: &mut Random) -> Self {
        match random.below(of) {
            0 if stalled_before > 0 => Self::Stalled(random.within(0..stalled_before)),
            1..4 => Self::Slow,
            _ => Self::Eager,
        }
    }

    /// From here on the client reads whatever comes, unless it has stalled.
    pub fn hurry(&mut self) {
        if *self == Self::Slow {
            *self = Self::Eager;
        }
    }

    /// Reads; a slow client takes up to `piece` bytes.
    pub fn fetch(self, wire: &mut Wire, piece: usize, random: &mut Random) {
        wire.fetch(match self {
            Self::Eager => usize::MAX,
            Self::Slow => random.piece(piece),
            Self::Stalled(limit) => limit.saturating_sub(wire.fetched()),
        });
    }
}
