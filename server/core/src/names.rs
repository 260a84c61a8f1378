//! Which server a host name belongs to: exact names, `*.example.com`, `.example.com`, `mail.*`, then expressions.
//!
//! Source: nginx documentation, "Server names".

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::conf_core::{CoreSrv, NameKind, ServerName};
use crate::exchange::Exchange;
use crate::http::{Http, PortAddr};
use crate::regex::MatchLimit;

/// Host names and wildcards, each with an index.
#[derive(Debug, Default)]
pub struct NameTable {
    exact: HashMap<Vec<u8>, usize>,
    /// `.example.com` for `*.example.com`.
    head: HashMap<Vec<u8>, usize>,
    /// `mail` for `mail.*`.
    tail: HashMap<Vec<u8>, usize>,
}

impl NameTable {
    /// Adds a name in lower case; false if it is there already. Expressions and invalid names are passed over.
    pub fn add(&mut self, kind: &NameKind, text: &[u8], index: usize) -> bool {
        match kind {
            NameKind::Exact => insert(&mut self.exact, text, index),
            NameKind::Head => insert(&mut self.head, &text[1..], index),
            NameKind::Dot => {
                insert(&mut self.head, text, index) && insert(&mut self.exact, &text[1..], index)
            }
            NameKind::Tail => insert(&mut self.tail, &text[..text.len() - 2], index),
            NameKind::Regex(_) | NameKind::Invalid => true,
        }
    }

    /// The index of a name in lower case: exact, else the longest wildcard at the front, else at the end.
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        if let Some(server) = self.exact.get(host) {
            return Some(*server);
        }
        if !self.head.is_empty() {
            let found = memchr::memchr_iter(b'.', host)
                .filter(|at| *at > 0)
                .find_map(|at| self.head.get(&host[at..]));
            if let Some(server) = found {
                return Some(*server);
            }
        }
        if self.tail.is_empty() {
            return None;
        }
        memchr::memrchr_iter(b'.', host)
            .find_map(|at| self.tail.get(&host[..at]))
            .copied()
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.head.is_empty() && self.tail.is_empty()
    }
}

/// The names of one address.
#[derive(Debug, Default)]
pub struct ServerNames {
    table: NameTable,
    /// Server and index of the expression among its names.
    regex: Vec<(usize, usize)>,
}

impl ServerNames {
    /// Adds a server's names; gives those that were there before.
    pub fn add(&mut self, server: usize, names: &[ServerName]) -> Vec<String> {
        let mut conflicts = Vec::new();
        for (i, name) in names.iter().enumerate() {
            if matches!(name.kind, NameKind::Regex(_)) {
                self.regex.push((server, i));
            }
            if !self.table.add(&name.kind, &name.text, server) {
                conflicts.push(String::from_utf8_lossy(&name.text).into_owned());
            }
        }
        conflicts
    }

    fn find_text(&self, host: &[u8]) -> Option<usize> {
        self.table.find(host)
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.regex.is_empty()
    }
}

/// Adds a name; false if it is there already.
fn insert(map: &mut HashMap<Vec<u8>, usize>, name: &[u8], server: usize) -> bool {
    match map.entry(name.to_vec()) {
        Entry::Occupied(_) => false,
        Entry::Vacant(free) => {
            free.insert(server);
            true
        }
    }
}

/// Chooses the server for the exchange's host; the default server when no name matches.
///
/// # Errors
/// A regular expression ran into its match limit.
pub fn find_server(x: &mut Exchange, http: &Http, addr: &PortAddr) -> Result<usize, MatchLimit> {
    if addr.names.is_empty() {
        return Ok(addr.default_server);
    }
    if let Some(server) = addr.names.find_text(&x.host) {
        return Ok(server);
    }
    if x.host.is_empty() {
        return Ok(addr.default_server);
    }
    let host = std::mem::take(&mut x.host);
    let found = first_regex(x, http, addr, &host);
    x.host = host;
    Ok(found?.unwrap_or(addr.default_server))
}

fn first_regex(
    x: &mut Exchange,
    http: &Http,
    addr: &PortAddr,
    host: &[u8],
) -> Result<Option<usize>, MatchLimit> {
    for (server, index) in &addr.names.regex {
        let srv: &CoreSrv = http.servers[*server].confs.get();
        if let NameKind::Regex(regex) = &srv.names[*index].kind
            && regex.exec(x, host)?
        {
            return Ok(Some(*server));
        }
    }
    Ok(None)
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
        assert_eq!(names.find_text(b"www.example.com"), Some(1));
        assert_eq!(names.find_text(b"x.y.example.com"), Some(2));
        assert_eq!(names.find_text(b"b.a.example.com"), Some(3));
        assert_eq!(names.find_text(b"example.com"), None);
        assert_eq!(names.find_text(b"example.org"), Some(4));
        assert_eq!(names.find_text(b"a.example.org"), Some(4));
        assert_eq!(names.find_text(b"mail.test"), Some(5));
        assert_eq!(names.find_text(b"mail.example.net"), Some(6));
        assert_eq!(names.find_text(b".example.com"), None);
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
        assert_eq!(names.find_text(b"a"), Some(1));
    }

    #[test]
    fn a_request_without_a_host_has_the_empty_name() {
        let mut names = ServerNames::default();
        assert!(names.add(3, &[ServerName::empty()]).is_empty());
        assert_eq!(names.find_text(b""), Some(3));
    }
}
