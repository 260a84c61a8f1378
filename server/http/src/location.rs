//! The search for the location of a URI.
//!
//! Exact names come first, then the longest prefix, then regular expressions in file order, unless that prefix has
//! `^~`; the same again inside the location found. Prefixes are sorted, each with a link to the longest entry that
//! is a prefix of it. So a lookup is one binary search and a few steps up.
//!
//! Source: nginx documentation, directive `location`.

use engines::http::Method;
use server_base::regex::{ListedRegex, Regex};

/// The matching rule of a location.
#[derive(Debug)]
pub enum LocationKind {
    /// `location = /x`.
    Exact,
    /// `location /x`.
    Prefix,
    /// `location ^~ /x`: no regular expression is tried after it.
    PrefixOnly,
    /// `location ~ x` or `~* x`.
    Regex(Regex),
    /// `location @x`.
    Named,
    /// An `if` or `limit_except` block, or a server's own settings.
    Block,
}

/// The locations inside a server or a location.
#[derive(Debug, Default)]
pub struct LocationSet {
    exact: Box<[(Vec<u8>, usize)]>,
    prefix: Box<[Prefix]>,
    pub(crate) regex: Box<[(ListedRegex, usize)]>,
    /// Locations with names that end with a slash. The key is the name without the slash; a request for it is
    /// redirected.
    slashes: Box<[(Vec<u8>, usize)]>,
    /// One bit for each length of those names, modulo 64: nearly every URI is none of them by its length.
    slash_lengths: u64,
}

#[derive(Debug)]
struct Prefix {
    name: Vec<u8>,
    location: usize,
    parent: Option<usize>,
}

/// The match of a set of locations for a URI before regular expressions are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Static {
    /// An exact match: final.
    Exact(usize),
    /// The longest prefix.
    Prefix(usize),
    /// Nothing.
    None,
}

fn length_bit(bytes: usize) -> u64 {
    1 << (bytes % 64)
}

impl LocationSet {
    /// Makes a set of names and locations; regular expressions stay in the order given.
    pub fn new(
        mut exact: Vec<(Vec<u8>, usize)>,
        mut prefix: Vec<(Vec<u8>, usize)>,
        regex: Vec<(ListedRegex, usize)>,
    ) -> Self {
        exact.sort();
        prefix.sort();
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(prefix.len());
        for (name, location) in prefix {
            let mut parent = prefixes.len().checked_sub(1);
            while let Some(p) = parent {
                if name.starts_with(&prefixes[p].name) {
                    break;
                }
                parent = prefixes[p].parent;
            }
            prefixes.push(Prefix {
                name,
                location,
                parent,
            });
        }
        Self {
            exact: exact.into(),
            prefix: prefixes.into(),
            regex: regex.into(),
            ..Self::default()
        }
    }

    /// Adds locations with names that end with a slash; requests for their names without it are redirected.
    #[must_use]
    pub fn with_slashes(mut self, named: Vec<(Vec<u8>, usize)>) -> Self {
        self.slashes = named.into();
        for (name, _) in &mut self.slashes {
            name.pop();
            self.slash_lengths |= length_bit(name.len());
        }
        self.slashes.sort();
        self
    }

    /// The location with the name of a URI and a slash, unless a location has the URI itself as its name.
    #[cold]
    pub(crate) fn find_slash(&self, uri: &[u8]) -> Option<usize> {
        let at = self
            .slashes
            .binary_search_by(|(name, _)| name.as_slice().cmp(uri))
            .ok()?;
        match self.prefix.iter().any(|prefix| prefix.name == uri) {
            true => None,
            false => Some(self.slashes[at].1),
        }
    }

    /// Whether [`LocationSet::find_slash`] may find something, by the length of the URI.
    #[inline]
    pub(crate) fn may_lack_slash(&self, uri: &[u8]) -> bool {
        self.slash_lengths & length_bit(uri.len()) != 0
    }

    /// The exact match or the longest prefix.
    pub fn find(&self, uri: &[u8]) -> Static {
        if let Ok(at) = self
            .exact
            .binary_search_by(|(name, _)| name.as_slice().cmp(uri))
        {
            return Static::Exact(self.exact[at].1);
        }
        let mut at = self
            .prefix
            .partition_point(|p| p.name.as_slice() <= uri)
            .checked_sub(1);
        while let Some(i) = at {
            let entry = &self.prefix[i];
            if uri.starts_with(&entry.name) {
                return Static::Prefix(entry.location);
            }
            at = entry.parent;
        }
        Static::None
    }
}

/// The bit of a method in a mask.
pub fn method_bit(method: Method) -> u32 {
    1 << (method as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> LocationSet {
        let names = ["/", "/images/", "/images/a", "/img", "/z", "/images/b/c"];
        let prefix = names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_bytes().to_vec(), i))
            .collect();
        LocationSet::new(vec![(b"/exact".to_vec(), 100)], prefix, Vec::new())
    }

    #[test]
    fn the_longest_prefix_wins() {
        let set = set();
        assert_eq!(set.find(b"/"), Static::Prefix(0));
        assert_eq!(set.find(b"/images/zzz"), Static::Prefix(1));
        assert_eq!(set.find(b"/images/abc"), Static::Prefix(2));
        assert_eq!(set.find(b"/images/b/"), Static::Prefix(1));
        assert_eq!(set.find(b"/images/b/c/d"), Static::Prefix(5));
        assert_eq!(set.find(b"/imga"), Static::Prefix(3));
        assert_eq!(set.find(b"/zz"), Static::Prefix(4));
        assert_eq!(set.find(b""), Static::None);
    }

    #[test]
    fn exact_wins_over_prefix() {
        assert_eq!(set().find(b"/exact"), Static::Exact(100));
        assert_eq!(set().find(b"/exact/"), Static::Prefix(0));
    }

    #[test]
    fn lookup_equals_a_linear_search() {
        let names: Vec<String> = (0..200)
            .map(|i| format!("/{:x}", i * 7919 % 4096))
            .collect();
        let prefix = names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_bytes().to_vec(), i))
            .collect();
        let set = LocationSet::new(Vec::new(), prefix, Vec::new());
        for i in 0..4096 {
            let uri = format!("/{i:x}");
            let expected = names
                .iter()
                .filter(|n| uri.starts_with(n.as_str()))
                .map(String::len)
                .max();
            let got = match set.find(uri.as_bytes()) {
                Static::Prefix(id) => Some(names[id].len()),
                _ => None,
            };
            assert_eq!(got, expected, "{uri}");
        }
    }
}
