//! `$gzip_ratio`, `$brotli_ratio` and `$zstd_ratio`: the ratio of body sizes before and after compression.

use std::cell::Cell;

use server_http::exchange::Exchange;

use super::coding::Coding;

/// Numbers of bytes before and after compression.
#[derive(Debug)]
pub(super) struct Ratio {
    coding: Coding,
    came: Cell<u64>,
    left: Cell<u64>,
    ended: Cell<bool>,
}

impl Ratio {
    pub(super) fn new(coding: Coding) -> Self {
        Self {
            coding,
            came: Cell::new(0),
            left: Cell::new(0),
            ended: Cell::new(false),
        }
    }

    pub(super) fn count(&self, came: usize, left: usize) {
        self.came.set(self.came.get() + came as u64);
        self.left.set(self.left.get() + left as u64);
    }

    pub(super) fn end(&self) {
        self.ended.set(true);
    }
}

/// Appends the ratio with two digits; false while there is none.
pub(super) fn show(x: &Exchange, coding: Coding, out: &mut Vec<u8>) -> bool {
    let Some(ratio) = x.extensions.get::<std::rc::Rc<Ratio>>() else {
        return false;
    };
    if ratio.coding != coding || !ratio.ended.get() || ratio.left.get() == 0 {
        return false;
    }
    let hundredths = hundredths(ratio.came.get(), ratio.left.get());
    out.extend_from_slice(format!("{}.{:02}", hundredths / 100, hundredths % 100).as_bytes());
    true
}

/// The quotient in hundredths, rounded by its third digit.
fn hundredths(came: u64, left: u64) -> u128 {
    let thousandths = u128::from(came) * 1000 / u128::from(left);
    thousandths / 10 + u128::from(thousandths % 10 > 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_digit_decides() {
        assert_eq!(hundredths(100, 50), 200);
        assert_eq!(hundredths(1004, 1000), 100);
        assert_eq!(hundredths(1005, 1000), 101);
        assert_eq!(hundredths(1999, 1000), 200);
        assert_eq!(hundredths(1, 3), 33);
        assert_eq!(hundredths(u64::MAX, 1), u128::from(u64::MAX) * 100);
    }
}
