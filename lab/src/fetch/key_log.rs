//! Secrets of TLS, written for programs that read captures.
//!
//! Source: the format of NSS, draft-ietf-tls-keylogfile.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// A file that secrets are written to.
#[derive(Debug)]
pub struct KeyLog(File);

impl KeyLog {
    /// Creates the file, or empties it; only its owner may read it from then on.
    ///
    /// # Errors
    /// It cannot be created, or is another's.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(OWN);
        let file = options.open(path)?;
        // An existing file keeps its mode when opened. The mode of a device must not change.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(OWN))?;
        }
        Ok(Self(file))
    }
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        for (bytes, end) in [(client_random, ' '), (secret, '\n')] {
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(line, "{byte:02x}");
            }
            line.push(end);
        }
        // One write a line: several connections share the file. A full disk is no reason to end a connection.
        let _ = (&self.0).write_all(line.as_bytes());
    }
}

/// The mode of the file.
const OWN: u32 = 0o600;
