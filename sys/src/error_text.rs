//! Texts of system errors in nginx's form.

use std::io;
use std::sync::OnceLock;

/// Returns `2: No such file or directory`, nginx's form of a system error; only the text if the error has no
/// number.
///
/// `Display` of [`io::Error`] has another form: `No such file or directory (os error 2)`. Logs and consoles never use it.
#[must_use]
pub fn os_error(error: &io::Error) -> String {
    let Some(code) = error.raw_os_error() else {
        return error.to_string();
    };
    let known = usize::try_from(code).ok().and_then(|at| TEXTS.get(at));
    known.map_or_else(
        || numbered(error, code),
        |text| text.get_or_init(|| numbered(error, code)).clone(),
    )
}

fn numbered(error: &io::Error, code: i32) -> String {
    let text = error.to_string();
    let suffix = format!(" (os error {code})");
    format!("{code}: {}", text.strip_suffix(&suffix).unwrap_or(&text))
}

/// Texts by number, each made once: making one costs a fifth of a response that logs an error. Linux has no number
/// above 133 on x86 and Arm; the texts of others are made each time.
static TEXTS: [OnceLock<String>; 134] = [const { OnceLock::new() }; 134];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_is_written_number_first() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(os_error(&error), "2: No such file or directory");
        assert_eq!(os_error(&io::Error::other("odd")), "odd");
        // The first number beyond the table, and one below it.
        for number in [134, -1] {
            let text = os_error(&io::Error::from_raw_os_error(number));
            assert_eq!(text, format!("{number}: Unknown error {number}"));
        }
        for _ in 0..2 {
            let last = io::Error::from_raw_os_error(133);
            assert_eq!(os_error(&last), "133: Memory page has hardware error");
        }
        assert!(TEXTS[133].get().is_some(), "it is kept");
    }
}
