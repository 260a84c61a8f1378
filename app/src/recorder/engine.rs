//! Stores by their kind: how each is opened for writing and for reading.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use lab::web::Source;
use server_base::errlog::Printable;
use server_base::lab_store::{ClickHouseConf, LabEngine, LabStoreConf};
use store::{Report, Retention, Settings, Sqlite, Store, Writer};

/// Contents of the files that `lab_store` names.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    /// The password of the user.
    password: Option<String>,
    /// Trusted certificates, PEM.
    ca: Option<Vec<u8>>,
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
        let read = |path: &Path, what: &str| {
            fs::read(path).map_err(|error| {
                let reason = sys::os_error(&error);
                format!(
                    "{what} \"{}\" of lab_store cannot be read ({reason})",
                    Printable::path(path)
                )
            })
        };
        let ca = conf.ca_file.as_deref().map(|path| read(path, "ca"));
        let Some(path) = &conf.password_file else {
            return Ok(Self {
                password: None,
                ca: ca.transpose()?,
            });
        };
        let password = password(&read(path, "password_file")?);
        let password = password.ok_or_else(|| {
            format!(
                "password_file \"{}\" of lab_store must have one line of 1 to {PASSWORD_BYTES_MAX} bytes of text",
                Printable::path(path)
            )
        })?;
        Ok(Self {
            password: Some(password),
            ca: ca.transpose()?,
        })
    }
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

/// Starts the writer of a store.
///
/// # Errors
/// Its thread cannot be started.
pub(super) fn writer(
    conf: &LabStoreConf,
    _credentials: &Credentials,
    report: impl Fn(Report) + Send + 'static,
) -> io::Result<Writer> {
    let retention = Retention {
        rows_s: conf.rows_s,
        rollups_s: conf.retention_s,
        max_bytes: match conf.max_bytes {
            0 => u64::MAX,
            bytes => bytes,
        },
    };
    match &conf.engine {
        LabEngine::Sqlite(path) => {
            let settings = Settings {
                retention,
                ..Settings::new(path)
            };
            Writer::start(settings, report)
        }
        LabEngine::ClickHouse(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Returns the store as pages read it.
pub(super) fn source(engine: &LabEngine, credentials: &Credentials) -> Arc<dyn Source> {
    Arc::new(StoreSource {
        engine: engine.clone(),
        credentials: credentials.clone(),
    })
}

/// A store that is opened for reading alone.
struct StoreSource {
    engine: LabEngine,
    credentials: Credentials,
}

impl Source for StoreSource {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        match &self.engine {
            LabEngine::Sqlite(path) => {
                let opened = Sqlite::open_to_read(path).map_err(|error| error.to_string())?;
                Ok(Box::new(opened))
            }
            LabEngine::ClickHouse(conf) => clickhouse(conf, &self.credentials),
        }
    }

    fn name(&self) -> String {
        self.engine.to_string()
    }
}

fn clickhouse(_: &ClickHouseConf, _: &Credentials) -> Result<Box<dyn Store>, String> {
    Err("ClickHouse is not built yet".to_owned())
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
