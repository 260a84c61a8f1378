//! Captures of regular expressions that an exchange keeps.

use std::fmt;

use server_base::errlog::Level;
use server_base::regex::{Captures, FailedMatch, MatchState};

use super::Exchange;

impl MatchState for Exchange {
    fn captures(&mut self) -> &mut Captures {
        &mut self.vars.captures
    }

    fn set_slot(&mut self, slot: usize, value: Option<Vec<u8>>) {
        self.vars.set_slot(slot, value);
    }

    fn match_failed(&mut self, message: fmt::Arguments<'_>) {
        self.log(Level::Alert, message);
        if self.vars.failed_match == FailedMatch::None {
            self.vars.failed_match = FailedMatch::New;
        }
    }
}
