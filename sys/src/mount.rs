//! Mounts in a private namespace (`namespace::isolate`): those of the machine are unchanged.
//!
//! The server needs none; `firstbyte via` runs a command with its own view of processes and of hosts' names.
//! Source: mount_namespaces(7), mount(2), proc(5).

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

/// Makes later mounts of this process private; mounts of the machine still appear here.
///
/// # Errors
/// The mounts are not this process's own.
pub fn keep_apart() -> io::Result<()> {
    let flags = MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM;
    Ok(mount_change("/", flags)?)
}

/// Makes /proc show the processes of the caller's namespace.
///
/// # Errors
/// Refused in containers that hide parts of /proc.
pub fn show_own_processes() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// Makes reads of the file at `path` return `content` from now on; the file itself is not touched. `folder` must
/// exist, and is empty during the call.
///
/// # Errors
/// There is no such file, or mounting is not allowed.
pub fn cover(path: &Path, content: &[u8], folder: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", folder, "tmpfs", flags, None)?;
    let cover = folder.join("cover");
    let covered = fs::write(&cover, content).and_then(|()| {
        let bound = mount_bind(&cover, path);
        bound.map_err(io::Error::from)
    });
    // The bind mount keeps the memory alive; the folder is as before.
    unmount(folder, UnmountFlags::DETACH)?;
    covered
}
