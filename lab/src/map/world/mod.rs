//! Shapes of countries in the Equal Earth projection.
//!
//! `convert.py` made `world.txt`. It names source and projection, and assigns disputed territories.

use std::str::FromStr;
use std::sync::LazyLock;

use super::CountryCode;

/// A country with a shape, a place for a marker, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Country {
    /// ISO 3166-1 alpha-2; `XK` is Kosovo.
    pub(super) code: CountryCode,
    /// Middle of the largest part, units.
    pub(super) middle: (i32, i32),
    /// Area, square units.
    area: u32,
    /// Path of SVG in units; `None` below the resolution.
    pub(super) path: Option<&'static str>,
}

impl Country {
    /// Whether the shape is too small to show a colour, so a marker shows it.
    pub(super) fn needs_marker(&self) -> bool {
        self.area < MARKER_BELOW
    }

    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let code = fields.next()?.as_bytes().try_into().ok()?;
        let path = fields.next_back().filter(|path| *path != "-");
        Some(Self {
            code,
            middle: (number(fields.next()?)?, number(fields.next()?)?),
            area: number(fields.next()?)?,
            path,
        })
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// All countries, by code.
pub(super) fn countries() -> &'static [Country] {
    static COUNTRIES: LazyLock<Vec<Country>> =
        LazyLock::new(|| WORLD.lines().filter_map(Country::parse).collect());
    &COUNTRIES
}

/// Returns the country of a code.
pub(super) fn find(code: CountryCode) -> Option<&'static Country> {
    let all = countries();
    let at = all.binary_search_by_key(&code, |country| country.code);
    at.ok().map(|at| &all[at])
}

const WORLD: &str = include_str!("world.txt");
/// Units of a pixel.
pub(super) const UNITS: f64 = 4.0;
/// Width and height of the map, pixels.
pub(super) const SIZE: (f64, f64) = (1000.0, 440.0);
/// Area of a shape, square units, below which a marker is drawn: a third of a marker's area.
const MARKER_BELOW: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_country_is_on_the_map() {
        let shown: Vec<CountryCode> = countries().iter().map(|one| one.code).collect();
        let wanted = geoip::codes().filter(|code| code != b"AQ");
        assert_eq!(shown, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn each_country_has_a_shape_or_a_marker_within_the_map() {
        let all = countries();
        assert_eq!(all.len(), WORLD.lines().count(), "each line is read");
        for country in all {
            assert!(country.path.is_some() || country.needs_marker());
            let (x, y) = country.middle;
            let (width, height) = (SIZE.0 * UNITS, SIZE.1 * UNITS);
            assert!((0.0..=width).contains(&x.into()), "{country:?}");
            assert!((0.0..=height).contains(&y.into()), "{country:?}");
        }
        assert_eq!(find(*b"SG").map(Country::needs_marker), Some(true));
        assert_eq!(find(*b"FR").map(Country::needs_marker), Some(false));
        assert_eq!(find(*b"ZZ"), None);
        assert_eq!(find(*b"AQ"), None);
    }

    /// A path is written into pictures without escaping.
    #[test]
    fn paths_have_numbers_and_commands_alone() {
        for country in countries() {
            let path = country.path.unwrap_or("m");
            assert!(path.starts_with('m'), "{path}");
            let is_known = |c: char| c.is_ascii_digit() || " -mlz".contains(c);
            assert!(path.chars().all(is_known), "{path}");
        }
        assert!(WORLD.len() < 150_000, "{}", WORLD.len());
    }
}
