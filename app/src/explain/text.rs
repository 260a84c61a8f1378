//! The report as text: events on the left, the configuration lines that cause them on the right.

use server_base::errlog;

use super::report::{Answer, Passed, Report, Setting, SourceLocation};
use super::steps::status_line;
use crate::terminal::broken;

/// Writes a report: within a number of columns, if that is known.
pub(crate) fn render(report: &Report, columns: Option<usize>) -> String {
    let mut rows = Rows {
        text: String::new(),
        columns,
    };
    let (request, listener, server) = (&report.request, &report.listener, &report.server);
    rows.plain(&format!(
        "{} {} for host {}, from {}",
        request.method, request.target, request.host, request.from
    ));
    rows.plain("");
    rows.push(&format!("listener  {}", listener.address), &listener.at);
    if !listener.others.is_empty() {
        let others = listener.others.join(", ");
        rows.plain(&format!("          or {others}: choose with --to"));
    }
    if let Some(handshake) = &report.handshake {
        let asked = handshake.name.as_deref().unwrap_or("no name");
        let server = or_nameless(&handshake.server);
        let text = match handshake.refused {
            Some(_) => format!("handshake {asked}: rejected, server {server}"),
            None => format!("handshake {asked}: certificate of server {server}"),
        };
        rows.push(&text, &handshake.at);
    }
    let name = or_nameless(&server.name);
    rows.push(&format!("server    {name}"), &server.at);
    rows.push(&format!("          {}", server.why), &server.name_at);
    rows.plain("");
    rows.plain("steps");
    for step in &report.steps {
        rows.push(&format!("  {:<10}  {}", step.step, step.text), &step.at);
    }
    rows.plain("");
    if let Some(passed) = &report.passed {
        passed_on(&mut rows, passed);
        rows.plain("");
    }
    answer(&mut rows, &report.answer);
    rows.plain("");
    let location = &report.location;
    rows.push(&format!("settings in {}", location.text), &location.at);
    for each in &report.settings {
        setting(&mut rows, each);
    }
    rows.text
}

fn or_nameless(name: &str) -> &str {
    match name {
        "" => "without a name",
        name => name,
    }
}

fn passed_on(rows: &mut Rows, passed: &Passed) {
    let mut text = match (&passed.server, &passed.name) {
        (Some(server), _) => format!("passed    to {server}"),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            format!("passed    to an address of {name}, which is not resolved")
        }
    };
    if let Some(group) = &passed.group {
        text.push_str(&format!(", of upstream {group}"));
        let method = passed.method.unwrap_or("round robin");
        text.push_str(&format!(", by {method}"));
    }
    rows.plain(&text);
    if let Some(tls) = &passed.tls {
        let name = tls.name.as_deref().unwrap_or_default();
        rows.plain(&match (tls.sends_name, tls.verifies) {
            (false, false) => {
                "  tls       without a name; the certificate is not verified".to_owned()
            }
            (true, false) => format!("  tls       to {name}; the certificate is not verified"),
            (true, true) => format!("  tls       to {name}; the certificate is verified"),
            (false, true) => {
                format!("  tls       without a name; the certificate is verified for {name}")
            }
        });
    }
    for line in passed.request.iter().chain(&passed.parameters) {
        rows.plain(&format!("  {line}"));
    }
}

fn answer(rows: &mut Rows, answer: &Answer) {
    match answer.status {
        Some(status) => rows.plain(&format!("answer    {}", status_line(status))),
        None => rows.plain(&format!("answer    none: {}", answer.reason)),
    }
    if let Some(file) = &answer.file {
        rows.plain(&format!("  file      {file}"));
    }
    if let Some(text) = &answer.text {
        rows.plain(&format!("  text      \"{text}\""));
    }
    if answer.own_page {
        rows.plain("  page      the server's own");
    }
    for (name, value) in &answer.fields {
        rows.plain(&format!("  {name}: {value}"));
    }
}

fn setting(rows: &mut Rows, setting: &Setting) {
    let mut text = format!("  {} {}", setting.name, setting.value);
    text.truncate(text.trim_end().len());
    if !text.ends_with('}') {
        text.push(';');
    }
    let from = match &setting.at {
        Some(place) => format!("{}, {}", place_text(place), setting.from),
        None => setting.from.clone(),
    };
    rows.right(&text, &from);
}

/// Printed lines. Control characters in URLs and file names are escaped.
struct Rows {
    text: String,
    columns: Option<usize>,
}

impl Rows {
    fn plain(&mut self, text: &str) {
        let line = safe(text) + "\n";
        self.text.push_str(&broken(&line, self.columns, INDENT));
    }

    fn push(&mut self, text: &str, at: &Option<SourceLocation>) {
        match at {
            Some(place) => self.right(text, &place_text(place)),
            None => self.plain(text),
        }
    }

    fn right(&mut self, text: &str, right: &str) {
        let (text, right) = (safe(text), safe(right));
        let taken = right.chars().count() + 2;
        let room = self
            .columns
            .map_or(WIDTH, |all| all.saturating_sub(taken).min(WIDTH));
        if self.columns.is_none() || text.chars().count() <= room {
            return self.plain(&format!("{text:<room$}  {right}"));
        }
        // The place has a line of its own, at the right edge.
        self.plain(text.trim_end());
        let all = self.columns.unwrap_or(WIDTH);
        self.plain(&format!("{right:>all$}"));
    }
}

/// The text with its control characters written as `\x0A`.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            errlog::escape(c.to_string().as_bytes(), &mut out);
        } else {
            out.push(c);
        }
    }
    out
}

fn place_text(place: &SourceLocation) -> String {
    format!("{}:{}", place.file, place.line)
}

/// Columns before the rest of a line that is broken.
const INDENT: usize = 14;
/// Column at which configuration lines begin.
const WIDTH: usize = 70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(safe("a\x1b[1m\nb\u{9b}é"), "a\\x1B[1m\\x0Ab\\xC2\\x9Bé");
    }

    #[test]
    fn a_setting_ends_as_it_was_written() {
        let told = |name, value: &str| {
            let mut rows = Rows {
                text: String::new(),
                columns: None,
            };
            let each = Setting {
                name,
                value: value.to_owned(),
                from: "default".to_owned(),
                at: None,
            };
            setting(&mut rows, &each);
            rows.text.trim().to_owned()
        };
        assert!(told("etag", "on").starts_with("etag on; "));
        assert!(told("internal", "").starts_with("internal; "));
        assert!(told("types", "{ ... }").starts_with("types { ... }  "));
    }
}
