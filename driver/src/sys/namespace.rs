//! Network namespaces without names: each lives as long as a descriptor or a process refers to it.
//!
//! The server needs none; the emulated link (`link/`) joins two. A namespace that `ip netns` lists would
//! outlive a test that is killed, so none is ever named. Source: network_namespaces(7), setns(2).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

/// A network namespace, held.
#[derive(Debug)]
pub struct Network {
    namespace: OwnedFd,
}

impl Network {
    /// Makes a namespace with nothing in it but a loopback device that is down.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; /proc is not mounted.
    pub fn create() -> io::Result<Self> {
        let made = thread::Builder::new().name("namespace".into()).spawn(|| {
            // SAFETY: a network namespace is left behind, no table of descriptors, so that no thread
            // loses a descriptor; the thread ends here and took no other thread along.
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

    /// Moves the calling thread there; what it opens and starts from now on is there as well.
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
