//! Which server a host name belongs to: exact names, `*.example.com`, `.example.com`, `mail.*`, then expressions.
//!
//! Source: nginx documentation, "Server names".

use std::fmt;

use engines::http::parse_host;
use server_base::regex::{ListedRegex, Regex};

use crate::name_map::NameMap;

/// One name of a server.
#[derive(Debug)]
pub struct ServerName {
    /// The text as written, lower-cased; a regular expression without its tilde.
    pub text: Vec<u8>,
    /// The way it matches.
    pub kind: NameKind,
}

impl ServerName {
    /// The empty name, which matches requests without a host.
    pub fn empty() -> Self {
        Self {
            text: Vec::new(),
            kind: NameKind::Exact,
        }
    }
}

/// The ways in which a server name matches.
#[derive(Debug)]
pub enum NameKind {
    /// The whole name.
    Exact,
    /// `*.example.com`.
    Head,
    /// `.example.com`.
    Dot,
    /// `www.example.*`.
    Tail,
    /// `~expression`.
    Regex(Regex),
    /// A wildcard in the wrong place: an error as soon as the address has a choice of servers.
    Invalid,
}

impl NameKind {
    /// The kind of a name in lower case that is no expression.
    pub fn of(text: &[u8]) -> Self {
        let stars = text.iter().filter(|b| **b == b'*').count();
        let empty_label = text.windows(2).any(|w| w == b"..");
        match text {
            _ if empty_label || stars > 1 => Self::Invalid,
            [b'.', _, ..] if stars == 0 => Self::Dot,
            [b'*', b'.', _, ..] => Self::Head,
            [first, .., b'.', b'*'] if *first != b'.' => Self::Tail,
            _ if stars == 0 => Self::Exact,
            _ => Self::Invalid,
        }
    }
}

/// Host names and wildcards, each with an index.
#[derive(Debug, Default)]
pub struct NameTable {
    exact: NameMap,
    /// `.example.com` for `*.example.com`.
    head: NameMap,
    /// `mail` for `mail.*`.
    tail: NameMap,
}

impl NameTable {
    /// Adds a name in lower case; false if it is there already. Expressions and invalid names are passed over.
    pub fn add(&mut self, kind: &NameKind, text: &[u8], index: usize) -> bool {
        match kind {
            NameKind::Exact => self.exact.insert(text, index),
            NameKind::Head => self.head.insert(&text[1..], index),
            NameKind::Dot => self.head.insert(text, index) && self.exact.insert(&text[1..], index),
            NameKind::Tail => self.tail.insert(&text[..text.len() - 2], index),
            NameKind::Regex(_) | NameKind::Invalid => true,
        }
    }

    /// The index of a name in lower case: exact, else the longest wildcard at the front, else at the end.
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        self.find_match(host).map(|(index, _)| index)
    }

    /// Finds a name like [`NameTable::find`], and returns the kind of the match.
    pub(crate) fn find_match(&self, host: &[u8]) -> Option<(usize, NameMatch)> {
        if let Some(server) = self.exact.get(host) {
            return Some((server, NameMatch::Exact));
        }
        if !self.head.is_empty() {
            let found = memchr::memchr_iter(b'.', host)
                .filter(|at| *at > 0)
                .find_map(|at| Some((self.head.get(&host[at..])?, NameMatch::Head(at))));
            if found.is_some() {
                return found;
            }
        }
        if self.tail.is_empty() {
            return None;
        }
        memchr::memrchr_iter(b'.', host)
            .find_map(|at| Some((self.tail.get(&host[..at])?, NameMatch::Tail(at))))
    }

    /// Frees unused capacity.
    pub fn shrink(&mut self) {
        self.exact.shrink();
        self.head.shrink();
        self.tail.shrink();
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.head.is_empty() && self.tail.is_empty()
    }
}

/// Why a server has a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    /// It is the only one of its address.
    Only,
    /// It has the name of the host.
    Exact,
    /// It has the longest name with a wildcard in front of the host from this byte on.
    Head(usize),
    /// The host matches the longest name with a wildcard at its end, after this many bytes.
    Tail(usize),
    /// Its name by this index is an expression that matches.
    Regex(usize),
    /// No server has the name: it is the default server of the address.
    Default,
}

impl NameMatch {
    /// The one of a server's names that was matched with the host.
    pub fn name<'n>(self, names: &'n [ServerName], host: &[u8]) -> Option<&'n ServerName> {
        let named = |name: &&ServerName| match (self, &name.kind) {
            (Self::Exact, NameKind::Exact) => name.text == host,
            (Self::Exact, NameKind::Dot) => &name.text[1..] == host,
            (Self::Head(at), NameKind::Head) => name.text[1..] == host[at..],
            (Self::Head(at), NameKind::Dot) => name.text == host[at..],
            (Self::Tail(len), NameKind::Tail) => name.text[..name.text.len() - 2] == host[..len],
            _ => false,
        };
        match self {
            Self::Regex(index) => names.get(index),
            _ => names.iter().find(named),
        }
    }
}

