//! Text for a terminal: aligned columns, and sentences broken at [`WIDTH`].

/// Columns of a report.
pub(crate) const WIDTH: usize = 100;

/// Appends rows with columns as wide as their widest cell: the first to the left, the others to the right, two spaces between
/// them. Rows may differ in length.
pub(crate) fn push_rows(rows: &[Vec<String>], indent: &str, out: &mut String) {
    // Characters, not bytes: headings have a micro sign.
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = indent.to_owned();
        for (n, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[n] - cell.chars().count());
            match n {
                0 => line.extend([cell, pad.as_str()]),
                _ => line.extend(["  ", &pad, cell]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Appends a title and its text, of which each further line begins below the first one's text.
pub(crate) fn push_entry(title: &str, text: &str, out: &mut String) {
    let start = format!("  {title:<TITLE$}  ");
    push_wrapped(&start, &" ".repeat(TITLE + 4), text, out);
}

/// Appends a text broken between words. A word that is longer than a line is not broken.
pub(crate) fn push_wrapped(start: &str, next: &str, text: &str, out: &mut String) {
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        let length = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && length > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = next.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Characters of the titles of entries.
const TITLE: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_line_is_broken_before_the_word_that_is_beyond_the_width() {
        for (length, lines) in [(WIDTH - 3, 1), (WIDTH - 2, 2), (WIDTH + 50, 2)] {
            let mut out = String::new();
            let text = format!("{} x", "a".repeat(length - 1));
            push_wrapped("- ", "  ", &text, &mut out);
            assert_eq!(out.lines().count(), lines, "{length}");
            assert!(out.ends_with("x\n"));
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
