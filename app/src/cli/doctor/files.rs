//! Diagnoses of files: a capture of packets, a HAR archive, a configuration.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use conf::Disk;
use lab::capture::{self, KeyLog};
use lab::doctor::{Code, Diagnosis, Finding, Severity, chain_file, from_har};
use lint::Weight;
use sys::os_error;

use crate::console::Console;
use crate::paths::Paths;
use crate::{argv, load};

/// The diagnosis of a capture.
///
/// # Errors
/// A sentence if it cannot be read.
pub(super) fn capture(path: &Path, key_log: Option<&Path>) -> Result<Diagnosis, String> {
    let named = |why: String| format!("{}: {why}", path.display());
    let file = open(path)?;
    let mut capture = capture::read(BufReader::new(file)).map_err(named)?;
    let mut decrypted = None;
    if let Some(path) = key_log {
        let log = KeyLog::read(open(path)?);
        let log = log.map_err(|why| format!("{}: {why}", path.display()))?;
        decrypted = Some(capture.decrypt(&log));
    }
    let mut diagnosis = Diagnosis::new(&path.display().to_string(), "");
    diagnosis.findings = capture::findings(&capture);
    let (coverage, note) = capture::coverage(&capture);
    diagnosis.coverage = coverage;
    capture.notes.extend(note);
    diagnosis
        .measured
        .insert("packets".into(), capture.packets.into());
    if let Some(count) = decrypted {
        diagnosis
            .measured
            .insert("decrypted_connections".into(), count.into());
    }
    let connections = capture.flows.len();
    diagnosis
        .measured
        .insert("connections".into(), connections.into());
    conditions(&mut diagnosis, "a packet capture", capture.notes);
    Ok(diagnosis)
}

/// The diagnosis of the first page with entries in a HAR file.
///
/// # Errors
/// A sentence if it cannot be read.
pub(super) fn archive(path: &Path) -> Result<Diagnosis, String> {
    let pages = crate::cli::files::archive(path)?;
    let visits = pages.iter().map(|page| &page.visit);
    let mut visits = visits.filter(|visit| !visit.resources.is_empty());
    let first = visits.next();
    let visit = first.ok_or_else(|| format!("{}: it has no entries", path.display()))?;
    let protocol = visit
        .resources
        .first()
        .map_or("", |first| first.protocol.as_str());
    let mut diagnosis = Diagnosis::new(&visit.url, protocol);
    diagnosis.findings = from_har(visit);
    diagnosis
        .measured
        .insert("resources".into(), visit.resources.len().into());
    let mut notes = visit.notes.clone();
    if pages.len() > 1 {
        notes.push(format!("the first of {} pages was analyzed", pages.len()));
    }
    conditions(&mut diagnosis, "a HAR file", notes);
    Ok(diagnosis)
}

/// Whether a configuration loads. Reports the first error and the warnings on standard error, as `-t` does.
///
/// A relative path is below the working directory, as for other files that the doctor reads.
pub(super) fn loads(path: &Path) -> bool {
    let console = Console::of_tool();
    // A path that cannot be made absolute cannot be read either.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let place = argv::Options {
        conf: Some(absolute.into()),
        ..argv::Options::default()
    };
    let options = Paths::new(&place).load_options(&place);
    match load::for_tool(&options) {
        Ok((cycle, _)) => console.warnings(&cycle.warnings),
        Err(refused) => {
            console.refused(&refused);
            return false;
        }
    }
    true
}

/// The diagnosis of a configuration, with the files of certificates that it names. `None` if a file of it cannot be read or has
/// an error of syntax, which [`loads`] reports.
pub(super) fn configuration(path: &Path) -> Option<Diagnosis> {
    let judged = lint::delays(Disk::default(), path, None)?;
    let mut diagnosis = Diagnosis::new(&path.display().to_string(), "");
    // The text is one check, and so is each file of certificates.
    diagnosis.coverage.checks = 1 + judged.certificates.len();
    let mut notes = Vec::new();
    for delay in judged.found {
        let code = Code::ALL.iter().find(|code| code.name() == delay.code);
        let Some(code) = code else {
            notes.push(format!("{}: {}", delay.code, delay.title));
            continue;
        };
        let severity = match delay.weight {
            Weight::Note => Severity::Note,
            Weight::Warn => Severity::Warn,
            Weight::Bad => Severity::Bad,
        };
        let finding = Finding::new(*code, severity, delay.title)
            .costs(0.0, f64::from(delay.round_trips))
            .proof("lines", delay.places)
            .fix(delay.fix);
        diagnosis.findings.push(finding);
    }
    for file in judged.certificates {
        // Relative paths are below the directory of the configuration (nginx's prefix of configurations).
        let at = path.parent().unwrap_or(Path::new("")).join(&file.path);
        match read_limited(&at).and_then(|pem| chain_file(&pem)) {
            Ok(Some(finding)) => {
                let shown = at.display().to_string();
                let finding = finding.proof("file", shown).proof("lines", file.places);
                diagnosis.findings.push(finding);
            }
            Ok(None) => {}
            Err(why) => {
                diagnosis.coverage.unjudged.push(at.display().to_string());
                notes.push(format!("{} was not analyzed: {why}", at.display()));
            }
        }
    }
    diagnosis
        .measured
        .insert("servers".into(), judged.servers.into());
    conditions(&mut diagnosis, "a configuration, without traffic", notes);
    Some(diagnosis)
}

fn conditions(diagnosis: &mut Diagnosis, source: &str, notes: Vec<String>) {
    diagnosis.rank();
    diagnosis.conditions.insert("source".into(), source.into());
    if !notes.is_empty() {
        diagnosis.conditions.insert("notes".into(), notes.into());
    }
}

fn open(path: &Path) -> Result<File, String> {
    let named = |why: String| format!("{}: {why}", path.display());
    let file = File::open(path).map_err(|error| named(os_error(&error)))?;
    let kind = file.metadata().map_err(|error| named(os_error(&error)))?;
    match kind.is_dir() {
        true => Err(named("it is a directory".to_owned())),
        false => Ok(file),
    }
}

/// A file of certificates, which is small.
fn read_limited(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| os_error(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(CERTIFICATE_BYTES_MAX).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| os_error(&error))
}

/// The most that is read of a file of certificates.
const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;
