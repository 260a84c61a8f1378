//! What `-v`, `-V` and `-h` print, on standard error as nginx does.
//!
//! Scripts and test suites read the version and, after `configure arguments:`, which of nginx's
//! standard modules are absent. Source: nginx documentation, "Command-line parameters".

use std::io::{self, Write};

use crate::argv::Show;
use crate::paths;
use crate::tools;

/// Prints the version, and what else is asked for.
pub(crate) fn print(show: Show) {
    let mut text = format!("nginx version: {}\n", name());
    if show.help {
        text.push_str(&help());
    }
    if show.configure {
        text.push_str(&configure());
    }
    // Nobody reads a closed standard error.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The version of nginx this stands in for, and its own.
pub(crate) fn name() -> String {
    format!(
        "nginx/{NGINX_VERSION} (firstbyte/{})",
        env!("CARGO_PKG_VERSION")
    )
}

/// The compiler that built the program.
pub(crate) fn compiler() -> &'static str {
    env!("FIRSTBYTE_COMPILER")
}

fn help() -> String {
    format!(
        "Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]
             [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : print this text
  -v            : print the version and exit
  -V            : print the version and how it was built, then exit
  -t            : check the configuration and exit
  -T            : check the configuration, print it and exit
  -q            : print nothing but errors while checking
  -s signal     : tell the running server to: stop, quit, reopen, reload
  -p prefix     : directory of relative paths (default: {})
  -e filename   : error log before the configuration is read (default: {})
  -c filename   : configuration file (default: {})
  -g directives : directives to put before the configuration file's

Tools, each with options of its own (nginx TOOL -h):
{}
",
        paths::PREFIX,
        paths::ERROR_LOG,
        paths::CONF,
        tools::list(),
    )
}

fn configure() -> String {
    let mut arguments = format!(
        "built by {}\nconfigure arguments: --prefix={} --conf-path={} --pid-path={} \
         --error-log-path={} --http-log-path={}",
        compiler(),
        paths::PREFIX,
        paths::CONF,
        paths::PID,
        paths::ERROR_LOG,
        paths::ACCESS_LOG,
    );
    for argument in server_modules::with()
        .into_iter()
        .chain(server_modules::without())
    {
        arguments.push(' ');
        arguments.push_str(&argument);
    }
    arguments.push('\n');
    arguments
}

/// The version whose configuration and behaviour are the reference.
const NGINX_VERSION: &str = "1.31.4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_where_nginx_has_it() {
        assert!(name().starts_with("nginx/1.31.4 (firstbyte/"));
    }

    #[test]
    fn configure_arguments_are_one_line() {
        let text = configure();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("built by rustc "));
        assert!(lines[1].starts_with("configure arguments: --prefix="));
    }

    #[test]
    fn help_names_every_option() {
        let text = help();
        for flag in [
            "-?,-h", "-v", "-V", "-t", "-T", "-q", "-s", "-p", "-e", "-c", "-g",
        ] {
            assert!(text.contains(&format!("\n  {flag} ")), "{flag}");
        }
        assert!(text.contains("\n  explain "));
    }
}
