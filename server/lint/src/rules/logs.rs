//! FB701 to FB703: the paths of logs.

use crate::Warn;
use crate::tree::{Id, Tree};
use crate::value::{from_client, variables};

/// FB701: `error_log off` writes into a file.
pub(super) fn named_off(tree: &Tree, warn: &mut Warn<'_>) {
    let errors = tree
        .everywhere("error_log")
        .iter()
        .map(|id| (*id, "off on none false"));
    let accesses = tree
        .everywhere("access_log")
        .iter()
        .map(|id| (*id, "on none false"));
    for (id, words) in errors.chain(accesses) {
        let (name, file) = (tree.name(id), tree.arg(id, 0));
        if words.split(' ').any(|word| word == file) {
            let message = format!("\"{name} {file}\" writes the log to a file named \"{file}\"");
            let hint = match name {
                "access_log" => "\"access_log off;\" disables the log",
                _ => "an error log cannot be disabled; \"error_log /dev/null crit;\" discards it",
            };
            warn.word(id, 0, message, hint);
        }
    }
}

/// Logs with a path for each request.
fn with_variables(tree: &Tree) -> Vec<Id> {
    let mut ids: Vec<Id> = tree.http("access_log").collect();
    ids.retain(|id| {
        variables(tree.arg(*id, 0)).next().is_some() && !tree.arg(*id, 0).starts_with("syslog:")
    });
    ids
}

/// FB702: the client controls the path of the log.
pub(super) fn named_by_client(tree: &Tree, warn: &mut Warn<'_>) {
    for id in with_variables(tree) {
        if let Some((name, contents)) = from_client(tree, id, tree.arg(id, 0)) {
            // nginx follows it there.
            let elsewhere = match contents.bytes.has(b'/') && contents.bytes.has(b'.') {
                true => ", with \"..\" even outside of their directory",
                false => "",
            };
            let message = format!(
                "the client chooses names and number of log files through \"{name}\"{elsewhere}"
            );
            warn.word(
                id,
                0,
                message,
                "use \"$server_name\", which comes from the configuration",
            );
        }
    }
}

/// FB703: such a file is opened and closed for each line.
pub(super) fn opened_each_time(tree: &Tree, warn: &mut Warn<'_>) {
    for id in with_variables(tree) {
        let cache = tree
            .parent(id)
            .and_then(|block| tree.inherited(block, "open_log_file_cache"));
        if cache.is_none_or(|cache| tree.arg(cache, 0) == "off") {
            let message = "a log with variables in its path is opened and closed for each line";
            warn.word(
                id,
                0,
                message,
                "\"open_log_file_cache max=16;\" keeps it open",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn logs_with_the_name_of_a_switch_are_found() {
        for text in ["error_log off;", "error_log on warn;", "access_log on;"] {
            assert_eq!(in_server(text), ["FB701"], "{text}");
        }
        assert_eq!(
            in_server("access_log off; error_log logs/off.log;"),
            [""; 0]
        );
    }

    #[test]
    fn names_of_logs_that_a_client_makes_are_found() {
        let cached =
            |log: &str| in_server(&format!("open_log_file_cache max=9; access_log {log};"));
        assert_eq!(cached("/log/$host.log"), ["FB702"]);
        assert_eq!(cached("/log/$arg_a"), ["FB702"]);
        assert_eq!(cached("/log/$server_name.log"), [""; 0]);
        assert_eq!(cached("/log/a.log combined if=$host"), [""; 0]);
    }

    #[test]
    fn logs_that_are_opened_for_each_line_are_found() {
        assert_eq!(in_server("access_log /log/$server_name;"), ["FB703"]);
        assert_eq!(
            in_server("open_log_file_cache off; access_log /log/$server_name;"),
            ["FB703"]
        );
        assert_eq!(in_server("access_log syslog:server=$server_name;"), [""; 0]);
    }
}
