//! A diagnosis as text for a terminal, at most 100 columns wide.

use serde_json::{Map, Value};

use super::diagnosis::Diagnosis;
use super::finding::{Finding, Severity};

/// The report. What servers sent is shown without its control characters.
#[must_use]
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let spoken = match diagnosis.protocol.as_str() {
        "" => String::new(),
        protocol => format!(" ({protocol})"),
    };
    wrap(
        &mut out,
        "",
        "    ",
        &format!("{}{spoken}", diagnosis.target),
    );
    out += "\n";
    let count = |severity| {
        diagnosis
            .findings
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let (bad, warn, note) = (
        count(Severity::Bad),
        count(Severity::Warn),
        count(Severity::Note),
    );
    if bad + warn == 0 {
        out += "Nothing above note was found.\n";
    } else {
        out += &format!("Found: {bad} bad, {warn} to look at, {note} to note.\n");
    }
    for finding in &diagnosis.findings {
        out += "\n";
        show(&mut out, finding);
    }
    out += "\n";
    table(&mut out, &diagnosis.conditions, "");
    out
}

fn show(out: &mut String, finding: &Finding) {
    let severity = match finding.severity {
        Severity::Bad => "BAD ",
        Severity::Warn => "WARN",
        Severity::Note => "NOTE",
    };
    let mut lost = Vec::new();
    if finding.lost_ms > 0.0 {
        lost.push(format!("{:.1} ms", finding.lost_ms));
    }
    if finding.lost_round_trips > 0.0 {
        let plural = if finding.lost_round_trips == 1.0 {
            ""
        } else {
            "s"
        };
        lost.push(format!(
            "{:.1} round trip{plural}",
            finding.lost_round_trips
        ));
    }
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(", {} lost", lost.join(" and ")),
    };
    let title = format!("{}{lost}", finding.code.name());
    wrap(out, &format!("{severity}  "), "      ", &title);
    wrap(out, "      ", "      ", &finding.title);
    table(out, &finding.evidence, "      ");
    for mend in &finding.mend {
        wrap(out, "      mend: ", "            ", mend);
    }
}

/// Names and values, a line each; lists of objects are for programs alone.
fn table(out: &mut String, values: &Map<String, Value>, indent: &str) {
    for (name, value) in values {
        if let Some(shown) = plain(value) {
            let first = format!("{indent}{}: ", name.replace('_', " "));
            wrap(out, &first, &format!("{indent}    "), &shown);
        }
    }
}

/// A value as people write it.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(value) if !number.is_u64() && !number.is_i64() => format!("{value:.2}"),
            _ => number.to_string(),
        }),
        Value::Array(list) if list.is_empty() => Some("none".to_owned()),
        Value::Array(list) if list.iter().any(|one| one.is_object() || one.is_array()) => None,
        Value::Array(list) => {
            let shown: Vec<String> = list.iter().filter_map(plain).collect();
            Some(shown.join(if list.iter().all(Value::is_string) {
                "; "
            } else {
                ", "
            }))
        }
        Value::Object(members) => Some(object(members)),
    }
    .filter(|shown| shown != "none" || !matches!(value, Value::Object(_)))
}

fn object(members: &Map<String, Value>) -> String {
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    if let Some(value) = number("value") {
        let between = match (number("low"), number("high")) {
            (Some(low), Some(high)) => format!(" ({low:.1} to {high:.1})"),
            _ => String::new(),
        };
        let n = number("n").map_or(String::new(), |n| format!(", n = {n}"));
        let late = match (number("late"), number("of")) {
            (Some(late), Some(of)) => format!(", {late} of {of} late"),
            _ => String::new(),
        };
        return format!("{value:.1}{between}{n}{late}");
    }
    let shown = members.iter().filter_map(|(name, value)| {
        let value = plain(value)?;
        Some(format!("{} {value}", name.replace('_', " ")))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Adds a paragraph; lines after the first have their own indent. Words that are too long are cut into pieces.
fn wrap(out: &mut String, first: &str, rest: &str, text: &str) {
    let shown: String = text.chars().map(visible).collect();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in shown.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if !is_empty && width(&line) + 1 + word.len() > COLUMNS {
            out.push_str(line.trim_end());
            out.push('\n');
            line = rest.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        while width(&line) + word.len() > COLUMNS {
            let fits = COLUMNS - width(&line);
            line.extend(word.drain(..fits));
            out.push_str(&line);
            out.push('\n');
            line = rest.to_owned();
        }
        line.extend(word);
        is_empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// A terminal obeys control characters, and some others turn the direction of text.
fn visible(c: char) -> char {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { '?' } else { c }
}

/// Width of a report, characters.
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::Code;

    fn diagnosis(target: &str) -> Diagnosis {
        Diagnosis::new(target, "h2")
    }

    #[test]
    fn a_healthy_server_is_said_to_be_one() {
        let mut healthy = diagnosis("https://h/");
        assert!(text(&healthy).contains("Nothing above note was found."));
        let note = Finding::new(Code::NoEarlyData, Severity::Note, "no ticket allows it");
        healthy.findings.push(note);
        let shown = text(&healthy);
        assert!(shown.contains("Nothing above note was found."), "{shown}");
        assert!(shown.contains("NOTE  no-early-data\n      no ticket allows it\n"));
    }

    #[test]
    fn findings_have_their_figures() {
        let mut ill = diagnosis("https://h/");
        let late =
            json!({"value": 250.04, "low": 249.0, "high": 251.0, "n": 12, "late": 12, "of": 12});
        let finding = Finding::new(Code::DelayedAckStall, Severity::Bad, "it waits")
            .costs(250.0, 1.0)
            .proof("held_200_ms", late)
            .proof("sizes", json!([100, 200]))
            .proof("cells", json!([{"bytes": 1}]))
            .mend("tcp_nodelay on;");
        ill.findings.push(finding);
        let shown = text(&ill);
        for line in [
            "Found: 1 bad, 0 to look at, 0 to note.",
            "BAD   delayed-ack-stall, 250.0 ms and 1.0 round trip lost",
            "      held 200 ms: 250.0 (249.0 to 251.0), n = 12, 12 of 12 late",
            "      sizes: 100, 200",
            "      mend: tcp_nodelay on;",
        ] {
            assert!(shown.lines().any(|one| one == line), "{line}: {shown}");
        }
        assert!(!shown.contains("cells"));
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns_and_none_commands_the_terminal() {
        let mut wide = diagnosis(&format!("https://h/{}", "ab c\u{1b}[31m".repeat(60)));
        let title = format!("{} {}", "word ".repeat(50), "x".repeat(350));
        wide.findings
            .push(Finding::new(Code::SlowDns, Severity::Warn, title).mend("é".repeat(201)));
        let shown = text(&wide);
        assert!(
            shown.lines().all(|line| line.chars().count() <= COLUMNS),
            "{shown}"
        );
        assert!(shown.lines().any(|line| line.chars().count() == COLUMNS));
        assert!(!shown.contains('\u{1b}'));
        assert_eq!(shown.matches('x').count(), 350);
    }
}
