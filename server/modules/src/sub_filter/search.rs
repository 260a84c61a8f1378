//! Finds the first of several strings in a text; both are in lower case.
//!
//! A few strings are searched one by one, with vector instructions. Many strings share one table of distances (Horspool's
//! algorithm).

use memchr::memmem::Finder;

/// Strings to search for, in order of precedence.
pub(super) enum Search {
    Each(Vec<One>),
    Table(Box<Shifts>),
}

/// A string by its number.
pub(super) struct One {
    number: usize,
    finder: Finder<'static>,
    /// Its first match at or after `from`.
    found: Option<usize>,
    /// Search position; `None` before the first search.
    from: Option<usize>,
}

/// Distances by the last byte of a window as long as the shortest string.
pub(super) struct Shifts {
    window: usize,
    shift: [u8; 256],
    /// Strings with this byte at the end of the window: a range of `ordered`.
    starts: [u16; 257],
    ordered: Vec<(usize, Box<[u8]>)>,
}

impl Search {
    /// Takes strings by their numbers, in ascending order; none may be empty.
    pub(super) fn new<'s>(strings: impl ExactSizeIterator<Item = (usize, &'s [u8])>) -> Self {
        if strings.len() > EACH_MAX {
            return Self::Table(Box::new(Shifts::new(strings)));
        }
        let one = |(number, string)| One {
            number,
            finder: Finder::new(string).into_owned(),
            found: None,
            from: None,
        };
        Self::Each(strings.map(one).collect())
    }

    /// Resets the state for another text.
    pub(super) fn reset(&mut self) {
        if let Self::Each(all) = self {
            for one in all {
                one.from = None;
            }
        }
    }

    /// Removes a string from the search.
    pub(super) fn forget(&mut self, number: usize) {
        match self {
            Self::Each(all) => all.retain(|one| one.number != number),
            Self::Table(shifts) => shifts.forget(number),
        }
    }

    /// Returns the first match that begins in `at..end`, with the number of its string. If several strings match at one
    /// place, the lowest number counts. Every string must fit into the text at `end - 1`. Between two resets `at` must
    /// not fall, and text and end must not change.
    pub(super) fn next(&mut self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
        match self {
            Self::Each(all) => {
                let found = all
                    .iter_mut()
                    .filter_map(|one| Some((one.next(text, at, end)?, one.number)));
                found.min()
            }
            Self::Table(shifts) => shifts.next(text, at, end),
        }
    }
}

impl One {
    fn next(&mut self, text: &[u8], at: usize, end: usize) -> Option<usize> {
        let known = self.from.is_some() && self.found.is_none_or(|found| found >= at);
        if !known {
            let end = end.saturating_add(self.finder.needle().len() - 1);
            let within = text.get(at..end.min(text.len())).unwrap_or_default();
            self.found = self.finder.find(within).map(|found| at + found);
            self.from = Some(at);
        }
        self.found
    }
}

impl Shifts {
    fn new<'s>(strings: impl Iterator<Item = (usize, &'s [u8])>) -> Self {
        let mut ordered: Vec<(usize, Box<[u8]>)> = strings
            .map(|(number, string)| (number, string.into()))
            .collect();
        let window = ordered.iter().map(|(_, string)| string.len()).min();
        let window = window.unwrap_or(1).min(WINDOW_MAX);
        let mut shift = [window as u8; 256];
        for (_, string) in &ordered {
            for (n, byte) in string[..window].iter().enumerate() {
                let least = &mut shift[usize::from(*byte)];
                *least = (*least).min((window - 1 - n) as u8);
            }
        }
        ordered.sort_by_key(|(number, string)| (string[window - 1], *number));
        let before = |byte| ordered.partition_point(|(_, s)| usize::from(s[window - 1]) < byte);
        Self {
            window,
            shift,
            starts: std::array::from_fn(|byte| before(byte) as u16),
            ordered,
        }
    }

    /// Distances stay: they are too short at worst.
    fn forget(&mut self, number: usize) {
        let Some(place) = self.ordered.iter().position(|(n, _)| *n == number) else {
            return;
        };
        let (_, string) = self.ordered.remove(place);
        for start in &mut self.starts[usize::from(string[self.window - 1]) + 1..] {
            *start -= 1;
        }
    }

    fn next(&self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
        // Positions of the last byte of the window.
        let end = (end + self.window - 1).min(text.len());
        let mut last = at + self.window - 1;
        while last < end {
            let byte = usize::from(text[last]);
            let shift = usize::from(self.shift[byte]);
            if shift > 0 {
                last += shift;
                continue;
            }
            let start = last + 1 - self.window;
            let (from, to) = (self.starts[byte], self.starts[byte + 1]);
            let ending = &self.ordered[usize::from(from)..usize::from(to)];
            let mut matching = ending.iter().filter(|(_, s)| text[start..].starts_with(s));
            if let Some((number, _)) = matching.next() {
                return Some((start, *number));
            }
            last += 1;
        }
        None
    }
}

/// Maximum number of strings that are searched one by one: eight passes cost as much as one with the table.
const EACH_MAX: usize = 8;
/// Maximum length of the window, bytes: distances have eight bits.
const WINDOW_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification is a comparison at each place. Numbers of strings are around the limit, and strings overlap.
    #[test]
    fn one_by_one_and_by_table_find_the_same() {
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..3_000 {
            let count = [1, 2, EACH_MAX - 1, EACH_MAX, EACH_MAX + 1, 20][round % 6];
            let word = |random: &mut fastrand::Rng, max: usize| -> Vec<u8> {
                let len = random.usize(1..=max);
                (0..len).map(|_| b"abc"[random.usize(..3)]).collect()
            };
            let mut strings: Vec<Vec<u8>> = (0..count).map(|_| word(&mut random, 6)).collect();
            let text = word(&mut random, 60);
            let longest = strings.iter().map(Vec::len).max().unwrap_or(1);
            let end = (text.len() + 1).saturating_sub(longest);
            let numbered = strings.iter().enumerate().map(|(n, s)| (n, s.as_slice()));
            let mut search = Search::new(numbered);
            assert_eq!(matches!(search, Search::Table(_)), count > EACH_MAX);
            let mut at = 0;
            loop {
                let here = |s: &Vec<u8>, at: usize| !s.is_empty() && text[at..].starts_with(s);
                let number = |at: usize| strings.iter().position(|s| here(s, at));
                let expected = (at..end).find_map(|at| Some((at, number(at)?)));
                assert_eq!(
                    search.next(&text, at, end),
                    expected,
                    "{strings:?} {text:?} {at}"
                );
                let Some((found, number)) = expected else {
                    break;
                };
                at = found + 1;
                if random.bool() {
                    search.forget(number);
                    strings[number].clear();
                }
            }
        }
    }

    #[test]
    fn strings_as_long_as_the_window_and_longer() {
        for len in [WINDOW_MAX - 1, WINDOW_MAX, WINDOW_MAX + 1] {
            let strings: Vec<Vec<u8>> = (0..=EACH_MAX as u8)
                .map(|n| [vec![b'a'; len - 1], vec![b'b' + n]].concat())
                .collect();
            let numbered = strings.iter().enumerate().map(|(n, s)| (n, s.as_slice()));
            let mut search = Search::new(numbered);
            let text = [vec![b'a'; 700], strings[3].clone(), vec![b'z'; 300]].concat();
            assert_eq!(search.next(&text, 0, 900), Some((700, 3)), "{len}");
            assert_eq!(search.next(&text, 701, 900), None, "{len}");
        }
    }
}
