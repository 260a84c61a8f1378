//! One run of the binary with arguments, to its end.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::peer;
use crate::wait::holds_within;

/// Output and status of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; -1 when a signal ended the process.
    pub code: i32,
    /// Standard output, bytes that are not UTF-8 replaced.
    pub stdout: String,
    /// Standard error, bytes that are not UTF-8 replaced.
    pub stderr: String,
}

/// Starts the binary under test, or a script that does.
///
/// # Panics
/// When it does not start.
pub fn spawn(command: &mut Command) -> Child {
    let mut spawned = command.spawn();
    // A process that another test starts may inherit the descriptor by which a script was written, for a moment.
    let _ = holds_within(ENDS_WITHIN, || {
        let is_busy = |e: &io::Error| e.kind() == io::ErrorKind::ExecutableFileBusy;
        let again = spawned.as_ref().is_err_and(is_busy);
        if again {
            spawned = command.spawn();
        }
        !again
    });
    spawned.expect("the binary under test starts")
}

/// Runs the binary under test with `arguments` and waits for it to end.
///
/// # Panics
/// When it does not start, or does not end within the deadline (it is killed then).
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Outcome {
    run_within(ENDS_WITHIN, arguments)
}

/// Names of all verbs, as the help lists them.
///
/// # Panics
/// The help lists none.
#[must_use]
pub fn verbs() -> Vec<String> {
    let help = run(["help"]).stdout;
    let (_, list) = help.split_once("\nVerbs").expect("the help lists verbs");
    let lines = list.lines().skip(1);
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// The report that a verb prints with `--json`.
///
/// # Panics
/// When the verb fails, does not end within two minutes, or prints something else.
#[must_use]
#[track_caller]
pub fn report(verb: &str, words: &[&str]) -> Value {
    let outcome = run_within(REPORTS_WITHIN, [&[verb, "--json"], words].concat());
    assert_eq!(outcome.code, 0, "{verb} {words:?}: {outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("it is JSON")
}

fn run_within<S: AsRef<OsStr>>(limit: Duration, arguments: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = Command::new(peer::binary());
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    let start = Instant::now();
    // Both are read meanwhile: more than a pipe holds would keep it from ending.
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let ended = holds_within(limit, || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    if !ended {
        let _ = child.kill();
    }
    let status = child.wait().expect("a spawned process can be waited for");
    let [stdout, stderr] = [stdout, stderr].map(|reader| {
        let bytes = reader.join().expect("the reader does not panic");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let outcome = Outcome {
        code: status.code().unwrap_or(-1),
        stdout,
        stderr,
    };
    assert!(
        ended,
        "the command did not end within {:?}: {outcome:?}",
        start.elapsed()
    );
    outcome
}

/// Reads a pipe to its end in a thread of its own.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.expect("it is piped");
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Timeout of a command: some measure for seconds, on a machine with other load.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// Timeout of a report: a page is visited several times, or a large file read.
const REPORTS_WITHIN: Duration = Duration::from_secs(120);