/// The names of one address.
#[derive(Debug, Default)]
pub struct ServerNames {
    pub(crate) table: NameTable,
    /// Expressions, each with its server and its index among the server's names.
    pub(crate) regex: Vec<(ListedRegex, usize, usize)>,
}

impl ServerNames {
    /// Adds a server's names; returns those that were there before.
    pub fn add(&mut self, server: usize, names: &[ServerName]) -> Vec<String> {
        let mut conflicts = Vec::new();
        for (i, name) in names.iter().enumerate() {
            if let NameKind::Regex(regex) = &name.kind {
                self.regex
                    .push((ListedRegex::new(regex.clone()), server, i));
            }
            if !self.table.add(&name.kind, &name.text, server) {
                conflicts.push(String::from_utf8_lossy(&name.text).into_owned());
            }
        }
        conflicts
    }

    /// Frees unused capacity.
    pub fn shrink(&mut self) {
        self.table.shrink();
        self.regex.shrink_to_fit();
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.regex.is_empty()
    }

    /// The server that has the name of a handshake; `None` if none has, or there is no choice.
    ///
    /// # Errors
    /// A regular expression ran into its match limit.
    pub(crate) fn find(&self, name: Option<&[u8]>) -> Result<Option<usize>, Unmatched> {
        let Some(name) = name.filter(|_| !self.is_empty()) else {
            return Ok(None);
        };
        let mut host = Vec::with_capacity(name.len());
        if parse_host(name, &mut host).is_err() || host.is_empty() {
            return Ok(None);
        }
        if let Some(server) = self.table.find(&host) {
            return Ok(Some(server));
        }
        for (regex, server, _) in &self.regex {
            let matches = regex.is_match(&host);
            if matches
                .map_err(|limit| Unmatched(limit.display(&host, regex.pattern()).to_string()))?
            {
                return Ok(Some(*server));
            }
        }
        Ok(None)
    }
}

/// The name of a handshake could not be compared with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched(String);

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[(&str, NameKind, usize)]) -> ServerNames {
        let mut names = ServerNames::default();
        for (text, kind, server) in list {
            let kind = match kind {
                NameKind::Exact => NameKind::Exact,
                NameKind::Head => NameKind::Head,
                NameKind::Dot => NameKind::Dot,
                _ => NameKind::Tail,
            };
            assert!(
                names
                    .add(
                        *server,
                        &[ServerName {
                            text: text.as_bytes().to_vec(),
                            kind
                        }]
                    )
                    .is_empty()
            );
        }
        names
    }

    #[test]
    fn names_are_chosen_in_nginx_order() {
        let names = names(&[
            ("www.example.com", NameKind::Exact, 1),
            ("*.example.com", NameKind::Head, 2),
            ("*.a.example.com", NameKind::Head, 3),
            (".example.org", NameKind::Dot, 4),
            ("mail.*", NameKind::Tail, 5),
            ("mail.example.*", NameKind::Tail, 6),
        ]);
        assert_eq!(names.table.find(b"www.example.com"), Some(1));
        assert_eq!(names.table.find(b"x.y.example.com"), Some(2));
        assert_eq!(names.table.find(b"b.a.example.com"), Some(3));
        assert_eq!(names.table.find(b"example.com"), None);
        assert_eq!(names.table.find(b"example.org"), Some(4));
        assert_eq!(names.table.find(b"a.example.org"), Some(4));
        assert_eq!(names.table.find(b"mail.test"), Some(5));
        assert_eq!(names.table.find(b"mail.example.net"), Some(6));
        assert_eq!(names.table.find(b".example.com"), None);
    }

    #[test]
    fn a_second_server_of_the_same_name_is_a_conflict() {
        let mut names = ServerNames::default();
        let one = || ServerName {
            text: b"a".to_vec(),
            kind: NameKind::Exact,
        };
        assert!(names.add(1, &[one()]).is_empty());
        assert_eq!(names.add(2, &[one()]), ["a"]);
        assert_eq!(names.add(1, &[one()]), ["a"]);
        assert_eq!(names.table.find(b"a"), Some(1));
    }

    #[test]
    fn a_request_without_a_host_has_the_empty_name() {
        let mut names = ServerNames::default();
        assert!(names.add(3, &[ServerName::empty()]).is_empty());
        assert_eq!(names.table.find(b""), Some(3));
    }

    #[test]
    fn wildcards_stand_at_an_end_only() {
        assert!(matches!(NameKind::of(b"*.a.b"), NameKind::Head));
        assert!(matches!(NameKind::of(b".a.b"), NameKind::Dot));
        assert!(matches!(NameKind::of(b"a.*"), NameKind::Tail));
        assert!(matches!(NameKind::of(b""), NameKind::Exact));
        for wrong in [&b"a.*.b"[..], b"*a.b", b"*.a.*", b"a..b", b".*"] {
            assert!(matches!(NameKind::of(wrong), NameKind::Invalid));
        }
    }
}
