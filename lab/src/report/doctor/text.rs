//! A diagnosis as text for a terminal, as wide as a report at most.

use serde_json::{Map, Value};

use crate::doctor::{Diagnosis, Finding};
use crate::report::table::push_wrapped;

use super::values::{is_telling, plain, title};
use super::{cost, headline, severity};

/// The report. Control characters from servers are removed.
#[must_use]
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let spoken = match diagnosis.protocol.as_str() {
        "" => String::new(),
        protocol => format!(" ({protocol})"),
    };
    let target = format!("{}{spoken}", diagnosis.target);
    push_wrapped("", "    ", &target, &mut out);
    out.push('\n');
    push_wrapped("", "", &headline(diagnosis), &mut out);
    for finding in &diagnosis.findings {
        out.push('\n');
        show(finding, &mut out);
    }
    out.push('\n');
    table(&diagnosis.conditions, "", &mut out);
    out
}

fn show(finding: &Finding, out: &mut String) {
    let name = severity(finding.severity).to_uppercase();
    let lost = cost(finding).map_or_else(String::new, |lost| format!(", {lost} lost"));
    let title = format!("{}{lost}", finding.code.name());
    push_wrapped(&format!("{name:<4}  "), INDENT, &title, out);
    push_wrapped(INDENT, INDENT, &finding.title, out);
    table(&finding.evidence, INDENT, out);
    for fix in &finding.fixes {
        push_wrapped("      fix: ", "           ", fix, out);
    }
}

/// Names and values, a line each; lists of objects are for programs and pages.
fn table(values: &Map<String, Value>, indent: &str, out: &mut String) {
    for (name, value) in values.iter().filter(|(_, value)| is_telling(value)) {
        let first = format!("{indent}{}: ", title(name));
        push_wrapped(&first, &format!("{indent}    "), &plain(value), out);
    }
}

/// Indent of the lines below the title of a finding.
const INDENT: &str = "      ";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::{Code, Severity};
    use crate::report::columns::WIDTH;

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
    fn checks_without_a_verdict_are_in_the_headline() {
        let mut partial = diagnosis("https://h/");
        let headline = |one: &Diagnosis| text(one).lines().nth(2).map(str::to_owned);
        partial.coverage.checks = 17;
        let clean = "Nothing above note was found.";
        assert_eq!(headline(&partial).as_deref(), Some(clean));
        partial.coverage.unjudged = vec!["redirects".to_owned()];
        let one = "1 of 17 checks has no verdict; the others found nothing above note.";
        assert_eq!(headline(&partial).as_deref(), Some(one));
        partial.coverage.unjudged.push("handshakes".to_owned());
        let some = "2 of 17 checks have no verdict; the others found nothing above note.";
        assert_eq!(headline(&partial).as_deref(), Some(some));
        partial.coverage.is_interrupted = true;
        let interrupted = format!("Interrupted: {some}");
        assert_eq!(headline(&partial), Some(interrupted));
        partial.coverage.checks = 2;
        let none = "Interrupted: 2 of 2 checks have no verdict.";
        assert_eq!(headline(&partial).as_deref(), Some(none));
        partial.coverage.is_interrupted = false;
        let bad = Finding::new(Code::SlowDns, Severity::Bad, "it is slow");
        partial.findings.push(bad);
        let both = "2 of 2 checks have no verdict. Found: 1 bad, 0 warn, 0 note.";
        assert_eq!(headline(&partial).as_deref(), Some(both));
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
            .fix("tcp_nodelay on;");
        ill.findings.push(finding);
        let shown = text(&ill);
        for line in [
            "Found: 1 bad, 0 warn, 0 note.",
            "BAD   delayed-ack-stall, 250.0 ms and 1.0 round trip lost",
            "      held 200 ms: 250.0 (249.0 to 251.0), n=12, 12 of 12 late",
            "      sizes: 100, 200",
            "      fix: tcp_nodelay on;",
        ] {
            assert!(shown.lines().any(|one| one == line), "{line}: {shown}");
        }
        assert!(!shown.contains("cells"));
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns_and_none_commands_the_terminal() {
        let mut wide = diagnosis(&format!("https://h/{}", "ab c\u{1b}[31m".repeat(60)));
        let title = format!("{} {}", "word ".repeat(50), "z".repeat(350));
        wide.findings
            .push(Finding::new(Code::SlowDns, Severity::Warn, title).fix("é".repeat(201)));
        let shown = text(&wide);
        assert!(
            shown.lines().all(|line| line.chars().count() <= WIDTH),
            "{shown}"
        );
        assert!(shown.lines().any(|line| line.chars().count() == WIDTH));
        assert!(!shown.contains('\u{1b}'));
        assert_eq!(shown.matches('z').count(), 350);
    }
}
