//! The figures of a map, by country.

use std::collections::BTreeMap;

use store::{Answer, Histogram};

/// ISO 3166-1 alpha-2 code of a country, in capitals.
pub type CountryCode = [u8; 2];

/// Figures of one country.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountryFigures {
    /// Number of requests; of a store, those of all recorded connections.
    pub requests: u64,
    /// Round-trip times, one for each connection if connections are known.
    pub rtt: Histogram,
}

/// Figures of all countries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RttMap {
    /// By code.
    pub countries: BTreeMap<CountryCode, CountryFigures>,
    /// Clients of unknown countries.
    pub unknown: CountryFigures,
}

impl RttMap {
    /// Returns the figures of a country, `None` for clients of an unknown country.
    pub fn country_mut(&mut self, code: Option<CountryCode>) -> &mut CountryFigures {
        match code {
            Some(code) => self.countries.entry(code).or_default(),
            None => &mut self.unknown,
        }
    }

    /// Returns the map of a store's answer about countries. Its requests include those of connections through proxies.
    #[must_use]
    pub fn of_store(answer: &Answer) -> Self {
        let mut map = Self::default();
        for group in &answer.groups {
            let figures = map.country_mut(group.key.as_bytes().try_into().ok());
            figures.requests += group.totals.requests;
            figures.rtt.merge(&group.histogram);
        }
        map
    }

    /// Adds another map.
    pub fn merge(&mut self, other: &Self) {
        let known = other.countries.iter().map(|(code, own)| (Some(*code), own));
        for (code, theirs) in known.chain([(None, &other.unknown)]) {
            let own = self.country_mut(code);
            own.requests += theirs.requests;
            own.rtt.merge(&theirs.rtt);
        }
    }
}
