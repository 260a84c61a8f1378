//! Removal of the files of UNIX-domain sockets, which outlive their sockets (unix(7)).

use std::path::{Path, PathBuf};

use server_base::errlog::{Level, Printable};
use server_base::listen::ListenAddr;

use super::{Listener, Origin, OtherServer};
use crate::console::Console;

/// Removes the files of sockets in `gone` that are not in `kept`, unless another process listens there. Returns the files
/// that a predecessor may still need.
pub(crate) fn remove_unix_files(
    gone: &[Listener],
    kept: &[Listener],
    other_server: OtherServer,
    console: &Console,
) -> Vec<PathBuf> {
    let mut left = Vec::new();
    for listener in gone
        .iter()
        .filter(|listener| !listener.sockets().is_empty())
    {
        let is_kept = kept.iter().any(|kept| kept.addr() == listener.addr());
        let ListenAddr::Unix(path) = listener.addr() else {
            continue;
        };
        match (listener.origin(), other_server) {
            _ if is_kept => {}
            (Origin::Manager, _) | (_, OtherServer::Successor) => {}
            (Origin::Predecessor, OtherServer::Predecessor) => left.push(path.clone()),
            _ => {
                // As in nginx: a reload reports it, the end of the server does not.
                if !kept.is_empty() {
                    let path = Printable::path(path);
                    console.report(Level::Warn, format_args!("deleting socket {path}"));
                }
                unlink(path, console);
            }
        }
    }
    left
}

/// Removes the file of a UNIX-domain socket.
pub(crate) fn unlink(path: &Path, console: &Console) {
    if let Err(error) = std::fs::remove_file(path) {
        console.failed(
            Level::Emerg,
            format_args!("unlink() {}", Printable::path(path)),
            &error,
        );
    }
}
