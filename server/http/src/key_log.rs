//! Secrets of TLS connections in a file, for programs that decrypt captured traffic: `ssl_key_log` and its kin.
//!
//! The file is opened as a log, so it is reopened as one. A line is one write, so lines of several threads do not mix.
//! A failed write is not reported: it would be repeated with each connection.
//!
//! Source: nginx documentation, `ssl_key_log`; RFC 9850.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use server_base::opened::OpenedLogs;
use tls::KeyLog;

/// A file for secrets.
#[derive(Debug)]
pub struct KeyLogFile {
    path: PathBuf,
    /// Set with the opened logs of the configuration.
    file: OnceLock<Arc<File>>,
}

impl KeyLogFile {
    /// A file that is not open yet; its path is absolute.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: OnceLock::new(),
        }
    }

    /// Whether it is the file with this path.
    pub(crate) fn is_at(&self, path: &PathBuf) -> bool {
        self.path == *path
    }

    /// Takes the opened file.
    pub(crate) fn attach(&self, opened: &OpenedLogs) {
        if let Some(file) = opened.files.get(&self.path) {
            let _ = self.file.set(Arc::clone(file));
        }
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let Some(mut file) = self.file.get().map(Arc::as_ref) else {
            return;
        };
        let _ = file.write_all(line(label, client_random, secret).as_bytes());
    }
}

/// A line of the file.
fn line(label: &str, client_random: &[u8], secret: &[u8]) -> String {
    let mut line =
        String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
    line.push_str(label);
    for bytes in [client_random, secret] {
        line.push(' ');
        for byte in bytes {
            let _ = write!(line, "{byte:02x}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_label_random_and_secret() {
        assert_eq!(
            line("CLIENT_RANDOM", &[0, 255], &[1]),
            "CLIENT_RANDOM 00ff 01\n"
        );
    }

    #[test]
    fn file_that_is_not_open_takes_nothing() {
        let log = KeyLogFile::new(PathBuf::from("/nowhere"));
        log.attach(&OpenedLogs::default());
        log.log("CLIENT_RANDOM", &[0], &[1]);
        assert!(log.file.get().is_none());
    }
}
