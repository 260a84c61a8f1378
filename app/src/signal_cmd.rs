//! `-s`: signals the running supervisor by the pid in the pid file of the configuration.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use server_base::errlog::Level;
use sys::process;

use crate::argv::Command;
use crate::console::Console;

/// Sends the signal of `command` to the process that `pid_path` names.
pub(crate) fn run(command: Command, pid_path: &Path, console: &Console) -> ExitCode {
    console.notice(format_args!("signal process started"));
    let shown = pid_path.display();
    let text = match read_start(pid_path) {
        Ok(text) => text,
        Err(error) => {
            console.failed(Level::Error, format_args!("open() \"{shown}\""), &error);
            return ExitCode::FAILURE;
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    let Some(pid) = parse_pid(text) else {
        console.report(
            Level::Error,
            format_args!("invalid PID number \"{text}\" in \"{shown}\""),
        );
        return ExitCode::FAILURE;
    };
    let signo = command.signo();
    match process::kill(pid, signo) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console.failed(Level::Alert, format_args!("kill({pid}, {signo})"), &error);
            ExitCode::FAILURE
        }
    }
}

/// A process number: digits only. 0 would signal a group and is no process.
fn parse_pid(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .filter(|pid| *pid != 0)
}

fn read_start(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(PID_BYTES_MAX)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// More than any process number and its line end.
const PID_BYTES_MAX: u64 = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_number_is_digits_only() {
        assert_eq!(parse_pid("123"), Some(123));
        for text in ["", "0", "-1", "+1", "1 ", "12a", "99999999999"] {
            assert_eq!(parse_pid(text), None, "{text}");
        }
    }
}
