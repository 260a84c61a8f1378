//! The freshness lifetime of a response.
//!
//! Settings of a configuration may replace it (`X-Accel-Expires`) or stand in for a missing one (`*_cache_valid`).
//! Source: RFC 9111 section 4.2.1, 4.2.2.

use super::directives::{DirectiveSet, saturated};
use super::message::{Expires, ResponseFacts};

/// Settings of the lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreshnessPolicy {
    /// Replaces all fields of the response, in seconds.
    pub override_s: Option<u32>,
    /// Lifetime of responses without an explicit one, in seconds.
    pub default_s: Option<u32>,
    /// Guesses a lifetime if there is no explicit one and no default.
    pub heuristic: Option<Heuristic>,
}

/// A guess by the time since the last modification (RFC 9111 section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The share of that time, 0 to 100 percent.
    pub percent: u32,
    /// The longest lifetime, in seconds.
    pub max_s: u32,
}

impl Default for Heuristic {
    /// 10 %, as RFC 9111 suggests, at most a day.
    fn default() -> Self {
        Self {
            percent: 10,
            max_s: 86_400,
        }
    }
}

/// The origin of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// [`FreshnessPolicy::override_s`].
    Override,
    /// `s-maxage`.
    SMaxage,
    /// `max-age`.
    MaxAge,
    /// `Expires`.
    Expires,
    /// [`FreshnessPolicy::default_s`].
    Default,
    /// [`FreshnessPolicy::heuristic`].
    Heuristic,
    /// There is none: the response is stale at once.
    None,
}

/// How long a response is fresh after its generation by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Seconds, from an age of 0.
    pub seconds: u32,
    /// Its origin.
    pub source: LifetimeSource,
}

/// Returns the freshness lifetime of a response.
///
/// `response_time_s` is the time of its reception; it replaces a missing `Date`. `has_query` is a fact of the target URI,
/// for which no lifetime is guessed.
#[must_use]
pub fn lifetime(
    response: &ResponseFacts,
    has_query: bool,
    response_time_s: i64,
    policy: &FreshnessPolicy,
) -> Lifetime {
    let directives = &response.directives;
    let date_s = response.date_s.unwrap_or(response_time_s);
    let expires = match response.expires {
        Expires::Absent => None,
        Expires::Invalid => Some(0),
        Expires::At(at_s) => Some(saturated(at_s.saturating_sub(date_s))),
    };
    let heuristic = policy
        .heuristic
        .filter(|_| !has_query)
        .and_then(|heuristic| guess(response, date_s, heuristic));
    let found = [
        (policy.override_s, LifetimeSource::Override),
        (directives.s_maxage_s, LifetimeSource::SMaxage),
        (directives.max_age_s, LifetimeSource::MaxAge),
        (expires, LifetimeSource::Expires),
        (policy.default_s, LifetimeSource::Default),
        (heuristic, LifetimeSource::Heuristic),
    ]
    .into_iter()
    .find_map(|(seconds, source)| seconds.map(|seconds| Lifetime { seconds, source }));
    found.unwrap_or(Lifetime {
        seconds: 0,
        source: LifetimeSource::None,
    })
}

/// A share of the time since the last modification, if the status permits a guess.
fn guess(response: &ResponseFacts, date_s: i64, heuristic: Heuristic) -> Option<u32> {
    let permitted = is_heuristically_cacheable(response.status)
        || response.directives.set.contains(DirectiveSet::PUBLIC);
    let unchanged_s = date_s.saturating_sub(response.last_modified_s.filter(|_| permitted)?);
    let share_s = u64::from(saturated(unchanged_s)) * u64::from(heuristic.percent) / 100;
    Some((share_s as u32).min(heuristic.max_s))
}

