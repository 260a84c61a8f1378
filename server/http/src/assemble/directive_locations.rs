//! Locations of all directives of a configuration: kept only by
//! [`load_with_locations`](super::load_with_locations), for tools that show which line a setting in effect comes
//! from.
//!
//! Values are not stored again: a setting is shown in the words of its directive. Its level is found by nginx's
//! rule of inheritance, with the exceptions that modules declare ([`Inherit`]). The merged settings alone decide
//! the handling of a request; this only names their origin.

use std::collections::{HashMap, HashSet};

use conf::{Contexts, Directive, DirectiveDef, Pos, Word};

use super::ConfigBuilder;
use super::ignored::IGNORED;
use super::module::{Inherit, Module};
use crate::http::Http;

/// One directive as it was written.
pub struct LocatedDirective {
    /// The row of the directive.
    pub row: &'static DirectiveDef<ConfigBuilder>,
    /// The location of its level; `None` for the main context and for `events`.
    pub level: Option<usize>,
    /// Its words after the name, without quotes.
    pub args: Vec<String>,
    /// Its words after the name as they may be written.
    pub value: String,
    /// The position of its name.
    pub at: Pos,
    /// Its place among all directives, in the order in which they were applied.
    order: usize,
}

impl LocatedDirective {
    /// The directive with its words, without the semicolon or block.
    pub fn text(&self) -> String {
        format!("{} {}", self.row.name, self.value)
            .trim_end()
            .to_owned()
    }
}

/// The words of a directive, with their quotes; braces for a block without words.
fn value(d: &Directive) -> String {
    if d.args.is_empty() && d.block.is_some() {
        return "{ ... }".to_owned();
    }
    let shown = |word: &Word| match (word.quoted, word.as_str()) {
        (false, text) => text.to_owned(),
        (true, text) if text.contains('"') => format!("'{text}'"),
        (true, text) => format!("\"{text}\""),
    };
    d.args.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Which level a setting in effect comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The main context.
    Main,
    /// A level of HTTP, by the index of its location.
    Location(usize),
}

/// A setting in effect in some location.
pub struct Setting<'a> {
    /// The directive's row.
    pub row: &'static DirectiveDef<ConfigBuilder>,
    /// The lines that set it, in order; empty if it has its default.
    pub lines: Vec<&'a LocatedDirective>,
}

/// All directives of a configuration.
#[derive(Default)]
pub struct DirectiveLocations {
    lines: Vec<LocatedDirective>,
    /// The lines of each name, by index.
    by_name: HashMap<&'static str, Vec<usize>>,
    inherits: HashMap<&'static str, Inherit>,
    /// The rows of all directives.
    rows: Vec<(&'static str, &'static [DirectiveDef<ConfigBuilder>])>,
}

