//! Turns recorded steps into the report: indexes become the words and the lines of the configuration.

use conf::{Files, Pos};
use engines::http::reason_phrase;
use server_http::DirectiveLocations;
use server_http::http::Http;
use server_http::location::LocationKind;
use server_http::module;
use server_http::phases::Phase;
use server_http::trace::{At, Event, FileKind, Noted};

use super::report::{Location, Setting, SourceLocation, Step};

/// The configuration and its source lines.
pub(super) struct Teller<'a> {
    pub(super) http: &'a Http,
    pub(super) written: &'a DirectiveLocations,
    pub(super) files: &'a Files,
}

/// Bytes of a request or a file as text.
pub(super) fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `404 Not Found`.
pub(super) fn status_line(status: u16) -> String {
    format!("{status} {}", reason_phrase(status))
        .trim_end()
        .to_owned()
}

impl Teller<'_> {
    /// A position as file and line; none for defaults.
    pub(super) fn place(&self, at: Pos) -> Option<SourceLocation> {
        self.written.at(at)?;
        let file = match self.files.path(at.file) {
            Some(path) => path.display().to_string(),
            None => "command line".to_owned(),
        };
        Some(SourceLocation {
            file,
            line: at.line,
        })
    }

    /// A location, or another level, in the words of its directive.
    pub(super) fn level(&self, id: usize) -> Location {
        let at = self.http.locations[id].at;
        let text = match self.written.at(at) {
            Some(line) if !line.args.is_empty() => line.text(),
            Some(line) => line.row.name.to_owned(),
            None => "http".to_owned(),
        };
        Location {
            text,
            at: self.place(at),
        }
    }

    /// All that happened but the choice of the server.
    pub(super) fn steps(&self, events: &[Noted]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut refused = None;
        for noted in events {
            if let Event::Refused(_, _, status) = noted.event {
                refused = Some(status);
            } else if let Event::Status(status) = noted.event
                && refused.take() == Some(status)
            {
                // The event of the refusal has reported this status.
                continue;
            }
            steps.extend(self.step(noted));
        }
        steps
    }

    fn step(&self, noted: &Noted) -> Option<Step> {
        let (step, text, at) = match &noted.event {
            Event::Server(_) => return None,
            Event::Search(uri) => (
                "search",
                format!("a location for \"{}\"", lossy_text(uri)),
                None,
            ),
            Event::Compared(id, fits) => return Some(self.compared(*id, *fits)),
            Event::Found(id) => return Some(self.location_found(*id)),
            Event::Excluded(id) => return Some(self.entered("except", *id)),
            Event::Named(id) => return Some(self.entered("named", *id)),
            Event::Ran(at, outcome) => return self.ran(noted.location, *at, outcome),
            Event::Redirect(uri, args) => {
                let mut text = format!("inside the server to \"{}\"", lossy_text(uri));
                if !args.is_empty() {
                    text.push_str(&format!(" with arguments \"{}\"", lossy_text(args)));
                }
                ("redirect", text, None)
            }
            Event::Refused(phase, index, status) => {
                let by = self.handler(*phase, *index);
                ("status", format!("{}, by {by}", status_line(*status)), None)
            }
            Event::Answered(handler) => return Some(self.answered(noted.location, *handler)),
            Event::Status(status) => ("status", status_line(*status), None),
            Event::ErrorPage(at, uri) => {
                let words = self.written.at(*at).map_or("", |line| line.value.as_str());
                let text = format!("{words}: leads to \"{}\"", lossy_text(uri));
                ("error_page", text, self.place(*at))
            }
            Event::Cache(text) => ("cache", text.clone(), None),
            Event::Log(level, text) => ("log", format!("[{}] {text}", level.name()), None),
            Event::File(call, path, found) => {
                let path = lossy_text(path);
                ("file", format!("{call} {path}: {}", outcome(found)), None)
            }
            Event::Wait(ms) => ("wait", format!("{ms} ms"), None),
        };
        Some(Step { step, text, at })
    }

    /// `the module static`.
    fn handler(&self, phase: Phase, index: usize) -> String {
        match module::handler_name(&self.http.module_handlers, phase, index) {
            Some(name) => format!("the module {name}"),
            None => "the core".to_owned(),
        }
    }

    fn compared(&self, id: usize, fits: bool) -> Step {
        let (step, verdict) = match (&self.http.locations[id].kind, fits) {
            (LocationKind::Exact, _) => ("exact", "equals the URI: the search ends"),
            (LocationKind::PrefixOnly, _) => (
                "prefix",
                "is the longest match; no regular expressions are tried",
            ),
            (LocationKind::Regex(_), true) => ("regex", "matches"),
            (LocationKind::Regex(_), false) => ("regex", "does not match"),
            _ => ("prefix", "is the longest"),
        };
        let Location { text, at } = self.level(id);
        Step {
            step,
            text: format!("{text}: {verdict}"),
            at,
        }
    }

    fn location_found(&self, id: usize) -> Step {
        let Location { text, at } = self.level(id);
        let text = match self.http.locations[id].kind {
            LocationKind::Block => format!("none; the settings of the {text} apply"),
            _ => text,
        };
        Step {
            step: "found",
            text,
            at,
        }
    }

    fn entered(&self, step: &'static str, id: usize) -> Step {
        let Location { text, at } = self.level(id);
        Step { step, text, at }
    }

    fn ran(&self, location: usize, at: At, outcome: &str) -> Option<Step> {
        let line = match at {
            At::Pos(at) => self.written.at(at),
            At::Argument(name, nth) => self
                .written
                .in_effect(name, location, self.http)
                .into_iter()
                .scan(0, |seen, line| {
                    *seen += line.args.len();
                    Some((*seen, line))
                })
                .find(|(seen, _)| nth < *seen)
                .map(|(_, line)| line),
        };
        let (step, words, at) = match (line, at) {
            (Some(line), _) => (line.row.name, line.value.as_str(), self.place(line.at)),
            // A default does something, too.
            (None, At::Argument(name, _)) => (name, "(default)", None),
            (None, At::Pos(_)) => return None,
        };
        let text = format!("{words}: {outcome}");
        Some(Step {
            step,
            text: text.strip_prefix(": ").unwrap_or(&text).to_owned(),
            at,
        })
    }

    fn answered(&self, location: usize, index: Option<usize>) -> Step {
        let own = match index {
            None => self.written.installs_handler(location, self.http),
            Some(_) => None,
        };
        let (text, at) = match (own, index) {
            (Some(line), _) => (line.text(), self.place(line.at)),
            (None, Some(index)) => (self.handler(Phase::Content, index), None),
            (None, None) => ("the location itself".to_owned(), None),
        };
        Step {
            step: "content",
            text: format!("by {text}"),
            at,
        }
    }

    /// Returns the URL to which a location passes requests, as written.
    pub(super) fn url_behind(&self, location: usize) -> &str {
        let line = self.written.installs_handler(location, self.http);
        line.map_or("", |line| line.value.as_str())
    }

    /// The directive by which a location passes requests on, such as `proxy_pass`; empty if there is none.
    pub(super) fn pass_of(&self, location: usize) -> &'static str {
        let line = self.written.installs_handler(location, self.http);
        line.map_or("", |line| line.row.name)
    }

    /// Whether a flag of a location is on, in any case.
    pub(super) fn is_on(&self, name: &str, location: usize) -> bool {
        let lines = self.written.in_effect(name, location, self.http);
        lines
            .first()
            .is_some_and(|line| conf::parse_flag(line.value.as_bytes()) == Some(true))
    }

    /// The settings in effect in a location.
    pub(super) fn settings(&self, location: usize, all: bool) -> Vec<Setting> {
        let mut told = Vec::new();
        for setting in self.written.settings(location, self.http, all) {
            if setting.lines.is_empty() {
                told.push(Setting {
                    name: setting.row.name,
                    value: setting.row.default.to_owned(),
                    from: "default".to_owned(),
                    at: None,
                });
            }
            for line in setting.lines {
                told.push(Setting {
                    name: setting.row.name,
                    value: line.value.clone(),
                    from: match line.level {
                        Some(level) => self.level(level).text,
                        None => "main".to_owned(),
                    },
                    at: self.place(line.at),
                });
            }
        }
        told
    }
}

fn outcome(found: &Result<FileKind, server_base::files::FileError>) -> String {
    match found {
        Ok(FileKind::File(size)) => format!("a file of {size} bytes"),
        Ok(FileKind::Directory) => "a directory".to_owned(),
        Ok(FileKind::Other) => "neither file nor directory".to_owned(),
        Ok(FileKind::Unchanged) => "unchanged".to_owned(),
        Err(error) => sys::os_error(&std::io::Error::from_raw_os_error(error.errno)),
    }
}