/// Whether a response with this status may have a guessed lifetime (RFC 9110 section 15.1).
#[must_use]
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(
        status,
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::{DELTA_SECONDS_MAX, ResponseDirectives};

    const DAY_S: i64 = 86_400;

    fn response(control: (Option<u32>, Option<u32>), expires: Expires) -> ResponseFacts {
        ResponseFacts {
            status: 200,
            directives: ResponseDirectives {
                s_maxage_s: control.0,
                max_age_s: control.1,
                ..ResponseDirectives::default()
            },
            expires,
            date_s: Some(1000),
            ..ResponseFacts::default()
        }
    }

    /// RFC 9111 section 4.2.1: the first match counts.
    #[test]
    fn explicit_lifetimes_have_an_order() {
        let policy = FreshnessPolicy {
            default_s: Some(7),
            ..FreshnessPolicy::default()
        };
        for (control, expires, seconds, source) in [
            (
                (Some(1), Some(2)),
                Expires::At(1003),
                1,
                LifetimeSource::SMaxage,
            ),
            (
                (None, Some(2)),
                Expires::At(1003),
                2,
                LifetimeSource::MaxAge,
            ),
            (
                (None, Some(0)),
                Expires::At(1003),
                0,
                LifetimeSource::MaxAge,
            ),
            ((None, Some(2)), Expires::Invalid, 2, LifetimeSource::MaxAge),
            ((None, None), Expires::At(1003), 3, LifetimeSource::Expires),
            ((None, None), Expires::At(1000), 0, LifetimeSource::Expires),
            ((None, None), Expires::At(900), 0, LifetimeSource::Expires),
            (
                (None, None),
                Expires::At(i64::MAX),
                DELTA_SECONDS_MAX,
                LifetimeSource::Expires,
            ),
            ((None, None), Expires::Invalid, 0, LifetimeSource::Expires),
            ((None, None), Expires::Absent, 7, LifetimeSource::Default),
        ] {
            let found = lifetime(&response(control, expires), false, 5000, &policy);
            assert_eq!(
                found,
                Lifetime { seconds, source },
                "{control:?} {expires:?}"
            );
        }
    }

    /// RFC 9111 section 4.2.1: without `Date`, the time of reception.
    #[test]
    fn a_missing_date_is_the_time_of_reception() {
        let response = ResponseFacts {
            date_s: None,
            ..response((None, None), Expires::At(5010))
        };
        let found = lifetime(&response, false, 5000, &FreshnessPolicy::default());
        assert_eq!(found.seconds, 10);
    }

    #[test]
    fn settings_replace_fields_or_stand_in() {
        let policy = FreshnessPolicy {
            override_s: Some(0),
            default_s: Some(7),
            heuristic: None,
        };
        let found = lifetime(
            &response((Some(1), None), Expires::Absent),
            false,
            0,
            &policy,
        );
        let replaced = Lifetime {
            seconds: 0,
            source: LifetimeSource::Override,
        };
        assert_eq!(found, replaced);
        let none = response((None, None), Expires::Absent);
        let found = lifetime(&none, false, 0, &FreshnessPolicy::default());
        assert_eq!((found.seconds, found.source), (0, LifetimeSource::None));
    }

    /// RFC 9111 section 4.2.2, RFC 9110 section 15.1.
    #[test]
    fn lifetimes_are_guessed_by_status_and_modification() {
        let policy = FreshnessPolicy {
            heuristic: Some(Heuristic::default()),
            ..FreshnessPolicy::default()
        };
        let guessed = |status, set, modified_s: Option<i64>, has_query| {
            let mut response = response((None, None), Expires::Absent);
            (response.status, response.directives.set) = (status, set);
            response.date_s = Some(0);
            response.last_modified_s = modified_s;
            let found = lifetime(&response, has_query, 0, &policy);
            (found.source == LifetimeSource::Heuristic).then_some(found.seconds)
        };
        let (none, public) = (DirectiveSet::default(), DirectiveSet::PUBLIC);
        for status in [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501] {
            assert_eq!(
                guessed(status, none, Some(-DAY_S), false),
                Some(8640),
                "{status}"
            );
        }
        for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
            assert_eq!(guessed(status, none, Some(-DAY_S), false), None, "{status}");
            assert_eq!(
                guessed(status, public, Some(-DAY_S), false),
                Some(8640),
                "{status}"
            );
        }
        assert_eq!(guessed(200, none, Some(-DAY_S), true), None);
        assert_eq!(guessed(200, none, None, false), None);
        assert_eq!(guessed(200, none, Some(DAY_S), false), Some(0));
        assert_eq!(guessed(200, none, Some(-9), false), Some(0));
        assert_eq!(guessed(200, none, Some(-1000 * DAY_S), false), Some(86_400));
        assert_eq!(guessed(200, none, Some(i64::MIN), false), Some(86_400));
    }
}
