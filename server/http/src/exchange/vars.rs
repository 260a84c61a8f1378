//! Values that variables and regular expressions keep for one exchange.

use server_base::regex::{Captures, FailedMatch};

use super::part::part;
use crate::decision::LimitResults;

part! {
    /// Values of variables that are assigned or cached, and captures of the last regular expression.
    pub struct RequestVars() {
        /// Captures of the last regular expression.
        pub captures: Captures => clear,
        /// Whether the captures were left by the computation of a value, not by a directive's own expression.
        pub(super) captures_by_value: bool,
        /// An expression ran into its match limit.
        pub failed_match: FailedMatch,
        /// Slots: values of variables that are assigned or cached.
        pub(super) slots: Vec<Option<Vec<u8>>> => clear,
        /// Whether each slot has been assigned, if only with "not found".
        pub(super) known: Vec<bool> => clear,
        /// `$request_id`, made at its first use.
        pub request_id: Option<[u8; 16]>,
        /// Current depth of nested evaluations of variables.
        pub depth: u8,
        /// The results of limits, shared by a client's request and its subrequests.
        pub limits: LimitResults,
    }
}

impl RequestVars {
    /// Makes room for the slots of a configuration.
    #[inline(always)] // Every request comes through here.
    pub(super) fn resize(&mut self, slots: usize) {
        self.slots.resize(slots, None);
        self.known.resize(slots, false);
    }

    /// Takes over the values of another request under the same configuration, and its results of limits.
    pub(super) fn copy_of(&mut self, other: &Self) {
        self.limits = other.limits;
        self.slots.clone_from(&other.slots);
        self.known.clone_from(&other.known);
        self.request_id = other.request_id;
    }

    /// Value of a slot, if it has one.
    pub fn slot(&self, slot: usize) -> Option<&[u8]> {
        self.slots[slot].as_deref()
    }

    /// Whether a slot has been assigned, if only with "not found".
    pub fn slot_known(&self, slot: usize) -> bool {
        self.known[slot]
    }

    /// Assigns a slot.
    pub fn set_slot(&mut self, slot: usize, value: Option<Vec<u8>>) {
        self.slots[slot] = value;
        self.known[slot] = true;
    }
}
