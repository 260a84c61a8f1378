//! Text for a terminal: aligned columns, and sentences broken at the width of the report. Characters that a terminal would obey
//! are written out.

use std::collections::BTreeMap;

use super::columns::columns;
use super::escape::visible;

/// Appends rows with columns as wide as their widest cell: the first to the left, the others to the right, two spaces between
/// them. Rows may differ in length. A table that is too wide continues below, with its first column again.
pub(crate) fn push_rows(rows: &[Vec<String>], indent: &str, out: &mut String) {
    let cells = |row: &Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    // Characters, not bytes: headings have a micro sign.
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let all = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..all).map(width).collect();
    let mut from = 1;
    loop {
        let to = fitting(
            &widths,
            from,
            columns().saturating_sub(indent.chars().count()),
        );
        for row in &rows {
            let mut line = indent.to_owned();
            let cells = row.iter().enumerate();
            for (n, cell) in cells.filter(|(n, _)| *n == 0 || (from..to).contains(n)) {
                let pad = " ".repeat(widths[n] - cell.chars().count());
                match n {
                    0 => line.extend([cell, pad.as_str()]),
                    _ => line.extend(["  ", &pad, cell]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if to >= all {
            return;
        }
        from = to;
    }
}

/// End of the columns from `from` on that fit into a width beside the first one; at least one column.
fn fitting(widths: &[usize], from: usize, width: usize) -> usize {
    let mut used = widths.first().copied().unwrap_or(0);
    for (n, own) in widths.iter().enumerate().skip(from) {
        used += own + 2;
        if used > width && n > from {
            return n;
        }
    }
    widths.len()
}

/// Appends a title and its text. Further lines are indented to the beginning of the text.
pub(crate) fn push_entry(title: &str, text: &str, out: &mut String) {
    let start = format!("  {title:<TITLE$}  ");
    push_wrapped(&start, &" ".repeat(TITLE + 4), text, out);
}

/// Appends a text broken between words at the width of the report.
pub(crate) fn push_wrapped(start: &str, next: &str, text: &str, out: &mut String) {
    push_lines(columns(), start, next, text, out);
}

/// Appends a text broken between words at a width; a word that is longer than a line is broken, too. The first line begins with
/// `start`, each further one with `next`.
pub fn push_lines(width: usize, start: &str, next: &str, text: &str, out: &mut String) {
    let text = visible(text);
    let (mut line, mut is_empty) = (start.to_owned(), true);
    let end_line = |line: &mut String, out: &mut String| {
        out.push_str(line.trim_end());
        out.push('\n');
        next.clone_into(line);
    };
    for mut word in text.split(' ') {
        let length = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && length > width {
            end_line(&mut line, out);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        let room = |line: &str| width.saturating_sub(line.chars().count()).max(1);
        while let Some((end, _)) = word.char_indices().nth(room(&line)) {
            let (fits, rest) = word.split_at(end);
            line.push_str(fits);
            end_line(&mut line, out);
            word = rest;
        }
        line.push_str(word);
        is_empty = false;
    }
    end_line(&mut line, out);
}

/// Characters of the titles of entries.
const TITLE: usize = 14;

/// `2xx: 12, 4xx: 3`.
pub(super) fn list_counts(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(|(what, n)| format!("{what}: {n}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::columns::{WIDTH, within};

    #[test]
    fn a_table_that_is_too_wide_continues_below() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let eight = "12345678";
        let rows: Vec<Vec<String>> = vec![
            row(&["", "aaaaaaaa", "b", "c", "d"]),
            row(&["name", eight, eight, eight, eight]),
        ];
        let table = |columns| {
            let mut out = String::new();
            within(columns, || push_rows(&rows, "  ", &mut out));
            out
        };
        // Two of indent, four of the first column, ten of each other one.
        let whole = "        aaaaaaaa         b         c         d\n  name  12345678  12345678  12345678  12345678\n";
        assert_eq!(table(46), whole);
        let folded = "        aaaaaaaa         b         c\n  name  12345678  12345678  12345678\n               d\n  name  12345678\n";
        assert_eq!(table(45), folded);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> =
            vec![row(&["", "µs", "max"]), row(&["time", "1.25"]), row(&[])];
        let mut out = String::new();
        push_rows(&rows, " ", &mut out);
        assert_eq!(out, "         µs  max\n time  1.25\n\n");
    }

    #[test]
    fn a_terminal_obeys_nothing() {
        let hostile = "a\u{1b}[31m\u{202e}";
        let mut out = String::new();
        push_rows(&[vec![hostile.to_owned(), "x".to_owned()]], "", &mut out);
        push_wrapped("", "", hostile, &mut out);
        assert_eq!(out, "a\\u{1b}[31m\\u{202e}  x\na\\u{1b}[31m\\u{202e}\n");
    }

    #[test]
    fn a_line_is_broken_before_the_word_that_is_beyond_the_width() {
        for (length, lines) in [
            (WIDTH - 3, 1),
            (WIDTH - 2, 2),
            (WIDTH + 50, 2),
            (2 * WIDTH - 3, 3),
        ] {
            let mut out = String::new();
            let text = format!("{} x", "a".repeat(length - 1));
            push_wrapped("- ", "  ", &text, &mut out);
            assert_eq!(out.lines().count(), lines, "{length}");
            assert!(out.lines().all(|line| line.len() <= WIDTH) && out.ends_with("x\n"));
            assert_eq!(out.matches('a').count(), length - 1);
        }
        let mut out = String::new();
        push_entry("statuses", &"2xx: 1, ".repeat(30), &mut out);
        assert!(out.lines().all(|line| line.len() <= WIDTH));
        assert!(
            out.lines()
                .skip(1)
                .all(|line| line.starts_with(&" ".repeat(TITLE + 4)))
        );
    }
}
