//! The doctor's findings for a terminal, and as a self-contained page: most costly first, each with its evidence and fixes.
//!
//! Evidence has figures of the doctor and text from servers; all of it is escaped and limited.
//!
//! Source: docs/doctor.md.

mod text;
mod values;

use maud::{Markup, html};

use crate::doctor::{Diagnosis, Finding, Severity};

use super::PROGRAM;
use super::document::{document, wide};
use super::escape::{bounded, shortened};

pub use text::text;

/// The whole page.
#[must_use]
pub fn html(diagnosis: &Diagnosis) -> String {
    let title = format!("Doctor: {}", shortened(&diagnosis.target, TARGET_MOST));
    let content = html! {
        h1 { (title) }
        @if !diagnosis.protocol.is_empty() { p .key { "Protocol: " (bounded(&diagnosis.protocol, NAME_MOST)) } }
        p { (headline(diagnosis)) }
        @if diagnosis.findings.len() > 1 { (contents(&diagnosis.findings)) }
        @for (n, one) in diagnosis.findings.iter().take(FINDINGS_MOST).enumerate() { (finding(n + 1, one)) }
        @if !diagnosis.measured.is_empty() {
            section { h2 { "Measured" } (wide("Measured", &values::table(&diagnosis.measured))) }
        }
        @if !diagnosis.conditions.is_empty() {
            section { h2 { "Conditions" } (wide("Conditions", &values::table(&diagnosis.conditions))) }
        }
    };
    document(&title, &[STYLE], PROGRAM, &content)
}

/// The headline: checks without a verdict, and the number of findings of each severity.
fn headline(diagnosis: &Diagnosis) -> String {
    let of = |severity| {
        let findings = diagnosis.findings.iter();
        findings.filter(|one| one.severity == severity).count()
    };
    let (bad, warn, note) = (of(Severity::Bad), of(Severity::Warn), of(Severity::Note));
    let found = format!("Found: {bad} bad, {warn} warn, {note} note.");
    let coverage = &diagnosis.coverage;
    let (missing, all) = (coverage.unjudged.len(), coverage.checks);
    let begin = match (coverage.is_interrupted, missing) {
        (false, 0) if bad + warn == 0 => return "Nothing above note was found.".to_owned(),
        (false, 0) => return found,
        (true, _) => "Interrupted: ",
        (false, _) => "",
    };
    let have = if missing == 1 { "has" } else { "have" };
    let begin = format!("{begin}{missing} of {all} checks {have} no verdict");
    match bad + warn {
        // Without the missing checks this is no clean bill.
        0 if missing >= all => format!("{begin}."),
        0 => format!("{begin}; the others found nothing above note."),
        _ => format!("{begin}. {found}"),
    }
}

/// The findings in a table, with links to each.
fn contents(findings: &[Finding]) -> Markup {
    let table = html! {
        table {
            thead { tr { @for head in ["finding", "severity", "lost", "round trips"] { th scope="col" { (head) } } } }
            tbody {
                @for (n, one) in findings.iter().take(FINDINGS_MOST).enumerate() {
                    tr {
                        th scope="row" { a href={ "#finding-" (n + 1) } { (one.code.name()) } }
                        td { (severity(one.severity)) }
                        td { (lost_ms(one).as_deref().unwrap_or("-")) }
                        td { (lost_round_trips(one).as_deref().unwrap_or("-")) }
                    }
                }
            }
        }
    };
    wide("Findings", &table)
}

/// A finding with its cost, its evidence and its fixes.
fn finding(number: usize, one: &Finding) -> Markup {
    let name = severity(one.severity);
    html! {
        section .finding .(name) #{ "finding-" (number) } {
            h2 { span .severity { (name) } " " (one.code.name()) }
            p { (bounded(&one.title, TEXT_MOST)) }
            p .key { @if let Some(lost) = cost(one) { "Lost: " (lost) ". " } (one.code.about()) }
            @if !one.evidence.is_empty() {
                h3 { "Evidence" }
                (wide(&format!("Evidence of finding {number}"), &values::table(&one.evidence)))
            }
            @if !one.fixes.is_empty() {
                h3 { "Fix" }
                ul .fixes { @for fix in one.fixes.iter().take(FIXES_MOST) { (fix_item(fix)) } }
            }
        }
    }
}

/// A fix as code, behind the name of its server if it begins with one.
fn fix_item(fix: &str) -> Markup {
    let is_name =
        |name: &&str| !name.is_empty() && name.len() <= SERVER_MOST && !name.contains('/');
    let named = fix.split_once(": ").filter(|(name, _)| is_name(name));
    let (name, what) = named.map_or((None, fix), |(name, what)| (Some(name), what));
    html! { li { @if let Some(name) = name { strong { (bounded(name, SERVER_MOST)) } " " } code { (bounded(what, TEXT_MOST)) } } }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Bad => "bad",
        Severity::Warn => "warn",
        Severity::Note => "note",
    }
}

/// The cost, `200.0 ms and 1.0 round trip`; `None` without a loss.
fn cost(one: &Finding) -> Option<String> {
    let trips = lost_round_trips(one).map(|trips| match trips.as_str() {
        "1.0" => trips + " round trip",
        _ => trips + " round trips",
    });
    let parts: Vec<String> = lost_ms(one).into_iter().chain(trips).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// The time that is lost.
fn lost_ms(one: &Finding) -> Option<String> {
    let is_some = one.lost_ms > 0.0 && one.lost_ms.is_finite();
    is_some.then(|| format!("{:.1} ms", one.lost_ms))
}

/// Round trips that are lost.
fn lost_round_trips(one: &Finding) -> Option<String> {
    let is_some = one.lost_round_trips > 0.0 && one.lost_round_trips.is_finite();
    is_some.then(|| format!("{:.1}", one.lost_round_trips))
}

/// Rules of these pages.
const STYLE: &str = "
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
a { color: var(--s0); } a:focus-visible, .wide:focus-visible { outline: 3px solid var(--s0); outline-offset: 2px; }
.finding { border-left: .3rem solid var(--line); padding-left: 1rem; margin: 2rem 0; } .finding h2 { margin-top: 0; }
.finding.bad { border-color: var(--s4); } .finding.warn { border-color: var(--s1); } .finding.note { border-color: var(--s0); }
.severity { text-transform: uppercase; font-size: .8em; border: 1px solid currentColor; border-radius: .3rem; padding: 0 .4rem; }
.bad .severity { color: var(--s4); } .warn .severity { color: var(--s1); } .note .severity { color: var(--s0); }
code { font: .9em ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.fixes { padding-left: 1.2rem; } .fixes li { margin: .25rem 0; }
.values th { text-align: left; vertical-align: top; white-space: normal; } .values td { text-align: left; white-space: normal;
  overflow-wrap: anywhere; } .values td table td, .values td table th { white-space: nowrap; text-align: right; }
";
/// Characters of a target in a title, of a protocol, of a sentence, of a server's name.
const TARGET_MOST: usize = 200;
const NAME_MOST: usize = 40;
const TEXT_MOST: usize = 2_000;
const SERVER_MOST: usize = 20;
/// Findings of a page, and fixes of each.
const FINDINGS_MOST: usize = 200;
const FIXES_MOST: usize = 20;

#[cfg(test)]
mod tests;
