//! Files of `state`: the servers of a group, stored after each change at run time.
//!
//! A file is replaced as a whole by a new one beside it. The target of a symbolic link is replaced, and the link stays.
//! If the worker may not create files in the directory, or if the file is a mount point, its contents are replaced
//! instead, and a stop in between loses them. After an error the old servers are still in the file. Absent: reading a
//! file, which each load of a configuration does, and another try without another change.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
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
    replace(&target(path)?, &text, |new, path| fs::rename(new, path))
}

/// Follows symbolic links. The file itself may be missing.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&path) else {
            return Ok(path);
        };
        let folder = path.parent().map(Path::to_owned);
        path = folder.unwrap_or_default().join(next);
    }
    Err(io::Error::from_raw_os_error(ELOOP))
}

/// Replaces a file. `rename` puts the new file in its place.
fn replace(
    path: &Path,
    text: &[u8],
    rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let new = beside(path);
    let made = create(&new).and_then(|mut file| fill(&mut file, text));
    let replaced = made.and_then(|()| rename(&new, path));
    let Err(error) = replaced else {
        return Ok(());
    };
    // It may have been created, and a full disk has no room for it.
    let _ = fs::remove_file(&new);
    match error.kind() {
        // The directory may be read-only although the file is not: a mount point.
        ErrorKind::PermissionDenied | ErrorKind::ResourceBusy | ErrorKind::ReadOnlyFilesystem
            if path.exists() =>
        {
            overwrite(path, text)
        }
        _ => Err(error),
    }
}

/// Replaces the contents of a file. If that fails, the old contents are written again.
fn overwrite(path: &Path, text: &[u8]) -> io::Result<()> {
    let old = fs::read(path)?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    let mut put = |text: &[u8]| {
        file.rewind()?;
        // A shorter text must not free the room of the old one before it is written. Until then the rest are empty lines, so
        // that a load in between reads the new servers alone.
        let rest = (file.metadata()?.len() as usize).saturating_sub(text.len());
        fill(&mut file, &[text, &vec![b'\n'; rest]].concat())?;
        file.set_len(text.len() as u64)?;
        file.sync_all()
    };
    put(text).inspect_err(|_| {
        let _ = put(&old);
    })
}

/// Opens an empty file, which everyone may read as a part of the configuration.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644);
    options.open(path)
}

fn fill(file: &mut File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_all()
}

/// The name of the new file until it replaces the old one.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

/// Maximum number of symbolic links that are followed, as in Linux.
const LINKS_MAX: usize = 40;
const ELOOP: i32 = 40;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::sync::Arc;

    use super::*;

    fn named(name: &str) -> Server {
        Server {
            name: Arc::from(name.as_bytes()),
            ..Server::new()
        }
    }

    /// An empty directory of one test.
    fn folder(name: &str) -> PathBuf {
        let name = format!("state-files-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("it is there")
    }

    #[test]
    fn a_file_has_one_line_for_each_server() {
        let dir = folder("lines");
        let path = dir.join("servers.conf");
        let stored = |servers: &[Server]| {
            write(&path, servers).expect("it can be written");
            text(&path)
        };
        assert_eq!(
            stored(&[named("a:1"), named("b:2")]),
            "server a:1;\nserver b:2;\n"
        );
        assert_eq!(stored(&[]), "");
        assert!(!beside(&path).exists());
        fs::remove_dir_all(&dir).expect("it is removed");
        let missing = write(&path, &[]).expect_err("there is no directory");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn the_target_of_a_link_is_replaced() {
        let dir = folder("links");
        let (link, second, path) = (dir.join("link"), dir.join("second"), dir.join("servers"));
        symlink("second", &link).expect("a link");
        symlink(&path, &second).expect("a link");
        for name in ["a:1", "b:2"] {
            // The first time the link leads to no file.
            write(&link, &[named(name)]).expect("it can be written");
            assert_eq!(text(&path), format!("server {name};\n"));
        }
        assert!(link.is_symlink() && second.is_symlink());
        let round = dir.join("round");
        symlink("round", &round).expect("a link");
        let error = write(&round, &[]).expect_err("it leads to itself");
        assert_eq!(error.raw_os_error(), Some(ELOOP));
        fs::remove_dir_all(&dir).expect("it is removed");
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_alone() {
        let dir = folder("failures");
        let path = dir.join("servers");
        fs::write(&path, "old").expect("it can be written");
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let error = replace(&path, b"new", |_, _| Err(kind.into()));
            assert_eq!(error.expect_err("the rename fails").kind(), kind);
            assert_eq!((text(&path), beside(&path).exists()), ("old".into(), false));
        }
        fs::remove_dir_all(&dir).expect("it is removed");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_gets_other_contents() {
        let dir = folder("contents");
        let path = dir.join("servers");
        fs::write(&path, "old contents").expect("it can be written");
        let inode = || fs::metadata(&path).expect("it is there").ino();
        let before = inode();
        for (kind, new) in [
            (ErrorKind::ResourceBusy, "new"),
            (ErrorKind::PermissionDenied, "longer contents"),
            (ErrorKind::ReadOnlyFilesystem, ""),
        ] {
            replace(&path, new.as_bytes(), |_, _| Err(kind.into())).expect("it can be written");
            assert_eq!(text(&path), new);
            assert!(!beside(&path).exists());
        }
        assert_eq!(inode(), before);
        fs::remove_dir_all(&dir).expect("it is removed");
    }
}
