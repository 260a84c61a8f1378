//! `--try`: kernel settings at the server's end of the link, one examination at a time.
//!
//! Settings of a route or a device are set on the link's, so that they affect no other connection. Two sysctls have no
//! such scope; they are set for the server's network, which is this process's.

use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};

use lab::doctor::{Tunable, Tuner};
use link::{Link, RouteOptions};
use sys::os_error;

use super::NAME;

/// Settings of the server's end of a link.
pub(super) struct Trials<'a> {
    link: &'a Link,
    route: Mutex<RouteOptions>,
    /// Held as long as settings are changed: who begins meanwhile would take a changed value for the one to restore.
    _alone: UnixListener,
}

impl<'a> Trials<'a> {
    /// # Errors
    /// Another examination of this network is at it.
    pub(super) fn begin(link: &'a Link) -> Result<Self, String> {
        // A name without a file belongs to a network, as the settings do, and is free when its process ends in any way.
        let alone =
            SocketAddr::from_abstract_name(LOCK).and_then(|name| UnixListener::bind_addr(&name));
        let alone = alone.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another firstbyte doctor --try is changing settings of this kernel".to_owned()
            }
            _ => format!("--try: {}", os_error(&error)),
        })?;
        Ok(Self {
            link,
            route: Mutex::default(),
            _alone: alone,
        })
    }
}

impl Tuner for Trials<'_> {
    fn set(&self, tunable: Tunable, value: &str) -> Result<(), String> {
        let mut route = self.route.lock().unwrap_or_else(PoisonError::into_inner);
        let set = match tunable {
            Tunable::InitialWindow => {
                route.initial_window = value.parse().ok();
                self.link.set_route(&route)
            }
            Tunable::CongestionControl => {
                route.congestion_control = Some(value.to_owned());
                self.link.set_route(&route)
            }
            Tunable::SegmentationOffload => self.link.set_segmentation_offload(value == "on"),
            Tunable::SlowStartAfterIdle | Tunable::Autocorking => {
                let name = tunable.sysctl().unwrap_or_default();
                self.link.set_sysctl(name, value)
            }
        };
        set.map_err(|error| os_error(&error))
    }

    fn notify(&self, sentence: &str) {
        // Progress is on the same line of a terminal.
        let _ = writeln!(io::stderr(), "\rfirstbyte {NAME}: {sentence}");
    }
}

/// The name of the socket that an examination holds while it tries settings.
const LOCK: &str = "firstbyte-doctor-try";
