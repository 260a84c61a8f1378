//! Secrets and certificates in files configured by `lab_store`.

use std::fs;
use std::path::Path;

use lab::client::trust::Trust;
use server_base::errlog::Printable;
use server_base::lab_store::{LabEngine, LabStoreConf};

/// Contents of the files configured by `lab_store`.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    /// The password of the user.
    pub(super) password: Option<String>,
    /// Trusted certificates, if the system's are not.
    pub(super) trust: Option<Trust>,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// The file and the reason, without its content.
    pub(crate) fn read(engine: &LabEngine) -> Result<Self, String> {
        let LabEngine::ClickHouse(conf) = engine else {
            return Ok(Self::default());
        };
        let password = conf.password_file.as_deref().map(read_password);
        let trust = conf
            .ca_file
            .as_deref()
            .map(|path| Trust::file(path).map_err(|why| format!("\"ca\" of lab_store: {why}")));
        Ok(Self {
            password: password.transpose()?,
            trust: trust.transpose()?,
        })
    }
}

fn read_password(path: &Path) -> Result<String, String> {
    let shown = Printable::path(path);
    let bytes = fs::read(path).map_err(|error| {
        let reason = sys::os_error(&error);
        format!("\"password_file\" of lab_store: cannot read \"{shown}\" ({reason})")
    })?;
    password(&bytes).ok_or_else(|| {
        format!(
            "\"password_file\" of lab_store: \"{shown}\" must have one line of 1 to {PASSWORD_BYTES_MAX} bytes"
        )
    })
}

/// Checks that the files of `lab_store` can be read.
///
/// # Errors
/// See [`Credentials::read`].
pub(crate) fn check_files(conf: &LabStoreConf) -> Result<(), String> {
    Credentials::read(&conf.engine).map(drop)
}

/// Returns the only line of a file.
fn password(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let fits = (1..=PASSWORD_BYTES_MAX).contains(&line.len());
    (fits && !line.chars().any(char::is_control)).then(|| line.to_owned())
}

/// Longest password, bytes.
const PASSWORD_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_one_line() {
        let longest = "p".repeat(PASSWORD_BYTES_MAX);
        for (text, expected) in [
            ("secret", Some("secret")),
            ("secret\n", Some("secret")),
            ("secret\r\n", Some("secret")),
            (" a b ", Some(" a b ")),
            (&longest, Some(longest.as_str())),
            ("", None),
            ("\n", None),
            ("a\nb", None),
            ("a\n\n", None),
            ("a\0", None),
        ] {
            assert_eq!(password(text.as_bytes()).as_deref(), expected, "{text:?}");
        }
        assert_eq!(password(format!("{longest}p").as_bytes()), None);
        assert_eq!(password(b"\xff"), None);
    }
}
