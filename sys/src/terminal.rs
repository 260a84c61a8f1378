//! Size of a terminal.

use std::os::fd::AsFd;

use rustix::termios;

/// Columns of the terminal behind a descriptor; `None` for a pipe or a file, or if the terminal has no known size.
#[must_use]
pub fn columns(of: impl AsFd) -> Option<usize> {
    let size = termios::tcgetwinsize(of).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_columns() {
        let file = std::fs::File::open("/dev/null").expect("the system has one");
        assert_eq!(columns(file), None);
    }
}
