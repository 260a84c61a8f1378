//! The user of the worker, and the directories that this user must own.
//!
//! Only root can become another user. Without root, the `user` directive has no effect. Source: nginx documentation,
//! `user`.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use server_base::errlog::{Level, Printable};
use server_http::MainConf;
use sys::{identity, trusted};

use crate::console::{Console, Logged};

/// A user and group of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// Finds the worker's account; the present one without root's rights.
    ///
    /// # Errors
    /// There is no such user or group, which has been reported.
    pub(crate) fn of(main: &MainConf, console: &Console) -> Result<Option<Self>, Logged> {
        if !identity::is_root() {
            if main.worker.user.is_some() {
                console.report(
                    Level::Warn,
                    format_args!(
                        "the \"user\" directive makes sense only if the master process runs \
                         with super-user privileges, ignored{}",
                        main.user_at
                    ),
                );
            }
            return Ok(None);
        }
        let (name, group) = match &main.worker.user {
            // nginx takes the group of the user's name.
            Some((name, group)) => (name.as_str(), Some(group.as_ref().unwrap_or(name))),
            None => (DEFAULT_USER, None),
        };
        let Some(user) = or_report("getpwnam", name, identity::lookup_user(name), console)? else {
            return Err(missing("getpwnam", name, &main.user_at, console));
        };
        let gid = match group {
            Some(group) => or_report("getgrnam", group, identity::lookup_group(group), console)?
                .ok_or_else(|| missing("getgrnam", group, &main.user_at, console))?,
            None => user.gid,
        };
        Ok(Some(Self {
            name: name.to_owned(),
            uid: user.uid,
            gid,
        }))
    }
}

fn or_report<T>(
    call: &str,
    name: &str,
    result: io::Result<T>,
    console: &Console,
) -> Result<T, Logged> {
    result.map_err(|error| console.fatal(format_args!("{call}(\"{name}\")"), &error))
}

fn missing(call: &str, name: &str, at: &str, console: &Console) -> Logged {
    console.report(Level::Emerg, format_args!("{call}(\"{name}\") failed{at}"));
    Logged
}

/// Makes the directories of temporary files, owned by the worker's user.
///
/// # Errors
/// One cannot be made or given, which has been reported.
pub(crate) fn create_directories<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
    account: Option<&Account>,
    console: &Console,
) -> Result<(), Logged> {
    for path in paths {
        let result = create_directory(path, account);
        result.map_err(|(call, error)| {
            console.fatal(format_args!("{call} \"{}\"", Printable::path(path)), &error)
        })?;
    }
    Ok(())
}

fn create_directory(
    path: &Path,
    account: Option<&Account>,
) -> Result<(), (&'static str, io::Error)> {
    match fs::DirBuilder::new().mode(OWNER_ALL).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(("mkdir()", error));
        }
        _ => {}
    }
    let Some(account) = account else {
        return Ok(());
    };
    let is_given = |metadata: &fs::Metadata| {
        metadata.uid() == account.uid && metadata.permissions().mode() & OWNER_ALL == OWNER_ALL
    };
    if is_given(&fs::metadata(path).map_err(|error| ("stat()", error))?) {
        return Ok(());
    }
    // A link of another user could point to any directory.
    let directory = trusted::open_directory(path).map_err(|error| ("open()", error))?;
    let metadata = directory.metadata().map_err(|error| ("stat()", error))?;
    if metadata.uid() != account.uid {
        identity::chown(&directory, account.uid).map_err(|error| ("chown()", error))?;
    }
    let mut permissions = metadata.permissions();
    permissions.set_mode(permissions.mode() | OWNER_ALL);
    directory
        .set_permissions(permissions)
        .map_err(|error| ("chmod()", error))
}

/// Default account of the worker.
const DEFAULT_USER: &str = "nobody";

const OWNER_ALL: u32 = 0o700;
