//! Which events of the probe ([`crate::probe`]) the modules of a configuration want.

use crate::timing::ALL;

/// Which events are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Share of the requests with events, in hundredths of a percent: [`ALL`], or the largest sampled share if only
    /// samples need them. So the clock is not read for other requests.
    pub share: u64,
    /// Some responses are sampled ([`crate::timing::Sampled`]).
    pub samples: bool,
    /// The log of a sampled response waits for the kernel's times.
    pub holds_log: bool,
    /// Share of the connections that are recorded for the store, in hundredths of a percent.
    pub connections: u64,
    /// Figures of connections for the arms of experiments.
    pub arms: ArmFigures,
    /// Whether anything is wanted: read for each request, so it is one field.
    any: bool,
}

/// Figures of connections for the arms of experiments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArmFigures {
    /// None: there are no experiments.
    #[default]
    Off,
    /// They are counted.
    Counted,
    /// They are counted, and those of a closed connection go to the store.
    Stored,
}

impl Wants {
    /// Returns those of all requests, or none.
    pub fn all(wanted: bool) -> Self {
        let share = if wanted { ALL } else { 0 };
        Self {
            share,
            ..Self::default()
        }
    }

    /// Returns those of a share of responses that are sampled, in hundredths of a percent; `holds_log`: their log waits.
    pub fn samples(share: u64, holds_log: bool) -> Self {
        Self {
            share,
            samples: share > 0,
            holds_log,
            ..Self::default()
        }
    }

    /// Returns those of a share of recorded connections, in hundredths of a percent.
    pub fn connections(share: u64) -> Self {
        Self {
            connections: share,
            ..Self::default()
        }
    }

    /// Returns those of experiments, with a store or without.
    pub(crate) fn arms(has_store: bool) -> Self {
        Self {
            arms: match has_store {
                true => ArmFigures::Stored,
                false => ArmFigures::Counted,
            },
            ..Self::default()
        }
    }

    /// Whether connections have figures for arms.
    #[inline]
    pub fn has_arms(&self) -> bool {
        self.arms != ArmFigures::Off
    }

    /// Whether connections may be recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.connections > 0 || self.has_arms()
    }

    /// Whether any events are wanted.
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }

    /// Adds the subscriptions of another module.
    pub(crate) fn add(&mut self, other: Self) {
        self.share = self.share.max(other.share);
        self.samples |= other.samples;
        self.holds_log |= other.holds_log;
        self.connections = self.connections.max(other.connections);
        self.arms = self.arms.max(other.arms);
        self.any = self.share != 0 || self.records();
    }
}
