//! Captures of regular expressions that an exchange keeps.

use std::fmt;

use server_base::errlog::Level;
use server_base::regex::{Captures, FailedMatch, MatchState};

use super::Exchange;

impl Exchange {
    /// Runs a match for the computation of a value, and the use of its captures.
    ///
    /// Captures of a directive's own expression come back afterwards. Without them the captures of the value stay:
    /// other directives may use them (nginx documentation, directive `map`). The next value may replace them.
    pub fn match_for_value<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let is_own = !self.vars.captures.is_empty() && !self.vars.captures_by_value;
        let own = is_own.then(|| std::mem::take(&mut self.vars.captures));
        let result = run(self);
        self.vars.captures_by_value = own.is_none();
        if let Some(own) = own {
            self.vars.captures = own;
        }
        result
    }
}

impl MatchState for Exchange {
    fn captures(&mut self) -> &mut Captures {
        self.vars.captures_by_value = false;
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
