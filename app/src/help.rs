//! Output of `-v`, `-V` and `-h`, on standard error as nginx does, and of `--version` and `--help` on standard output.
//!
//! Source: nginx documentation, "Command-line parameters".

use crate::argv::{self, Show};
use crate::flags::{FLAGS, LONG_FLAGS};
use crate::terminal::{broken, stderr_columns, stdout_columns};
use crate::version::{configure, name};
use crate::{cli, paths, stdout};

/// Prints the version and the other requested parts.
///
/// # Errors
/// A sentence: the output cannot be written.
pub(crate) fn print(show: Show) -> Result<(), String> {
    let mut text = format!("nginx version: {}\n", name());
    if show.help {
        let columns = match show.on_stdout {
            true => stdout_columns(),
            false => stderr_columns(),
        };
        // Scripts read the other lines, which stay whole.
        text.push_str(&broken(&help(&argv::program()), columns, INDENT));
    }
    if show.configure {
        text.push_str(&configure());
    }
    match show.on_stdout {
        true => stdout::write(&text),
        false => stdout::write_stderr(&text),
    }
}

/// The options, in nginx's layout and words, then those that nginx does not have, and the verbs.
fn help(program: &str) -> String {
    let mut text = usage(program);
    text.push_str("\nOptions:\n");
    for flag in FLAGS {
        let default = default_of(flag.letters[0]);
        let default = default.map_or(String::new(), |path| format!(" (default: {path})"));
        text.push_str(&format!(
            "  {:<13} : {}{default}\n",
            flag.written(),
            flag.doc
        ));
    }
    for (name, doc) in LONG_FLAGS {
        text.push_str(&format!("  --{name:<11} : {doc}\n"));
    }
    text.push_str(&format!(
        "\nVerbs, each with options of its own ({program} help VERB):\n"
    ));
    text.push_str(&cli::list());
    text.push('\n');
    text
}

/// The options in brackets, those without a value together, on lines of at most [`USAGE_COLUMNS`].
fn usage(program: &str) -> String {
    let (with, without): (Vec<_>, Vec<_>) = FLAGS.iter().partition(|flag| flag.value.is_some());
    let letters: String = without.iter().flat_map(|flag| flag.letters).collect();
    let start = format!("Usage: {program}");
    let mut line = format!("{start} [-{letters}]");
    let mut text = String::new();
    for flag in with {
        let word = format!(" [{}]", flag.written());
        if line.len() + word.len() > USAGE_COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(start.chars().count());
        }
        line.push_str(&word);
    }
    text + &line + "\n"
}

fn default_of(flag: char) -> Option<String> {
    let defaults = paths::defaults();
    match flag {
        'p' => Some(format!("{}/", defaults.prefix.trim_end_matches('/'))),
        'e' => Some(defaults.error_log.to_owned()),
        'c' => Some(defaults.conf.to_owned()),
        _ => None,
    }
}

/// Columns before the purpose of an option or a verb.
const INDENT: usize = 18;
/// Maximum width of a line of the usage.
const USAGE_COLUMNS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_laid_out_as_nginx_does() {
        let text = help("nginx");
        let usage = "Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]\n             \
                     [-e filename] [-c filename] [-g directives]\n\nOptions:\n";
        assert!(text.starts_with(usage), "{text}");
        let defaults = paths::defaults();
        for line in [
            "-?,-h         : this help",
            "-v            : show version and exit",
            "-V            : show version and configure options then exit",
            "-t            : test configuration and exit",
            "-T            : test configuration, dump it and exit",
            "-q            : suppress non-error messages during configuration testing",
            "-s signal     : send signal to a master process: stop, quit, reopen, reload",
            &format!(
                "-p prefix     : set prefix path (default: {}/)",
                defaults.prefix
            ),
            &format!(
                "-e filename   : set error log file (default: {})",
                defaults.error_log
            ),
            &format!(
                "-c filename   : set configuration file (default: {})",
                defaults.conf
            ),
            "-g directives : set global directives out of configuration file",
            "--help        : this help, on standard output",
        ] {
            assert!(text.contains(&format!("\n  {line}\n")), "{line} in {text}");
        }
        assert!(help("other").starts_with("Usage: other [-?hvVtTq]"));
        assert!(text.contains("\n  explain "));
    }
}
