//! Files of UNIX-domain sockets without a listener, such as those of a server that was killed.
//!
//! nginx does not start while such a file exists. Here it is removed under two conditions:
//!
//! - The file is a socket, and connecting to it is refused twice. Between the tries another server that has bound it can call
//!   listen().
//! - The file is renamed first, and is still the one that was checked. So only one of two servers removes it.
//!
//! In doubt the address is in use: no permission, a socket for datagrams, a link. Source: unix(7).

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sys::connect::{self, Address, Options};

/// Removes the file of a socket without a listener. Returns false if it is another file, or if a listener may be there.
pub(super) fn remove(path: &Path) -> bool {
    let Some(file) = identity(path) else {
        return false;
    };
    if !refuses(path) {
        return false;
    }
    std::thread::sleep(PROBE_PAUSE);
    if !refuses(path) {
        return false;
    }
    let aside = aside(path);
    if fs::rename(path, &aside).is_err() {
        return false;
    }
    if identity(&aside) != Some(file) {
        // Another server has replaced the file meanwhile. Its name is restored unless that exists again.
        let _ = fs::hard_link(&aside, path);
        let _ = fs::remove_file(&aside);
        return false;
    }
    fs::remove_file(&aside).is_ok()
}

/// Device and inode of a socket's file; nothing for other files.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let is_socket = metadata.file_type().is_socket();
    is_socket.then(|| (metadata.dev(), metadata.ino()))
}

/// Whether a connection is refused because the socket has no listener. A process that may not connect gets another error.
fn refuses(path: &Path) -> bool {
    let address = Address::Unix(path.as_os_str().as_bytes());
    let connected = connect::stream_to(address, &Options::default());
    connected.is_err_and(|error| error.error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Returns a name beside `path` that only this process uses.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.stale", std::process::id()));
    PathBuf::from(name)
}

/// Time that another server has from bind() to listen().
const PROBE_PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    /// A directory that is removed with all files in it.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir();
            let dir = dir.join(format!("firstbyte-stale-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir(&dir).expect("a new directory");
            Self(dir)
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).expect("a directory").count()
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn file_of_a_dead_server_is_removed() {
        let dir = Dir::new("dead");
        let path = dir.0.join("socket");
        drop(UnixListener::bind(&path).expect("bind"));
        assert!(remove(&path));
        assert_eq!(dir.files(), 0);
    }

    #[test]
    fn socket_that_somebody_listens_on_is_in_use() {
        let dir = Dir::new("alive");
        let path = dir.0.join("socket");
        let listener = UnixListener::bind(&path).expect("bind");
        assert!(!remove(&path));
        // The file is the same one, and connections reach its listener.
        let _client = UnixStream::connect(&path).expect("connect");
        listener.set_nonblocking(true).expect("a socket");
        listener.accept().expect("a connection of the test");
    }

    #[test]
    fn what_is_no_socket_for_connections_stays() {
        let dir = Dir::new("others");
        let file = dir.0.join("file");
        fs::write(&file, "text").expect("a file");
        let datagrams = dir.0.join("datagrams");
        let _open = UnixDatagram::bind(&datagrams).expect("bind");
        let dead = dir.0.join("dead");
        drop(UnixListener::bind(&dead).expect("bind"));
        let link = dir.0.join("link");
        std::os::unix::fs::symlink(&dead, &link).expect("a link");
        for path in [&file, &datagrams, &link] {
            assert!(!remove(path), "{path:?}");
        }
        assert_eq!(fs::read(&file).expect("the file"), b"text");
        assert_eq!(dir.files(), 4);
    }
}
