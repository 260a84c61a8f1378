//! Options of tools, `--name VALUE`: one table a tool, which its help, the man page and completions show.

/// An option as help, man page and completions of shells show it.
#[derive(Debug)]
pub(crate) struct Long {
    /// Its name, without hyphens.
    pub(crate) name: &'static str,
    /// The name of its value, for one that takes one.
    pub(crate) value: Option<&'static str>,
    /// What it does.
    pub(crate) doc: &'static str,
}

/// An option with a value.
pub(super) const fn with(name: &'static str, value: &'static str, doc: &'static str) -> Long {
    Long {
        name,
        value: Some(value),
        doc,
    }
}

/// An option without one.
pub(super) const fn plain(name: &'static str, doc: &'static str) -> Long {
    Long {
        name,
        value: None,
        doc,
    }
}

/// A line of help for each.
pub(super) fn help(longs: &[Long]) -> String {
    let line = |long: &Long| {
        let value = long.value.map(|value| format!(" {value}"));
        let written = format!("--{}{}", long.name, value.unwrap_or_default());
        format!("  {written:<17}: {}\n", long.doc)
    };
    longs.iter().map(line).collect()
}
