//! Runs of `firstbyte explain` on a server's configuration.

use serde_json::Value;

use crate::command::{Outcome, run};
use crate::server::Server;

/// Runs the tool with its words after those that name the server's configuration.
#[must_use]
pub fn outcome(server: &Server, words: &[&str]) -> Outcome {
    let mut arguments = vec!["explain".to_owned()];
    arguments.extend(server.arguments());
    arguments.extend(words.iter().map(|word| server.expand(word)));
    run(arguments)
}

/// The explanation of a URL as JSON; the words may hold placeholders.
///
/// # Panics
/// When there is none.
#[must_use]
#[track_caller]
pub fn explain_report(server: &Server, words: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(words);
    let outcome = outcome(server, &all);
    assert_eq!(
        (outcome.code, outcome.stderr.as_str()),
        (0, ""),
        "{words:?}"
    );
    serde_json::from_str(&outcome.stdout).expect("it is JSON")
}

/// The line of the configuration that holds `text`.
///
/// # Panics
/// When none does.
#[must_use]
#[track_caller]
pub fn line_of(server: &Server, text: &str) -> u64 {
    let conf = server.dir().read("nginx.conf");
    let found = conf.lines().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("{text:?} is not in\n{conf}")) as u64 + 1
}
