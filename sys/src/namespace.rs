//! Namespaces without names: each lives as long as a descriptor or a process refers to it.
//!
//! The server needs none; an emulated link (`link/`) joins two networks. A namespace listed by `ip netns` would
//! outlive a killed test, so none is ever named. A process may also create a PID namespace for its children; the
//! kernel ends all of them with the first. It may be administrator there without being one of the machine. Source:
//! network_namespaces(7), pid_namespaces(7), user_namespaces(7), setns(2).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags};

/// A network namespace, held.
#[derive(Debug)]
pub struct Network {
    namespace: OwnedFd,
}

impl Network {
    /// Makes a namespace that holds only a loopback device, which is down.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; /proc is not mounted.
    pub fn create() -> io::Result<Self> {
        let made = thread::Builder::new().name("namespace".into()).spawn(|| {
            // SAFETY: only the network namespace is unshared, not the table of descriptors, so that no thread loses
            // a descriptor. The thread ends here and affects no other thread.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
            Self::current()
        })?;
        made.join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread of a new namespace panicked")))
    }

    /// The namespace the calling thread is in.
    ///
    /// # Errors
    /// /proc is not mounted, or the descriptor limit is reached.
    pub fn current() -> io::Result<Self> {
        let namespace = rustix::fs::open(
            "/proc/thread-self/ns/net",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self { namespace })
    }

    /// Moves the calling thread there, and with it everything that it opens and starts from now on.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(rustix::thread::move_into_link_name_space(
            self.namespace.as_fd(),
            network,
        )?)
    }

    /// The number the kernel shows for it, as in `net:[4026531840]`.
    ///
    /// # Errors
    /// None is known.
    pub fn id(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(File::from(self.namespace.try_clone()?).metadata()?.ino())
    }
}

/// Administrator of the new namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// The administrator of the machine.
    Machine,
    /// This process alone, in a user namespace of its own, without access to the machine's networks.
    Own,
}

/// Moves the calling process, which must have one thread, to a mount namespace of its own, and its later children
/// to a PID namespace: when the first of them ends, the kernel ends all others. Without CAP_SYS_ADMIN both are of a
/// new user namespace, in which user and group keep their numbers.
///
/// # Errors
/// Neither is allowed on this machine.
pub fn isolate() -> io::Result<Rights> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    // SAFETY: the table of descriptors is not unshared.
    match unsafe { rustix::thread::unshare_unsafe(flags) } {
        Err(rustix::io::Errno::PERM) => {}
        other => return other.map(|()| Rights::Machine).map_err(io::Error::from),
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (user, group) = (user.as_raw(), group.as_raw());
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(flags | UnshareFlags::NEWUSER) }?;
    // Without it only an administrator may map groups: user_namespaces(7).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    Ok(Rights::Own)
}

/// Lets children and threads of the calling thread administer networks with its own rights.
///
/// # Errors
/// It may not.
pub fn hand_network_rights_on() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= CapabilitySet::NET_ADMIN;
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::configure_capability_in_ambient_set(
        CapabilitySet::NET_ADMIN,
        true,
    )?)
}

/// Removes the rights of [`hand_network_rights_on`] from the calling thread.
///
/// # Errors
/// None is known.
pub fn keep_network_rights() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    // The kernel removes capabilities that are not inheritable from the ambient set as well.
    sets.inheritable -= CapabilitySet::NET_ADMIN;
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
