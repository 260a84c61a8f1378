//! Paths of files in a cache's directory: digits of the name choose subdirectories.
//!
//! ```text
//! levels=1:2    DIR/c/29/b7f54b2df7773722d382f4809d65029c
//! temporary     DIR/c/29/b7f54b2df7773722d382f4809d65029c.0000000017, DIR/0000000017
//! ```
//!
//! Source: nginx documentation, `proxy_cache_path`.

use crate::key::{EntryId, NAME_BYTES};

/// Maximum number of levels.
pub const LEVELS_MAX: usize = 3;

/// Digits of the name at each level of subdirectories, from the name's end: 1 or 2, 0 for no level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Levels([u8; LEVELS_MAX]);

impl Levels {
    /// Parses the value of `levels`: up to three numbers of 1 or 2 between colons.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut levels = [0; LEVELS_MAX];
        for (n, digits) in text.split(|byte| *byte == b':').enumerate() {
            *levels.get_mut(n)? = match digits {
                b"1" => 1,
                b"2" => 2,
                _ => return None,
            };
        }
        Some(Self(levels))
    }

    /// Returns the number of levels.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.iter().filter(|digits| **digits > 0).count()
    }

    /// Appends the path of an entry, relative to the directory of the cache.
    pub fn append(&self, id: &EntryId, path: &mut Vec<u8>) {
        let name = id.name();
        let mut end = name.len();
        for digits in self.0.into_iter().filter(|digits| *digits > 0) {
            let start = end - usize::from(digits);
            path.extend_from_slice(&name[start..end]);
            path.push(b'/');
            end = start;
        }
        path.extend_from_slice(&name);
    }

    /// Returns the path of an entry in the directory of a cache.
    #[must_use]
    pub fn path(&self, directory: &[u8], id: &EntryId) -> Vec<u8> {
        let mut path = Vec::with_capacity(directory.len() + 2 + 3 * LEVELS_MAX + NAME_BYTES);
        path.extend_from_slice(directory);
        path.push(b'/');
        self.append(id, &mut path);
        path
    }
}

/// Returns the temporary name beside a file: nginx's loader ignores it, too.
#[must_use]
pub fn temp_path(path: &[u8], number: u32) -> Vec<u8> {
    let mut temp = path.to_vec();
    temp.extend_from_slice(format!(".{number:010}").as_bytes());
    temp
}

/// A name in a directory of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// An entry.
    Entry(EntryId),
    /// A file that is or was received.
    Temp,
    /// A name as long as that of an entry, of other characters.
    Broken,
    /// A name that no cache writes.
    Foreign,
}

impl FileName {
    /// Classifies a name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        if let Some(id) = EntryId::parse(name) {
            return Self::Entry(id);
        }
        if name.len() == NAME_BYTES {
            return Self::Broken;
        }
        if name.len() == NUMBER_BYTES && name.iter().all(u8::is_ascii_digit) {
            return Self::Temp;
        }
        let Some((name, number)) = name.split_at_checked(NAME_BYTES) else {
            return Self::Foreign;
        };
        let is_number = number.len() == TEMP_BYTES && number[1..].iter().all(u8::is_ascii_digit);
        if EntryId::parse(name).is_some() && is_number && number[0] == b'.' {
            Self::Temp
        } else {
            Self::Foreign
        }
    }

    /// Whether a directory has a name that some `levels` can make: one or two hexadecimal digits.
    #[must_use]
    pub fn is_level(name: &[u8]) -> bool {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        matches!(name.len(), 1 | 2) && name.iter().all(is_digit)
    }
}

/// Digits of the number of a temporary file, as [`server_base::files::create_temp`] names it with `use_temp_path=off`.
const NUMBER_BYTES: usize = 10;
/// Length of the end of a temporary name: a dot and the number.
const TEMP_BYTES: usize = 1 + NUMBER_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &[u8] = b"b7f54b2df7773722d382f4809d65029c";

    #[test]
    fn digits_from_the_end_choose_the_directories() {
        let id = EntryId::parse(NAME).expect("a name");
        for (levels, path) in [
            ("1:2", "/c/c/29/b7f54b2df7773722d382f4809d65029c"),
            ("2:1:2", "/c/9c/2/50/b7f54b2df7773722d382f4809d65029c"),
            ("1", "/c/c/b7f54b2df7773722d382f4809d65029c"),
        ] {
            let levels = Levels::parse(levels.as_bytes()).expect("levels");
            assert_eq!(String::from_utf8(levels.path(b"/c", &id)), Ok(path.into()));
        }
        let flat = Levels::default();
        assert_eq!(flat.path(b"/c", &id), [b"/c/", NAME].concat());
        assert_eq!(flat.depth(), 0);
    }

    #[test]
    fn levels_are_one_to_three_numbers_of_one_or_two() {
        for (text, depth) in [("1", 1), ("2:2", 2), ("1:2:1", 3)] {
            let levels = Levels::parse(text.as_bytes());
            assert_eq!(levels.map(|levels| levels.depth()), Some(depth), "{text}");
        }
        for text in ["", "0", "3", "1:", ":1", "1:2:1:2", "11", "1:0", "a", "1 2"] {
            assert_eq!(Levels::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_are_classified() {
        let id = EntryId::parse(NAME).expect("a name");
        assert_eq!(FileName::of(NAME), FileName::Entry(id));
        let temp = temp_path(NAME, 17);
        assert!(temp.ends_with(b".0000000017"));
        assert_eq!(FileName::of(&temp), FileName::Temp);
        assert_eq!(FileName::of(&temp_path(NAME, u32::MAX)), FileName::Temp);
        assert_eq!(FileName::of(b"0000000042"), FileName::Temp);
        for (change, class) in [
            (&NAME.to_ascii_uppercase()[..], FileName::Broken),
            (b"zzf54b2df7773722d382f4809d65029c", FileName::Broken),
            (b"README", FileName::Foreign),
            (b"000000042", FileName::Foreign),
            (b"00000000042", FileName::Foreign),
            (b"000000004x", FileName::Foreign),
            (&[NAME, b".gz"].concat(), FileName::Foreign),
            (&[NAME, b".000000000x"].concat(), FileName::Foreign),
            (&[NAME, b".00000000001"].concat(), FileName::Foreign),
            (b"", FileName::Foreign),
        ] {
            assert_eq!(FileName::of(change), class, "{change:?}");
        }
        for (name, is_level) in [("a", true), ("0f", true), ("", false), ("g", false)] {
            assert_eq!(FileName::is_level(name.as_bytes()), is_level);
        }
        assert!(!FileName::is_level(b"abc") && !FileName::is_level(b"A"));
    }
}
