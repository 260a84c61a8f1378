//! The tools: what the program does when its first word is the name of one, in place of serving.
//!
//! nginx refuses a first word that is no option, so no command line of nginx means anything else here. A tool is a
//! line of [`TOOLS`] and a module of its own; it reads its own options, with `-p -c -g -e` as they are elsewhere.

pub(crate) mod bench;
pub(crate) mod compare;
mod explain;
pub(crate) mod freeze;
pub(crate) mod long;
pub(crate) mod via;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::argv;

/// One tool.
pub(crate) struct Tool {
    /// The word that calls it.
    pub(crate) name: &'static str,
    /// What it does, for `-h`.
    pub(crate) does: &'static str,
    /// Runs it with the words after its name.
    pub(crate) run: fn(&[OsString]) -> ExitCode,
}

/// All tools.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "bench",
        does: "load servers, and say how fast they answer and at what cost",
        run: bench::run,
    },
    Tool {
        name: "compare",
        does: "compare two reports of bench",
        run: compare::run,
    },
    Tool {
        name: "explain",
        does: "say what becomes of a request, and because of which lines",
        run: explain::run,
    },
    Tool {
        name: "freeze",
        does: "copy a static site, with hashes in names and compressed copies",
        run: freeze::run,
    },
    Tool {
        name: "via",
        does: "run a command behind a link with delay, rate, loss and jitter",
        run: via::run,
    },
];

/// The tool that a command line calls, and the words after its name; `help` before the name asks for the tool's help.
pub(crate) fn find(arguments: &[OsString]) -> Option<(&'static Tool, Vec<OsString>)> {
    let words = arguments.get(1..)?;
    let (name, words) = match words {
        [help, name, ..] if help == argv::HELP => (name, vec!["-h".into()]),
        [name, words @ ..] => (name, words.to_vec()),
        [] => return None,
    };
    let tool = TOOLS.iter().find(|tool| name == tool.name)?;
    Some((tool, words))
}

/// The tools for `-h`, a line each.
pub(crate) fn list() -> String {
    let line = |tool: &Tool| format!("  {:<14}: {}\n", tool.name, tool.does);
    TOOLS.iter().map(line).collect()
}

/// Prints on standard output. Nobody reads a closed one.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// Prints how a tool is used; its usage line says the name that the program was called by.
fn help(text: &str) -> ExitCode {
    print(&text.replacen("firstbyte", &argv::program(), 1))
}

/// Says on standard error what is wrong with the words after a tool's name.
fn misused(tool: &str, why: &str) -> ExitCode {
    let program = argv::program();
    fail(
        tool,
        &format!("{why}\n{program} {tool} -h says how it is used"),
    )
}

/// Says on standard error why a tool could not do its work.
fn fail(tool: &str, why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "firstbyte {tool}: {why}");
    ExitCode::FAILURE
}
