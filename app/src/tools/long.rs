//! Options of tools, `--name VALUE`: one table a tool, which its help, the man page and completions show,
//! and by which its words are read.

use std::ffi::OsString;

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
pub(crate) fn help(longs: &[Long]) -> String {
    let line = |long: &Long| {
        let value = long.value.map(|value| format!(" {value}"));
        let written = format!("--{}{}", long.name, value.unwrap_or_default());
        format!("  {written:<17}: {}\n", long.doc)
    };
    longs.iter().map(line).collect()
}

/// What the words after a tool's name ask for.
#[derive(Debug)]
pub(super) enum Asked<Options> {
    /// How the tool is used.
    Help,
    /// Its work, so.
    Work(Box<Options>),
}

/// One thing that a command line says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// How is it used?
    Help,
    /// An option, and its value; empty for one that takes none.
    Option(&'static str, String),
    /// Anything else.
    Operand(String),
}

/// Reads the words after a tool's name: `--name value`, `--name=value`, and the names of `short` letters.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn read(
    words: &[OsString],
    longs: &'static [Long],
    short: &[(&str, &str)],
) -> Result<Vec<Said>, String> {
    let mut said = Vec::new();
    let mut words = words.iter();
    let mut only_operands = false;
    while let Some(word) = words.next() {
        let text = word
            .to_str()
            .ok_or_else(|| format!("\"{}\" is not UTF-8", word.to_string_lossy()))?;
        let letter = short.iter().find(|(letter, _)| *letter == text);
        let option = match letter {
            Some((_, name)) => Some(*name),
            None => text.strip_prefix("--"),
        };
        // The order of the arms decides: after `--` everything is an operand, and help wins over what is wrong behind it.
        match (text, option) {
            _ if only_operands => said.push(Said::Operand(text.to_owned())),
            ("--", _) => only_operands = true,
            ("-h" | "-?" | "--help", _) => return Ok(vec![Said::Help]),
            (_, Some(option)) => {
                let (name, given) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (option, None),
                };
                let Some(long) = longs.iter().find(|long| long.name == name) else {
                    return Err(format!("invalid option: \"{text}\""));
                };
                // `--name=` is a missing value: it takes the next word, as `--name` does.
                let value = match (long.value, given) {
                    (None, Some(_)) => {
                        return Err(format!("option \"--{name}\" takes no value"));
                    }
                    (None, None) => String::new(),
                    (Some(_), Some(value)) if !value.is_empty() => value,
                    (Some(_), _) => words
                        .next()
                        .and_then(|word| word.to_str())
                        .filter(|value| !value.is_empty())
                        .ok_or_else(|| format!("option \"--{name}\" requires a value"))?
                        .to_owned(),
                };
                said.push(Said::Option(long.name, value));
            }
            (text, None) if text.starts_with('-') && text.len() > 1 => {
                return Err(format!("invalid option: \"{text}\""));
            }
            _ => said.push(Said::Operand(text.to_owned())),
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGS: &[Long] = &[with("with", "N", ""), plain("plain", "")];

    fn said(line: &str) -> Result<Vec<Said>, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        read(&words, LONGS, &[("-p", "plain")])
    }

    #[test]
    fn options_and_operands_are_read() {
        let option = |name, value: &str| Said::Option(name, value.to_owned());
        let operand = |text: &str| Said::Operand(text.to_owned());
        let expected = vec![
            option("with", "1"),
            operand("a"),
            option("plain", ""),
            operand("-x"),
        ];
        assert_eq!(said("--with=1 a -p -- -x"), Ok(expected));
        assert_eq!(said("--with 2 -h"), Ok(vec![Said::Help]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |line| said(line).expect_err("it is refused");
        assert_eq!(wrong("--with"), "option \"--with\" requires a value");
        assert_eq!(wrong("--plain=1"), "option \"--plain\" takes no value");
        assert_eq!(wrong("--other"), "invalid option: \"--other\"");
        assert_eq!(wrong("-x"), "invalid option: \"-x\"");
    }
}
