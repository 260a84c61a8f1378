//! A link for a whole command, or for a verb of the program, in namespaces that end with it.
//!
//! [`enter`] forks. The child is the first process of a PID namespace, makes the link, and runs its task. If it ends,
//! or if it or its parent is killed, the kernel ends every process that it started. Namespaces, devices, addresses and
//! routes end with the last of them. The parent passes signals on and returns the status. Without the rights of an
//! administrator, the namespaces belong to a user namespace, and the far end cannot be the machine's network.
//! [`run`](run::run) starts commands at the ends.
//!
//! A verb that measures connects from threads in [`Link::client`]'s network, or by [`Link::in_client`], and calls
//! [`Link::is_void`] for each sample.
//!
//! Deliberately absent: other machines as the far end, which would need routes on this one. Source: pid_namespaces(7),
//! user_namespaces(7); exit statuses as in env(1).

mod pid_namespace;
pub mod run;

use std::io;

use sys::namespace::Rights;
use sys::os_error;
use sys::signal::Signals;
use sys::{mount, namespace, random};

use crate::{Link, Options, Spec};

/// Network of the server's end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// The network of the caller: the client reaches its listeners. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN.
    Here,
    /// A namespace of its own.
    Apart,
}

/// Which link is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Options of the link.
    pub spec: Spec,
    /// Network of its other end.
    pub far: Far,
    /// Ports of the client's `localhost` that are the server's, in addition to
    /// [`LOCALHOST_PORTS`](crate::LOCALHOST_PORTS).
    pub ports: Vec<u16>,
}

/// A link, from inside the namespaces.
#[derive(Debug)]
pub struct Inside {
    /// The link.
    pub link: Link,
    /// Its specification, with the seed.
    pub spec: Spec,
    /// Signals to pass on, and those of children.
    pub(crate) signals: Signals,
    /// Rights of the process.
    pub rights: Rights,
}

/// Runs `verb` with a link, or with the error of making one, in a process of its own, and returns its status. The
/// calling process must have one thread. `verb` has to flush its output, and a panic has the status [`FAILED`].
///
/// # Errors
/// `Unsupported` if the machine permits no such process; the error of fork.
pub fn enter(wanted: &Wanted, verb: impl FnOnce(io::Result<Inside>) -> u8) -> io::Result<u8> {
    // A number that can be copied by hand, and that programs that read JSON have exactly.
    let mut seed = [0; 4];
    random::fill(&mut seed)?;
    let Wanted { spec, far, ports } = wanted;
    let spec = spec.clone().seeded(u32::from_ne_bytes(seed).into());
    let mut options = spec.options();
    let ports = ports.iter().map(|port| (*port, *port));
    options.localhost.extend(ports);
    pid_namespace::run(|signals, rights| {
        let link = link(options, *far, rights);
        verb(link.map(|link| Inside {
            link,
            spec,
            signals,
            rights,
        }))
    })
}

fn link(options: Options, far: Far, rights: Rights) -> io::Result<Link> {
    mount::keep_apart().map_err(|error| {
        let reason = os_error(&error);
        let why = format!("a link needs mounts of its own, which are refused here ({reason})");
        io::Error::new(io::ErrorKind::Unsupported, why)
    })?;
    // Refused in some containers: commands then see the processes outside, too.
    let _ = mount::show_own_processes();
    match (far, rights) {
        (Far::Here, Rights::Own) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a link to this machine's own network needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
        )),
        (Far::Here, Rights::Machine) => Link::to_here(options),
        (Far::Apart, _) => {
            if rights == Rights::Own {
                // For the `ip` command.
                namespace::hand_network_rights_on()?;
            }
            Link::new(options)
        }
    }
}

/// The status of a failure that is the link's, not the command's.
pub const FAILED: u8 = 125;
