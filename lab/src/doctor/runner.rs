//! Runs the checks of an examination one after another, and collects their findings in a diagnosis.
//!
//! A failed check does not end the others; the diagnosis has a note with the reason.

use serde_json::json;

use super::checks::CHECKS;
use super::diagnosis::Diagnosis;
use super::examine::Examination;
use super::failure::Failure;
use super::figures::in_ms;
use super::finding::Severity;
use super::network::Network;
use super::plan::Plan;
use super::visitor::Watch;
use crate::fetch::Lookup;

/// Examines a server by all checks; an examination that is interrupted has the findings of the checks before. The server is
/// reached by the first address of `lookup`, which was the first look-up of its name.
///
/// # Errors
/// The target cannot be reached or answers nothing.
pub fn examine(
    plan: &Plan,
    lookup: &Lookup,
    network: &dyn Network,
    watch: &dyn Watch,
) -> Result<Diagnosis, Failure> {
    watch.step("first request", 0, CHECKS.len());
    let mut examination = Examination::begin(plan, lookup, network, watch)?;
    let name = String::from_utf8_lossy(examination.first.protocol.alpn()).into_owned();
    let mut diagnosis = Diagnosis::new(&plan.url.to_string(), &name);
    let status = examination.first.response.status;
    if status >= 400 {
        let note = format!("the page's status is {status}: findings are about an error page");
        examination.notes.push(note);
    }
    for (done, check) in CHECKS.iter().enumerate() {
        watch.step(check.name, done, CHECKS.len());
        match (check.run)(&mut examination) {
            Ok(findings) => {
                let costly = findings.iter().filter(|one| one.severity > Severity::Note);
                examination.found.extend(costly.map(|one| one.code));
                diagnosis.findings.extend(findings);
            }
            Err(Failure::Interrupted) => {
                examination.notes.push("interrupted".to_owned());
                let missing = CHECKS[done..].iter().map(|check| check.name);
                examination.unjudged.extend(missing);
                diagnosis.coverage.is_interrupted = true;
                break;
            }
            Err(failure) => {
                let note = format!("{} was not analyzed: {failure}", check.name);
                examination.cannot_judge(check.name, note);
            }
        }
    }
    diagnosis.coverage.checks = CHECKS.len();
    let unjudged = examination.unjudged.iter();
    diagnosis.coverage.unjudged = unjudged.map(|name| (*name).to_owned()).collect();
    conditions(&mut diagnosis, examination);
    diagnosis.rank();
    Ok(diagnosis)
}

fn conditions(diagnosis: &mut Diagnosis, examination: Examination<'_>) {
    let (network, record) = (examination.network, &examination.first.record);
    diagnosis.conditions.extend([
        ("network".to_owned(), json!(network.description())),
        (
            "address".to_owned(),
            json!(examination.address().to_string()),
        ),
        ("requests".to_owned(), json!(examination.budget.sent())),
        ("round_trip_ms".to_owned(), json!(record.min_rtt.map(in_ms))),
        (
            "link_round_trip_ms".to_owned(),
            json!(network.round_trip().map(in_ms)),
        ),
        ("notes".to_owned(), json!(examination.notes)),
    ]);
    diagnosis.measured = examination.measured;
}
