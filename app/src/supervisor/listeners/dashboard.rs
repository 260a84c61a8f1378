//! The socket of the dashboard: store processes accept on it, and workers connect to it.
//!
//! It is a listener like others: a reload keeps it, a new binary inherits it, a stale file is replaced. Workers do not
//! get it. Its file has the mode 0600 from the start, and belongs to the worker's user.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Uid, chownat};
use server_base::errlog::Printable;
use server_base::listen::{Listen, ListenAddr, SocketOptions, UnixAccess};
use server_http::MainConf;

use super::Listener;
use crate::console::{Console, Logged};
use crate::supervisor::account::Account;

impl Listener {
    /// Whether store processes accept from it, not workers.
    pub(crate) fn is_dashboard(&self) -> bool {
        self.listen.options.access == UnixAccess::Owner
    }

    /// Returns a copy for a store process.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(crate) fn for_store_process(&self) -> io::Result<UnixListener> {
        let socket = self.sockets.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(socket.try_clone()?.into())
    }
}

/// Returns the socket of a configuration with a dashboard.
pub(crate) fn listen_of(main: &MainConf) -> Option<Listen> {
    let socket = main.lab_store.as_ref()?.dashboard.as_ref()?;
    Some(Listen {
        addr: ListenAddr::Unix(socket.path()?.to_owned()),
        options: SocketOptions {
            access: UnixAccess::Owner,
            ..SocketOptions::default()
        },
    })
}

/// Makes the worker's user the owner of the dashboard's socket. With `master_process off` nothing changes.
///
/// # Errors
/// It cannot be given, which has been reported.
pub(crate) fn give(
    listeners: &[Listener],
    main: &MainConf,
    account: Option<&Account>,
    console: &Console,
) -> Result<(), Logged> {
    let Some(account) = account.filter(|_| main.master_process) else {
        return Ok(());
    };
    for listener in listeners.iter().filter(|listener| listener.is_dashboard()) {
        if let ListenAddr::Unix(path) = listener.addr() {
            give_file(path, account.uid).map_err(|error| {
                let text = format_args!("chown() \"{}\"", Printable::path(path));
                console.fatal(text, &error)
            })?;
        }
    }
    Ok(())
}

/// Changes the owner of a file; does not follow a link.
fn give_file(path: &Path, uid: u32) -> io::Result<()> {
    let uid = Some(Uid::from_raw(uid));
    Ok(chownat(CWD, path, uid, None, AtFlags::SYMLINK_NOFOLLOW)?)
}
