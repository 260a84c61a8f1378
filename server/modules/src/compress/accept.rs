//! `Accept-Encoding`: the codings that a client accepts, with their weights.
//!
//! Source: RFC 9110, sections 12.4.2 and 12.5.3. As in nginx, a coding with a malformed weight is not accepted.

use super::coding::{CODINGS, Coding};

/// The codings that a client accepts, weights in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    named: [Option<u16>; CODINGS],
    identity: Option<u16>,
    any: Option<u16>,
}

impl Accepted {
    /// Reads the values of all `Accept-Encoding` fields.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut accepted = Self::default();
        for element in values.flat_map(|value| value.split(|b| *b == b',')) {
            accepted.add(element);
        }
        accepted
    }

    fn add(&mut self, element: &[u8]) {
        let mut parts = element.split(|b| *b == b';');
        let token = parts.next().unwrap_or_default().trim_ascii();
        let slot = match Coding::of(token) {
            Some(coding) => &mut self.named[coding as usize],
            None if token == b"*" => &mut self.any,
            None if token.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            None => return,
        };
        let weight = match (parts.next(), parts.next()) {
            (None, _) => WHOLE,
            (Some(parameter), None) => weight(parameter.trim_ascii()).unwrap_or(0),
            (Some(_), Some(_)) => 0,
        };
        // The first of two equal names counts, as in nginx.
        slot.get_or_insert(weight);
    }

    /// Returns the weight of a coding in thousandths; 0 if it is not accepted.
    pub(super) fn weight(&self, coding: Coding) -> u16 {
        self.named[coding as usize].or(self.any).unwrap_or(0)
    }

    /// Returns the offered coding with the highest weight, the first of several. `None` if none is accepted or the
    /// client prefers the identity.
    pub(super) fn best(&self, offered: impl Iterator<Item = Coding>) -> Option<Coding> {
        let mut best = None;
        let mut most = 0;
        for coding in offered {
            let weight = self.weight(coding);
            if weight > most {
                most = weight;
                best = Some(coding);
            }
        }
        best.filter(|_| self.identity.unwrap_or(0) <= most)
    }
}

/// Reads `q=0.5` into thousandths.
fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), fraction @ ..] = parameter else {
        return None;
    };
    let digits = match fraction {
        [] => &[],
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut weight = u16::from(whole - b'0') * WHOLE;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        weight += u16::from(digit - b'0') * unit;
    }
    (weight <= WHOLE).then_some(weight)
}

const WHOLE: u16 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(value: &str) -> Option<Coding> {
        Accepted::of([value.as_bytes()].into_iter()).best(Coding::ALL.into_iter())
    }

    #[test]
    fn the_best_coding_is_chosen() {
        let cases = [
            ("", None),
            ("gzip", Some(Coding::Gzip)),
            ("GZip", Some(Coding::Gzip)),
            ("x-gzip", Some(Coding::Gzip)),
            ("gzip, deflate", Some(Coding::Gzip)),
            ("deflate , gzip ;q=1.0", Some(Coding::Gzip)),
            ("gzip, deflate, br, zstd", Some(Coding::Brotli)),
            ("gzip, zstd", Some(Coding::Zstd)),
            ("gzip;q=1, br;q=0.9", Some(Coding::Gzip)),
            ("gzip;q=0.5, zstd;q=0.501, br;q=0.500", Some(Coding::Zstd)),
            ("*", Some(Coding::Brotli)),
            ("*, br;q=0", Some(Coding::Zstd)),
            ("br;q=0, zstd;q=0, *;q=0.1", Some(Coding::Gzip)),
            ("*;q=0", None),
            ("deflate", None),
            ("identity", None),
            ("identity, gzip", Some(Coding::Gzip)),
            ("identity;q=1, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=1", Some(Coding::Gzip)),
            ("agzip, gzipa", None),
        ];
        for (value, expected) in cases {
            assert_eq!(best(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_weight_is_three_digits_at_most_and_not_above_one() {
        for taken in ["q=0.001", "q=1", "Q=1.000", "q=1.", "q=0.5 "] {
            assert_eq!(
                best(&format!("gzip; {taken}")),
                Some(Coding::Gzip),
                "{taken}"
            );
        }
        for refused in [
            "q=0", "q=0.000", "q=0.0001", "q=1.001", "q=2", "q=.5", "q=", "q", "q=0.x", "a=1",
            "q=1;a=2",
        ] {
            assert_eq!(best(&format!("gzip;{refused}")), None, "{refused}");
        }
    }

    #[test]
    fn several_fields_are_one_list() {
        let values: [&[u8]; 2] = [b"gzip;q=0", b"br"];
        let accepted = Accepted::of(values.into_iter());
        assert_eq!(accepted.best(Coding::ALL.into_iter()), Some(Coding::Brotli));
        assert_eq!(accepted.weight(Coding::Gzip), 0);
    }
}
