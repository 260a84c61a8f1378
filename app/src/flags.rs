//! The options of the command line as one table, the source of `-h`, the man page and the completions of shells.
//!
//! Effects of options are in `argv`; here are their syntax and purpose, for nginx's options in nginx's words.
//! Source: nginx documentation, "Command-line parameters".

/// One option.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Its letters; the first one is the usual spelling.
    pub(crate) letters: &'static [char],
    /// Name of its value, if it requires one.
    pub(crate) value: Option<&'static str>,
    /// Description, in a line.
    pub(crate) doc: &'static str,
}

impl Flag {
    /// The option as the help writes it: `-?,-h` or `-s signal`.
    pub(crate) fn written(&self) -> String {
        let letters: Vec<String> = self
            .letters
            .iter()
            .map(|letter| format!("-{letter}"))
            .collect();
        let value = self.value.map(|value| format!(" {value}"));
        letters.join(",") + &value.unwrap_or_default()
    }
}

const fn plain(letters: &'static [char], doc: &'static str) -> Flag {
    Flag {
        letters,
        value: None,
        doc,
    }
}

const fn with(letters: &'static [char], value: &'static str, doc: &'static str) -> Flag {
    Flag {
        letters,
        value: Some(value),
        doc,
    }
}

/// nginx's options, in the order of the help.
pub(crate) const FLAGS: &[Flag] = &[
    plain(&['?', 'h'], "this help"),
    plain(&['v'], "show version and exit"),
    plain(&['V'], "show version and configure options then exit"),
    plain(&['t'], "test configuration and exit"),
    plain(&['T'], "test configuration, dump it and exit"),
    plain(
        &['q'],
        "suppress non-error messages during configuration testing",
    ),
    with(
        &['s'],
        "signal",
        "send signal to a master process: stop, quit, reopen, reload",
    ),
    with(&['p'], "prefix", "set prefix path"),
    with(&['e'], "filename", "set error log file"),
    with(&['c'], "filename", "set configuration file"),
    with(
        &['g'],
        "directives",
        "set global directives out of configuration file",
    ),
];

/// Long options, which nginx does not have, with their descriptions.
pub(crate) const LONG_FLAGS: [(&str, &str); 2] = [
    ("help", "this help, on standard output"),
    ("version", "show version, on standard output"),
];
