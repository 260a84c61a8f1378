//! Responses that are sent before the response proper: interim heads, and promises of pushed responses.
//!
//! Handlers put them here, and the driver takes them when they can be sent: interim heads whenever the exchange
//! waits or has a response, the promises with the response.
//!
//! Source: RFC 8297; RFC 9110 section 15.2; RFC 9113 section 8.4.

use std::collections::VecDeque;

use engines::http::ResponseHead;

use super::Exchange;

/// Interim responses and pushes ahead of a response.
#[derive(Debug, Default)]
pub struct EarlyResponses {
    /// Interim responses that have not left yet, with their statuses.
    pub hints: VecDeque<ResponseHead>,
    /// Paths, with their queries, that are to be pushed.
    pub pushes: Vec<Vec<u8>>,
}

impl Exchange {
    /// Queues an interim response, 1xx but not 101. False if too many wait already: it is dropped, as any of them may
    /// be.
    pub fn hint(&mut self, head: ResponseHead) -> bool {
        debug_assert!(matches!(head.status, 100 | 102..=199), "an interim status");
        let hints = &mut self.response.early_responses.get_or_insert_default().hints;
        let fits = hints.len() < HINTS_MAX;
        if fits {
            hints.push_back(head);
        }
        fits
    }
}

/// Maximum number of interim responses that wait to leave.
pub const HINTS_MAX: usize = 16;
