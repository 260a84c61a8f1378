//! The state of a stored response: its times, from a response that is received or from a file.
//!
//! After a 304, nginx and this cache may write the new times over the old ones in the binary head of a file. Response head
//! and notes stay. So the times of the binary head override those of `Cache-Control`.
//!
//! Absent: the format of files ([`crate::disk`]). Source: RFC 9111 sections 4.2, 4.3.4, 4.3.5, 4.4; RFC 5861.

use super::age::current_age_s;
use super::directives::{DirectiveSet, saturated};
use super::message::ResponseFacts;
use super::response_directives::ResponseDirectives;
use crate::disk::{Header, Notes};

/// A mark of a stored response, made by an invalidation or a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// There is none.
    #[default]
    None,
    /// Stale from a time on: a soft purge, or a HEAD response that differs (RFC 9111 section 4.3.5).
    Stale {
        /// That time, in seconds since 1970.
        since_s: i64,
    },
    /// To be validated before any use (RFC 9111 section 4.4).
    Invalid,
}

/// The state of a stored response.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The directives of the response. Their seconds are not used.
    pub directives: &'a ResponseDirectives,
    /// The time at which the response becomes stale, in seconds since 1970: `valid_sec` of nginx's stored head. It is before
    /// the reception of a response that was stale then.
    pub fresh_until_s: i64,
    /// `stale-while-revalidate`, in seconds after `fresh_until_s`.
    pub stale_while_revalidate_s: Option<u32>,
    /// `stale-if-error`, in seconds after `fresh_until_s`.
    pub stale_if_error_s: Option<u32>,
    /// The age at reception or last validation, in seconds.
    pub initial_age_s: u32,
    /// The time of reception or last validation, in seconds since 1970.
    pub response_time_s: i64,
    /// A mark.
    pub mark: Mark,
}

impl<'a> Stored<'a> {
    /// Returns the state of a response that is received, or validated by a 304 and updated.
    ///
    /// `lifetime_s` is the freshness lifetime in seconds, `initial_age_s` the age at reception in seconds, `response_time_s`
    /// the time of reception in seconds since 1970.
    #[must_use]
    pub fn received(
        directives: &'a ResponseDirectives,
        lifetime_s: u32,
        initial_age_s: u32,
        response_time_s: i64,
    ) -> Self {
        let left_s = i64::from(lifetime_s) - i64::from(initial_age_s);
        Self {
            directives,
            fresh_until_s: response_time_s.saturating_add(left_s),
            stale_while_revalidate_s: directives.stale_while_revalidate_s,
            stale_if_error_s: directives.stale_if_error_s,
            initial_age_s,
            response_time_s,
            mark: Mark::None,
        }
    }

    /// Returns the state of a response in a file. `facts` are those of its response head.
    ///
    /// Times of the binary head override fields of the response head. Any times are accepted; impossible ones make the
    /// response stale or old. The `Age` of a response head without notes counts from the last validation, since nginx does
    /// not store the `Age` of a 304.
    #[must_use]
    pub fn of_file(header: &Header<'_>, notes: &Notes<'_>, facts: &'a ResponseFacts) -> Self {
        let stale_s = |seconds: i64| (seconds > 0).then(|| saturated(seconds));
        let received_s = notes.response_ms.map(|ms| ms.div_euclid(1000));
        let (response_time_s, initial_age_s) = match received_s {
            None => (header.date_s, facts.age_s.unwrap_or(0)),
            // `date_s` contains the age, whether the response was validated since or not.
            Some(received_s) => {
                let age_s = saturated(received_s.saturating_sub(header.date_s));
                (received_s.max(header.date_s), age_s)
            }
        };
        Self {
            directives: &facts.directives,
            fresh_until_s: header.valid_s,
            stale_while_revalidate_s: stale_s(header.updating_s),
            stale_if_error_s: stale_s(header.error_s),
            initial_age_s,
            response_time_s,
            mark: Mark::None,
        }
    }

    /// Returns a binary head with the times of this response: all that a 304 changes in a file in place.
    ///
    /// [`ResponseDirectives::differs_in_seconds_only`] checks whether the stored response head still applies.
    ///
    /// `date_s` becomes the time at which the age was 0. So the age is that of the 304, and the notes stay. The mark has no
    /// effect.
    #[must_use]
    pub fn header<'h>(&self, old: &Header<'h>) -> Header<'h> {
        let age_s = i64::from(self.initial_age_s);
        Header {
            valid_s: self.fresh_until_s,
            valid_ms: 0,
            updating_s: self.updating_s(),
            error_s: self.error_s(),
            date_s: self.response_time_s.saturating_sub(age_s),
            ..*old
        }
    }

    /// The current age in seconds, the value of `Age` to send.
    #[must_use]
    pub fn age_s(&self, now_s: i64) -> u32 {
        current_age_s(self.initial_age_s, self.response_time_s, now_s)
    }

    /// Seconds for which the response stays fresh; 0 or less if it is stale.
    #[must_use]
    pub fn ttl_s(&self, now_s: i64) -> i64 {
        // A clock that was set back prolongs no freshness, and makes no marked response fresh.
        let counted_s = now_s.max(self.response_time_s);
        let ttl_s = self.fresh_until_s.saturating_sub(counted_s);
        match self.mark {
            Mark::None => ttl_s,
            Mark::Stale { since_s } => ttl_s.min(since_s.saturating_sub(now_s)).min(0),
            Mark::Invalid => ttl_s.min(0),
        }
    }

    /// Whether the response is fresh: its lifetime is greater than its age (RFC 9111 section 4.2).
    #[must_use]
    pub fn is_fresh(&self, now_s: i64) -> bool {
        self.ttl_s(now_s) > 0
    }

    /// Seconds after `fresh_until_s` in which the response may be sent while it is updated: `updating_sec` of nginx's stored
    /// head. 0 without `stale-while-revalidate`, or if another directive forbids it.
    #[must_use]
    pub fn updating_s(&self) -> i64 {
        self.permitted_s(self.stale_while_revalidate_s)
    }

    /// Seconds after `fresh_until_s` in which the response may be sent after an error of the server: `error_sec` of nginx's
    /// stored head. 0 without `stale-if-error`, or if another directive forbids it.
    #[must_use]
    pub fn error_s(&self) -> i64 {
        self.permitted_s(self.stale_if_error_s)
    }

    fn permitted_s(&self, stale_s: Option<u32>) -> i64 {
        let permitted = stale_s.filter(|_| !self.directives.requires_validation());
        permitted.map_or(0, i64::from)
    }

    /// Whether the response is at most `limit_s` seconds past its freshness.
    pub(super) fn is_within(&self, limit_s: Option<u32>, now_s: i64) -> bool {
        limit_s.is_some_and(|limit_s| self.ttl_s(now_s) >= -i64::from(limit_s))
    }

    /// Whether no use without validation is permitted at all.
    pub(super) fn needs_validation(&self) -> bool {
        self.mark == Mark::Invalid || self.directives.set.contains(DirectiveSet::NO_CACHE)
    }
}
