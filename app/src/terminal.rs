//! Width of the output's terminal: the variable `COLUMNS`, or the terminal's own size.
//!
//! A pipe or a file has no width unless `COLUMNS` is set. Source: POSIX.1-2024, Environment Variables, `COLUMNS`.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use engines::http::parse_decimal;
use lab::report::{push_lines, within};

/// Columns of standard output, if it has a width.
pub(crate) fn stdout_columns() -> Option<usize> {
    columns(io::stdout())
}

/// Columns of standard error, if it has a width.
pub(crate) fn stderr_columns() -> Option<usize> {
    columns(io::stderr())
}

fn columns(output: impl AsFd) -> Option<usize> {
    let given = env::var_os("COLUMNS").and_then(|text| number(&text));
    given.or_else(|| sys::terminal::columns(output))
}

/// Parses a number of columns; an invalid variable is ignored, as in shells.
fn number(text: &OsStr) -> Option<usize> {
    parse_decimal(text.as_encoded_bytes()).filter(|columns| *columns > 0)
}

/// Renders a report of the lab for standard output.
pub(crate) fn fitted<T>(render: impl FnOnce() -> T) -> T {
    match stdout_columns() {
        Some(columns) => within(columns, render),
        None => render(),
    }
}

/// Lines broken between words at a width. The rest of a line begins below `indent` columns.
pub(crate) fn broken(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let mut out = String::new();
    for line in text.lines() {
        match line.chars().count() > columns {
            true => push_lines(columns, "", &" ".repeat(indent), line, &mut out),
            false => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_is_a_positive_number() {
        let number = |text: &str| number(OsStr::new(text));
        assert_eq!((number("80"), number("1")), (Some(80), Some(1)));
        for none in ["", "0", "-1", "+80", "x", "80 "] {
            assert_eq!(number(none), None, "{none}");
        }
    }

    #[test]
    fn only_lines_that_are_too_long_are_broken() {
        let text = "  a : one two three\n\nb\n";
        assert_eq!(broken(text, None, 6), text);
        assert_eq!(broken(text, Some(19), 6), text);
        let narrow = "  a : one two\n      three\n\nb\n";
        assert_eq!(broken(text, Some(18), 6), narrow);
        assert_eq!(broken(text, Some(13), 6), narrow);
    }
}
