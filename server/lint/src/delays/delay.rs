//! Findings about settings; equal findings are joined.

use crate::tree::{Id, Tree};

/// A setting that delays the first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The doctor's code, such as `delayed-ack-stall`.
    pub code: &'static str,
    /// Its severity.
    pub weight: Weight,
    /// One sentence.
    pub title: String,
    /// Lines that cause it, `/etc/nginx/nginx.conf:12`; the line of the server if a directive is missing.
    pub places: Vec<String>,
    /// Directives that fix it.
    pub fix: &'static str,
    /// Round trips that it costs a visitor.
    pub round_trips: u8,
}

/// The severity of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Worth knowing.
    Note,
    /// Visitors may lose time.
    Warn,
    /// Visitors lose time.
    Bad,
}

/// A file of certificates that servers send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// Its path as it is written.
    pub path: String,
    /// The lines that name it.
    pub places: Vec<String>,
}

/// Findings about a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Findings, in the order of the text.
    pub found: Vec<Delay>,
    /// Files of certificates of servers with TLS.
    pub certificates: Vec<CertificateFile>,
    /// Number of servers.
    pub servers: usize,
}

/// A kind of finding: its parts that do not depend on the place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) code: &'static str,
    pub(super) weight: Weight,
    pub(super) fix: &'static str,
    pub(super) round_trips: u8,
}

/// Collects findings.
pub(super) struct Report<'t> {
    tree: &'t Tree,
    delays: Delays,
}

impl<'t> Report<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            delays: Delays::default(),
        }
    }

    /// Adds a place to the finding with this title, or adds a new finding.
    pub(super) fn add(&mut self, rule: Rule, title: &str, at: Id) {
        let place = self.tree.place(at);
        let found = &mut self.delays.found;
        let known = found
            .iter_mut()
            .find(|one| one.code == rule.code && one.title == title);
        if let Some(known) = known {
            push(&mut known.places, place);
            return;
        }
        found.push(Delay {
            code: rule.code,
            weight: rule.weight,
            title: title.to_owned(),
            places: vec![place],
            fix: rule.fix,
            round_trips: rule.round_trips,
        });
    }

    pub(super) fn certificate(&mut self, path: &str, at: Id) {
        let place = self.tree.place(at);
        let files = &mut self.delays.certificates;
        if let Some(known) = files.iter_mut().find(|file| file.path == path) {
            push(&mut known.places, place);
        } else if files.len() < CERTIFICATES_MAX {
            files.push(CertificateFile {
                path: path.to_owned(),
                places: vec![place],
            });
        }
    }

    pub(super) fn finish(mut self, servers: usize) -> Delays {
        self.delays.servers = servers;
        self.delays
    }
}

fn push(places: &mut Vec<String>, place: String) {
    if places.len() < PLACES_MAX && !places.contains(&place) {
        places.push(place);
    }
}

/// Most places stored for a finding.
pub(super) const PLACES_MAX: usize = 50;
/// Most files of certificates that are returned.
const CERTIFICATES_MAX: usize = 1000;
