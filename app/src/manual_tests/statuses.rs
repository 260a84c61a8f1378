//! The table of exit statuses in docs/verbs.md, made of the manuals of all verbs.

use crate::cli;
use crate::cli::manual::{MANUALS, Manual};

/// Rows of the table: status, meaning, verbs that have it.
pub(super) fn table() -> String {
    let mut text = String::from("| status | meaning | verbs |\n|---|---|---|\n");
    for (status, meaning) in TABLE {
        let has = |manual: &&Manual| manual.statuses.iter().any(|(own, _)| *own == status);
        let verbs: Vec<String> = MANUALS
            .iter()
            .filter(has)
            .map(|manual| format!("`{}`", manual.verb))
            .collect();
        let verbs = match verbs.len() == MANUALS.len() {
            true => "all".to_owned(),
            false => verbs.join(", "),
        };
        text.push_str(&format!("| {status} | {meaning} | {verbs} |\n"));
    }
    text
}

#[test]
fn every_verb_has_a_manual_with_statuses_of_the_table() {
    let command = cli::command();
    let verbs: Vec<&str> = command
        .get_subcommands()
        .map(|verb| verb.get_name())
        .collect();
    let manuals: Vec<&str> = MANUALS.iter().map(|manual| manual.verb).collect();
    assert_eq!(verbs, manuals);
    for manual in &MANUALS {
        assert!(!manual.examples.is_empty() && !manual.see_also.is_empty());
        for (status, _) in manual.statuses {
            let is_known = TABLE.iter().any(|(known, _)| known == status);
            assert!(is_known, "{}: {status}", manual.verb);
        }
    }
}

#[test]
fn the_table_of_the_documentation_is_that_of_the_verbs() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verbs.md");
    let text = std::fs::read_to_string(place).expect("the chapter is there");
    let table = table();
    assert!(
        text.contains(&table),
        "docs/verbs.md has another table than\n{table}"
    );
}

/// All statuses, with their meaning for every verb that has them.
pub(super) const TABLE: [(&str, &str); 8] = [
    ("0", "the work is done, and no condition holds"),
    (
        "1",
        "the command line is wrong, or something could not be read, measured or written",
    ),
    (
        "2",
        "a condition holds: `--fail-if`, `--fail-on` or `--strict`",
    ),
    (
        "125",
        "there is no link, or its report could not be written",
    ),
    ("126", "the command cannot be started"),
    ("127", "there is no such command"),
    ("130", "SIGINT, SIGTERM or SIGHUP ended the measurement"),
    (
        "other",
        "the status of the command; 128 plus the number of the signal that ended it",
    ),
];
