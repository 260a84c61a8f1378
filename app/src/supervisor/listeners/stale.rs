//! Files of UNIX-domain sockets that nobody listens on, such as those of a server that was killed.
//!
//! nginx does not start while such a file is there. Here it is replaced. Before that:
//!
//! - the file is a socket, and connecting to it is refused twice, [`PROBE_PAUSE`] apart: another server may have bound it and
//!   not called listen() yet;
//! - it is renamed, and is still the file that was looked at: of two servers that start at a time only one gets it.
//!
//! Whatever cannot be found out (no permission, a socket for datagrams, a link) leaves the address in use. Source: unix(7).

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::listen::{self, BindError, Bound, Sharing};
use server_base::errlog::Level;
use server_base::listen::{ListenAddr, SocketOptions};
use sys::connect::{self, Address, Options};

use super::is_in_use;
use crate::console::Console;

/// Binds the address of a UNIX-domain socket, in the place of a file that nobody listens on.
///
/// # Errors
/// Those of [`listen::bind`]: somebody listens there, or the file is no socket or cannot be replaced.
pub(super) fn bind(
    path: &Path,
    addr: &ListenAddr,
    options: &SocketOptions,
    console: &Console,
) -> Result<Bound, BindError> {
    let error = match listen::bind(addr, options, Sharing::AsConfigured) {
        Err(error) if is_in_use(&error) => error,
        other => return other,
    };
    if !remove(path) {
        return Err(error);
    }
    console.report(
        Level::Notice,
        format_args!("{addr} is replaced, nobody listens there"),
    );
    listen::bind(addr, options, Sharing::AsConfigured)
}

/// Removes the file of a socket on which nobody listens; false if it is none, or not known to be one.
fn remove(path: &Path) -> bool {
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
        // Another server has replaced the file since. It gets its name back, unless that is taken again.
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

/// Whether nobody listens: the system says so, which it does not if this process may not connect.
fn refuses(path: &Path) -> bool {
    let address = Address::Unix(path.as_os_str().as_bytes());
    let connected = connect::stream_to(address, &Options::default());
    connected.is_err_and(|error| error.error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A name beside `path` that is this process's.
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
    use server_base::errlog::ErrorLog;
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

    fn bound(path: &Path) -> Result<Bound, BindError> {
        let console = Console::of_log(ErrorLog::new(Vec::new()));
        let addr = ListenAddr::Unix(path.to_owned());
        bind(path, &addr, &SocketOptions::default(), &console)
    }

    #[test]
    fn file_of_a_dead_server_is_replaced() {
        let dir = Dir::new("dead");
        let path = dir.0.join("socket");
        drop(UnixListener::bind(&path).expect("bind"));
        let _bound = bound(&path).expect("replaced");
        UnixStream::connect(&path).expect("somebody listens");
        assert_eq!(dir.files(), 1);
    }

    #[test]
    fn socket_that_somebody_listens_on_is_in_use() {
        let dir = Dir::new("alive");
        let path = dir.0.join("socket");
        let listener = UnixListener::bind(&path).expect("bind");
        let error = bound(&path).expect_err("in use");
        assert_eq!(error.error.kind(), io::ErrorKind::AddrInUse);
        // Its file is the same one, and connections to it come there.
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
            let error = bound(path).expect_err("in use");
            assert_eq!(error.error.kind(), io::ErrorKind::AddrInUse, "{path:?}");
        }
        assert_eq!(fs::read(&file).expect("the file"), b"text");
        assert_eq!(dir.files(), 4);
    }
}
