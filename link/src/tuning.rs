//! Kernel settings at the server's end of a link, changed while the link exists.
//!
//! A route and a device belong to the link and end with it. A sysctl belongs to the server's network, which the link
//! may share with others ([`Link::to_here`]): the caller restores it.
//!
//! Source: ip-route(8), ip-sysctl.rst of the kernel.

use std::{fs, io};

use sys::device;

use super::{Link, inside, setup};

/// How the server's end sends on connections that are opened from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteOptions {
    /// Segments of the first window; `None` leaves it to the kernel.
    pub initial_window: Option<u32>,
    /// The algorithm of congestion control; `None` has that of the network.
    pub congestion_control: Option<String>,
}

impl Link {
    /// Changes the route from the server to the client.
    ///
    /// # Errors
    /// The kernel refuses the options; the error has the output of `ip`.
    pub fn set_route(&self, options: &RouteOptions) -> io::Result<()> {
        inside(&self.server, || {
            setup::change_route(&self.far_name, &self.addresses, options)
        })
    }

    /// Switches generic segmentation offload of the server's device.
    ///
    /// # Errors
    /// That of the ioctl.
    pub fn set_segmentation_offload(&self, is_on: bool) -> io::Result<()> {
        inside(&self.server, || {
            device::set_segmentation_offload(&self.far_name, is_on)
        })
    }

    /// Writes a sysctl of the server's network, such as `net.ipv4.tcp_autocorking`.
    ///
    /// # Errors
    /// There is none of that name, or it is read-only here.
    pub fn set_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        inside(&self.server, || fs::write(path, value))
    }
}