impl DirectiveLocations {
    /// For a configuration of these directives: how those of the core are inherited, the modules, and the rows of both.
    pub(super) fn new(
        own: &'static [(&'static str, Inherit)],
        modules: &'static [&'static Module],
        rows: Vec<(&'static str, &'static [DirectiveDef<ConfigBuilder>])>,
    ) -> Self {
        let lists = modules.iter().map(|module| module.inherits);
        Self {
            lines: Vec::new(),
            by_name: HashMap::new(),
            inherits: std::iter::once(own)
                .chain(lists)
                .flatten()
                .copied()
                .collect(),
            rows,
        }
    }

    pub(super) fn add(
        &mut self,
        d: &Directive,
        row: &'static DirectiveDef<ConfigBuilder>,
        level: Option<usize>,
    ) {
        let lines = self.by_name.entry(row.name).or_default();
        lines.push(self.lines.len());
        self.lines.push(LocatedDirective {
            row,
            level,
            args: d.args.iter().map(|word| word.as_str().to_owned()).collect(),
            value: value(d),
            at: d.pos,
            order: self.lines.len(),
        });
    }

    /// The directive written at a place.
    pub fn at(&self, at: Pos) -> Option<&LocatedDirective> {
        self.lines.iter().find(|line| line.at == at)
    }

    /// The lines of a name at a level, in order.
    pub fn at_level(&self, name: &str, level: Level) -> impl Iterator<Item = &LocatedDirective> {
        let level = match level {
            Level::Main => None,
            Level::Location(id) => Some(id),
        };
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        all.iter()
            .map(|index| &self.lines[*index])
            .filter(move |line| line.level == level)
    }

    /// Returns the lines in effect in a location for a directive, in order of precedence. Directives that make one list with
    /// it are included (`allow` and `deny`).
    pub fn in_effect(&self, name: &str, location: usize, http: &Http) -> Vec<&LocatedDirective> {
        let (name, companions) = self.companions(name);
        let mut lines = self.collect(name, &companions, Level::Location(location), http);
        if !matches!(self.rule(name), Inherit::As(_)) {
            // Companions stand among each other.
            lines.sort_by_key(|line| line.order);
        }
        lines
    }

    /// Returns the settings of a location by a line of the configuration, sorted by name; with `all`, defaults, too.
    pub fn settings(&self, location: usize, http: &Http, all: bool) -> Vec<Setting<'_>> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for (_, rows) in &self.rows {
            for row in *rows {
                if !is_setting(row) || self.rule(row.name) == Inherit::Step {
                    continue;
                }
                if !seen.insert(row.name) {
                    continue;
                }
                let mut lines = self.in_effect(row.name, location, http);
                let said = !lines.is_empty();
                lines.retain(|line| line.row.name == row.name);
                let shown = if said {
                    !lines.is_empty()
                } else {
                    all && !row.default.is_empty()
                };
                if shown {
                    found.push(Setting { row, lines });
                }
            }
        }
        found.sort_by_key(|setting| setting.row.name);
        found
    }

    /// The line that gave a location its own content handler.
    pub fn installs_handler(&self, location: usize, http: &Http) -> Option<&LocatedDirective> {
        let handlers = self
            .inherits
            .iter()
            .filter(|(_, rule)| **rule == Inherit::Blocks);
        handlers
            .flat_map(|(name, _)| self.in_effect(name, location, http))
            .max_by_key(|line| line.order)
    }

    fn rule(&self, name: &str) -> Inherit {
        self.inherits.get(name).copied().unwrap_or(Inherit::Around)
    }

    /// The name that leads a list, and the others of it.
    fn companions<'n>(&'n self, name: &'n str) -> (&'n str, Vec<&'n str>) {
        let lead = match self.rule(name) {
            Inherit::With(lead) => lead,
            _ => name,
        };
        let with = |rule: Inherit| matches!(rule, Inherit::With(other) if other == lead);
        let others = self.inherits.iter().filter(|(_, rule)| with(**rule));
        (lead, others.map(|(name, _)| *name).collect())
    }

    fn collect(
        &self,
        name: &str,
        others: &[&str],
        level: Level,
        http: &Http,
    ) -> Vec<&LocatedDirective> {
        let names = std::iter::once(&name).chain(others);
        let own: Vec<&LocatedDirective> =
            names.flat_map(|name| self.at_level(name, level)).collect();
        let Level::Location(id) = level else {
            return own;
        };
        let around = match http.locations[id].parent {
            Some(parent) => Level::Location(parent),
            None => Level::Main,
        };
        let outer = || self.collect(name, others, around, http);
        let block = http.locations[id].mapped != id;
        match self.rule(name) {
            Inherit::Never | Inherit::Step => own,
            Inherit::Blocks if !block => own,
            Inherit::As(how) => {
                let said = self.collect(how, &[], level, http);
                match said.last().map_or("on", |line| line.args[0].as_str()) {
                    "merge" => own.into_iter().chain(outer()).collect(),
                    "on" if own.is_empty() => outer(),
                    _ => own,
                }
            }
            _ if own.is_empty() => outer(),
            _ => own,
        }
    }
}

/// Whether a directive is a setting of a location: it is no rewrite step and opens no level.
fn is_setting(row: &'static DirectiveDef<ConfigBuilder>) -> bool {
    let place = Contexts::HTTP_TO_IF | Contexts::LIMIT_EXCEPT;
    let identity = row.contexts == Contexts::SERVER || row.contexts == Contexts::HTTP;
    let opens_level = row.block && ["server", "location", "limit_except"].contains(&row.name);
    let idle = IGNORED.iter().any(|idle| idle.name == row.name);
    row.contexts.contains(place) && !identity && !opens_level && !idle
}
