//! Slots: values of variables that are assigned or cached for one exchange.

use super::Exchange;

impl Exchange {
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
