//! Contexts as one or a few letters each, so that a directive is a line; `of` has the meanings of the letters.

use crate::Contexts;

pub(super) const ANY: Contexts = Contexts::ANY;
pub(super) const B: Contexts = of(b"B");
pub(super) const E: Contexts = of(b"E");
pub(super) const H: Contexts = of(b"H");
pub(super) const K: Contexts = of(b"K");
pub(super) const L: Contexts = of(b"L");
pub(super) const M: Contexts = of(b"M");
pub(super) const S: Contexts = of(b"S");
pub(super) const U: Contexts = of(b"U");
pub(super) const V: Contexts = of(b"V");
pub(super) const AB: Contexts = of(b"AB");
pub(super) const HS: Contexts = of(b"HS");
pub(super) const HT: Contexts = of(b"HT");
pub(super) const LI: Contexts = of(b"LI");
pub(super) const LV: Contexts = of(b"LV");
pub(super) const LX: Contexts = of(b"LX");
pub(super) const SL: Contexts = of(b"SL");
pub(super) const TV: Contexts = of(b"TV");
pub(super) const UW: Contexts = of(b"UW");
pub(super) const ABK: Contexts = of(b"ABK");
pub(super) const HSL: Contexts = of(b"HSL");
pub(super) const LIX: Contexts = of(b"LIX");
pub(super) const SLI: Contexts = of(b"SLI");
pub(super) const SVB: Contexts = of(b"SVB");
pub(super) const HSAB: Contexts = of(b"HSAB");
pub(super) const HSLI: Contexts = of(b"HSLI");
pub(super) const HSLU: Contexts = of(b"HSLU");
pub(super) const HSLX: Contexts = of(b"HSLX");
pub(super) const HSTV: Contexts = of(b"HSTV");
pub(super) const LIXV: Contexts = of(b"LIXV");
pub(super) const SLJI: Contexts = of(b"SLJI");
pub(super) const SVAB: Contexts = of(b"SVAB");
pub(super) const TVAB: Contexts = of(b"TVAB");
pub(super) const HSLJI: Contexts = of(b"HSLJI");
pub(super) const HSLTV: Contexts = of(b"HSLTV");
pub(super) const HUTWA: Contexts = of(b"HUTWA");
pub(super) const LIXTV: Contexts = of(b"LIXTV");
pub(super) const SLJIV: Contexts = of(b"SLJIV");
pub(super) const HSLXTV: Contexts = of(b"HSLXTV");
pub(super) const HSTVAB: Contexts = of(b"HSTVAB");
pub(super) const HSLIXTV: Contexts = of(b"HSLIXTV");
pub(super) const HSLTVAB: Contexts = of(b"HSLTVAB");
pub(super) const HSTVABK: Contexts = of(b"HSTVABK");
pub(super) const MHSLTVAB: Contexts = of(b"MHSLTVAB");
pub(super) const HSLUTVWAB: Contexts = of(b"HSLUTVWAB");
pub(super) const HSLUTVWABK: Contexts = of(b"HSLUTVWABK");

/// The contexts with these letters.
const fn of(letters: &[u8]) -> Contexts {
    let mut all = Contexts::NONE;
    let mut at = 0;
    while at < letters.len() {
        all = all.or(match letters[at] {
            b'M' => Contexts::MAIN,
            b'E' => Contexts::EVENTS,
            b'H' => Contexts::HTTP,
            b'S' => Contexts::SERVER,
            b'L' => Contexts::LOCATION,
            b'J' => Contexts::IF_IN_SERVER,
            b'I' => Contexts::IF_IN_LOCATION,
            b'X' => Contexts::LIMIT_EXCEPT,
            b'U' => Contexts::UPSTREAM,
            b'T' => Contexts::STREAM,
            b'V' => Contexts::STREAM_SERVER,
            b'W' => Contexts::STREAM_UPSTREAM,
            b'A' => Contexts::MAIL,
            b'B' => Contexts::MAIL_SERVER,
            b'K' => Contexts::MODULE_BLOCK,
            _ => panic!("no context has this letter"),
        });
        at += 1;
    }
    all
}
