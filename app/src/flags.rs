//! The options of the command line as one table: what `-h`, the man page and the completions of shells are made of.
//!
//! What an option does is in `argv`; this says how it is written and what it is for.
//! Source: nginx documentation, "Command-line parameters".

/// One option.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Its letters; the first is the one that stands for it.
    pub(crate) letters: &'static [char],
    /// The name of its value, for an option that takes one.
    pub(crate) value: Option<&'static str>,
    /// What it does, in a line.
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

/// Every option, in the order of the help.
pub(crate) const FLAGS: &[Flag] = &[
    plain(&['?', 'h'], "print this text"),
    plain(&['v'], "print the version and exit"),
    plain(&['V'], "print the version and how it was built, then exit"),
    plain(&['t'], "check the configuration and exit"),
    plain(&['T'], "check the configuration, print it and exit"),
    plain(&['q'], "print nothing but errors while checking"),
    with(
        &['s'],
        "signal",
        "tell the running server to: stop, quit, reopen, reload",
    ),
    with(&['p'], "prefix", "directory of relative paths"),
    with(
        &['e'],
        "filename",
        "error log before the configuration is read",
    ),
    with(&['c'], "filename", "configuration file"),
    with(
        &['g'],
        "directives",
        "directives to put before the configuration file's",
    ),
];
