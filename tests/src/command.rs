//! One run of the binary with arguments, to its end.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
    let mut command = Command::new(peer::binary());
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    let start = Instant::now();
    // Output of these runs fits the pipes (64 KiB), so waiting before reading cannot block it.
    let ended = holds_within(ENDS_WITHIN, || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    if !ended {
        let _ = child.kill();
    }
    let output = child
        .wait_with_output()
        .expect("a spawned process can be waited for");
    assert!(
        ended,
        "the command did not end within {:?}: {output:?}",
        start.elapsed()
    );
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// How long a command may take: some measure for seconds, on a machine that may have other work.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
