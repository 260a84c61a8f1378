//! Requests of clients.

use sim::Random;

use super::ledger::{Ledger, Moment, RESOURCES, TAGS, VARIANTS, etag};
use super::locations::{LOCATIONS, LocationSpec};

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) id: usize,
    pub(crate) location: usize,
    pub(crate) resource: usize,
    /// Index in [`VARIANTS`].
    pub(crate) variant: usize,
    pub(crate) action: Action,
    pub(crate) directive: Directive,
    /// When its first byte was sent.
    pub(crate) begun: Moment,
}

/// The action of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Head,
    /// Positions of the first and the last byte.
    Range(usize, usize),
    /// `If-None-Match` with the tag of a version.
    Condition(usize),
    Post,
    Purge(Target),
}

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// By method: the resource.
    Method,
    /// By method: all resources with the first letter of this one, or all.
    MethodPrefix(&'static str),
    /// By the API, perhaps softly.
    Key(bool),
    Prefix(&'static str, bool),
    Tag(usize, bool),
}

/// `Cache-Control` of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    None,
    NoCache,
    MaxAge(u64),
    MaxStale(u64),
    OnlyIfCached,
}

const PREFIXES: [&str; 3] = ["a", "b", ""];

impl ClientRequest {
    pub(crate) fn drawn(book: &Ledger, random: &mut Random) -> Self {
        let resource = random.within(0..RESOURCES.len());
        let action = match random.below(100) {
            0..62 => Action::Get,
            62..69 => Action::Head,
            69..78 => {
                let first = random.within(0..3000);
                Action::Range(first, first + random.within(0..3000))
            }
            78..86 => {
                let known = book.versions.iter().enumerate();
                let known = known.filter(|(_, version)| version.resource == resource);
                let known: Vec<usize> = known.map(|(number, _)| number).collect();
                // Mostly one of the latest.
                let at = known.len().saturating_sub(1 + random.within(0..3));
                known
                    .get(at)
                    .map_or(Action::Get, |number| Action::Condition(*number))
            }
            86..90 => Action::Post,
            _ => Action::Purge(match random.below(8) {
                0..3 => Target::Method,
                3 => Target::MethodPrefix(random.pick::<&'static str>(&PREFIXES)),
                4 => Target::Key(random.chance(600)),
                5 => Target::Prefix(random.pick::<&'static str>(&PREFIXES), random.chance(500)),
                _ => Target::Tag(random.within(0..TAGS), random.chance(500)),
            }),
        };
        let directive = match random.below(100) {
            0..5 => Directive::NoCache,
            5..10 => Directive::MaxAge(random.below(3)),
            10..15 => Directive::MaxStale(random.below(4)),
            15..20 => Directive::OnlyIfCached,
            _ => Directive::None,
        };
        Self {
            id: book.requests.len(),
            location: random.within(0..LOCATIONS.len()),
            resource,
            variant: random.within(0..VARIANTS.len()),
            action,
            directive,
            begun: Moment::default(),
        }
    }

    pub(crate) fn location(&self) -> &'static LocationSpec {
        &LOCATIONS[self.location]
    }

    pub(crate) fn is_head(&self) -> bool {
        self.action == Action::Head
    }

    /// Returns the bytes of the request.
    pub(crate) fn text(&self) -> String {
        let name = RESOURCES[self.resource].name;
        let path = format!("/{}/{name}", self.location().name);
        let (method, path, body) = match &self.action {
            Action::Get | Action::Range(..) | Action::Condition(_) => ("GET", path, None),
            Action::Head => ("HEAD", path, None),
            Action::Post => ("POST", path, Some("change".to_owned())),
            Action::Purge(Target::Method) => ("PURGE", path, None),
            Action::Purge(Target::MethodPrefix(prefix)) => {
                let path = format!("/{}/{prefix}*", self.location().name);
                ("PURGE", path, None)
            }
            Action::Purge(Target::Key(is_soft)) => api("key", name, *is_soft),
            Action::Purge(Target::Prefix(prefix, is_soft)) => api("prefix", prefix, *is_soft),
            Action::Purge(Target::Tag(tag, is_soft)) => api("tag", &format!("g{tag}"), *is_soft),
        };
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: a.test\r\nX-Id: {}\r\n",
            self.id
        );
        match &self.action {
            Action::Range(first, last) => text += &format!("Range: bytes={first}-{last}\r\n"),
            Action::Condition(number) => {
                text += &format!("If-None-Match: {}\r\n", etag(*number));
            }
            _ => {}
        }
        if self.variant > 0 {
            text += &format!("X-V: {}\r\n", VARIANTS[self.variant]);
        }
        text += &match self.directive {
            Directive::None => String::new(),
            Directive::NoCache => "Cache-Control: no-cache\r\n".to_owned(),
            Directive::MaxAge(seconds) => format!("Cache-Control: max-age={seconds}\r\n"),
            Directive::MaxStale(seconds) => format!("Cache-Control: max-stale={seconds}\r\n"),
            Directive::OnlyIfCached => "Cache-Control: only-if-cached\r\n".to_owned(),
        };
        if let Some(body) = &body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text + "\r\n" + body.as_deref().unwrap_or_default()
    }

    /// Returns the resources that a purge concerns, whether by tag, and whether softly.
    pub(crate) fn purged(&self) -> Option<(Vec<usize>, bool, bool)> {
        let with_prefix = |prefix: &str| {
            let all = RESOURCES.iter().enumerate();
            let found = all.filter(|(_, resource)| resource.name.starts_with(prefix));
            found.map(|(at, _)| at).collect()
        };
        let Action::Purge(target) = &self.action else {
            return None;
        };
        Some(match target {
            Target::Method => (vec![self.resource], false, false),
            Target::MethodPrefix(prefix) => (with_prefix(prefix), false, false),
            Target::Key(is_soft) => (vec![self.resource], false, *is_soft),
            Target::Prefix(prefix, is_soft) => (with_prefix(prefix), false, *is_soft),
            Target::Tag(tag, is_soft) => {
                let all = (0..RESOURCES.len()).filter(|at| at % TAGS == *tag);
                (all.collect(), true, *is_soft)
            }
        })
    }
}

/// Returns a purge by the API: method, path and body.
fn api(by: &str, text: &str, is_soft: bool) -> (&'static str, String, Option<String>) {
    let path = "/api/9/http/caches/zone".to_owned();
    let body = format!("{{\"{by}\": \"{text}\", \"soft\": {is_soft}}}");
    ("POST", path, Some(body))
}
