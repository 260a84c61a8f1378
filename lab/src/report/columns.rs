//! The width of text: [`WIDTH`], or that of a narrower terminal.
//!
//! A thread renders one report at a time. So the width belongs to the thread, and no function needs it as an argument.

use std::cell::Cell;

/// Columns of a report for a pipe, a file or a wide terminal.
pub const WIDTH: usize = 100;
/// Columns below which nothing is laid out; a narrower terminal breaks lines itself.
pub const WIDTH_MIN: usize = 40;

thread_local! {
    static COLUMNS: Cell<usize> = const { Cell::new(WIDTH) };
}

/// Calls `render` with reports of at most `columns`, which is limited to [`WIDTH_MIN`] to [`WIDTH`].
pub fn within<T>(columns: usize, render: impl FnOnce() -> T) -> T {
    /// Restores the width if `render` panics, too.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            COLUMNS.set(self.0);
        }
    }
    let _before = Before(COLUMNS.replace(columns.clamp(WIDTH_MIN, WIDTH)));
    render()
}

/// Columns of the report that this thread renders.
pub(crate) fn columns() -> usize {
    COLUMNS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_has_limits_and_ends_with_its_report() {
        for (wanted, given) in [
            (0, 40),
            (39, 40),
            (40, 40),
            (72, 72),
            (100, 100),
            (101, 100),
        ] {
            assert_eq!(within(wanted, columns), given);
        }
        assert_eq!(within(60, || within(80, columns)), 80);
        assert_eq!(columns(), WIDTH);
    }
}
