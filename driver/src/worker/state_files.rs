//! Files of `state`: the servers of a group, stored after each change at run time.
//!
//! A file is replaced as a whole. If the worker may not create files in its directory, its contents are replaced instead,
//! and a stop in between loses them. Absent: reading a file, which each load of a configuration does.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use server_upstream::server::Server;
use server_upstream::state_file::directive;

/// Stores the servers of a group.
///
/// # Errors
/// The I/O error of creating, writing or renaming a file.
pub(super) fn write(path: &Path, servers: &[Server]) -> io::Result<()> {
    let lines = servers
        .iter()
        .map(|server| [&*directive(server), b"\n"].concat());
    let text = lines.collect::<Vec<_>>().concat();
    let new = beside(path);
    match create(&new) {
        Ok(file) => {
            fill(file, &text)?;
            fs::rename(&new, path)
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => fill(create(path)?, &text),
        Err(error) => Err(error),
    }
}

/// Opens an empty file, which everyone may read as a part of the configuration.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644);
    options.open(path)
}

fn fill(mut file: File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_all()
}

/// The name of the new file until it replaces the old one.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn named(name: &str) -> Server {
        Server {
            name: Arc::from(name.as_bytes()),
            ..Server::new()
        }
    }

    #[test]
    fn a_file_has_one_line_for_each_server() {
        let dir = std::env::temp_dir().join(format!("state-files-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("servers.conf");
        let stored = |servers: &[Server]| {
            write(&path, servers).expect("it can be written");
            fs::read_to_string(&path).expect("it is there")
        };
        assert_eq!(
            stored(&[named("a:1"), named("b:2")]),
            "server a:1;\nserver b:2;\n"
        );
        assert_eq!(stored(&[]), "");
        assert!(!beside(&path).exists());
        fs::remove_dir_all(&dir).expect("it is removed");
        assert!(write(&path, &[]).is_err());
    }
}
